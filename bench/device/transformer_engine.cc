#include "bench/device/transformer_engine.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "reference/layout/scale_shape.h"

namespace assay::bench {
namespace {

// Values and structs of TransformerEngine's C interface.
constexpr int kInt64 = 3, kF32 = 4, kBf16 = 6, kE4m3 = 7, kE5m2 = 8;                           // types
constexpr int kPlain = 0, kBlocks1x128 = 2, kBlocks128x128 = 3;                                // scaling modes
constexpr int kRowwiseData = 0, kColumnwiseData = 1, kRowwiseScale = 4, kColumnwiseScale = 5;  // members, of groups too
constexpr int kFirstDimensions = 7, kOffsets = 9;                                              // members of groups
constexpr int kPowersOfTwo = 0, kEpsilon = 1;                                                  // attributes: uint8, float

using Handle = void*;
struct VendorShape {
  std::size_t extents[15];
  std::size_t rank;
};
struct VendorArray {
  void* data;
  int type;
  VendorShape shape;
};
static_assert(sizeof(VendorShape) == 128 && sizeof(VendorArray) == 144);

VendorShape shape_of(std::initializer_list<std::int64_t> extents) {
  VendorShape shape{};
  for (const std::int64_t extent : extents) shape.extents[shape.rank++] = static_cast<std::size_t>(extent);
  return shape;
}

void* moved(void* pointer, std::int64_t bytes) { return pointer == nullptr ? nullptr : static_cast<char*>(pointer) + bytes; }

}  // namespace

struct TransformerEngine::EntryPoints {
  Handle (*create_tensor)(int mode);
  void (*destroy_tensor)(Handle);
  void (*set_tensor)(Handle, int member, const void* value, std::size_t bytes);
  Handle (*create_groups)(int mode, std::size_t groups, VendorShape all);
  void (*destroy_groups)(Handle);
  void (*set_groups)(Handle, int member, const void* value, std::size_t bytes);
  Handle (*create_config)();
  void (*destroy_config)(Handle);
  void (*set_config)(Handle, int attribute, const void* value, std::size_t bytes);
  void (*quantize)(Handle input, Handle output, Handle config, cudaStream_t);
  void (*quantize_groups)(Handle input, Handle output, Handle config, cudaStream_t);
};

TransformerEngine::TransformerEngine(const char* path) {
  void* library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw std::runtime_error(std::string("TransformerEngine could not be loaded from ") + path + " (" +
                             (reason == nullptr ? "no reason given" : reason) + ")");
  }
  auto* found = new EntryPoints{};
  const auto find = [&](const char* name, auto*& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr) throw std::runtime_error(std::string(path) + " has no " + name);
  };
  find("nvte_create_tensor", found->create_tensor);
  find("nvte_destroy_tensor", found->destroy_tensor);
  find("nvte_set_tensor_param_v2", found->set_tensor);
  find("nvte_create_grouped_tensor", found->create_groups);
  find("nvte_destroy_grouped_tensor", found->destroy_groups);
  find("nvte_set_grouped_tensor_param", found->set_groups);
  find("nvte_create_quantization_config", found->create_config);
  find("nvte_destroy_quantization_config", found->destroy_config);
  find("nvte_set_quantization_config_attribute", found->set_config);
  find("nvte_quantize_v2", found->quantize);
  find("nvte_group_quantize", found->quantize_groups);
  entry_points_ = found;
}

const TransformerEngine* TransformerEngine::get() {
  static const std::unique_ptr<const TransformerEngine> library = [] {
    const char* path = std::getenv("ASSAY_TRANSFORMER_ENGINE");
    const bool named = path != nullptr && *path != '\0';
    return std::unique_ptr<const TransformerEngine>(named ? new TransformerEngine(path) : nullptr);
  }();
  return library.get();
}

const char* name_of(VendorRoute route) {
  switch (route) {
    case VendorRoute::ragged: return "ragged";
    case VendorRoute::alike: return "alike";
    case VendorRoute::each: return "each";
    default: return "whole";
  }
}

