// Compilers of some systems define it: longjmp() then refuses a stack that lies elsewhere.
#undef _FORTIFY_SOURCE

#include "device/tests/mutants/rooms/sm90/together.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <numeric>
#include <tuple>
#include <vector>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/fiber.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/sm90/barriers.h"
#include "device/tests/mutants/rooms/sm90/copy_engine.h"
#include "device/tests/mutants/rooms/sm90/products.h"

namespace assay::device::host {

Index thread_index, block_index, grid_size, block_size;
bool reversed = false;
int compute_capability = 0;
std::uint64_t blocks_begun = 0;
std::vector<Memory> in_use_before;
Turns turns = Turns::by_block;

namespace {

constexpr unsigned kWarp = 32;

// Threads that wait until all of them have come. What they give stays until all have come once more.
struct Meeting {
  const char* what = nullptr;
  unsigned live = 0, come = 0;
  std::uint64_t passed = 0, any[2] = {}, given[2][kWarp] = {};
  std::vector<unsigned> waiting;
};

struct Thread : Fiber {
  using Fiber::Fiber;
  bool done = true;
  std::uint64_t waits = 0;                         // for barriers in memory, since the lanes of the warp last met
  std::uint64_t at_cluster = 0, past_cluster = 0;  // barriers of the cluster at which it arrived, and which it waited for
};

std::deque<Thread> threads;          // in their places
std::vector<unsigned> first, place;  // threads in the order of their turns, and the place of each there
std::vector<std::uint64_t> ready;    // bits, by place
std::vector<Meeting> warps, blocks, clusters;
Meeting grid;
Launch launch;
const std::function<void()>* work = nullptr;
unsigned running = 0;

unsigned of_launch() { return launch.grid.x * launch.grid.y * launch.threads; }
constexpr unsigned kNobody = ~0u;
unsigned first_ready() {
  for (std::size_t i = 0; i < ready.size(); ++i) {
    if (ready[i] != 0) return static_cast<unsigned>(64 * i) + static_cast<unsigned>(std::countr_zero(ready[i]));
  }
  return kNobody;
}
void set_ready(unsigned at, bool to) {
  const std::uint64_t bit = std::uint64_t{1} << (at % 64);
  ready[at / 64] = to ? ready[at / 64] | bit : ready[at / 64] & ~bit;
}
Meeting& own_warp() { return warps[running / kWarp]; }

void run_threads() {
  for (;;) {
    (*work)();
    threads[running].done = true;
    threads[running].leave();
  }
}

void pass(Meeting& meeting) {
  meeting.come = 0;
  ++meeting.passed;
  meeting.any[meeting.passed % 2] = 0;
  std::fill_n(meeting.given[meeting.passed % 2], kWarp, 0);
  meeting.what = nullptr;
  for (const unsigned each : meeting.waiting) wake(each);
  meeting.waiting.clear();
}

// Until all that have not ended have come. What was given is at index [result].
unsigned meet(Meeting& meeting, const char* what, std::uint64_t value) {
  if (meeting.what != nullptr && std::strcmp(meeting.what, what) != 0)
    fail("threads that wait for one another come to different places");
  meeting.what = what;
  const std::uint64_t turn = meeting.passed;
  meeting.any[turn % 2] |= value;
  meeting.given[turn % 2][running % kWarp] = value;
  if (++meeting.come == meeting.live) {
    pass(meeting);
    give_way();
  } else {
    meeting.waiting.push_back(running);
    while (meeting.passed == turn) wait_to_be_woken();
  }
  return static_cast<unsigned>(turn % 2);
}

unsigned meet_in_warp(const char* what, std::uint64_t value) {
  const unsigned result = meet(own_warp(), what, value);
  threads[running].waits = 0;
  return result;
}

void end_thread(unsigned thread) {
  for (Meeting* each :
       {&warps[thread / kWarp], &blocks[thread / launch.threads], &clusters[thread / launch.threads / launch.cluster], &grid}) {
    if (--each->live != 0 && each->come == each->live) pass(*each);
  }
  const unsigned block = thread / launch.threads;
  if (blocks[block].live != 0) return;
  forget_barriers_of(block);
  check_no_copy_goes_to(block);
  end_dynamic_shared(block);
}

void set_running(unsigned thread) {
  running = thread;
  const unsigned block = thread / launch.threads;
  thread_index.x = thread % launch.threads;
  block_index = {block % launch.grid.x, block / launch.grid.x, 0};
  rank_in_cluster = block;  // of dynamic_shared(): a place for each block
}

void order_turns() {
  const unsigned count = of_launch(), lanes = launch.threads % kWarp == 0 ? kWarp : launch.threads;
  first.resize(count), place.resize(count);
  std::iota(first.begin(), first.end(), 0u);
  if (turns == Turns::by_lane) {
    std::sort(first.begin(), first.end(),
              [=](unsigned a, unsigned b) { return std::tuple(a % lanes, b / lanes) < std::tuple(b % lanes, a / lanes); });
  }
  for (unsigned i = 0; i < count; ++i) place[first[i]] = i;
}

void begin_launch() {
  const unsigned count = of_launch(), block_count = launch.grid.x * launch.grid.y;
  if (block_count > kMostInCluster) fail("more blocks than can run at once here");
  if (block_count % launch.cluster != 0) fail("a cluster that is not whole");
  while (threads.size() < count) threads.emplace_back(run_threads);
  ready.assign((count + 63) / 64, 0);
  for (unsigned at = 0; at < count; ++at) set_ready(at, true);
  const auto meetings = [](std::vector<Meeting>& made, unsigned number, unsigned live) {
    made.assign(number, {});
    for (Meeting& each : made) each.live = live;
  };
  meetings(warps, (count + kWarp - 1) / kWarp, std::min(kWarp, launch.threads));
  meetings(blocks, block_count, launch.threads);
  meetings(clusters, block_count / launch.cluster, launch.threads * launch.cluster);
  grid = {};
  grid.live = count;
  for (unsigned t = 0; t < count; ++t) {
    threads[t].done = false;
    threads[t].waits = threads[t].at_cluster = threads[t].past_cluster = 0;
  }
  for (unsigned block = 0; block < block_count; ++block) {
    ++blocks_begun;
    begin_dynamic_shared(block, launch.shared_bytes);
  }
  order_turns();
}

}  // namespace

void fail(const char* what) {
  std::fprintf(stderr, "run_kernel: block %u, thread %u: %s\n", block_index.x, thread_index.x, what);
  std::abort();
}

unsigned running_thread() { return running; }
void wait_to_be_woken() { threads[running].leave(); }
void wake(unsigned thread) { set_ready(place[thread], true); }
void give_way() {
  if (first_ready() > place[running]) return;
  set_ready(place[running], true);
  threads[running].leave();
}

unsigned slot() { return running / launch.threads; }
unsigned cluster_ctarank() { return slot() % launch.cluster; }
std::uint32_t address_in_cluster(std::uint32_t address, unsigned rank) {
  if (rank >= launch.cluster) fail("a block that the cluster does not have");
  return address_in_block(address, slot() / launch.cluster * launch.cluster + rank);
}
std::uint64_t block_barriers_passed() { return blocks[slot()].passed; }
std::uint64_t cluster_barriers_passed() { return clusters[slot() / launch.cluster].passed; }
std::uint64_t grid_barriers_passed() { return grid.passed; }

void note_wait() { ++threads[running].waits; }
void meet_aligned(const char* instruction) {
  const std::uint64_t own = threads[running].waits + 1;
  const std::uint64_t* const all = own_warp().given[meet_in_warp(instruction, own)];
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if (all[lane] != own) fail("lanes of a warp come to an aligned instruction apart");
  }
}

