#include "conformance/run/scale_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>
#include <utility>

#include "conformance/run/guarded_buffer.h"
#include "conformance/run/trial.h"
#include "reference/layout/sizes.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kTile = 128, kHalf = 64, kBlock = 128;
// Scales in the memory before and behind an array that are told apart. Before: a multiple of 256 bytes, as addresses are.
constexpr std::int64_t kBefore = 1024, kBehind = 65536;
constexpr std::int64_t kMostPlaces = std::int64_t{1} << 24;  // f32 holds each of them exactly

// ---- what is asked -------------------------------------------------------------------------------------------------

struct MappedGroup {
  std::int64_t m = 0, n = 0, depth = 0;  // D_t is m x n
  std::int64_t d_offset = 0;             // element of D where it begins
  std::int64_t data_offset = 0;          // element of the operand of the rows where the group's begins
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::int64_t first_tile = 0;
  std::int64_t blocks() const { return ceil_div(depth, kBlock); }
};

struct MappedProduct {
  std::map<std::string, golden::Attribute> attributes;
  std::vector<std::int64_t> splits;
  std::vector<MappedGroup> groups;
  std::string rows_data, columns_data;  // names of the operands' codes
  Format rows_type = Format::e4m3, columns_type = Format::e4m3;
  std::vector<std::int64_t> rows_shape, columns_shape;
  ScaleArray rows, columns;
  std::int64_t d_rows = 0, d_columns = 0;
  std::int64_t tiles = 0, blocks = 0;  // blocks of the deepest group
};

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t value : values) sum = checked_sum(sum, value, "splits", value);
  return sum;
}

void require_mappable(const CaseLine& line) {
  require(line.op == "grouped_gemm", "op", line.op, "grouped_gemm: scale-map follows the scales of products");
  const std::string kind = line.text("kind");
  if (kind != "block") throw NotSupported("scale-map follows f32 scales of kind=block; it cannot tell those of kind=" + kind + " yet");
  const std::string type = line.text("dtype_d");
  if (type != "f32") throw NotSupported("scale-map reads places of scales out of D exactly, which takes dtype_d=f32, not " + type);
  require(line.text("alpha") == "1", "alpha", line.text("alpha"), "1 for scale-map");
  require(line.text("beta") == "0", "beta", line.text("beta"), "0 for scale-map");
  require(line.integer("bias") == 0, "bias", line.integer("bias"), "0 for scale-map");
  require(!line.has("replay"), "replay", "given", "a plain call for scale-map");
}

ScaleArray array_of(const CaseLine& line, const std::string& operand, bool of_columns, const std::vector<std::int64_t>& group_rows,
                    std::int64_t columns, bool along_rows) {
  const std::string layout = line.text("layout");
  const bool squares = operand == "w" && line.text("weight_block") == "128x128";
  const Recipe recipe = squares ? Recipe::block_128x128 : Recipe::block_1x128;
  const Direction direction = along_rows ? Direction::columnwise : Direction::rowwise;
  ScaleArray array;
  array.operand = operand;
  array.tensor = operand + (along_rows ? "_columnwise_scale_inv" : "_rowwise_scale_inv");
  array.of_columns = of_columns;
  array.line_block = squares ? kBlock : 1;
  const char* line_name = layout == "TN" ? (of_columns ? "n" : "row") : layout == "NN" ? (of_columns ? "k" : "row") : (of_columns ? "k" : "n");
  array.line = std::string(line_name) + (squares ? "-block" : "");
  array.summed = layout == "TN" ? "k-block" : layout == "NN" ? "n-block" : "row-block";
  for (const std::int64_t rows : group_rows) array.shapes.push_back(scale_shape(recipe, direction, rows, columns));
  array.first = scale_offsets(recipe, direction, group_rows, columns);
  const bool told_apart = array.elements() + kBefore + kBehind < kMostPlaces;
  if (!told_apart) throw NotSupported("scale-map tells fewer than 2^24 places apart, and " + array.tensor + " has " + show(array.elements()));
  return array;
}

