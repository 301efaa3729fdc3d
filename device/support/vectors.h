#pragma once
// Shared memory that is declared as words, and read or written as vectors of 8 or 16 bytes.

#include <cstddef>

// A struct of words alone may lie at any multiple of 4, where a vector's load or store faults. After the definition of each struct
// whose `member` is accessed as `vector`.
#define ASSAY_HOLDS_VECTORS(vector, owner, member)                                                     \
  static_assert(alignof(owner) % sizeof(vector) == 0 && offsetof(owner, member) % sizeof(vector) == 0, \
                #owner "::" #member " is accessed as " #vector ", and must begin at a multiple of its size")