void wait_for_block() { meet(blocks[slot()], "the barrier of the block", 0); }
std::uint64_t or_of_block(std::uint64_t value) {
  Meeting& own = blocks[slot()];
  return own.any[meet(own, "the barrier of the block with a value", value)];
}
const std::uint64_t* exchange(std::uint64_t value) {
  Meeting& own = own_warp();
  return own.given[meet_in_warp("an exchange", value)];
}
void wait_for_work_before() {}

void wait_for_grid() {
  if (!launch.cooperative) fail("a barrier of the grid in a launch that is not cooperative");
  note_barrier_of_grid();
  meet(grid, "the barrier of the grid", 0);
}

void arrive_at_cluster() {
  Thread& own = threads[running];
  Meeting& cluster = clusters[slot() / launch.cluster];
  if (own.past_cluster != own.at_cluster++)
    fail("a thread arrives at a barrier of the cluster before it waited for the last one");
  if (++cluster.come == cluster.live) {
    pass(cluster);
    give_way();
  }
}
void wait_for_cluster() {
  Thread& own = threads[running];
  Meeting& cluster = clusters[slot() / launch.cluster];
  if (own.past_cluster == own.at_cluster) fail("a thread waits for a barrier of the cluster at which it did not arrive");
  while (own.at_cluster > cluster.passed) {
    cluster.waiting.push_back(running);
    wait_to_be_woken();
  }
  ++own.past_cluster;
}

void run_kernel(const Launch& next, const std::function<void()>& thread) {
  launch = next;
  work = &thread;
  grid_size = launch.grid;
  block_size.x = launch.threads;
  begin_launch();
  begin_copies();
  begin_products(launch.grid.x * launch.grid.y, launch.shared_bytes);
  for (unsigned left = of_launch(); left != 0;) {
    const unsigned next_place = first_ready();
    if (next_place == kNobody) {  // what runs beside the threads does as late as it can
      if (!complete_a_copy() && !complete_products()) fail("deadlock: every thread waits");
      continue;
    }
    set_ready(next_place, false);
    set_running(first[next_place]);
    threads[running].enter();
    if (!threads[running].done) continue;
    end_thread(running);
    --left;
  }
  in_use_before.clear();
}

void run_kernel(Index grid_of_blocks, unsigned count, const std::function<void()>& thread) {
  run_kernel({grid_of_blocks, count}, thread);
}

}  // namespace assay::device::host