MappedProduct product_of(const CaseLine& line) {
  require_mappable(line);
  MappedProduct product;
  const std::string layout = line.text("layout");
  const std::int64_t N = line.integer("N"), K = line.integer("K");
  product.splits = line.splits();
  const auto groups = static_cast<std::int64_t>(product.splits.size());
  const std::int64_t used = sum_of(product.splits), rows = checked_sum(used, line.integer("extra_rows"), "extra_rows", line.integer("extra_rows"));
  const std::vector<std::int64_t> weight_rows(product.splits.size(), N);
  const std::int64_t all_weight_rows = checked_product(groups, N, "N", N);

  product.attributes = {{"kind", line.text("kind")}, {"layout", layout}, {"split_accumulator", line.integer("split_accumulator")},
                        {"N", N}, {"K", K}, {"dtype_d", line.text("dtype_d")}, {"arch", line.text("arch")}, {"alpha", 1.0}, {"beta", 0.0}};
  if (layout != "NT") product.attributes["weight_block"] = line.text("weight_block");
  const bool wgrad = layout == "NT";
  const std::string of_rows = layout == "TN" ? "x" : "dy", of_columns = wgrad ? "x" : "w";
  product.rows_type = *format_named(line.text(of_rows + "_type"));
  product.columns_type = *format_named(line.text(of_columns + "_type"));
  const std::int64_t width = layout == "TN" ? K : N;  // of the operand of the rows, as named
  product.rows = array_of(line, of_rows, false, product.splits, width, wgrad);
  product.columns = wgrad ? array_of(line, "x", true, product.splits, K, true) : array_of(line, "w", true, weight_rows, K, layout == "NN");
  product.rows_data = of_rows + (wgrad ? "_columnwise_data" : "_rowwise_data");
  product.columns_data = of_columns + (layout == "TN" ? "_rowwise_data" : "_columnwise_data");
  // Transposed storage is flat, as quantize() gives it.
  const std::int64_t columns_rows = wgrad ? rows : all_weight_rows;
  product.rows_shape = wgrad ? std::vector{checked_product(rows, width, "N", N)} : std::vector{rows, width};
  product.columns_shape = layout == "TN" ? std::vector{columns_rows, K} : std::vector{checked_product(columns_rows, K, "K", K)};
  product.d_rows = wgrad ? all_weight_rows : rows;
  product.d_columns = layout == "TN" ? N : K;
  checked_product(checked_product(product.d_rows, product.d_columns, "rows of D", product.d_rows), 4, "rows of D", product.d_rows);
  checked_product(rows, width, "rows", rows);

  std::int64_t row = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t here = product.splits[static_cast<std::size_t>(g)];
    MappedGroup group;
    group.m = wgrad ? N : here;
    group.n = product.d_columns;
    group.depth = layout == "TN" ? K : layout == "NN" ? N : here;
    group.d_offset = (wgrad ? g * N : row) * group.n;
    group.data_offset = row * width;
    group.tile_rows = ceil_div(group.m, kTile), group.tile_columns = ceil_div(group.n, kTile);
    if (group.depth == 0) group.tile_rows = 0;  // no product: no scale is used
    group.first_tile = product.tiles;
    product.tiles += group.tile_rows * group.tile_columns;
    if (group.tile_rows * group.tile_columns > 0) product.blocks = std::max(product.blocks, group.blocks());
    row += here;
    product.groups.push_back(group);
  }
  return product;
}

// Products of one word in block `block` of the contraction: those that are 1, not 0. A power of two keeps D exact.
std::int64_t products_in(const MappedGroup& group, std::int64_t block) {
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::min(kBlock, group.depth - block * kBlock))));
}

float value_of(std::int64_t place) { return static_cast<float>(kBefore + place + 1); }

std::uint8_t one_of(Format type) { return type == Format::e5m2 ? 0x3C : 0x38; }

// ---- the calls -----------------------------------------------------------------------------------------------------

