#pragma once
// Bytes on both sides of every allocation of the program: a call that stores beside a tensor changes them.

#include <cstddef>

namespace assay::mutants {

// `data` is the start of an allocation of `bytes`.
void renew_guards(const void* data, std::size_t bytes);
bool guards_hold(const void* data, std::size_t bytes);

}  // namespace assay::mutants
