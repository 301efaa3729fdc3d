#pragma once
// Bytes of a known value before and after each allocation of the program, so that a store beside a tensor is seen; and pages that
// nothing may touch beside the tensors of a call, so that a load there ends the process.

#include <cstddef>
#include <vector>

namespace assay::mutants {

// Writes the known value around an allocation of `bytes` bytes, or tells whether it is there. Where `data` is null there is none.
void renew_guards(const void* data, std::size_t bytes);
bool guards_hold(const void* data, std::size_t bytes);

// The side of a tensor on which such a page begins at once: at its first byte, or after its last one, counted to the next multiple of
// 16 bytes. The page of the other side is less than a page away, with guards before it. `past`: bytes between the page before and the
// tensor.
enum class Fence { before, behind };
std::vector<std::byte> fenced_copy(const std::vector<std::byte>& bytes, Fence fence, std::size_t past = 0);

}  // namespace assay::mutants
