#pragma once
// FP8 block scaling with columnwise codes where columns begin at any byte: column j of group t begins at byte
// columns * first_row + j * rows of the output. Compute capability 9.0 and newer.
//
//   traffic   as in quantize_tiles.cuh
//   ceiling   not HBM: about two thirds of the rate of a copy, half of it with dbias, less with hundreds of groups.
//             Windows of whole 128 B lines, or clusters of 8, are not faster. The rest is the time of a tile between barriers (5
//             reads of shared memory and 4 shifts for 16 codes; several tiles one after another where groups meet), of which 4
//             tiles per SM (3 with dbias) do not hide enough.
//   layout    a tile per block as in quantize_tiles.cuh; kCluster blocks with tiles one below another are a cluster
//   columns   a column of codes is stored by whole aligned windows of kWindow bytes. Codes of a tile in the same window
//             as the next tile's first code go to the shared memory of that tile's block, which stores them; only where a
//             cluster or a group begins or ends are windows partial. The columns of a group of one tile follow one
//             another without a gap: they are combined to aligned 16 bytes.
//   order     as in quantize_tiles.cuh
//   matches   reference/recipes/fp8_block.h

#include "device/quantize/fp8_block/quantize_tiles.cuh"

#if defined(__CUDACC__)

namespace assay::device::fp8_block {

constexpr int kCluster = 4;
constexpr int kWindow = 32;  // bytes: a sector of memory

// All threads of a cluster, in halves: after the second half of one, all have passed its first half. Blocks that have
// ended count as passed.
__device__ __forceinline__ void arrive_at_cluster() { asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory"); }
__device__ __forceinline__ void wait_for_cluster() { asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory"); }
// The same place in the shared memory of another block of the cluster.
__device__ __forceinline__ std::uint32_t place_in_block(const void* shared, unsigned rank) {
  std::uint32_t place;
  asm("mapa.shared::cluster.u32 %0, %1, %2;"
      : "=r"(place)
      : "r"(static_cast<std::uint32_t>(__cvta_generic_to_shared(shared))), "r"(rank));
  return place;
}
__device__ __forceinline__ void store_in_block(std::uint32_t place, const uint2& value) {
  asm volatile("st.shared::cluster.v2.u32 [%0], {%1, %2};" : : "r"(place), "r"(value.x), "r"(value.y) : "memory");
}

// Codes in shared memory by columns: of each the kWindow rows before the tile and its 128 rows. Columns lie so that
// the stores of a warp (columns 8 apart) do not meet in a bank.
struct ColumnPlaces {
  static constexpr int kChunks = kWindow / 8 + kBlock / 8 + 1;
  static constexpr int kBytes = (kBlock * kChunks + kBlock / 8 + 2) * 8;
  static __device__ __forceinline__ int of(int column) { return column * kChunks + (column >> 3); }  // in chunks of 8 rows
};

// See TileCodes. Rows of the next tile's first window go there as well.
struct ClusterCodes {
  using Places = ColumnPlaces;
  uint2* chunks;
  std::uint32_t next;  // of `chunks` in the block of the tile below, if there is one
  bool has_next;
  bool first;                             // tile of the block
  std::uint32_t begin_of_columns, pitch;  // of column 0, modulo 2^32: the address of row 0

  __device__ __forceinline__ void begin() const {
    if (first) wait_for_cluster();  // all blocks have started, so that their shared memory exists
  }
  __device__ __forceinline__ void put(int column, int chunk, const uint2& codes) const {
    const int place = Places::of(column) + kWindow / 8 + chunk;
    chunks[place] = codes;
    if (has_next) {
      const int past = static_cast<int>((begin_of_columns + static_cast<std::uint32_t>(column) * pitch) & (kWindow - 1));
      if (chunk * 8 + 8 > kBlock - past) store_in_block(next + (place - kBlock / 8) * 8, codes);
    }
  }
};

// Columns of codes from shared to global memory.
struct ColumnStore {
  const unsigned char* codes;
  std::uint8_t* to;     // column 0, row 0
  std::uint32_t pitch;  // rows of the group
  int rows, columns;    // of the tile
  bool continued;       // rows of the tile above are there
  bool last;            // rows of the last window are not stored by the tile below

  __device__ __forceinline__ const unsigned char* at_place(int column, int row) const {
    return codes + ColumnPlaces::of(column) * 8 + kWindow + row;
  }
  __device__ __forceinline__ std::uint8_t code(int column, int row) const { return *at_place(column, row); }
  // 16 rows from any row.
  __device__ __forceinline__ uint4 vector(int column, int row) const {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(at_place(column, row & ~3));
    const int shift = 8 * (row & 3);
    const std::uint32_t w0 = words[0], w1 = words[1], w2 = words[2], w3 = words[3], w4 = words[4];
    return {__funnelshift_r(w0, w1, shift), __funnelshift_r(w1, w2, shift), __funnelshift_r(w2, w3, shift),
            __funnelshift_r(w3, w4, shift)};
  }
  __device__ __forceinline__ std::uint8_t* column_at(int column) const { return to + static_cast<std::int64_t>(column) * pitch; }
  static __device__ __forceinline__ int past(const std::uint8_t* pointer, int unit) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(pointer) & static_cast<unsigned>(unit - 1));
  }

  __device__ __forceinline__ void store(int thread) const {
    if (pitch <= static_cast<unsigned>(kBlock) && pitch >= 16) return store_range(thread);
    store_windows(thread);
  }

  // A group of one tile of 16 rows or more: 16 bytes have codes of one or two columns.
  __device__ __forceinline__ void store_range(int thread) const {
    const int head = 16 - past(to, 16), bytes = columns * rows;  // rows is pitch
    const std::uint32_t inverse = (1u << 21) / pitch + 1;        // exact for the dividends here: below 2^14
    for (int begin = (head & 15) + thread * 16; begin + 16 <= bytes; begin += kThreads * 16) {
      const int column = static_cast<int>(static_cast<std::uint32_t>(begin) * inverse >> 21), row = begin - column * rows;
      uint4 v = vector(column, row);
      const int own = rows - row;  // codes of the first column, if less than 16
      if (own < 16) {
        const uint4 more = vector(column + 1, -own);
        const auto join = [&](std::uint32_t low, std::uint32_t high, int word) {
          const int bits = 8 * min(max(own - 4 * word, 0), 4);
          const std::uint32_t mask = bits == 32 ? ~0u : (1u << bits) - 1;
          return (low & mask) | (high & ~mask);
        };
        v = {join(v.x, more.x, 0), join(v.y, more.y, 1), join(v.z, more.z, 2), join(v.w, more.w, 3)};
      }
      __stcs(reinterpret_cast<uint4*>(to + begin), v);
    }
    if (thread < 32) {  // both ends
      const int end = bytes < (head & 15) ? 0 : ((bytes - (head & 15)) & 15);
      const int k = thread % 16, at = thread < 16 ? k : bytes - end + k;
      if (at < (thread < 16 ? min(head & 15, bytes) : bytes)) {
        const int column = at / rows;
        __stcs(to + at, code(column, at - column * rows));
      }
    }
  }

  // Whole aligned vectors of the rows above and of the tile, up to the last window that is whole, or all if it is the
  // last.
  __device__ __forceinline__ void store_windows(int thread) const {
    const auto store_vector = [&](int column, int v) {
      std::uint8_t* const at = column_at(column);
      const int left = past(at, kWindow), row = 16 * v - left;
      const int begin = continued ? -left : 0, end = last ? rows : kBlock - left;
      if (column < columns && row >= begin && row + 16 <= end) __stcs(reinterpret_cast<uint4*>(at + row), vector(column, row));
    };
#pragma unroll
    for (int pass = 0; pass < 4; ++pass) store_vector(pass * 32 + thread / 8, thread % 8);
    static_assert(kBlock * (kWindow / 16) == kThreads);
    if (last) store_vector(thread / (kWindow / 16), 8 + thread % (kWindow / 16));

    if (!continued) {  // up to the first aligned byte
#pragma unroll 2
      for (int column = thread / 16; column < columns; column += kThreads / 16) {
        std::uint8_t* const at = column_at(column);
        const int row = thread % 16;
        if (row < min(-past(at, 16) & 15, rows)) __stcs(at + row, code(column, row));
      }
    }
    if (last) {  // from the last aligned byte
#pragma unroll 2
      for (int column = thread / 16; column < columns; column += kThreads / 16) {
        std::uint8_t* const at = column_at(column);
        const int begin = rows - past(at + rows, 16), row = begin + thread % 16;
        if (row < rows && (continued || begin >= 0)) __stcs(at + row, code(column, row));
      }
    }
  }
};

template <bool kSquare, unsigned kParts>
struct ClusterShared {
  using Memory = Shared<Format::bf16, kSquare, kParts>;
  // Scales that are kept by tiles of rows need no other sum than the tile's number.
  static constexpr Recipe kRecipe = kSquare ? Recipe::block_128x128 : Recipe::block_1x128;
  using Tiles = WindowTiles<typename ScaleLayoutOf<kRecipe, kSquare ? Direction::columnwise : Direction::rowwise>::Measure>;

