#include "device/tests/linear/host_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <tuple>

#include "device/cublaslt/group_setup.h"
#include "device/layout/check_rows.h"
#include "device/linear/linear_path.h"
#include "device/tests/layout/each_column.h"
#include "device/tests/linear/scale_promise.h"
#include "reference/gemm/grouped_gemm.h"
#include "reference/recipes/dbias.h"
#include "reference/recipes/quantize.h"

namespace assay::device {

// Nothing else defines these without the files of the device library.
std::string CublasLtAlgorithm::description() const { return "id " + std::to_string(id); }
std::int64_t group_arrays_bytes(int groups) { return 40 * groups + 8; }

}  // namespace assay::device

namespace assay::device_linear_suite {
namespace {

using device::Rows;
using device::Stream;

constexpr std::uint8_t kRubbish = 0xCD;

HostDevice& state() { return host_device(); }

void enqueue(std::string name, std::function<void()> call) {
  state().log.push_back(std::move(name));
  if (state().capture != nullptr) {
    state().capture->push_back(std::move(call));
  } else {
    call();
  }
}

void spoil(void* memory, std::int64_t bytes) {
  if (bytes > 0) std::memset(memory, kRubbish, static_cast<std::size_t>(bytes));
}

std::vector<std::int64_t> splits_of(const Rows& rows) {
  if (rows.splits == nullptr) return {rows.capacity};
  if (!rows.splits_are_int32) return {rows.splits, rows.splits + rows.groups};
  const auto* const narrow = reinterpret_cast<const std::int32_t*>(rows.splits);
  return {narrow, narrow + rows.groups};
}

// Columnwise codes with columns at multiples of 16 bytes, and the same one after another (column_layout.h). `to_dense`: which is read.
void move_columns(std::byte* aligned, std::byte* dense, const std::vector<std::int64_t>& splits, std::int64_t columns,
                  bool to_dense) {
  device::each_column(splits, columns, [&](const device::ColumnPlace& column) {
    std::byte *const there = aligned + column.aligned, *const here = dense + column.dense;
    std::copy_n(to_dense ? there : here, column.rows, to_dense ? here : there);
  });
}

// ---- quantize --------------------------------------------------------------------------------------------------------

std::int64_t quantize_bytes(const device::QuantizeCall& call) {
  device::check_rows(call.rows);
  return 64 + call.rows.groups + (call.config.dbias ? 4 * call.columns : 0);
}

std::string described(const device::QuantizeCall& call) {
  std::string text = "quantize " + std::string(name_of(call.config.recipe)) + " " + std::to_string(call.rows.capacity) + "x" +
                     std::to_string(call.columns);
  if (call.config.rowwise) text += " rowwise";
  if (call.config.columnwise) text += " columnwise";
  if (call.config.dbias) text += " dbias";
  if (call.noop != nullptr) text += " noop";
  return text;
}

void quantize(const device::QuantizeCall& call, Stream) {
  device::require(call.workspace_bytes >= quantize_bytes(call), "workspace_bytes", call.workspace_bytes, "enough");
  device::require_pointer(call.workspace, "workspace", 256);
  if (call.rows.capacity != 0 && call.columns != 0) device::require_pointer(call.x, "x", 16);
  device::require(call.rows_multiple >= 1, "rows_multiple", call.rows_multiple, "a value of at least 1");
  state().quantizations.push_back({call.config.recipe, call.rows.capacity, call.rows_multiple});
  enqueue(described(call), [call] {
    spoil(call.workspace, call.workspace_bytes);
    const std::vector<std::int64_t> splits = splits_of(call.rows);
    const bool of_blocks = call.config.recipe == Recipe::block_1x128 || call.config.recipe == Recipe::block_128x128;
    const bool relies_on_multiple = of_blocks && call.output.columnwise_data != nullptr && call.rows_multiple % 16 == 0;
    for (const std::int64_t rows : splits) {
      if (!relies_on_multiple || rows % call.rows_multiple == 0) continue;
      if (call.status != nullptr) *call.status |= device::kStatusUnalignedRows;
      return;
    }
    QuantizeProblem problem;
    problem.config = call.config;
    problem.x_type = call.x_type;
    problem.x = call.x;
    problem.rows = call.rows.capacity;
    problem.columns = call.columns;
    problem.grouped = call.rows.splits != nullptr;
    problem.splits = splits;
    problem.scale = call.scale;
    problem.noop = call.noop;
    QuantizeOutput output = call.output;
    std::vector<std::byte> dense;
    if (call.column_alignment != 1 && output.columnwise_data != nullptr) {
      dense.resize(static_cast<std::size_t>(call.rows.capacity * call.columns));
      output.columnwise_data = dense.data();
    }
    assay::quantize(problem, output);
    if (!dense.empty())
      move_columns(static_cast<std::byte*>(call.output.columnwise_data), dense.data(), splits, call.columns, false);
    spoil(call.workspace, call.workspace_bytes);
  });
}

// ---- dbias -----------------------------------------------------------------------------------------------------------

std::int64_t dbias_bytes(const device::DbiasCall& call) {
  device::check_rows(call.rows);
  return 4 * call.columns + 128;
}

void sum(const device::DbiasCall& call, Stream) {
  device::require(call.workspace_bytes >= dbias_bytes(call), "workspace_bytes", call.workspace_bytes, "enough");
  enqueue("dbias", [call] {
    const std::vector<std::int64_t> splits = splits_of(call.rows);
    DbiasProblem problem;
    problem.x_type = call.x_type;
    problem.x = call.x;
    problem.rows = call.rows.capacity;
    problem.columns = call.columns;
    problem.splits = splits;
    problem.output_type = call.output_type;
    grouped_dbias(problem, call.dbias);
    spoil(call.workspace, call.workspace_bytes);
  });
}

// ---- GEMM ------------------------------------------------------------------------------------------------------------

std::int64_t cublaslt_bytes(const device::GroupedGemmCall& call, const device::CublasLtSettings& settings) {
  device::check_rows(call.rows);
  const std::int64_t copies = call.layout == GemmLayout::NT && call.rows_multiple % 16 != 0 ? 32 * call.rows.capacity : 0;
  return copies + 24 + (settings.group_arrays == nullptr ? device::group_arrays_bytes(call.rows.groups) : 0) +
         (settings.library_workspace == nullptr ? settings.workspace_bytes / 65536 : 0);
}
std::int64_t emulated_bytes(const device::GroupedGemmCall& call, const device::EmulatedArithmetic& arithmetic) {
  device::check_rows(call.rows);
  return arithmetic.plan->promotion_interval + 8 * call.rows.groups;
}

// The parts of a call that a graph keeps, including the lists, which are read during the call.
struct Product {
  device::GroupedGemmCall call;
  std::vector<const void*> weights;
  std::vector<void*> gradients;
  const AccumulationPlan* plan;
  std::string architecture;
  HostDevice::ProductMemory memory;
  bool relies_on_multiple;

