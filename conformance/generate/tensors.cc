#include "conformance/generate/tensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/work_limit.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance::inputs {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 36;

}  // namespace

Tensor make(Format type, std::vector<std::int64_t> shape) {
  Tensor tensor{type, std::move(shape), {}};
  std::int64_t elements = 1;
  for (const std::int64_t extent : tensor.shape) {
    require(!__builtin_mul_overflow(elements, extent, &elements) && elements <= kMaxElements, "size", extent,
            "tensors of at most 2^36 elements");
  }
  count_work(elements);
  const std::int64_t width = type == Format::e2m1 ? 8 : bits_of(type);  // e2m1 counts bytes
  tensor.bytes.resize(static_cast<std::size_t>(elements * width / 8));
  return tensor;
}

std::int64_t sum_of(const std::vector<std::int64_t>& values) {
  std::int64_t sum = 0;
  for (const std::int64_t each : values) {
    require(!__builtin_add_overflow(sum, each, &sum) && sum <= kMaxElements, "splits", each, "at most 2^36 rows together");
  }
  return sum;
}

std::vector<std::int64_t> starts_of(const std::vector<std::int64_t>& splits) {
  std::vector<std::int64_t> starts{0};
  for (const std::int64_t each : splits) starts.push_back(starts.back() + each);
  return starts;
}

Format format_of(const std::string& name) {
  const auto format = format_named(name);
  require(format.has_value(), "type", name, "the name of a format");
  return *format;
}

std::uint32_t nan_code(Format type) {
  switch (type) {
    case Format::f32: return 0x7FC0'0000;
    case Format::bf16: return 0x7FC0;
    case Format::f16: return 0x7E00;
    case Format::e8m0: return 0xFF;
    case Format::e2m1: return 0x7;
    default: return 0x7F;
  }
}

std::uint32_t largest_code(Format type) {
  switch (type) {
    case Format::f32: return 0x7F7F'FFFF;
    case Format::bf16: return 0x7F7F;
    case Format::f16: return 0x7BFF;
    case Format::e4m3: return 0x7E;
    case Format::e5m2: return 0x7B;
    default: return nan_code(type);
  }
}

void store(std::span<const std::uint32_t> codes, Tensor& tensor, std::int64_t first) {
  if (codes.empty()) return;  // neither side needs memory then
  switch (tensor.type == Format::e2m1 ? 4 : bits_of(tensor.type)) {
    case 32: std::memcpy(tensor.as<std::uint32_t>() + first, codes.data(), codes.size_bytes()); break;
    case 16: std::copy(codes.begin(), codes.end(), tensor.as<std::uint16_t>() + first); break;
    case 8: std::copy(codes.begin(), codes.end(), tensor.as<std::uint8_t>() + first); break;
    default:  // two codes a byte, the lower index in the low nibble
      for (std::size_t i = 0; i < codes.size(); ++i) {
        const std::int64_t at = first + static_cast<std::int64_t>(i);
        std::uint8_t& byte = tensor.as<std::uint8_t>()[at / 2];
        byte = static_cast<std::uint8_t>(at % 2 == 0 ? (byte & 0xF0) | codes[i] : (byte & 0x0F) | codes[i] << 4);
      }
  }
}

std::vector<std::uint32_t> pattern_bits(const PatternRequest& request) {
  std::int64_t elements = 0;
  require(!__builtin_mul_overflow(request.rows, request.columns, &elements) && elements <= kMaxElements, "size", request.columns,
          "tensors of at most 2^36 elements");
  count_work(std::max(elements, request.rows));
  std::vector<std::uint32_t> bits(static_cast<std::size_t>(elements));
  fill_pattern(request, bits);
  return bits;
}

void poison_tail(std::vector<std::uint32_t>& bits, std::int64_t active, std::int64_t columns, Format type) {
  std::fill(bits.begin() + active * columns, bits.end(), nan_code(type));
}