  alignas(16) unsigned char codes[ColumnPlaces::kBytes];
  alignas(16) unsigned char raw[Memory::kRawBytes == 0 ? 16 : Memory::kRawBytes];
  alignas(16) unsigned char maxima[Memory::kMaximaBytes == 0 ? 16 : Memory::kMaximaBytes];
  TileScratch scratch;
  Tiles tiles;
};

// Windows of the buffer are shared out so that a cluster has kCluster of them, one below another, of one column of
// tiles.
template <Format X, Format F, bool kSquare, unsigned kParts>
__global__ void __launch_bounds__(kThreads, tiles_per_sm<X>()) quantize_clusters(const __grid_constant__ Fp8BlockTiles a) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  using Memory = ClusterShared<kSquare, kParts>;
  extern __shared__ __align__(16) unsigned char shared[];
  Memory& memory = *reinterpret_cast<Memory*>(shared);

  if (is_skipped(a.noop)) return;  // all threads of a block return together
  if (a.column_data != nullptr) arrive_at_cluster();
  const std::uint32_t cluster = blockIdx.x / kCluster, rank = blockIdx.x % kCluster;
  const std::uint32_t row_of_clusters = cluster / a.column_tiles, column_tile = cluster - row_of_clusters * a.column_tiles;
  const unsigned count = memory.tiles.find(a.rows, row_of_clusters * kCluster + rank, a.status);
  if (count == 0 || a.columns == 0) return;

