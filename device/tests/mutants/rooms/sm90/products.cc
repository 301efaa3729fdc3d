#include "device/tests/mutants/rooms/sm90/products.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/sm90/copy_engine.h"
#include "device/tests/mutants/rooms/sm90/together.h"
#include "reference/arithmetic/decoded.h"

namespace assay::device::host {

bool products_are_late = true;

namespace {

constexpr unsigned kThreads = 128, kRows = 64, kDepth = 32, kMostColumns = 256;

struct Asked {
  unsigned sums;  // which of the thread's Sums
  int columns;
  Format a_type, b_type;
  std::uint32_t a, b;
  bool add;
  bool operator==(const Asked&) const = default;
};

struct Sums {
  float* registers;
  std::vector<float> held;  // the registers, as they were
};

// What one thread has asked for since its last commit.
struct OfThread {
  std::vector<Asked> asked;
  std::vector<Sums> sums;
  bool fenced = false, committed = false;
};

struct Warpgroup {
  unsigned slot = 0;
  std::array<OfThread, kThreads> threads;
  unsigned committed = 0;  // threads
  std::vector<unsigned> waiting;
};
std::vector<Warpgroup> warpgroups;

constexpr unsigned kMostWarpgroups = 8;  // of a block

Warpgroup& own_warpgroup() { return warpgroups[slot() * kMostWarpgroups + thread_index.x / kThreads]; }
OfThread& own() { return own_warpgroup().threads[thread_index.x % kThreads]; }

// The element of row `row` of an operand, in the memory of a block.
DecodedLines decoded(const TensorCoreUnit& unit, Format type, std::uint32_t descriptor, unsigned rows, unsigned block) {
  if ((descriptor >> 16) != 1 || (descriptor >> 14 & 3) != 0) fail("a word that describes no matrix");
  DecodedLines lines(unit, type);
  lines.resize(rows, kDepth);
  const std::uint32_t first = (descriptor & 0x3FFF) << 4;
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned k = 0; k < kDepth; k += 16) {
      const std::uint32_t plain = address_in_block(first, block) + row / 8 * 1024 + row % 8 * 128 + k;
      const auto* const codes = static_cast<const std::uint8_t*>(at_address(swizzled(plain), 16));
      for (unsigned i = 0; i < 16; ++i) lines.set(row, k + i, codes[i]);
    }
  }
  return lines;
}

bool has_specials(const DecodedElements& line) {
  return std::any_of(line.kind, line.kind + line.count, [](Term::Kind each) { return each != Term::Kind::finite; });
}
bool is_zero(const DecodedElements& line) {
  return !has_specials(line) &&
         std::all_of(line.significand, line.significand + line.count, [](std::int32_t each) { return each == 0; });
}

// Row and column of sum `i` of a thread: wgmma.cuh has the picture.
std::size_t place_of(unsigned thread, unsigned i, int columns) {
  const unsigned row = thread / 32 * 16 + thread % 32 / 4 + i / 2 % 2 * 8, column = i / 4 * 8 + thread % 4 * 2 + i % 2;
  return std::size_t{row} * static_cast<unsigned>(columns) + column;
}

// --- BF16: scales

std::size_t bytes_of_block = 0;

// The memory of a block at the last fence of one of its threads.
struct Released {
  std::uint32_t first = 0;  // address
  std::vector<std::byte> memory;
};
std::vector<Released> released;  // by block

DecodedLines decoded_scales(const TensorCoreUnit& unit, std::uint32_t descriptor, unsigned columns, unsigned block) {
  if ((descriptor >> 14 & 3) != 0) fail("a word that describes no matrix");
  const Released& seen = released[block];
  if (seen.memory.empty()) fail("a product of scales that no thread has released");
  const std::uint32_t first = address_in_block((descriptor & 0x3FFF) << 4, block), next = descriptor >> 16 << 4;
  DecodedLines lines(unit, Format::bf16);
  lines.resize(columns, 16);
  for (unsigned column = 0; column < columns; ++column) {
    for (unsigned k = 0; k < 16; ++k) {
      const std::uint32_t plain = first + column / 64 * next + k % 8 * 128 + column % 64 * 2, at = swizzled(plain);
      std::uint16_t code = 0;
      if (at < seen.first || at - seen.first + sizeof code > seen.memory.size())
        fail("a product of scales beside the block's memory");
      std::memcpy(&code, &seen.memory[at - seen.first], sizeof code);
      lines.set(column, k, code);
    }
  }
  return lines;
}

void multiply_scales(const Asked& asked, unsigned block, std::vector<std::uint32_t>& sums) {
  static const TensorCoreUnit& unit = *find_tensor_core_unit("sm90.wgmma.f16");
  const auto columns = static_cast<unsigned>(asked.columns);
  const DecodedLines a = decoded_scales(unit, asked.a, kRows, block), b = decoded_scales(unit, asked.b, columns, block);
  for (unsigned row = 0; row < kRows; ++row) {
    for (unsigned column = 0; column < columns; ++column)
      sums[row * columns + column] = tensor_core_step(unit, a.line(row), b.line(column), 0);
  }
}