// A stream that is left behind, like all else, where its context was given up.
struct OwnStream {
  explicit OwnStream(Backend& of) : backend(of) {
    backend.check(backend.table().stream_create(backend.context(), &handle), "create a stream");
  }
  ~OwnStream() {
    if (!backend.is_given_up()) backend.table().stream_destroy(backend.context(), handle);
  }
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Backend& backend;
  assay_stream* handle = nullptr;
};

struct CallTrouble {
  Verdict verdict;
  std::string text;
};

class Asking {
 public:
  Asking(Backend& backend, const MappedProduct& product, const ScaleMapOptions& options)
      : backend_(backend), product_(product), options_(options), stream_(backend) {
    for (const auto& [name, value] : product.attributes) parameters_.push_back(parameter_of(name, value));
    add_input("splits", Format::i64, {static_cast<std::int64_t>(product.splits.size())}).write(product.splits.data());
    moving_ = &add_input(product.rows_data, product.rows_type, product.rows_shape);
    moved_.assign(static_cast<std::size_t>(moving_->bytes()), std::byte{0});
    add_input(product.columns_data, product.columns_type, product.columns_shape).fill(one_of(product.columns_type));
    for (const ScaleArray* array : {&product.rows, &product.columns}) {
      Scales& scales = array->of_columns ? columns_ : rows_;
      const std::int64_t elements = array->elements();
      scales.host.resize(static_cast<std::size_t>(kBefore + elements + kBehind));
      scales.buffer = &buffers_.emplace_back(backend_, stream_.handle, "in/" + array->tensor, static_cast<std::int64_t>(scales.host.size()) * 4);
      inputs_.push_back(tensor_of(array->tensor, Format::f32, {elements}));
      if (elements > 0) inputs_.back().data = static_cast<float*>(scales.buffer->data()) + kBefore;
    }
    output_ = tensor_of(d_name_, Format::f32, {product.d_rows, product.d_columns});
    d_ = &buffers_.emplace_back(backend_, stream_.handle, "d", output_.bytes);
    output_.data = d_->data();
    call_.struct_size = sizeof call_;
    call_.op = op_.c_str();
    call_.parameters = parameters_.data();
    call_.parameter_count = static_cast<std::int32_t>(parameters_.size());
    call_.inputs = inputs_.data();
    call_.input_count = static_cast<std::int32_t>(inputs_.size());
    call_.outputs = &output_;
    call_.output_count = 1;
    call_.algorithm = options.algorithm;
    std::int64_t workspace = 0;
    const assay_status sized = backend_.table().workspace_bytes(backend_.context(), &call_, &workspace);
    if (sized != ASSAY_OK) {
      workspace_fault_ = fmt::format("workspace_bytes() returned '{}': {}", name_of(sized), backend_.last_error());
    } else if (workspace < 0) {
      workspace_fault_ = fmt::format("workspace_bytes() asks for {} bytes: expected 0 or more", workspace);
    } else if (workspace > 0) {
      workspace_ = &buffers_.emplace_back(backend_, stream_.handle, "workspace", workspace);
      call_.workspace = workspace_->data();
      call_.workspace_bytes = workspace;
    }
    wait("wait for the inputs");
  }

  // Throws CallTrouble where the call cannot be made.
  void open() {
    look_at(false);
    const assay_status supported = backend_.table().supports(backend_.context(), &call_);
    const std::string why = supported == ASSAY_OK ? "" : backend_.last_error();
    if (supported == ASSAY_NOT_SUPPORTED) {
      const assay_status called = backend_.table().execute(backend_.context(), stream_.handle, &call_);
      wait("wait for a call that was declared absent");
      if (called == ASSAY_NOT_SUPPORTED) throw CallTrouble{Verdict::not_run, why.empty() ? "the backend declares this absent and gives no reason" : why};
      throw CallTrouble{Verdict::unproven_skip, fmt::format("declared absent, but the call returned '{}' (reason given: {})", name_of(called), why)};
    }
    if (supported != ASSAY_OK) trouble(supported, fmt::format("supports() returned '{}': {}", name_of(supported), why));
    if (!workspace_fault_.empty()) throw CallTrouble{Verdict::failed, workspace_fault_};
  }

