#pragma once
// The two threads that load: one A and the scales of its rows, the other B and the scales of its columns. In a cluster of two, each block
// loads its own A and half of B, the latter for both. Internal to this folder.

#include <cstdint>
#include <type_traits>

#include "device/fp8_block_gemm/aligned_copies.cuh"
#include "device/fp8_block_gemm/config.cuh"

namespace assay::device::fp8_block {

enum class Side { a, b };

template <class C, Side kSide>
struct Part {  // of a tile's operand: what one block loads
  static constexpr bool kForAll = kSide == Side::b && C::kCluster > 1;
  static constexpr int kTile = kSide == Side::a ? kTileRows : C::kColumns, kRows = kForAll ? kTile / C::kCluster : kTile;

  __device__ static void load(std::uint8_t* to, const CUtensorMap* map, std::uint32_t column, std::uint32_t row,
                              std::uint32_t barrier) {
    if constexpr (kForAll) {
      load_box_to((1u << C::kCluster) - 1, to, map, static_cast<std::int32_t>(column), static_cast<std::int32_t>(row), barrier);
    } else {
      load_box(to, map, static_cast<std::int32_t>(column), static_cast<std::int32_t>(row), barrier);
    }
  }
  __device__ static std::uint8_t* stage(Shared<C>& shared, int stage) {
    return kSide == Side::a ? shared.a[stage] : shared.b[stage];
  }
  __device__ static float* scales(Shared<C>& shared, int stage) {
    if constexpr (kSide == Side::a)
      return shared.scales[stage].rows;
    else
      return shared.scales[stage].columns;
  }
};

// Maps that the thread makes, of a matrix of each group. A map is overwritten two groups later: the group between has passed through all
// stages, so that no load still uses it.
template <Side kSide>
class GroupMaps {
 public:
  __device__ explicit GroupMaps(const Problem& problem)
      : maps_(problem.maps + std::int64_t{blockIdx.x} * kMapsOfBlock + (kSide == Side::a ? 0 : kMapsOfSide)) {}

  // Notes the tile's group: whether a map of it has to be made.
  __device__ bool enters(const Tile& tile) {
    if (tile.group == group_ || tile.depth == 0) return false;
    group_ = tile.group;
    return true;
  }
  __device__ const CUtensorMap* made(const CUtensorMap& from, const MatrixOfBytes& matrix) {
    CUtensorMap* const map = maps_ + made_++ % kMapsOfSide;
    make_map(map, from, matrix);
    return map;
  }

 private:
  CUtensorMap* maps_;
  int group_ = -1;
  std::uint32_t made_ = 0;
};

// Contractions of the same length in all groups: one matrix of all groups' rows, or B of each group where a list says.
template <class C, Side kSide>
class EvenLoads {
 public:
  static constexpr bool kSquares = kSide == Side::b && C::kScaling == Scaling::squares;
  using P = Part<C, kSide>;

  __device__ EvenLoads(const Problem& problem, Shared<C>& shared, unsigned rank)
      : problem_(problem),
        shared_(shared),
        first_(P::kForAll ? rank * P::kRows : 0),
        maps_(problem),
        map_(kSide == Side::a ? &problem.a_map : &problem.b_map) {}

  __device__ void begin(const Tile& tile) {
    if constexpr (kSide == Side::a) {
      row_ = tile.first_row + tile.row;
      scales_ = scales_of_rows<C>(problem_, shared_.groups, tile);
    } else {
      row_ = tile.column + first_;
      if (problem_.b_list == nullptr)
        row_ += static_cast<std::uint32_t>(tile.group) * static_cast<std::uint32_t>(problem_.n);
      else if (maps_.enters(tile))
        map_ = maps_.made(problem_.b_map,
                          {problem_.b_list[tile.group], static_cast<std::uint32_t>(problem_.n), tile.depth, tile.depth});
      if constexpr (kSquares)
        scales_ = SquareRuns(problem_, tile, C::kColumns);
      else
        scales_ = scales_of_columns<C>(problem_, shared_.groups, tile);
    }
  }
  __device__ std::uint32_t bytes(int stage) const {
    if constexpr (kSquares)
      return P::kTile * kBlockK + (stage == 0 ? SquareRuns::kBytes : 0);
    else
      return P::kTile * kBlockK + scales_.bytes();
  }
  __device__ void load(std::uint32_t block, int stage, std::uint32_t barrier, std::uint32_t) const {
    P::load(P::stage(shared_, stage) + first_ * kBlockK, map_, block * kBlockK, row_, barrier);
    if constexpr (kSquares) {
      if (stage == 0) scales_.load(block, shared_.squares, barrier);
    } else {
      if (scales_.count != 0) scales_.load(block, P::scales(shared_, stage), barrier);
    }
  }

