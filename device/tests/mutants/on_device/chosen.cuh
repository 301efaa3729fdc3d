#pragma once
// Which mutant is planted, in each source that nvcc compiles by itself: its kernels see no other source's variables.

#include <cuda_runtime.h>

#include <cstdint>

#include "device/tests/mutants/on_device/library.h"

namespace assay::mutants {
namespace {

__constant__ Chosen chosen = {kNone, nullptr};

// Host code of a function for both has no fault: what the harness asks of a call stays right.
__host__ __device__ inline bool is(int number) {
#ifdef __CUDA_ARCH__
  // Threads that find the point noted do not store: all at one place, stores take many times as long as the kernel.
  if (chosen.number == kRecords && chosen.reached[number] == 0) chosen.reached[number] = 1;
  return chosen.number == number;
#else
  return false;
#endif
}

bool choose_here(const Chosen& now) {
  return cudaMemcpyToSymbolAsync(chosen, &now, sizeof now, 0, cudaMemcpyHostToDevice, nullptr) == cudaSuccess;
}
const Source source(choose_here);

}  // namespace

// Whether the host leaves out a launch.
inline bool is_left_out(int number) {
  if (chosen_by_host == kRecords) reached_by_host[number] = 1;
  return chosen_by_host == number;
}

}  // namespace assay::mutants
