#include "device/tests/mutants/rooms/sm90/barriers.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/mutants/rooms/sm90/together.h"

namespace assay::device::host {
namespace {

constexpr std::int64_t kMost = (1 << 20) - 1;

struct Barrier {
  unsigned slot, maker;
  std::uint64_t block_passed, cluster_passed;  // barriers, when it was made
  bool published = false;
  int count, pending;
  std::int64_t bytes = 0;
  std::uint64_t phase = 0;
  std::vector<unsigned> waiting;
};
std::map<std::uint32_t, Barrier> barriers;  // by their addresses

// What the word of a barrier holds: a value that no kernel stores by accident.
std::uint64_t token(std::uint32_t at) { return 0xBA22'1E2A'0000'0000u ^ at * 0x9E37'79B9'7F4Au; }

Barrier& barrier_at(std::uint32_t at) {
  if (at % sizeof(std::uint64_t) != 0) fail("a barrier at no multiple of 8 bytes");
  const void* const word = at_address(at, sizeof(std::uint64_t));
  const auto found = barriers.find(at);
  if (found == barriers.end()) fail("a barrier that is not initialized");
  const std::uint64_t holds = token(at);
  if (std::memcmp(word, &holds, sizeof holds) != 0) fail("a barrier that something was stored over");
  return found->second;
}

// By a thread: of its own block, or of another one.
Barrier& used_by_thread(std::uint32_t at, bool of_block) {
  Barrier& found = barrier_at(at);
  const bool own = found.slot == slot();
  if (of_block && !own) fail("a barrier of another block as one of the own");
  const bool seen = own ? found.maker == running_thread() || block_barriers_passed() > found.block_passed
                        : found.published && cluster_barriers_passed() > found.cluster_passed;
  if (!seen) fail("a barrier that was made in another thread, without an order");
  return found;
}

void end_phase(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.count;
  for (const unsigned each : barrier.waiting) wake(each);
  barrier.waiting.clear();
}

void arrive(Barrier& barrier) {
  if (barrier.pending == 0) fail("more arrivals at a barrier than its phase expects");
  --barrier.pending;
  end_phase(barrier);
  give_way();
}

}  // namespace

void mbarrier_init_shared_cta_b64(std::uint32_t at, int count) {
  if (at % sizeof(std::uint64_t) != 0) fail("a barrier at no multiple of 8 bytes");
  if (count < 1 || count > kMost) fail("a barrier of so many arrivals");
  if (barriers.count(at) != 0) fail("a barrier is made where there is one");
  const std::uint64_t holds = token(at);
  std::memcpy(at_address(at, sizeof holds), &holds, sizeof holds);
  Barrier made{};
  made.slot = slot(), made.maker = running_thread();
  made.block_passed = block_barriers_passed(), made.cluster_passed = cluster_barriers_passed();
  made.count = made.pending = count;
  barriers.emplace(at, made);
}

void fence_mbarrier_init_release_cluster() {
  for (auto& [at, barrier] : barriers) barrier.published = barrier.published || barrier.maker == running_thread();
}

void mbarrier_arrive_shared_cta_b64(std::uint32_t at) { arrive(used_by_thread(at, true)); }
void mbarrier_arrive_shared_cluster_b64(std::uint32_t at) { arrive(used_by_thread(at, false)); }

void mbarrier_arrive_expect_tx_shared_cta_b64(std::uint32_t at, std::uint32_t bytes) {
  Barrier& barrier = used_by_thread(at, true);
  barrier.bytes += bytes;
  if (std::abs(barrier.bytes) > kMost) fail("a barrier that expects so many bytes");
  arrive(barrier);
}

void mbarrier_try_wait_parity_shared_cta_b64(bool& done, std::uint32_t at, std::uint32_t parity) {
  if (parity > 1) fail("a parity that is neither 0 nor 1");
  note_wait();
  Barrier& barrier = used_by_thread(at, true);
  while (barrier.phase % 2 == parity) {
    barrier.waiting.push_back(running_thread());
    wait_to_be_woken();
  }
  done = true;
}

void check_reports_to(std::uint32_t at) {
  if (!used_by_thread(at, false).published) fail("a barrier that the copy engine may not know");
}

void complete_bytes(std::uint32_t at, std::uint32_t bytes) {
  Barrier& barrier = barrier_at(at);
  barrier.bytes -= bytes;
  if (std::abs(barrier.bytes) > kMost) fail("a barrier to which so many bytes were reported");
  end_phase(barrier);
}

void forget_barriers_of(unsigned slot) {
  for (auto each = barriers.begin(); each != barriers.end();)
    each = each->second.slot == slot ? barriers.erase(each) : std::next(each);
}

}  // namespace assay::device::host
