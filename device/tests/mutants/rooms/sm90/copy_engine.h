#pragma once
// Copies by the tensor memory accelerator, as PTX ISA has them: "cp.async.bulk", "cp.async.bulk.tensor", "tensormap.replace",
// "fence.proxy", "Tensors", and CUDA Driver API, cuTensorMapEncodeTiled. A copy is asynchronous:
//
//   late    what it overwrites is unusable (NaN codes) as soon as it is issued; it reads its map and its source when no thread can go on
//   early   it has happened when it is issued
//
// No result may depend on which. What PTX leaves undefined or forbids ends the program: addresses, sizes and pitches that are no multiples
// of 16 bytes, a source that lies neither in a tensor of the call nor in its workspace, a destination beside the memory of a block, a
// block that ends while a copy goes there.
//
//   async proxy        What threads store in the workspace is seen by copies after fence.proxy.async by the thread that stored it, the
//                      barrier of the grid, and another such fence by the thread that issues the copy ("Proxies", "fence.proxy.async")
//   tensormap proxy    A map in the workspace is seen as it was at the last fence.proxy.tensormap::generic.acquire of it, behind a
//                      release. One that a kernel was given is seen as it is
//   zero fill          Elements of a box outside the matrix are 0; they count among the bytes that are reported
//   swizzle 128B       Bits 4 to 6 of an address in shared memory are those of the place in the box, xor bits 7 to 9
//   multicast          The same offset in the memory of each block, reported to the barrier at the same offset there

#include <cstddef>
#include <cstdint>
#include <vector>

struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};

namespace assay::device::host {

struct MemoryPart {
  const void* begin;
  std::size_t bytes;
};
// Of the launches that follow.
void describe_memory(std::vector<MemoryPart> tensors, MemoryPart workspace);
extern bool copies_are_late;

// Where the 128-byte swizzle puts what would lie at `address`, in units of 16 bytes.
inline std::uint32_t swizzled(std::uint32_t address) { return address ^ (address >> 7 & 7) << 4; }

// A map of bytes in two dimensions with the 128-byte swizzle. False: the driver refuses it.
bool encode_map(CUtensorMap& map, const void* address, const std::uint64_t (&extents)[2], std::uint64_t pitch,
                const std::uint32_t (&box)[2]);

void cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(std::uint32_t to, const void* from, std::uint32_t bytes,
                                                                    std::uint32_t barrier);
void cp_async_bulk_tensor_2d_shared_cluster_global_mbarrier_complete_tx_bytes(std::uint32_t to, const CUtensorMap* map,
                                                                              std::int32_t column, std::int32_t row,
                                                                              std::uint32_t barrier);
void cp_async_bulk_tensor_2d_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster(
    std::uint32_t to, const CUtensorMap* map, std::int32_t column, std::int32_t row, std::uint32_t barrier, std::uint16_t blocks);
void fence_proxy_async_global();
void tensormap_replace_tile_global_address_global_b1024_b64(CUtensorMap* map, const void* address);
void tensormap_replace_tile_global_dim_global_b1024_b32(CUtensorMap* map, int dimension, std::uint32_t extent);
void tensormap_replace_tile_global_stride_global_b1024_b64(CUtensorMap* map, int dimension, std::uint64_t pitch);
void fence_proxy_tensormap_generic_release_gpu();
void fence_proxy_tensormap_generic_acquire_gpu(const CUtensorMap* map, int bytes);

// For run_kernel(): a launch begins; a thread comes to the barrier of the grid; a copy that is under way ends, if there is one.
void begin_copies();
void note_barrier_of_grid();
bool complete_a_copy();
void check_no_copy_goes_to(unsigned slot);

}  // namespace assay::device::host