  static GemmOperand plain(const device::GemmOperand& from) {
    return {from.type, from.data, from.scale_inv, from.columnwise, from.amax};
  }

  void spoil_memory() const {
    for (const HostDevice::Extent& each : {memory.workspace, memory.setup, memory.library}) spoil(each.begin, each.bytes);
  }

  void run() const {
    spoil_memory();
    const std::vector<std::int64_t> splits = splits_of(call.rows);
    for (const std::int64_t rows : splits) {
      if (!relies_on_multiple || rows % call.rows_multiple == 0) continue;
      if (call.status != nullptr) *call.status |= device::kStatusUnalignedRows;
      return;
    }
    const auto each = static_cast<std::size_t>(call.N * call.K);
    GroupedGemmProblem problem;
    problem.kind = call.kind;
    problem.layout = call.layout;
    problem.splits = splits;
    problem.rows = call.rows.capacity;
    problem.N = call.N;
    problem.K = call.K;
    problem.x = plain(call.x);
    problem.w = plain(call.w);
    problem.dy = plain(call.dy);
    problem.weight_block = call.weight_block;
    problem.scale_layout = call.scale_layout;
    problem.split_accumulator = call.split_accumulator;
    problem.d_type = call.d_type;
    problem.bias = call.bias;
    problem.plan = plan;
    problem.architecture = architecture;
    std::vector<std::byte> dense[2];
    for (const auto& [operand, columns, of] : {std::tuple{&problem.dy, call.N, &dense[0]}, {&problem.x, call.K, &dense[1]}}) {
      if (call.column_alignment == 1) break;
      of->resize(static_cast<std::size_t>(call.rows.capacity * columns));
      move_columns(static_cast<std::byte*>(const_cast<void*>(operand->data)), of->data(), splits, columns, true);
      operand->data = of->data();
    }
    if (call.alpha != nullptr) problem.alpha = {call.alpha, 1};
    if (call.beta != nullptr) problem.beta = {call.beta, 1};

    const std::size_t w_bytes = 2 * each, d_bytes = each * (call.d_type == Format::f32 ? 4 : 2);
    std::vector<std::byte> w(weights.size() * w_bytes), dw(gradients.size() * d_bytes);
    for (std::size_t t = 0; t < weights.size() && each != 0; ++t) std::memcpy(&w[t * w_bytes], weights[t], w_bytes);
    for (std::size_t t = 0; t < gradients.size() && each != 0; ++t) std::memcpy(&dw[t * d_bytes], gradients[t], d_bytes);
    if (!weights.empty()) problem.w.data = w.data();
    void* const d = gradients.empty() ? call.d : dw.data();
    problem.c = call.c != nullptr ? call.c : d;
    grouped_gemm(problem, d);
    for (std::size_t t = 0; t < gradients.size() && each != 0; ++t) std::memcpy(gradients[t], &dw[t * d_bytes], d_bytes);
    spoil_memory();
  }
};

void multiply(const device::GroupedGemmCall& call, const AccumulationPlan* plan, std::int64_t bytes, device::GemmPath path,
              HostDevice::Extent setup = {}, HostDevice::Extent library = {}) {
  device::check_grouped_gemm(call);
  device::require(call.workspace_bytes >= bytes, "workspace_bytes", call.workspace_bytes, "enough");
  const HostDevice::ProductMemory memory{call.layout, {call.workspace, call.workspace_bytes}, setup, library, call.rows_multiple};
  const bool relies_on_multiple = path != device::GemmPath::emulated && call.layout == GemmLayout::NT;
  Product product{call, {}, {}, plan, call.kind >= GemmKind::mxfp8 ? "sm100" : "sm90", memory, relies_on_multiple};
  if (call.w.data_list != nullptr) product.weights.assign(call.w.data_list, call.w.data_list + call.rows.groups);
  if (call.d_list != nullptr) product.gradients.assign(call.d_list, call.d_list + call.rows.groups);
  state().products.push_back(memory);
  state().launched_on.push_back(state().current_device);
  enqueue("gemm " + std::string(name_of(call.layout)) + " " + device::name_of(path), [product] { product.run(); });
}

void by_cublaslt(const device::GroupedGemmCall& call, const device::CublasLtSettings& settings,
                 const device::CublasLtAlgorithm* algorithm, Stream) {
  const bool has_products = call.rows.capacity > 0 && call.N > 0 && call.K > 0;
  EXPECT_EQ(algorithm != nullptr, has_products) << "what is reported must be what runs";
  HostDevice::Extent setup, library;
  if (settings.group_arrays != nullptr) setup = {settings.group_arrays, device::group_arrays_bytes(call.rows.groups)};
  if (settings.library_workspace != nullptr) library = {settings.library_workspace, settings.workspace_bytes};
  multiply(call, nullptr, cublaslt_bytes(call, settings), device::GemmPath::cublaslt, setup, library);
}
void by_emulated(const device::GroupedGemmCall& call, const device::EmulatedArithmetic& arithmetic, Stream) {
  multiply(call, arithmetic.plan, emulated_bytes(call, arithmetic), device::GemmPath::emulated);
}

std::string assay_missing(const device::GroupedGemmCall& call, const device::Fp8BlockSettings&) {
  if (state().assay_missing) return state().assay_missing(call);
  if (call.kind != GemmKind::fp8_block) return "no products of kind " + std::string(name_of(call.kind));
  return state().architecture == 90 ? "" : "this device is no SM90";
}
std::string assay_plan(const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings) {
  const bool squares = call.layout != GemmLayout::NT && call.weight_block == WeightBlock::b128x128;
  const bool scales_first = settings.order.has_value() ? *settings.order == device::Fp8BlockOrder::scales_first
                                                       : squares || call.layout == GemmLayout::NT;
  return scales_first ? "assay.sm90.fp8_block.scales_first" : "assay.sm90.fp8_block.rows_first";
}
void check_assay(const device::GroupedGemmCall&, const device::Fp8BlockSettings&) {
  if (!state().wrong_settings.empty()) throw device::InvalidArgument(state().wrong_settings);
}
std::int64_t assay_bytes(const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings) {
  device::check_rows(call.rows);
  if (call.layout != GemmLayout::NT) return 0;
  return 512 * settings.multiprocessors + 8 * call.rows.groups +
         (call.rows_multiple % 16 == 0 || call.column_alignment == 16 ? 0 : 32 * call.rows.capacity);
}
void by_assay(const device::GroupedGemmCall& call, const device::Fp8BlockSettings& settings, Stream) {
  if (breaks_scale_promise(call, settings)) *call.status |= device::kStatusOtherScales;
  multiply(call, find_accumulation_plan(assay_plan(call, settings)), assay_bytes(call, settings), device::GemmPath::assay);
}

void check_emulated(const device::GroupedGemmCall&, const device::EmulatedArithmetic&) {
  if (!state().wrong_plan.empty()) throw device::InvalidArgument(state().wrong_plan);
}

std::vector<device::CublasLtAlgorithm> algorithms(const device::GroupedGemmCall& call, const device::CublasLtSettings&,
                                                  int at_most) {
  device::check_grouped_gemm(call);
  if (call.rows.capacity == 0 || call.N == 0 || call.K == 0)
    throw device::NotSupported("the heuristic has nothing for no products");
  ++state().heuristic_calls;
  if (state().no_candidate) return {};
  std::vector<device::CublasLtAlgorithm> found(static_cast<std::size_t>(std::min(at_most, 2)));
  for (std::size_t i = 0; i < found.size(); ++i) found[i].id = 60 + static_cast<int>(call.layout) + 10 * static_cast<int>(i);
  return found;
}
device::CublasLtRoute route(const device::GroupedGemmCall& call, const device::CublasLtSettings&) {
  const bool defect = call.kind == GemmKind::fp8_block && call.layout != GemmLayout::NT && call.d_type == Format::f32;
  return defect ? device::CublasLtRoute::expanded_scales : device::CublasLtRoute::direct;
}
std::string missing(const device::GroupedGemmCall& call, int architecture) {
  if (!state().missing_library.empty()) return state().missing_library;
  return state().missing ? state().missing(call, architecture) : "";
}
void prepare() { state().log.push_back("prepare"); }
int architecture() { return state().architecture; }
int library_version() { return state().version; }

// ---- Moves -----------------------------------------------------------------------------------------------------------

void make_constants(std::int64_t* splits, int groups, std::int64_t rows, float* one, Stream) {
  enqueue("constants", [=] {
    if (splits != nullptr) std::fill(splits, splits + groups, rows);
    if (one != nullptr) *one = 1;
  });
}
void copy(void* to, const void* from, std::int64_t bytes, Stream) {
  enqueue("copy " + std::to_string(bytes), [=] {
    if (bytes != 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  });
}
void gather(const void* const* from, int count, std::int64_t bytes, void* to, Stream) {
  enqueue("gather", [list = std::vector<const void*>(from, from + count), bytes, to] {
    for (std::size_t t = 0; t < list.size() && bytes != 0; ++t) {
      std::memcpy(static_cast<std::byte*>(to) + t * static_cast<std::size_t>(bytes), list[t], static_cast<std::size_t>(bytes));
    }
  });
}
void scatter(const void* from, void* const* to, int count, std::int64_t bytes, Stream) {
  enqueue("scatter", [list = std::vector<void*>(to, to + count), bytes, from] {
    for (std::size_t t = 0; t < list.size() && bytes != 0; ++t) {
      std::memcpy(list[t], static_cast<const std::byte*>(from) + t * static_cast<std::size_t>(bytes),
                  static_cast<std::size_t>(bytes));
    }
  });
}

constexpr std::size_t kGuard = 1024;
constexpr std::uint8_t kCanary = 0x3C;

}  // namespace

HostDevice& host_device() {
  static HostDevice device;
  return device;
}

const device::LinearKernels& host_kernels() {
  static constexpr device::LinearKernels kKernels{
      .quantize_bytes = quantize_bytes,
      .quantize_with = quantize,
      .dbias_bytes = dbias_bytes,
      .sum_with = sum,
      .check_product = device::check_grouped_gemm,
      .check_emulated = check_emulated,
      .prepare = prepare,
      .cublaslt_bytes = cublaslt_bytes,
      .algorithms = algorithms,
      .route = route,
      .multiply_by_cublaslt = by_cublaslt,
      .emulated_bytes = emulated_bytes,
      .multiply_by_emulated = by_emulated,
      .assay_missing = assay_missing,
      .assay_plan = assay_plan,
      .check_assay = check_assay,
      .assay_bytes = assay_bytes,
      .multiply_by_assay = by_assay,
      .missing = missing,
      .missing_code = [] { return state().missing_code; },
      .architecture = architecture,
      .library_version = library_version,
      .make_constants = make_constants,
      .copy = copy,
      .gather = gather,
      .scatter = scatter,
  };
  return kKernels;
}

GuardedMemory::GuardedMemory(std::int64_t bytes, std::uint8_t fill)
    : all_(static_cast<std::size_t>(bytes) + 2 * kGuard, kCanary), bytes_(bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(all_.data());
  data_ = all_.data() + ((begin + kGuard / 2 + 255) / 256 * 256 - begin);
  std::fill(data_, data_ + bytes, fill);
}

GuardedMemory::~GuardedMemory() {
  const std::uint8_t* const end = all_.data() + all_.size();
  EXPECT_EQ(std::find_if(static_cast<const std::uint8_t*>(all_.data()), static_cast<const std::uint8_t*>(data_),
                         [](auto b) { return b != kCanary; }),
            data_)
      << "something was written before the memory";
  EXPECT_EQ(std::find_if(static_cast<const std::uint8_t*>(data_ + bytes_), end, [](auto b) { return b != kCanary; }), end)
      << "something was written after the memory";
}

}  // namespace assay::device_linear_suite