QuantizedBuffers::QuantizedBuffers(const device::QuantizeCall& call, const std::vector<std::int64_t>& splits) {
  const auto make = [&](bool requested, Direction direction, DeviceBuffer& data, DeviceBuffer& scales) {
    if (!requested) return;
    data = DeviceBuffer(call.rows.capacity * call.columns);
    scales = DeviceBuffer(4 * scale_offsets(call.config.recipe, direction, splits, call.columns).back());
    for (const DeviceBuffer* buffer : {&data, &scales}) {
      check(cudaMemsetAsync(buffer->as(), 0xA5, static_cast<std::size_t>(buffer->bytes()), stream()), "cudaMemsetAsync");
    }
  };
  make(call.config.rowwise, Direction::rowwise, rowwise_data, rowwise_scale_inv);
  make(call.config.columnwise, Direction::columnwise, columnwise_data, columnwise_scale_inv);
}

QuantizeOutput QuantizedBuffers::output() const {
  QuantizeOutput output;
  output.rowwise_data = rowwise_data.as();
  output.columnwise_data = columnwise_data.as();
  output.rowwise_scale_inv = rowwise_scale_inv.as();
  output.columnwise_scale_inv = columnwise_scale_inv.as();
  return output;
}

// Pairs of inputs and outputs, and the device arrays that they point to.
struct VendorQuantization::Handles {
  const TransformerEngine::EntryPoints& vendor;
  std::vector<std::pair<Handle, Handle>> tensors, groups;
  Handle config = nullptr;
  DeviceBuffer first_dimensions, offsets;

  explicit Handles(const TransformerEngine::EntryPoints& of) : vendor(of), config(of.create_config()) {}
  Handles(const Handles&) = delete;
  ~Handles() {
    for (const auto& [input, output] : tensors) vendor.destroy_tensor(input), vendor.destroy_tensor(output);
    for (const auto& [input, output] : groups) vendor.destroy_groups(input), vendor.destroy_groups(output);
    vendor.destroy_config(config);
  }

  // Rows [first, first + rows) as a tensor, whose scales begin `rowwise` and `columnwise` floats after those of the call.
  void add_tensor(const device::QuantizeCall& call, std::int64_t first, std::int64_t rows, std::int64_t rowwise,
                  std::int64_t columnwise) {
    const bool vectors = call.config.recipe == Recipe::block_1x128;
    const int code = call.config.output == Format::e4m3 ? kE4m3 : kE5m2;
    const std::int64_t columns = call.columns, row_blocks = ceil_div(rows, 128), column_blocks = ceil_div(columns, 128);
    const QuantizeOutput& to = call.output;
    tensors.emplace_back(vendor.create_tensor(kPlain), vendor.create_tensor(vectors ? kBlocks1x128 : kBlocks128x128));
    const auto set = [&](Handle tensor, int member, void* data, int type, VendorShape shape) {
      const VendorArray array{data, type, shape};
      vendor.set_tensor(tensor, member, &array, sizeof array);
    };
    const auto [input, output] = tensors.back();
    set(input, kRowwiseData, moved(const_cast<void*>(call.x), 2 * first * columns), kBf16, shape_of({rows, columns}));
    if (call.config.rowwise) {
      set(output, kRowwiseData, moved(to.rowwise_data, first * columns), code, shape_of({rows, columns}));
      set(output, kRowwiseScale, moved(to.rowwise_scale_inv, 4 * rowwise), kF32,
          vectors ? shape_of({column_blocks, round_up(rows, 4)}) : shape_of({row_blocks, round_up(column_blocks, 4)}));
    }
    if (call.config.columnwise) {
      set(output, kColumnwiseData, moved(to.columnwise_data, first * columns), code, shape_of({columns, rows}));
      set(output, kColumnwiseScale, moved(to.columnwise_scale_inv, 4 * columnwise), kF32,
          vectors ? shape_of({row_blocks, round_up(columns, 4)}) : shape_of({column_blocks, round_up(row_blocks, 4)}));
    }
  }

