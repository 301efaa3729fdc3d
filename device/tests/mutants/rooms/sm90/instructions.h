#pragma once
// Instructions of SM90 by name, as mutate.py calls them (PTX ISA): those that are not in barriers.h, copy_engine.h and products.h.

#include <atomic>
#include <cstdint>

#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/sm90/barriers.h"
#include "device/tests/mutants/rooms/sm90/copy_engine.h"
#include "device/tests/mutants/rooms/sm90/products.h"
#include "device/tests/mutants/rooms/sm90/together.h"

inline void __syncwarp(unsigned = ~0u) { assay::device::host::exchange(0); }

// A clock that only those advance who read it: what a program waits for by it comes, whatever the turns.
inline long long clock64() {
  static std::atomic<long long> cycles = 0;
  return cycles += 100;
}
inline void __nanosleep(unsigned) {}

namespace assay::device::host {

inline void mov_u32(unsigned& to, unsigned value) { to = value; }

// "ld": the address is a multiple of the size.
void ld_shared_f32(float& value, std::uint32_t from);
void ld_shared_v2_f32(float& x, float& y, std::uint32_t from);
void ld_shared_v4_f32(float& x, float& y, float& z, float& w, std::uint32_t from);

// "stmatrix": a thread waits until all lanes have come, "before resuming execution". When a row is stored is not said beyond that it needs
// its address and its codes: with Turns::by_lane as soon as the lanes that have them have come, otherwise by the lane of its address as
// that goes on. Other lanes see it after __syncwarp().
void stmatrix_sync_aligned_m8n8_x4_shared_b16(std::uint32_t row, std::uint32_t first, std::uint32_t second, std::uint32_t third,
                                              std::uint32_t fourth);

inline void barrier_cluster_arrive_aligned() {
  meet_aligned("barrier.cluster.arrive.aligned");
  arrive_at_cluster();
}
inline void barrier_cluster_wait_aligned() {
  meet_aligned("barrier.cluster.wait.aligned");
  wait_for_cluster();
}
inline void setmaxnreg_dec_sync_aligned_u32(int) { meet_aligned("setmaxnreg.dec"); }
inline void setmaxnreg_inc_sync_aligned_u32(int) { meet_aligned("setmaxnreg.inc"); }

}  // namespace assay::device::host