 private:
  const Problem& problem_;
  Shared<C>& shared_;
  std::conditional_t<kSquares, SquareRuns, ScaleRuns> scales_;
  std::uint32_t first_;  // row of the tile that is the part's first
  std::uint32_t row_ = 0;
  GroupMaps<kSide> maps_;
  const CUtensorMap* map_;
};

// Contractions over the rows of a group: each group is a matrix of its own.
template <class C, Side kSide>
class RaggedLoads {
 public:
  using P = Part<C, kSide>;

  __device__ RaggedLoads(const Problem& problem, Shared<C>& shared, unsigned rank)
      : problem_(problem), shared_(shared), first_(P::kForAll ? rank * P::kRows : 0), maps_(problem) {}

  __device__ void begin(const Tile& tile) {
    if constexpr (kSide == Side::a) {
      row_ = tile.row;
      scales_ = scales_of_rows<C>(problem_, shared_.groups, tile);
    } else {
      row_ = tile.column + first_;
      scales_ = scales_of_columns<C>(problem_, shared_.groups, tile);
    }
    if (!maps_.enters(tile)) return;
    constexpr bool kA = kSide == Side::a;
    map_ = maps_.made(kA ? problem_.a_map : problem_.b_map,
                      matrix_of(kA ? problem_.a : problem_.b, static_cast<std::uint32_t>(kA ? problem_.m : problem_.n),
                                shared_.groups, tile.group));
  }
  __device__ std::uint32_t bytes(int) const { return P::kTile * kBlockK + (C::kScaleProducts ? 0 : scales_.bytes()); }
  __device__ std::uint32_t scale_bytes() const { return scales_.bytes(); }
  // `landed`: the barrier of the scales.
  __device__ void load(std::uint32_t block, int stage, std::uint32_t barrier, std::uint32_t landed) const {
    P::load(P::stage(shared_, stage) + first_ * kBlockK, map_, block * kBlockK, row_, barrier);
    if (scales_.count != 0) scales_.load(block, P::scales(shared_, stage), landed);
  }

 private:
  const Problem& problem_;
  Shared<C>& shared_;
  ScaleRuns scales_;
  std::uint32_t first_, row_ = 0;
  GroupMaps<kSide> maps_;
  const CUtensorMap* map_ = nullptr;
};

template <class C, Side kSide>
using Loads = std::conditional_t<C::kRagged, RaggedLoads<C, kSide>, EvenLoads<C, kSide>>;

template <class C, Side kSide>
__device__ void load_tiles(const Problem& problem, Shared<C>& shared, unsigned rank) {
  const std::uint32_t first_full = shared_address(shared.full), first_empty = shared_address(shared.empty);
  const std::uint32_t first_landed = shared_address(landed_scales(shared));
  std::uint32_t parity = 1;  // nothing has filled the stages of the first round
  Loads<C, kSide> loads(problem, shared, rank);
  Walk<C> walk(problem, shared.groups, rank);
  constexpr bool kTells = kSide == Side::a && !C::kRagged;  // where tiles lie (tiles.cuh)
  // Only here: nothing is multiplied before A is there. NT and single blocks have tiles that differ in time.
  constexpr bool kWaits = kTells && C::kCluster > 1;
  if constexpr (kWaits) wait_cycles(walk.delay());
  unsigned number = 0;
  for (Tile tile; walk.next(tile); ++number) {
    loads.begin(tile);
    const std::uint32_t blocks = tile.blocks(), stages = stages_of<C>(blocks);
    for (std::uint32_t block = 0; block < stages; parity ^= 1) {
#pragma unroll
      for (int stage = 0; stage < C::kStages; ++stage, ++block) {
        const std::uint32_t full = first_full + stage * kNextBarrier;
        wait(first_empty + stage * kNextBarrier, parity);
        if constexpr (kTells) {
          if (block == 0) shared.tiles[number % 2] = tile;
        }
        const std::uint32_t landed = first_landed + stage * kNextBarrier;
        if (block >= blocks) {
          arrive(full);
          if constexpr (C::kScaleProducts) arrive(landed);
          continue;
        }
        arrive_and_expect(full, loads.bytes(stage));
        if constexpr (C::kScaleProducts) arrive_and_expect(landed, loads.scale_bytes());
        loads.load(block, stage, full, landed);
      }
    }
  }
  if constexpr (!C::kRagged) {  // the end, with a stage
    wait(first_empty, parity);
    if constexpr (kTells) shared.tiles[number % 2].group = kNoGroup;
    arrive(first_full);
  }
}

}  // namespace assay::device::fp8_block
