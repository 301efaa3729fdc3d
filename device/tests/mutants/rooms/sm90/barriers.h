#pragma once
// Barriers in shared memory as PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier", has them. What that leaves
// undefined ends the program:
//
//   mbarrier.init      "on a memory location containing a valid mbarrier object is undefined"; count in 1 to 2^20 - 1
//   any operation      on a word that holds no valid object; here also one that something was stored over
//   arrive             pending arrivals are in 1 to the count: no more arrivals than a phase expects
//   expect_tx          the tx-count stays within -(2^20 - 1) to 2^20 - 1. A phase ends when no arrival is pending and the tx-count is 0
//   try_wait.parity    true when the phase of that parity has ended: the one before the current one. A thread waits until then
//   fence.mbarrier_init, and a barrier of the cluster, come between the init and uses by another block or by the copy engine;
//                      a barrier of the block between it and other threads
//   shared::cta        is the memory of the executing thread's block; shared::cluster that of a block of the cluster that has not ended

#include <cstdint>

namespace assay::device::host {

void mbarrier_init_shared_cta_b64(std::uint32_t at, int count);
void fence_mbarrier_init_release_cluster();
void mbarrier_arrive_shared_cta_b64(std::uint32_t at);
void mbarrier_arrive_shared_cluster_b64(std::uint32_t at);
void mbarrier_arrive_expect_tx_shared_cta_b64(std::uint32_t at, std::uint32_t bytes);
void mbarrier_try_wait_parity_shared_cta_b64(bool& done, std::uint32_t at, std::uint32_t parity);

// For the copy engine: ends the program where it may not report there, and reports.
void check_reports_to(std::uint32_t at);
void complete_bytes(std::uint32_t at, std::uint32_t bytes);

void forget_barriers_of(unsigned slot);

}  // namespace assay::device::host
