#pragma once
// The cases of grouped_gemm_bench.cc.

#include <cstdint>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/gemm/grouped_gemm.h"

namespace assay::bench {

struct Shape {
  int groups;
  std::int64_t rows, N, K;
};
inline constexpr Shape kShapes[] = {{4, 32768, 4096, 7168}, {4, 32768, 7168, 2048}, {8, 32768, 4096, 7168},
                                    {8, 32768, 7168, 2048}, {32, 8192, 4096, 7168}, {64, 65536, 2048, 2048}};

struct Kind {
  const char* name;  // of the tables
  GemmKind kind;
  bool split_accumulator = false;
  Format d_type = Format::bf16;
};
inline constexpr Kind kBf16{"bf16", GemmKind::bf16}, kFast{"tensor_fast", GemmKind::fp8_per_tensor},
    kSplit{"tensor_split", GemmKind::fp8_per_tensor, true}, kBlock{"block", GemmKind::fp8_block},
    kBlockF32{"block", GemmKind::fp8_block, false, Format::f32};
inline constexpr Kind kKinds[] = {kBf16, kFast, kSplit, kBlock, kBlockF32};

struct Case {
  Kind kind;
  GemmLayout layout;
  Shape shape;
  bool ragged = false;
  bool faulty = false;  // the bare library, where production avoids its defect
  bool copied = false;  // NT: groups of any rows

  bool weight_gradient() const { return layout == GemmLayout::NT; }
  std::int64_t rows_multiple() const { return weight_gradient() && !copied ? 16 : 1; }
  double flops() const {
    return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.N) * static_cast<double>(shape.K);
  }
  const char* route() const {
    if (faulty) return "faulty";
    if (copied) return "copied";
    const bool tiles = kind.kind == GemmKind::fp8_block && !weight_gradient();
    return tiles && kind.d_type == Format::f32 ? "expanded" : "direct";
  }
  // For bench/table.py. `table`: the word that says which table the figure is of.
  std::string label(const std::string& table = "gemm") const {
    return table + "=" + kind.name + " layout=" + std::string(name_of(layout)) + " output=" + std::string(name_of(kind.d_type)) +
           " route=" + route() + " splits=" + (ragged ? "ragged" : "even") + " groups=" + std::to_string(shape.groups) +
           " rows=" + std::to_string(shape.rows) + " N=" + std::to_string(shape.N) + " K=" + std::to_string(shape.K);
  }
  std::string name() const {
    return std::string(kind.name) + " " + std::string(name_of(layout)) + " " + std::string(name_of(kind.d_type)) + " " + route() +
           " " + std::to_string(shape.groups) + " groups" + (ragged ? " ragged" : "") + " " + std::to_string(shape.rows) + "x" +
           std::to_string(shape.N) + "x" + std::to_string(shape.K);
  }
  std::vector<std::int64_t> splits() const {
    if (ragged) return zipf_splits(shape.groups, shape.rows, rows_multiple());
    return std::vector<std::int64_t>(static_cast<std::size_t>(shape.groups), shape.rows / shape.groups);
  }
};

// Those that are measured in two regimes: where the card is bound by power, and where it is not.
inline constexpr Case kRegimeCases[] = {
    {kBlock, GemmLayout::TN, kShapes[2]},    {kBlock, GemmLayout::TN, kShapes[2], true},
    {kBlock, GemmLayout::TN, kShapes[0]},    {kBlock, GemmLayout::TN, kShapes[5]},
    {kBlock, GemmLayout::TN, kShapes[4]},    {kBlockF32, GemmLayout::TN, kShapes[2]},
    {kBlock, GemmLayout::NN, kShapes[0]},    {kBlock, GemmLayout::NT, kShapes[0]},
    {kBlockF32, GemmLayout::NT, kShapes[0]}, {kBlock, GemmLayout::NT, kShapes[0], true},
    {kFast, GemmLayout::TN, kShapes[2]},     {kSplit, GemmLayout::TN, kShapes[2]},
    {kBf16, GemmLayout::TN, kShapes[2]},
};

}  // namespace assay::bench
