#include "device/linear/linear_checks.h"

#include <string>
#include <type_traits>

#include "device/layout/check_columns.h"
#include "device/layout/check_rows.h"
#include "device/linear/linear_product.h"
#include "device/support/call_checks.h"

namespace assay::device {

Rows with_any_splits(const Rows& rows) {
  static constexpr std::int64_t kLater = 0;
  Rows made = rows;
  if (made.splits == nullptr && made.groups != 1) made.splits = &kLater;
  return made;
}

namespace {

// ---- Shapes ----------------------------------------------------------------------------------------------------------

// Sizes of x, dy and w, in elements of eight bytes.
void check_sizes(const LinearCall& call, bool has_rows) {
  check_linear_config(call.config);
  const auto extent = [](std::int64_t value, const char* argument) {
    require(value >= 0, argument, value, "a value of at least 0");
    if (value > kMaxColumns) {
      throw NotSupported(std::string(argument) + " is " + std::to_string(value) + ": at most " + std::to_string(kMaxColumns) +
                         " are supported");
    }
  };
  extent(call.N, "N");
  extent(call.K, "K");
  require(call.rows_multiple >= 1, "rows_multiple", call.rows_multiple, "a value of at least 1");
  require(call.rows_multiple <= kMaxRows, "rows_multiple", call.rows_multiple, "at most " + std::to_string(kMaxRows));
  check_column_alignment(call.column_alignment, takes_aligned_columns(call.config, call.path.path), "recipe block by path assay");
  const auto addressable = [](std::int64_t rows, std::int64_t columns, const char* argument) {
    std::int64_t bytes;
    if (__builtin_mul_overflow(rows, columns, &bytes) || __builtin_mul_overflow(bytes, 8, &bytes)) {
      require(false, argument, columns, "a number of elements that fits int64");
    }
  };
  Rows rows = with_any_splits(call.rows);
  if (!has_rows) {
    rows.capacity = 0;
    if (rows.splits == nullptr) rows = {0, nullptr, 1};
  }
  check_rows(rows);
  const std::int64_t weight_rows = call.rows.groups * call.N;
  if (weight_rows > kMaxRows) {
    throw NotSupported("N is " + std::to_string(call.N) + " with " + std::to_string(call.rows.groups) + " groups: at most " +
                       std::to_string(kMaxRows) + " rows of weights are supported");
  }
  addressable(rows.capacity, call.N, "N");
  addressable(rows.capacity, call.K, "K");
  addressable(rows.capacity, matrices_in_x(call.config.activation) * call.K, "K");
  addressable(weight_rows, call.K, "K");
}

// Two codes of nvfp4 share a byte along `extent`.
void check_packing(const LinearConfig& config, std::int64_t extent, const char* argument) {
  if (config.recipe != LinearRecipe::nvfp4 || extent % 2 == 0) return;
  require(false, argument, extent, "an even number, as nvfp4 packs two codes in a byte");
}

// x or dy for wgrad: nvfp4 transforms it, and packs it along its rows.
void check_columnwise_rows(const LinearCall& call) {
  if (call.config.recipe != LinearRecipe::nvfp4) return;
  if (call.config.type != Format::bf16) {
    require(false, "config.type", format_name(call.config.type),
            "bf16 for wgrad with nvfp4, whose Hadamard transform takes no other");
  }
  check_packing(call.config, call.rows.capacity, "rows.capacity");
}

void check_extents(const LinearForwardCall& call) { check_packing(call.config, call.K, "K"); }
void check_extents(const LinearDgradCall& call) { check_packing(call.config, call.N, "N"); }
void check_extents(const LinearWgradCall& call) {
  check_wide(call.dw_type, "dw_type");
  check_columnwise_rows(call);
}
void check_extents(const LinearGradientCall& call) { check_columnwise_rows(call); }
void check_extents(const LinearWeightsCall& call) {
  if (call.cache.rowwise.data != nullptr) check_packing(call.config, call.K, "K");
  if (call.cache.columnwise.data != nullptr) check_packing(call.config, call.N, "N");
}
void check_extents(const LinearDbiasCall&) {}

// ---- Pointers --------------------------------------------------------------------------------------------------------

void check_splits(const Rows& rows) {
  if (rows.groups != 1) require_pointer(rows.splits, "rows.splits", static_cast<std::uintptr_t>(rows.split_bytes()));
}

void check_matrix_pointer(const void* pointer, std::int64_t rows, std::int64_t columns, const char* argument,
                          std::uintptr_t alignment) {
  if (rows != 0 && columns != 0) require_pointer(pointer, argument, alignment);
}
constexpr std::uintptr_t kReadAlignment = 16;  // of tensors that quantize() and the products read

void check_scale(const LinearCall& call, const float* scale, const char* argument) {
  if (call.config.recipe == LinearRecipe::tensor_delayed) require_pointer(scale, argument, alignof(float));
}

void check_amax(const LinearCall& call, const float* amax, const char* argument) {
  if (amax == nullptr) return;
  check_alignment(amax, argument, alignof(float));
  require(is_per_tensor(call.config.recipe), argument, "a pointer", "null for a recipe without a scale for the tensor");
}

// Of y, dx and dw: the library's kernels assume 16 bytes.
std::uintptr_t write_alignment(const LinearCall& call, Format type) {
  return call.path.path == GemmPath::cublaslt ? 16 : static_cast<std::uintptr_t>(wide_bytes(type));
}

std::string member(const char* of, const char* name) { return std::string(of) + "." + name; }

// A direction in the call must have all its parts, and the recipe must have that direction.
void check_direction(const LinearCall& call, const QuantizedDirection& direction, const char* argument) {
  if (direction.data == nullptr) return;
  require(quantizes(call.config), member(argument, "data"), "a pointer", "null, as recipe none quantizes nothing");
  require_pointer(direction.data, member(argument, "data"), kReadAlignment);
  require_pointer(direction.scale_inv, member(argument, "scale_inv"), kReadAlignment);
  if (call.config.recipe == LinearRecipe::nvfp4) require_pointer(direction.amax, member(argument, "amax"), alignof(float));
}

void check_w(const LinearCall& call, const LinearWeights& w) {
  const std::int64_t each = call.N * call.K;
  if (w.list == nullptr) return check_matrix_pointer(w.data, call.rows.groups, each, "w.data", kReadAlignment);
  require(w.data == nullptr, "w.data", "a pointer", "null beside w.list");
  for (int t = 0; t < call.rows.groups; ++t) {
    if (each != 0) require_pointer(w.list[t], "w.list[" + std::to_string(t) + "]", kReadAlignment);
  }
}

// The weights of forward or dgrad: a cache, or w.
void check_weights(const LinearCall& call, const LinearWeights& w, const QuantizedStorage* cache, const float* scale,
                   bool columnwise) {
  check_packing(call.config, columnwise ? call.N : call.K, columnwise ? "N" : "K");
  if (cache == nullptr || !quantizes(call.config)) {
    check_w(call, w);
    return check_scale(call, scale, "w_scale");
  }
  const char* const name = columnwise ? "cache.columnwise" : "cache.rowwise";
  const QuantizedDirection& direction = columnwise ? cache->columnwise : cache->rowwise;
  if (direction.data == nullptr) {
    require(false, member(name, "data"), "null",
            columnwise ? "weights quantized columnwise, which dgrad reads" : "weights quantized rowwise, which forward reads");
  }
  check_direction(call, direction, name);
}

void check_bias(const LinearCall& call, const void* bias, const char* argument) {
  check_alignment(bias, argument, static_cast<std::uintptr_t>(wide_bytes(call.config.type)));
}

void check(const LinearForwardCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity;
  check_matrix_pointer(call.x, rows, call.K, "x", kReadAlignment);
  check_scale(call, call.x_scale, "x_scale");
  check_amax(call, call.x_amax, "x_amax");
  check_weights(call, call.w, call.cache, call.w_scale, false);
  check_bias(call, call.bias, "bias");
  check_direction(call, call.x_columnwise, "x_columnwise");
  if (call.x_columnwise.data != nullptr) check_columnwise_rows(call);
  check_matrix_pointer(call.y, rows, call.N, "y", write_alignment(call, call.config.type));
}

void check(const LinearDgradCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity;
  check_matrix_pointer(call.dy, rows, call.N, "dy", kReadAlignment);
  check_scale(call, call.dy_scale, "dy_scale");
  check_amax(call, call.dy_amax, "dy_amax");
  check_weights(call, call.w, call.cache, call.w_scale, true);
  check_direction(call, call.dy_columnwise, "dy_columnwise");
  if (call.dy_columnwise.data != nullptr) check_columnwise_rows(call);
  check_bias(call, call.dbias, "dbias");
  check_matrix_pointer(call.dx, rows, call.K, "dx", write_alignment(call, call.config.type));
}

void check(const LinearWgradCall& call) {
  check_splits(call.rows);
  const std::int64_t rows = call.rows.capacity, each = call.N * call.K;
  const auto operand = [&](const void* x, const QuantizedDirection& before, std::int64_t columns, const float* scale,
                           const char* name) {
    const std::string direction = std::string(name) + "_columnwise";
    check_direction(call, before, direction.c_str());
    if (before.data != nullptr) return;
    check_matrix_pointer(x, rows, columns, name, kReadAlignment);
    check_scale(call, scale, (std::string(name) + "_scale").c_str());
  };
  operand(call.dy, call.dy_columnwise, call.N, call.dy_scale, "dy");
  operand(call.x, call.x_columnwise, call.K, call.x_scale, "x");
  check_amax(call, call.dy_amax, "dy_amax");
  const bool before = call.dy_columnwise.data != nullptr;
  require(!before || call.dy_amax == nullptr, "dy_amax", "a pointer", "null where dy was quantized before");
  require(!before || call.dbias == nullptr, "dbias", "a pointer", "null where dy was quantized before");
  check_bias(call, call.dbias, "dbias");
  const std::uintptr_t alignment = write_alignment(call, call.dw_type);
  if (call.dw_list == nullptr) return check_matrix_pointer(call.dw, call.rows.groups, each, "dw", alignment);
  require(call.dw == nullptr, "dw", "a pointer", "null beside dw_list");
  for (int t = 0; t < call.rows.groups; ++t) {
    if (each != 0) require_pointer(call.dw_list[t], "dw_list[" + std::to_string(t) + "]", alignment);
  }
}

void check(const LinearGradientCall& call) {
  check_splits(call.rows);
  check_matrix_pointer(call.dy, call.rows.capacity, call.N, "dy", kReadAlignment);
  check_scale(call, call.dy_scale, "dy_scale");
  check_amax(call, call.dy_amax, "dy_amax");
  require(quantizes(call.config), "config.recipe", "none", "a recipe that quantizes");
  require_pointer(call.dy_columnwise.data, "dy_columnwise.data", kReadAlignment);
  check_direction(call, call.dy_columnwise, "dy_columnwise");
  check_columnwise_rows(call);
  check_bias(call, call.dbias, "dbias");
}

void check(const LinearWeightsCall& call) {
  check_w(call, call.w);
  check_scale(call, call.w_scale, "w_scale");
  check_amax(call, call.w_amax, "w_amax");
  check_alignment(call.noop, "noop", alignof(float));
  const QuantizedDirection &rowwise = call.cache.rowwise, &columnwise = call.cache.columnwise;
  if (rowwise.data == nullptr && columnwise.data == nullptr) require_pointer(nullptr, "cache.rowwise.data");
  check_direction(call, rowwise, "cache.rowwise");
  check_direction(call, columnwise, "cache.columnwise");
  if (rowwise.data == nullptr || columnwise.data == nullptr) return;
  const auto shared = [](bool holds, const char* argument) {
    require(holds, argument, "another address", "that of cache.rowwise, as both directions share it");
  };
  shared(!is_per_tensor(call.config.recipe) || rowwise.scale_inv == columnwise.scale_inv, "cache.columnwise.scale_inv");
  shared(call.config.recipe != LinearRecipe::nvfp4 || rowwise.amax == columnwise.amax, "cache.columnwise.amax");
}

void check(const LinearDbiasCall& call) {
  check_splits(call.rows);
  check_matrix_pointer(call.dy, call.rows.capacity, call.N, "dy", kReadAlignment);
  if (call.N != 0) require_pointer(call.dbias, "dbias", static_cast<std::uintptr_t>(wide_bytes(call.config.type)));
}

}  // namespace

template <class Call>
void check_shape(const Call& call) {
  check_sizes(call, !std::is_same_v<Call, LinearWeightsCall>);
  check_extents(call);
}
template void check_shape(const LinearForwardCall&);
template void check_shape(const LinearDgradCall&);
template void check_shape(const LinearWgradCall&);
template void check_shape(const LinearGradientCall&);
template void check_shape(const LinearWeightsCall&);
template void check_shape(const LinearDbiasCall&);

template <class Call>
void check_pointers(const Call& call) {
  check_alignment(call.status, "status", alignof(std::uint32_t));
  check(call);
}
template void check_pointers(const LinearForwardCall&);
template void check_pointers(const LinearDgradCall&);
template void check_pointers(const LinearWgradCall&);
template void check_pointers(const LinearGradientCall&);
template void check_pointers(const LinearWeightsCall&);
template void check_pointers(const LinearDbiasCall&);

}  // namespace assay::device