  // From here on the scales of this operand tell their places.
  void look_at(bool of_columns) {
    for (const bool columns : {false, true}) {
      Scales& scales = columns ? columns_ : rows_;
      for (std::size_t i = 0; i < scales.host.size(); ++i) {
        scales.host[i] = columns == of_columns ? value_of(static_cast<std::int64_t>(i) - kBefore) : 1.0f;
      }
      scales.buffer->write(scales.host.data());
    }
    wait("wait for the scales");
  }

  // D with products in this block alone. Errors: CallTrouble, BackendError.
  const std::vector<std::byte>& ask(std::int64_t block) {
    put(block, static_cast<std::byte>(one_of(product_.rows_type)));
    moving_->write(moved_.data());
    d_->fill(0xff);
    if (workspace_ != nullptr) workspace_->fill(0xff);
    wait("wait for the inputs");
    put(block, std::byte{0});
    const assay_status called = backend_.table().execute(backend_.context(), stream_.handle, &call_);
    const std::string why = called == ASSAY_OK ? "" : backend_.last_error();
    const assay_status waited = backend_.table().synchronize(backend_.context(), stream_.handle, options_.timeout_ms);
    if (waited == ASSAY_TIMEOUT) backend_.give_up();
    const assay_status status = waited != ASSAY_OK ? waited : called;
    if (status == ASSAY_TIMEOUT) trouble(status, fmt::format("returned 'timeout': not finished after {} ms", options_.timeout_ms));
    if (status != ASSAY_OK) {
      trouble(status, fmt::format("returned '{}': {}", name_of(status), waited != ASSAY_OK ? backend_.last_error() : why));
    }
    for (const GuardedBuffer& buffer : buffers_) {
      if (const std::string damage = buffer.damage(); !damage.empty()) throw CallTrouble{Verdict::failed, "memory: " + damage};
    }
    d_->read(read_);
    return read_;
  }

  // A call that changes scales cannot be told from one that reads others.
  void require_scales_kept() {
    for (const Scales* scales : {&rows_, &columns_}) {
      const auto change = scales->buffer->change_from(reinterpret_cast<const std::byte*>(scales->host.data()));
      if (!change) continue;
      throw CallTrouble{Verdict::failed, fmt::format("memory: {}: changed by the call, at scale {}", scales->buffer->label(), change->at / 4 - kBefore)};
    }
  }

 private:
  struct Scales {
    std::vector<float> host;  // what is around the array too
    GuardedBuffer* buffer = nullptr;
  };

  [[noreturn]] static void trouble(assay_status status, const std::string& text) {
    const bool machine = status == ASSAY_DEVICE_LOST || status == ASSAY_OUT_OF_MEMORY;
    throw CallTrouble{status == ASSAY_TIMEOUT ? Verdict::unfinished : machine ? Verdict::machine_failed : Verdict::failed, text};
  }

  GuardedBuffer& add_input(const std::string& name, Format type, const std::vector<std::int64_t>& shape) {
    inputs_.push_back(tensor_of(names_.emplace_back(name), type, shape));
    GuardedBuffer& buffer = buffers_.emplace_back(backend_, stream_.handle, "in/" + name, inputs_.back().bytes);
    inputs_.back().data = buffer.data();
    return buffer;
  }

  void wait(const char* what) { backend_.check(backend_.table().synchronize(backend_.context(), stream_.handle, options_.timeout_ms), what); }

  // The codes of the operand of the rows in one block of every group that has it.
  void put(std::int64_t block, std::byte code) {
    for (const MappedGroup& group : product_.groups) {
      if (group.tile_rows == 0 || block >= group.blocks()) continue;
      const auto count = static_cast<std::size_t>(products_in(group, block));
      parallel_for(group.m, 512, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::memset(moved_.data() + group.data_offset + i * group.depth + block * kBlock, static_cast<int>(code), count);
        }
      });
    }
  }

  Backend& backend_;
  const MappedProduct& product_;
  const ScaleMapOptions& options_;
  OwnStream stream_;
  const std::string op_ = "grouped_gemm", d_name_ = "d";
  std::deque<std::string> names_;
  std::vector<assay_parameter> parameters_;
  std::vector<assay_tensor> inputs_;
  std::deque<GuardedBuffer> buffers_;
  GuardedBuffer *moving_ = nullptr, *d_ = nullptr, *workspace_ = nullptr;
  Scales rows_, columns_;
  std::vector<std::byte> moved_, read_;
  assay_tensor output_{};
  std::string workspace_fault_;
  assay_call call_{};
};

