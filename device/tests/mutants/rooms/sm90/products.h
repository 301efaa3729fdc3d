#pragma once
// Products of a warpgroup, as PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions", has them; the arithmetic is
// that of the units sm90.wgmma.fp8 and sm90.wgmma.f16 of the reference.
//
//   wgmma.fence        comes before the first product that uses registers which were read or written; without it the program ends
//   wgmma.mma_async    is asynchronous: its sums cannot be used (here they are NaN) until wgmma.wait_group has waited for it. The four warps
//                      ask for the same products, described by the same words
//   descriptors        128-byte swizzle; 8 rows of 128 bytes follow one another, groups of 8 rows are 1024 bytes apart. Bits 4 to 6 of an
//                      address are xor bits 7 to 9
//   BF16               operands whose rows are the contraction, in rows of 128 bytes with the same swizzle: 8 rows, which serve as the next 8
//                      too; from 64 columns to the next 64 as many bytes as the word says. Threads store them: what is read is the
//                      memory of the block as it was at the last fence.proxy.async of one of its threads
//   late               (products_are_late) operands are read when no thread can go on; otherwise when all four warps have committed

#include <cstddef>
#include <cstdint>

#include "reference/types/format.h"

namespace assay::device::host {

extern bool products_are_late;

void wgmma_fence_sync_aligned();
void wgmma_commit_group_sync_aligned();
void wgmma_wait_group_sync_aligned(int groups);  // that may still be under way
// Of the words of a matrix descriptor the low one. `add` 0: the sums begin at 0.
void wgmma_mma_async(float* sums, int columns, Format a_type, Format b_type, std::uint32_t a, std::uint32_t b, int add);
void wgmma_mma_async_bf16(float* sums, int columns, std::uint32_t a, std::uint32_t b);  // the sums begin at 0
void fence_proxy_async_shared_cta();

// For run_kernel(): a launch of so many blocks begins, each with so much shared memory; products that all warps have committed are
// computed, if there are any.
void begin_products(unsigned blocks, std::size_t shared_bytes);
bool complete_products();

}  // namespace assay::device::host