  // The tiles of a window have numbers one after another. The last continues in the next window, if any does, and the
  // first is the rest of one from the window before: from the last to the first, rows for another block are there
  // early and those from another block are needed late.
  const WindowTile* const list = memory.tiles.list;
  std::uint32_t lowest = list[0].number;
  for (unsigned k = 1; k < count; ++k) lowest = min(lowest, list[k].number);
#pragma unroll 1
  for (unsigned left = count; left != 0; --left) {
    unsigned k = 0;
    while (list[k].number != lowest + left - 1) ++k;
    const WindowTile& tile = list[k];
    const bool first = left == count;

    ClusterCodes codes;
    codes.chunks = reinterpret_cast<uint2*>(memory.codes);
    codes.first = first;
    codes.has_next = first && rank + 1 < kCluster && tile.rows > (tile.tile + 1) * kBlock;
    codes.next = codes.has_next ? place_in_block(memory.codes, rank + 1) : 0;
    codes.begin_of_columns = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(column_codes_of(a, tile, column_tile)));
    codes.pitch = tile.rows;
    quantize_tile<X, F, kSquare, kParts, true>(a, tile, column_tile, memory.raw, memory.maxima, memory.scratch, codes);

    if (a.column_data != nullptr) {
      ColumnStore store;
      store.codes = memory.codes;
      store.to = column_codes_of(a, tile, column_tile);
      store.pitch = tile.rows;
      store.rows = static_cast<int>(min(tile.rows - tile.tile * kBlock, static_cast<std::uint32_t>(kBlock)));
      store.columns = static_cast<int>(min(a.columns - std::int64_t{column_tile} * kBlock, std::int64_t{kBlock}));
      store.continued = rank != 0 && tile.tile != 0;
      store.last = !codes.has_next;
      if (first) arrive_at_cluster();     // what goes to another block is there
      if (left == 1) wait_for_cluster();  // what comes from another block is there
      if (count != 1) __syncthreads();    // the barrier of the cluster is not of this tile
      store.store(static_cast<int>(threadIdx.x));
    }
    if (left != 1) __syncthreads();  // shared memory is used again
  }
#endif
}

// Whether the device has clusters.
inline bool has_clusters() {
  int device = 0, major = 0;
  check_cuda(cudaGetDevice(&device), "cudaGetDevice");
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  return major >= 9;
}

// Blocks of a launch of quantize_clusters().
inline std::int64_t cluster_blocks(const Fp8BlockTiles& tiles) {
  return round_up(tiles.blocks / tiles.column_tiles, kCluster) * tiles.column_tiles;
}

// For aligned 16-bit x, on a device that has clusters.
template <Format X, Format F, bool kSquare, unsigned kParts>
void launch_clusters(const Fp8BlockTiles& tiles, cudaStream_t stream) {
  constexpr int kBytes = sizeof(ClusterShared<kSquare, kParts>);
  const auto kernel = quantize_clusters<X, F, kSquare, kParts>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "cudaFuncSetAttribute");
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = kCluster;
  cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(cluster_blocks(tiles)));
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = kBytes;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, tiles), "quantize_clusters");
}

}  // namespace assay::device::fp8_block

#endif  // __CUDACC__