// ---- what D says ---------------------------------------------------------------------------------------------------

// Rows or columns [begin, end) of a group's matrix.
struct Stretch {
  std::int64_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

Stretch half(std::int64_t tile, int which, std::int64_t extent) {
  const std::int64_t begin = tile * kTile + which * kHalf;
  return {begin, std::min(begin + kHalf, extent)};
}

// Reads of the four quarters of each tile, block by block; a quarter without a wrong word has none.
class Reads {
 public:
  Reads(const MappedProduct& product, const ScaleArray& array)
      : product_(product), array_(array), quarters_(static_cast<std::size_t>(product.tiles) * 4) {
    for (std::size_t g = 0; g < product.groups.size(); ++g) {
      const MappedGroup& group = product.groups[g];
      group_of_.insert(group_of_.end(), static_cast<std::size_t>(group.tile_rows * group.tile_columns), static_cast<std::int32_t>(g));
    }
  }

  // D of the call for this block.
  void look(std::int64_t block, const float* d) {
    parallel_for(product_.tiles, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t tile = begin; tile < end; ++tile) {
        if (block < group_at(tile).blocks()) look_at_tile(tile, block, d);
      }
    });
    for (const MappedGroup& group : product_.groups) {
      if (block < group.blocks()) pairs_ += group.tile_rows * group.tile_columns;
    }
  }

  // Blocks that were not looked at, where the map was left unfinished, count as right.
  void tell(ScaleSide& side) const {
    side.tiles = product_.tiles;
    side.pairs = pairs_;
    for (std::int64_t tile = 0; tile < product_.tiles; ++tile) tell_tile(tile, side);
  }

 private:
  const MappedGroup& group_at(std::int64_t tile) const { return product_.groups[static_cast<std::size_t>(group_of_[static_cast<std::size_t>(tile)])]; }

  void look_at_tile(std::int64_t tile, std::int64_t block, const float* d) {
    const std::int64_t g = group_of_[static_cast<std::size_t>(tile)];
    const MappedGroup& group = group_at(tile);
    const std::int64_t within = tile - group.first_tile, tile_row = within / group.tile_columns, tile_column = within % group.tile_columns;
    const auto count = static_cast<float>(products_in(group, block));
    for (int q = 0; q < 4; ++q) {
      const Stretch rows = half(tile_row, q / 2, group.m), columns = half(tile_column, q % 2, group.n);
      if (rows.empty() || columns.empty()) continue;
      const float* first = d + group.d_offset + rows.begin * group.n + columns.begin;
      const Stretch lines = array_.of_columns ? columns : rows;
      float want[kHalf];
      for (std::int64_t i = lines.begin; i < lines.end; ++i) want[i - lines.begin] = count * value_of(array_.place(g, i, block));
      const std::int64_t wrong = count_wrong(first, rows, columns, group.n, want);
      if (wrong == 0) continue;
      std::vector<ScaleRead>& reads = quarters_[static_cast<std::size_t>(tile * 4 + q)];
      if (reads.empty()) {
        reads.resize(static_cast<std::size_t>(group.blocks()));
        for (std::int64_t b = 0; b < group.blocks(); ++b) reads[static_cast<std::size_t>(b)].place = array_.place(g, lines.begin, b);
      }
      reads[static_cast<std::size_t>(block)] = read_of(first, rows, columns, group.n, want, g, block, count);
      reads[static_cast<std::size_t>(block)].wrong = wrong;
    }
  }

  std::int64_t count_wrong(const float* first, Stretch rows, Stretch columns, std::int64_t pitch, const float* want) const {
    const std::int64_t height = rows.end - rows.begin, width = columns.end - columns.begin;
    int wrong = 0;
    for (std::int64_t i = 0; i < height; ++i) {
      const float* words = first + i * pitch;
      if (array_.of_columns) {
        for (std::int64_t j = 0; j < width; ++j) wrong += words[j] != want[j];
      } else {
        const float wanted = want[i];
        for (std::int64_t j = 0; j < width; ++j) wrong += words[j] != wanted;
      }
    }
    return wrong;
  }

  // The place that a word tells, or nothing.
  ScaleRead decode(float word, float count) const {
    ScaleRead read;
    const float value = word / count;  // exact: a power of two
    const auto most = static_cast<float>(kBefore + array_.elements() + kBehind);
    if (value >= 1 && value <= most && value == std::floor(value)) {
      read.place = static_cast<std::int64_t>(value) - kBefore - 1;
    } else {
      read.kind = ScaleRead::Kind::nothing;
      read.bits = std::bit_cast<std::uint32_t>(word);
    }
    return read;
  }

  ScaleRead read_of(const float* first, Stretch rows, Stretch columns, std::int64_t pitch, const float* want, std::int64_t g, std::int64_t block,
                    float count) const {
    const Stretch lines = array_.of_columns ? columns : rows;
    const std::int64_t start = array_.place(g, lines.begin, block);
    ScaleRead all, wrong;
    bool agree = true, found = false;
    for (std::int64_t i = rows.begin; i < rows.end; ++i) {
      for (std::int64_t j = columns.begin; j < columns.end; ++j) {
        const float word = first[(i - rows.begin) * pitch + j - columns.begin];
        const std::int64_t line = array_.of_columns ? j : i;
        ScaleRead read = decode(word, count);
        if (read.kind == ScaleRead::Kind::place) read.place -= array_.place(g, line, block) - start;
        read.row = i, read.column = j;
        if (i == rows.begin && j == columns.begin) all = read;
        agree = agree && read.kind == all.kind && read.place == all.place && read.bits == all.bits;
        if (!found && word != want[line - lines.begin]) {
          found = true;
          wrong = read;
          wrong.bits = std::bit_cast<std::uint32_t>(word);
        }
      }
    }
    if (agree) return all;
    wrong.kind = ScaleRead::Kind::several;
    return wrong;
  }

  // Same displacement everywhere, so that the two can be told as one piece.
  bool alike(std::int64_t tile, int a, int b) const {
    const std::vector<ScaleRead>&one = quarter(tile, a), &other = quarter(tile, b);
    if (one.size() != other.size()) return false;
    const std::int64_t g = group_of_[static_cast<std::size_t>(tile)];
    for (std::size_t block = 0; block < one.size(); ++block) {
      if (one[block].kind != other[block].kind) return false;
      const auto at = static_cast<std::int64_t>(block);
      const std::int64_t apart = array_.place(g, first_line(tile, b), at) - array_.place(g, first_line(tile, a), at);
      if (one[block].kind == ScaleRead::Kind::place && other[block].place - one[block].place != apart) return false;
      if (one[block].kind == ScaleRead::Kind::nothing && one[block].bits != other[block].bits) return false;
    }
    return true;
  }

  const std::vector<ScaleRead>& quarter(std::int64_t tile, int q) const { return quarters_[static_cast<std::size_t>(tile * 4 + q)]; }

  std::int64_t first_line(std::int64_t tile, int q) const {
    const MappedGroup& group = group_at(tile);
    const std::int64_t within = tile - group.first_tile;
    return array_.of_columns ? within % group.tile_columns * kTile + q % 2 * kHalf : within / group.tile_columns * kTile + q / 2 * kHalf;
  }

  void tell_tile(std::int64_t tile, ScaleSide& side) const {
    const MappedGroup& group = group_at(tile);
    const std::int64_t within = tile - group.first_tile, tile_row = within / group.tile_columns, tile_column = within % group.tile_columns;
    bool any = false;
    for (int q = 0; q < 4; ++q) any = any || !quarter(tile, q).empty();
    if (!any) return;
    ++side.wrong_tiles;
    // Quarters that the matrix has, in rows of two.
    const bool two_rows = !half(tile_row, 1, group.m).empty(), two_columns = !half(tile_column, 1, group.n).empty();
    const bool columns_are_whole = !two_rows || (alike(tile, 0, 2) && (!two_columns || alike(tile, 1, 3)));
    const bool rows_are_whole = !two_columns || (alike(tile, 0, 1) && (!two_rows || alike(tile, 2, 3)));
    const auto add = [&](int from, int to) {  // the quarters between the two, which are alike
      if (quarter(tile, from).empty()) return;
      ScalePiece piece;
      piece.group = group_of_[static_cast<std::size_t>(tile)];
      piece.tile_row = tile_row, piece.tile_column = tile_column;
      piece.by_rows = tile;
      piece.by_columns = group.first_tile + tile_column * group.tile_rows + tile_row;
      piece.row = half(tile_row, from / 2, group.m).begin;
      piece.column = half(tile_column, from % 2, group.n).begin;
      piece.rows = half(tile_row, to / 2, group.m).end - piece.row;
      piece.columns = half(tile_column, to % 2, group.n).end - piece.column;
      piece.reads = quarter(tile, from);
      for (int q = from + 1; q <= to; ++q) {
        if (q / 2 > to / 2 || q % 2 < from % 2 || q % 2 > to % 2 || quarter(tile, q).empty()) continue;
        for (std::size_t b = 0; b < piece.reads.size(); ++b) piece.reads[b].wrong += quarter(tile, q)[b].wrong;
      }
      const std::int64_t line = array_.of_columns ? piece.column : piece.row;
      for (std::int64_t b = 0; b < group.blocks(); ++b) piece.wanted.push_back(array_.place(piece.group, line, b));
      side.pieces.push_back(std::move(piece));
    };
    const std::size_t before = side.pieces.size();
    const int last_row = two_rows ? 2 : 0, last_column = two_columns ? 1 : 0;
    if (columns_are_whole && rows_are_whole) {
      add(0, last_row + last_column);
    } else if (columns_are_whole) {
      for (int c = 0; c <= last_column; ++c) add(c, last_row + c);
    } else if (rows_are_whole) {
      for (int r = 0; r <= last_row; r += 2) add(r, r + last_column);
    } else {
      for (int r = 0; r <= last_row; r += 2) {
        for (int c = 0; c <= last_column; ++c) add(r + c, r + c);
      }
    }
    for (std::int64_t b = 0; b < group.blocks(); ++b) {
      bool is_wrong = false;
      for (std::size_t i = before; i < side.pieces.size(); ++i) is_wrong = is_wrong || side.pieces[i].is_wrong(static_cast<std::size_t>(b));
      side.wrong_pairs += is_wrong;
    }
  }

  const MappedProduct& product_;
  const ScaleArray& array_;
  std::vector<std::vector<ScaleRead>> quarters_;
  std::vector<std::int32_t> group_of_;  // of each tile
  std::int64_t pairs_ = 0;
};

