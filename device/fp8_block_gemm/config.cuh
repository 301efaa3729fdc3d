#pragma once
// What a kernel is compiled for, and what a block keeps in shared memory. Internal to this folder.

#include <cstdint>

#include "device/fp8_block_gemm/epilogue.cuh"
#include "device/fp8_block_gemm/problem.h"
#include "device/fp8_block_gemm/ptx.cuh"
#include "device/fp8_block_gemm/scales.cuh"
#include "device/fp8_block_gemm/tiles.cuh"

namespace assay::device::fp8_block {

template <Format kAType, Format kBType, Scaling kScalingOf, Contraction kContractionOf, int kClusterOf>
struct Config {
  static constexpr Format kA = kAType, kB = kBType;
  static constexpr Scaling kScaling = kScalingOf;
  static constexpr Contraction kContraction = kContractionOf;
  static constexpr int kColumns = tile_columns(kScaling, kContraction), kCluster = kClusterOf, kStages = kColumns == 128 ? 5 : 4;
  // Whether the tensor core multiplies scales, and half of the columns at a time (scale_products.cuh).
  static constexpr bool kScaleProducts = kScaling == Scaling::pow2_vectors;
  static constexpr int kStep = kScaling == Scaling::squares ? 128 : kColumns;  // columns that are multiplied at a time otherwise
  static constexpr bool kRagged = kContraction == Contraction::ragged;
  using GroupsOf = Groups<kContraction, kCluster>;
  static_assert(kScaling != Scaling::squares || kStages == 4, "a round of the stages is the run of SquareScales");
  static_assert(kScaling != Scaling::squares || !kRagged, "both operands of a ragged contraction have a scale for each row");
};

template <class C, bool = C::kScaleProducts>
struct ScaleProducts {
  ScaleOperands<C> operands[C::kStages];
  Barrier landed[C::kStages];  // the scales that the copy engine brings
};
template <class C>
struct ScaleProducts<C, false> {};

template <class C>
struct Shared {
  alignas(1024) std::uint8_t a[C::kStages][kTileRows * kBlockK];  // rows of 128 bytes, swizzled by TMA
  alignas(1024) std::uint8_t b[C::kStages][C::kColumns * kBlockK];
  ScaleProducts<C> scale_products;
  BlockScales<C> scales[C::kStages];
  SquareScales squares;
  alignas(16) Turned turned[4 * kWarpgroups];
  Barrier full[C::kStages], empty[C::kStages];
  typename C::GroupsOf groups;
  Tiles tiles;
};

// The barriers at which the copy engine reports scales: `landed` where warps convert them, otherwise those of the stages.
template <class C>
__device__ Barrier* landed_scales(Shared<C>& shared) {
  if constexpr (C::kScaleProducts) return shared.scale_products.landed;
  return shared.full;
}

// Stages that a tile passes through: whole rounds; of an even contraction at least one, since tiles come with stages (tiles.cuh).
template <class C>
__device__ std::uint32_t stages_of(std::uint32_t blocks) {
  const std::uint32_t rounds = (blocks + C::kStages - 1) / C::kStages;
  return (C::kRagged ? rounds : max(rounds, 1u)) * C::kStages;
}

}  // namespace assay::device::fp8_block