  // All groups as one grouped tensor, whose members are flat arrays.
  void add_groups(const device::QuantizeCall& call, const std::vector<std::int64_t>& splits, bool on_the_device) {
    const bool vectors = call.config.recipe == Recipe::block_1x128;
    const int code = call.config.output == Format::e4m3 ? kE4m3 : kE5m2;
    const auto count = static_cast<std::int64_t>(splits.size());
    const std::int64_t elements = call.rows.capacity * call.columns;
    const VendorShape all = shape_of({call.rows.capacity, call.columns});
    groups.emplace_back(vendor.create_groups(kPlain, splits.size(), all),
                        vendor.create_groups(vectors ? kBlocks1x128 : kBlocks128x128, splits.size(), all));
    const auto set = [&](Handle tensor, int member, void* data, int type, std::int64_t length) {
      const VendorArray array{data, type, shape_of({length})};
      vendor.set_groups(tensor, member, &array, sizeof array);
    };
    const auto [input, output] = groups.back();
    set(input, kRowwiseData, const_cast<void*>(call.x), kBf16, elements);
    const auto scales = [&](Direction direction) {
      return scale_offsets(call.config.recipe, direction, splits, call.columns).back();
    };
    if (call.config.rowwise) {
      set(output, kRowwiseData, call.output.rowwise_data, code, elements);
      set(output, kRowwiseScale, call.output.rowwise_scale_inv, kF32, scales(Direction::rowwise));
    }
    if (call.config.columnwise) {
      set(output, kColumnwiseData, call.output.columnwise_data, code, elements);
      set(output, kColumnwiseScale, call.output.columnwise_scale_inv, kF32, scales(Direction::columnwise));
    }
    if (!on_the_device) return;
    std::vector<std::int64_t> begins{0};
    for (const std::int64_t rows : splits) begins.push_back(begins.back() + rows * call.columns);
    first_dimensions = bench::on_device(splits);
    offsets = bench::on_device(begins);
    for (const Handle tensor : {input, output}) {
      set(tensor, kFirstDimensions, first_dimensions.as(), kInt64, count);
      set(tensor, kOffsets, offsets.as(), kInt64, count + 1);
    }
  }
};

VendorQuantization::VendorQuantization(const TransformerEngine& library, const device::QuantizeCall& call,
                                       const std::vector<std::int64_t>& splits, VendorRoute route)
    : handles_(std::make_unique<Handles>(library.entry_points())) {
  const QuantizeConfig& config = call.config;
  std::int64_t rows = 0;
  for (const std::int64_t own : splits) {
    if (own < 0 || own % 128 != 0) throw std::invalid_argument("rows of a group: expected a multiple of 128");
    if (route == VendorRoute::alike && own != splits.front())
      throw std::invalid_argument("rows of the groups: expected equal ones");
    rows += own;
  }
  const bool blocks = config.recipe == Recipe::block_1x128 || config.recipe == Recipe::block_128x128;
  if (!blocks || config.dbias || call.x_type != Format::bf16 || rows != call.rows.capacity) {
    throw std::invalid_argument(
        "a quantization for the vendor: expected block scaling of bf16 without dbias, all rows in groups");
  }
  const std::uint8_t powers_of_two = config.force_pow_2_scales ? 1 : 0;
  handles_->vendor.set_config(handles_->config, kPowersOfTwo, &powers_of_two, sizeof powers_of_two);
  handles_->vendor.set_config(handles_->config, kEpsilon, &config.amax_epsilon, sizeof config.amax_epsilon);

  switch (route) {
    case VendorRoute::ragged:
    case VendorRoute::alike: handles_->add_groups(call, splits, route == VendorRoute::ragged); break;
    case VendorRoute::each: {
      const auto rowwise = scale_offsets(config.recipe, Direction::rowwise, splits, call.columns);
      const auto columnwise = scale_offsets(config.recipe, Direction::columnwise, splits, call.columns);
      std::int64_t first = 0;
      for (std::size_t t = 0; t < splits.size(); first += splits[t++]) {
        if (splits[t] != 0) handles_->add_tensor(call, first, splits[t], rowwise[t], columnwise[t]);
      }
      break;
    }
    case VendorRoute::whole: handles_->add_tensor(call, 0, rows, 0, 0); break;
  }
}
VendorQuantization::VendorQuantization(VendorQuantization&&) noexcept = default;
VendorQuantization::~VendorQuantization() = default;