void count_reads(ScaleSide& side) {
  const ScaleArray& array = side.array;
  for (const ScalePiece& piece : side.pieces) {
    for (std::size_t b = 0; b < piece.reads.size(); ++b) {
      if (!piece.is_wrong(b)) continue;
      ++side.wrong_pieces;
      const ScaleRead& read = piece.reads[b];
      if (read.kind == ScaleRead::Kind::several) {
        ++side.several;
      } else if (read.kind == ScaleRead::Kind::nothing) {
        ++side.nothing;
      } else if (read.place < 0 || read.place >= array.elements()) {
        ++side.outside;
      } else if (array.where(read.place).is_padding) {
        ++side.padding;
      } else {
        ++side.others;
      }
    }
  }
}

}  // namespace

std::int64_t ScaleArray::place(std::int64_t group, std::int64_t i, std::int64_t block) const {
  const auto g = static_cast<std::size_t>(group);
  // 1x128 is stored [block][line], 128x128 [line block][block]: scale_shape.h
  return first[g] + (line_block == 1 ? block * shapes[g].columns + i : i / line_block * shapes[g].columns + block);
}

ScaleArray::Where ScaleArray::where(std::int64_t place) const {
  Where at;
  at.group = std::upper_bound(first.begin(), first.end(), place) - first.begin() - 1;
  const ScaleShape& shape = shapes[static_cast<std::size_t>(at.group)];
  const std::int64_t within = place - first[static_cast<std::size_t>(at.group)];
  at.row = within / shape.columns, at.column = within % shape.columns;
  at.is_padding = at.row >= shape.used_rows || at.column >= shape.used_columns;
  return at;
}