void multiply(const Asked& asked, unsigned block, std::vector<std::uint32_t>& sums) {
  if (asked.a_type == Format::bf16) return multiply_scales(asked, block, sums);
  static const TensorCoreUnit& unit = *find_tensor_core_unit("sm90.wgmma.fp8");
  const auto columns = static_cast<unsigned>(asked.columns);
  const DecodedLines a = decoded(unit, asked.a_type, asked.a, kRows, block);
  const DecodedLines b = decoded(unit, asked.b_type, asked.b, columns, block);
  std::vector<bool> zero(columns), special(columns);
  for (unsigned column = 0; column < columns; ++column)
    zero[column] = is_zero(b.line(column)), special[column] = has_specials(b.line(column));
  if (!asked.add) std::fill(sums.begin(), sums.end(), 0u);
  for (unsigned row = 0; row < kRows; ++row) {
    const DecodedElements of_row = a.line(row);
    const bool row_zero = is_zero(of_row), row_special = has_specials(of_row);
    for (unsigned column = 0; column < columns; ++column) {
      std::uint32_t& sum = sums[row * columns + column];
      const bool adds_nothing = (row_zero && !special[column]) || (zero[column] && !row_special);
      if (sum != 0 || !adds_nothing) sum = tensor_core_step(unit, of_row, b.line(column), sum);
    }
  }
}

// All of a warpgroup have committed: the sums come into their registers.
void compute(Warpgroup& group) {
  const OfThread& first = group.threads[0];
  for (const OfThread& each : group.threads) {
    if (each.asked != first.asked) fail("threads of a warpgroup ask for different products");
  }
  for (unsigned number = 0; number < first.sums.size(); ++number) {
    const auto of_thread = static_cast<unsigned>(first.sums[number].held.size());
    const int columns = static_cast<int>(of_thread) * 2;
    std::vector<std::uint32_t> sums(std::size_t{kRows} * static_cast<unsigned>(columns));
    for (unsigned t = 0; t < kThreads; ++t) {
      const std::vector<float>& held = group.threads[t].sums[number].held;
      for (unsigned i = 0; i < of_thread; ++i) sums[place_of(t, i, columns)] = std::bit_cast<std::uint32_t>(held[i]);
    }
    for (const Asked& each : first.asked) {
      if (each.sums == number) multiply(each, group.slot, sums);
    }
    for (unsigned t = 0; t < kThreads; ++t) {
      float* const registers = group.threads[t].sums[number].registers;
      for (unsigned i = 0; i < of_thread; ++i) registers[i] = std::bit_cast<float>(sums[place_of(t, i, columns)]);
    }
  }
  for (OfThread& each : group.threads) {
    each.asked.clear();
    each.sums.clear();
    each.committed = false;
  }
  group.committed = 0;
  for (const unsigned each : group.waiting) wake(each);
  group.waiting.clear();
}

// Sums begin with their first product, and are not to be touched until the products have been waited for.
void ask(float* registers, Asked asked) {
  OfThread& thread = own();
  if (!thread.fenced) fail("a product without a fence before it");
  if (thread.committed) fail("a product before the last ones were waited for");
  const auto count = static_cast<std::size_t>(asked.columns / 2);
  const auto known =
      std::find_if(thread.sums.begin(), thread.sums.end(), [&](const Sums& each) { return each.registers == registers; });
  asked.sums = static_cast<unsigned>(known - thread.sums.begin());
  if (known == thread.sums.end()) thread.sums.push_back({registers, {registers, registers + count}});
  if (thread.sums[asked.sums].held.size() != count) fail("products of other registers in one group");
  thread.asked.push_back(asked);
  std::fill_n(registers, count, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace

void wgmma_fence_sync_aligned() {
  meet_aligned("wgmma.fence");
  own().fenced = true;
}

void wgmma_mma_async(float* sums, int columns, Format a_type, Format b_type, std::uint32_t a, std::uint32_t b, int add) {
  ask(sums, {0, columns, a_type, b_type, a, b, add != 0});
}
void wgmma_mma_async_bf16(float* sums, int columns, std::uint32_t a, std::uint32_t b) {
  ask(sums, {0, columns, Format::bf16, Format::bf16, a, b, false});
}

void fence_proxy_async_shared_cta() {
  const auto* const memory = static_cast<const std::byte*>(dynamic_shared());
  released[slot()] = {shared_address(memory), {memory, memory + bytes_of_block}};
}

void wgmma_commit_group_sync_aligned() {
  meet_aligned("wgmma.commit_group");
  OfThread& thread = own();
  if (thread.asked.empty()) return;
  thread.committed = true;
  Warpgroup& group = own_warpgroup();
  group.slot = slot();
  if (++group.committed == kThreads && !products_are_late) {
    compute(group);
    give_way();
  }
}

void wgmma_wait_group_sync_aligned(int groups) {
  meet_aligned("wgmma.wait_group");
  if (groups > 0) return;  // no more than one is under way
  OfThread& thread = own();
  while (thread.committed) {
    own_warpgroup().waiting.push_back(running_thread());
    wait_to_be_woken();
  }
  thread.fenced = false;
}

void begin_products(unsigned blocks, std::size_t shared_bytes) {
  warpgroups.clear();
  warpgroups.resize(std::size_t{blocks} * kMostWarpgroups);
  bytes_of_block = shared_bytes;
  released.assign(blocks, {});
}

bool complete_products() {
  for (Warpgroup& group : warpgroups) {
    if (group.committed != kThreads) continue;
    compute(group);
    return true;
  }
  return false;
}

}  // namespace assay::device::host