void VendorQuantization::launch(cudaStream_t stream) const {
  const TransformerEngine::EntryPoints& vendor = handles_->vendor;
  for (const auto& [input, output] : handles_->tensors) vendor.quantize(input, output, handles_->config, stream);
  for (const auto& [input, output] : handles_->groups) vendor.quantize_groups(input, output, handles_->config, stream);
}

namespace {

// Whether two buffers hold the same bytes; compared on the host, part by part.
bool same_bytes(const DeviceBuffer& a, const DeviceBuffer& b) {
  constexpr std::int64_t kPart = std::int64_t{32} << 20;
  static char* const parts = [] {  // pinned: pageable memory takes ten times as long
    void* memory = nullptr;
    check(cudaMallocHost(&memory, 2 * kPart), "cudaMallocHost");
    return static_cast<char*>(memory);
  }();
  if (a.bytes() != b.bytes()) return false;
  for (std::int64_t done = 0; done < a.bytes(); done += kPart) {
    const auto bytes = static_cast<std::size_t>(std::min(kPart, a.bytes() - done));
    check(cudaMemcpy(parts, a.as<char>() + done, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaMemcpy(parts + kPart, b.as<char>() + done, bytes, cudaMemcpyDeviceToHost), "cudaMemcpy");
    if (std::memcmp(parts, parts + kPart, bytes) != 0) return false;
  }
  return true;
}

bool has_equal_groups(const std::vector<std::int64_t>& splits) {
  for (const std::int64_t rows : splits) {
    if (rows != splits.front()) return false;
  }
  return true;
}

}  // namespace

VendorChoice choose_route(const TransformerEngine& library, const device::QuantizeCall& call,
                          const std::vector<std::int64_t>& splits) {
  std::optional<VendorChoice> best;
  std::string differing;
  for (const VendorRoute route : {VendorRoute::ragged, VendorRoute::alike, VendorRoute::each, VendorRoute::whole}) {
    if (route == VendorRoute::alike && !has_equal_groups(splits)) continue;
    if (route == VendorRoute::each && splits.size() == 1) continue;  // as `whole`
    device::QuantizeCall ours = call;
    const bool whole = route == VendorRoute::whole;
    const std::vector<std::int64_t> rows = whole ? std::vector<std::int64_t>{call.rows.capacity} : splits;
    const DeviceBuffer device_rows = on_device(rows);
    ours.rows.groups = static_cast<int>(rows.size());
    ours.rows.splits = whole ? nullptr : device_rows.as<std::int64_t>();
    const DeviceBuffer workspace(device::quantize_workspace_bytes(ours));
    ours.workspace = workspace.as();
    ours.workspace_bytes = workspace.bytes();
    const QuantizedBuffers want(ours, rows), got(ours, rows);
    device::QuantizeCall theirs = ours;
    ours.output = want.output();
    theirs.output = got.output();
    device::quantize(ours, stream());
    const VendorQuantization vendor(library, theirs, splits, route);
    vendor.launch(stream());
    check(cudaStreamSynchronize(stream()), "quantization by the vendor");

    const std::string other = !same_bytes(want.rowwise_data, got.rowwise_data)         ? "other rowwise codes"
                              : !same_bytes(want.columnwise_data, got.columnwise_data) ? "other columnwise codes"
                                                                                       : "";
    if (!other.empty()) {
      if (!differing.empty()) differing += ", ";
      differing.append(name_of(route)).append(": ").append(other);
      continue;
    }
    VendorChoice choice;
    choice.route = route;
    choice.same_scales = same_bytes(want.rowwise_scale_inv, got.rowwise_scale_inv) &&
                         same_bytes(want.columnwise_scale_inv, got.columnwise_scale_inv);

    const GraphOf graph(4, [&](int) { vendor.launch(stream()); });
    std::vector<double> seconds;
    for (int i = 0; i < 7; ++i) seconds.push_back(graph.seconds_per_node());
    choice.seconds = median(seconds);
    if (!best || choice.seconds < best->seconds) best = choice;
  }
  if (!differing.empty()) std::fprintf(stderr, "vendor against device::quantize(): %s\n", differing.c_str());
  if (!best) throw std::runtime_error("the vendor's codes differ from those of device::quantize(): " + differing);
  return *best;
}

}  // namespace assay::bench