void store_pattern(const PatternRequest& request, std::int64_t active, Tensor& tensor, Transposed splits) {
  const std::int64_t columns = request.columns;
  count_work(request.rows);  // they are gone through, whatever their length
  const std::vector<std::int64_t> starts = splits == nullptr ? std::vector<std::int64_t>{0} : starts_of(*splits);
  // Chunks of rows begin on multiples of 64 within their group; the part past the groups is one more chunk.
  struct Chunk {
    std::int64_t first, rows, group_first, group_rows;  // group_rows 0: not transposed
  };
  constexpr std::int64_t kRows = 64;
  std::vector<Chunk> chunks;
  const auto cut = [&](std::int64_t first, std::int64_t rows, bool transposed) {
    for (std::int64_t at = 0; at < rows; at += kRows) {
      chunks.push_back({first + at, std::min(kRows, rows - at), first, transposed ? rows : 0});
    }
  };
  for (std::size_t g = 0; g + 1 < starts.size(); ++g) cut(starts[g], starts[g + 1] - starts[g], true);
  cut(starts.back(), request.rows - starts.back(), false);
  parallel_for(static_cast<std::int64_t>(chunks.size()), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::uint32_t> bits, column;
    for (std::int64_t i = begin; i < end; ++i) {
      const Chunk& chunk = chunks[static_cast<std::size_t>(i)];
      bits.resize(static_cast<std::size_t>(chunk.rows * columns));
      fill_pattern_rows(request, chunk.first, bits);
      const std::int64_t kept = std::clamp<std::int64_t>(active - chunk.first, 0, chunk.rows);
      std::fill(bits.begin() + kept * columns, bits.end(), nan_code(request.type));
      if (chunk.group_rows == 0) {
        store(bits, tensor, chunk.first * columns);
        continue;
      }
      column.resize(static_cast<std::size_t>(chunk.rows));
      for (std::int64_t c = 0; c < columns; ++c) {
        for (std::int64_t r = 0; r < chunk.rows; ++r)
          column[static_cast<std::size_t>(r)] = bits[static_cast<std::size_t>(r * columns + c)];
        store(column, tensor, chunk.group_first * columns + c * chunk.group_rows + (chunk.first - chunk.group_first));
      }
    }
  });
}

Tensor matrix(const PatternRequest& request, std::int64_t active_rows) {
  Tensor tensor = make(request.type, {request.rows, request.type == Format::e2m1 ? request.columns / 2 : request.columns});
  store_pattern(request, active_rows, tensor);
  return tensor;
}

std::vector<std::uint32_t> transpose_groups(const std::vector<std::uint32_t>& bits, const std::vector<std::int64_t>& splits,
                                            std::int64_t columns) {
  std::vector<std::uint32_t> out = bits;
  std::int64_t base = 0;
  for (const std::int64_t rows : splits) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < columns; ++c) {
        out[static_cast<std::size_t>(base + c * rows + r)] = bits[static_cast<std::size_t>(base + r * columns + c)];
      }
    }
    base += rows * columns;
  }
  return out;
}

Tensor integers_tensor(const std::vector<std::int64_t>& values, Format type, std::string_view name) {
  Tensor tensor = make(type, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == Format::i64) {
      tensor.as<std::int64_t>()[i] = values[i];
    } else {
      require(values[i] <= std::numeric_limits<std::int32_t>::max(), name, values[i], "values that fit i32");
      tensor.as<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
    }
  }
  return tensor;
}

Tensor floats_tensor(const std::vector<double>& values) {
  Tensor tensor = make(Format::f32, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.as<float>()[i] = static_cast<float>(values[i]);
  return tensor;
}

Rows rows_of(const CaseLine& line) {
  Rows rows;
  rows.grouped = line.has("splits");
  rows.splits = rows.grouped ? line.splits() : std::vector<std::int64_t>{line.integer("R")};
  rows.active = sum_of(rows.splits);
  rows.total = rows.active;
  if (rows.grouped) {
    const OpSchema* op = find_op(line.op);
    if (find_key(*op, "extra_rows") != nullptr) {
      const std::int64_t extra = line.integer("extra_rows");
      rows.total = checked_sum(rows.total, extra, "extra_rows", extra);
    }
  }
  return rows;
}

}  // namespace assay::conformance::inputs
