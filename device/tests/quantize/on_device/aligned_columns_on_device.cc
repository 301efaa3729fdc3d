// FP8 block codes by several kernels: with dense columns of groups of any rows, which the suite judges; with columns at multiples of 16 bytes
// (device/layout/column_layout.h); and, where the rows of all groups are multiples of 16, with that promise, of one group as one tensor. Each call two
// or three times on the device: the same bits in every output, and nothing written outside the columns of codes.
//
//   device_aligned_columns [EVERY]        each EVERYth call alone, as under a sanitizer. Exit code 0: all as they should be; 1: a call
//                                         differs; 2: wrong usage; 9: there is no device of SM80 or later

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/layout/column_layout.h"
#include "device/quantize/quantize.h"
#include "device/support/call_checks.h"
#include "device/support/compute_capability.h"
#include "device/support/launch_check.h"
#include "device/support/memory_source.h"
#include "device/tests/layout/each_column.h"

namespace assay::device {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint8_t kUnwritten = 0xA7;

class OnDevice {
 public:
  explicit OnDevice(std::int64_t bytes) : memory_(device_memory(), {}, nullptr, std::max<std::int64_t>(bytes, 1)), bytes_(bytes) {
    if (bytes != 0) check_cuda(cudaMemset(memory_.data(), kUnwritten, static_cast<std::size_t>(bytes)), "cudaMemset");
  }
  template <class T>
  explicit OnDevice(const std::vector<T>& values) : OnDevice(static_cast<std::int64_t>(values.size() * sizeof(T))) {
    if (!values.empty())
      check_cuda(cudaMemcpy(memory_.data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  void* data() const { return memory_.data(); }
  Bytes bytes() const {
    Bytes copy(static_cast<std::size_t>(bytes_));
    if (bytes_ != 0) check_cuda(cudaMemcpy(copy.data(), memory_.data(), copy.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return copy;
  }

 private:
  DeviceMemory memory_;
  std::int64_t bytes_;
};

struct Call {
  Recipe recipe;
  Format x_type, output;
  bool rowwise, gated, dbias;
  std::vector<std::int64_t> splits;
  std::int64_t columns;

  // So that a promise holds.
  bool has_multiples_of_16() const {
    return std::all_of(splits.begin(), splits.end(), [](std::int64_t own) { return own % 16 == 0; });
  }
  std::int64_t rows() const { return std::accumulate(splits.begin(), splits.end(), std::int64_t{0}); }
  std::string name() const {
    return std::string(name_of(recipe)) + " " + format_name(x_type) + " to " + format_name(output) +
           (rowwise ? " both" : " columnwise") + (gated ? " swiglu" : "") + (dbias ? " dbias" : "") + ", " +
           std::to_string(splits.size()) + " groups, " + std::to_string(rows()) + " x " + std::to_string(columns);
  }
};

// Finite values of 16 powers of two and of both signs.
template <class Word>
Bytes words_of(Format type, std::int64_t count) {
  std::mt19937 draw(static_cast<std::uint32_t>(count));
  std::vector<Word> made(static_cast<std::size_t>(count));
  for (Word& each : made) {
    const std::uint32_t bits = draw(), exponent = bits >> 23 & 15, sign = bits >> 31;
    const std::uint32_t word = type == Format::f16 ? sign << 15 | (exponent + 5) << 10 | (bits & 0x3FF)
                                                   : sign << 31 | (exponent + 120) << 23 | (bits & 0x7FFFFF);
    each = static_cast<Word>(type == Format::bf16 ? word >> 16 : word);
  }
  const auto* const bytes = reinterpret_cast<const std::uint8_t*>(made.data());
  return {bytes, bytes + made.size() * sizeof(Word)};
}

// The same ones for all calls of a type and a size: to draw them takes longer than a call.
const Bytes& values_of(Format type, std::int64_t count) {
  static std::map<std::pair<Format, std::int64_t>, Bytes> all;
  Bytes& values = all[{type, count}];
  if (values.empty()) values = type == Format::f32 ? words_of<std::uint32_t>(type, count) : words_of<std::uint16_t>(type, count);
  return values;
}

struct Outputs {
  Bytes row_codes, row_scales, codes, scales, dbias;
};

Outputs run(const Call& call, std::int64_t alignment, std::int64_t rows_multiple = 1) {
  const std::int64_t rows = call.rows(), groups = static_cast<std::int64_t>(call.splits.size());
  const OnDevice x(values_of(call.x_type, rows * call.columns * (call.gated ? 2 : 1))), splits(call.splits);
  const std::int64_t scale_bytes =
      4 * ((rows + 4 * groups) * (call.columns / 128 + 4) + (rows / 128 + groups) * (call.columns + 4));
  const OnDevice row_codes(call.rowwise ? rows * call.columns : 0), row_scales(call.rowwise ? scale_bytes : 0);
  const OnDevice codes(column_bytes(rows, static_cast<int>(groups), call.columns, alignment)), scales(scale_bytes);
  const OnDevice dbias(call.dbias ? groups * call.columns * 4 : 0), status(4);
  check_cuda(cudaMemset(status.data(), 0, 4), "cudaMemset");

  QuantizeCall made;
  made.config.recipe = call.recipe, made.config.output = call.output;
  made.config.rowwise = call.rowwise, made.config.columnwise = true;
  made.config.activation = call.gated ? Activation::swiglu : Activation::off;
  made.config.dbias = call.dbias;
  made.x_type = call.x_type, made.x = x.data();
  made.rows.capacity = rows;
  const bool one_tensor = rows_multiple != 1 && groups == 1;
  if (!one_tensor)
    made.rows.splits = static_cast<const std::int64_t*>(splits.data()), made.rows.groups = static_cast<int>(groups);
  made.rows_multiple = rows_multiple;
  made.columns = call.columns, made.column_alignment = alignment;
  if (call.rowwise) made.output.rowwise_data = row_codes.data(), made.output.rowwise_scale_inv = row_scales.data();
  made.output.columnwise_data = codes.data(), made.output.columnwise_scale_inv = scales.data();
  if (call.dbias) made.output.dbias = dbias.data();
  made.status = static_cast<std::uint32_t*>(status.data());
  made.workspace_bytes = quantize_workspace_bytes(made);
  const OnDevice workspace(made.workspace_bytes);
  if (made.workspace_bytes != 0) made.workspace = workspace.data();
  quantize(made, nullptr);
  check_cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  if (status.bytes() != Bytes(4)) throw CudaError("a status other than 0");
  return {row_codes.bytes(), row_scales.bytes(), codes.bytes(), scales.bytes(), dbias.bytes()};
}

// The dense columns of aligned ones, which are marked as unwritten: what is left was written outside.
Bytes dense_of(const Call& call, Bytes& aligned) {
  Bytes dense;
  each_column(call.splits, call.columns, [&](const ColumnPlace& column) {
    const auto at = aligned.begin() + column.aligned;
    dense.insert(dense.end(), at, at + column.rows);
    std::fill_n(at, column.pitch, kUnwritten);
  });
  return dense;
}

// What differs besides columnwise codes; empty: nothing.
std::string difference(const Outputs& a, const Outputs& b) {
  if (a.scales != b.scales) return "columnwise scales";
  if (a.row_codes != b.row_codes) return "rowwise codes";
  if (a.row_scales != b.row_scales) return "rowwise scales";
  return a.dbias != b.dbias ? "dbias" : "";
}

std::string difference(const Call& call) {
  const Outputs dense = run(call, 1);
  Outputs aligned = run(call, kAlignedColumns);
  if (dense_of(call, aligned.codes) != dense.codes) return "columnwise codes";
  if (std::any_of(aligned.codes.begin(), aligned.codes.end(), [](std::uint8_t each) { return each != kUnwritten; }))
    return "what lies outside the columns";
  std::string what = difference(aligned, dense);
  if (!what.empty() || !call.has_multiples_of_16()) return what;
  const Outputs promised = run(call, 1, 16);
  what = promised.codes != dense.codes ? "columnwise codes" : difference(promised, dense);
  return what.empty() ? "" : "with a promise, " + what;
}

std::vector<Call> calls() {
  std::vector<std::int64_t> small, many(1024, 0);
  for (int t = 0; t < 200; ++t) small.push_back(t % 37);
  for (int t = 0; t < 1024; t += 3) many[static_cast<std::size_t>(t)] = t % 130;
  const std::vector<std::vector<std::int64_t>> all_splits = {{1},    {128, 129, 127, 0, 1}, {1037, 0, 15, 2049, 333}, small, many,
                                                             {5000}, {16, 0, 48, 512}};
  std::vector<Call> all;
  for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
    for (const Format x_type : {Format::bf16, Format::f16, Format::f32}) {
      for (const Format output : {Format::e4m3, Format::e5m2}) {
        for (const bool rowwise : {false, true}) {
          for (const int part : {0, 1, 2}) {  // plain, of gate and up, with dbias
            if (part == 1 && x_type == Format::f32) continue;
            for (const auto& splits : all_splits) {
              for (const std::int64_t columns : {8, 136, 1000})
                all.push_back({recipe, x_type, output, rowwise, part == 1, part == 2, splits, columns});
            }
          }
        }
      }
    }
  }
  // As many tiles as wide blocks are taken for (on up to 141 multiprocessors), an odd number side by side and below each other.
  for (const Recipe recipe : {Recipe::block_1x128, Recipe::block_128x128}) {
    for (const Format output : {Format::e4m3, Format::e5m2}) {
      for (const Format x_type : {Format::bf16, Format::f16})
        all.push_back({recipe, x_type, output, true, false, false, {33040}, 4360});
    }
  }
  return all;
}

int compare(std::size_t every) {
  std::size_t wrong = 0, made = 0, number = 0;
  for (const Call& call : calls()) {
    if (call.gated && compute_capability() != 90) continue;  // its instructions were measured there alone
    if (number++ % every != 0) continue;
    ++made;
    const std::string what = difference(call);
    if (what.empty()) continue;
    ++wrong;
    std::printf("%s: %s\n", call.name().c_str(), what.c_str());
  }
  std::printf("%zu of %zu calls differed\n", wrong, made);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace assay::device

int main(int argc, char** argv) {
  const int every = argc == 2 ? std::atoi(argv[1]) : 1;
  if (argc > 2 || every < 1) {
    std::fprintf(stderr, "usage: device_aligned_columns [EVERY], EVERY 1 or more\n");
    return 2;
  }
  try {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0 || assay::device::compute_capability() < 80) {
      std::fprintf(stderr, "device_aligned_columns: there is no device of SM80 or later\n");
      return 9;
    }
    return assay::device::compare(static_cast<std::size_t>(every));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "device_aligned_columns: %s\n", error.what());
    return 1;
  }
}
