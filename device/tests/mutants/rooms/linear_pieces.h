#pragma once
// The small kernels of a grouped linear layer (device/linear/linear_moves.h), called by themselves.

namespace assay::mutants {

// Whether the constants of a layer of `groups` groups, and pieces of as many buffers that are gathered and scattered, are right, and
// nothing beside them is written.
bool linear_pieces_are_right(int groups);

}  // namespace assay::mutants