namespace {

std::vector<const ScaleArray*> chosen(const MappedProduct& product, const std::string& operand) {
  std::vector<const ScaleArray*> arrays;
  for (const ScaleArray* array : {&product.rows, &product.columns}) {
    if (operand.empty() || operand == array->operand) arrays.push_back(array);
  }
  require(!arrays.empty(), "operand", operand, product.rows.operand + " or " + product.columns.operand);
  return arrays;
}

}  // namespace

std::int64_t scale_map_calls(const CaseLine& line, const ScaleMapOptions& options) {
  const MappedProduct product = product_of(line);
  return product.blocks * static_cast<std::int64_t>(chosen(product, options.operand).size());
}

ScaleMap map_scales(Backend& backend, const CaseLine& line, const ScaleMapOptions& options) {
  const MappedProduct product = product_of(line);
  const std::vector<const ScaleArray*> arrays = chosen(product, options.operand);
  ScaleMap map;
  if (product.tiles == 0) {
    map.verdict = Verdict::not_run;
    map.trouble = "no word of D is a sum of products, so that no scale is used";
    return map;
  }
  const auto caught = [&](auto&& body) {
    try {
      body();
      return true;
    } catch (const CallTrouble& trouble) {
      map.verdict = trouble.verdict;
      map.trouble = trouble.text;
    } catch (const BackendError& error) {
      map.verdict = error.status() == ASSAY_TIMEOUT ? Verdict::unfinished : Verdict::machine_failed;
      map.trouble = error.what();
    } catch (const std::bad_alloc&) {
      map.verdict = Verdict::machine_failed;
      map.trouble = "the harness is out of memory";
    }
    return false;
  };
  bool interrupted = false;
  const bool finished = caught([&] {
    Asking asking(backend, product, options);
    asking.open();
    for (const ScaleArray* array : arrays) {
      ScaleSide& side = map.sides.emplace_back();
      side.array = *array;
      side.planned = product.blocks;
      Reads reads(product, *array);
      // What was found before a trouble is told.
      const auto tell = [&] {
        reads.tell(side);
        count_reads(side);
      };
      try {
        asking.look_at(array->of_columns);
        for (std::int64_t block = 0; block < product.blocks; ++block) {
          interrupted = options.interrupted && options.interrupted();
          if (interrupted) break;
          const std::vector<std::byte>& d = asking.ask(block);
          reads.look(block, reinterpret_cast<const float*>(d.data()));
          map.words += static_cast<std::int64_t>(d.size() / 4);
          ++side.calls;
          if (options.called) options.called(fmt::format("scales of {}, block {}", array->operand, block));
        }
        asking.require_scales_kept();
      } catch (...) {
        tell();
        throw;
      }
      tell();
      if (interrupted) break;
    }
  });
  bool right = true;
  for (const ScaleSide& side : map.sides) right = right && side.wrong_pairs == 0;
  if (!finished) {
    if (!right && map.verdict == Verdict::unfinished) map.verdict = Verdict::failed;  // what is wrong already stays wrong
    return map;
  }
  map.verdict = !right ? Verdict::failed : interrupted ? Verdict::unfinished : Verdict::passed;
  if (interrupted) map.trouble = "interrupted before the end";
  return map;
}

}  // namespace assay::conformance
