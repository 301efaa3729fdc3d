#include "device/tests/mutants/rooms/sm90/instructions.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <vector>

#include "device/tests/emulated_gemm/dynamic_shared.h"

namespace assay::device::host {
namespace {

void load(void* to, std::uint32_t from, std::size_t bytes) {
  if (from % bytes != 0) fail("a load at an address that is no multiple of its size");
  std::memcpy(to, at_address(from, bytes), bytes);
}

// What the lanes of a warp have given to one stmatrix. They come to the next but one when all have gone on.
struct MatrixStore {
  std::uint32_t come = 0, stored = 0;  // lanes; rows by the lanes of their addresses
  std::array<std::uint32_t, 32> rows;
  std::array<std::array<std::uint32_t, 4>, 32> pairs;
};
struct WarpStores {
  MatrixStore turn[2];
  std::array<std::uint64_t, 32> turns = {};  // of each lane
};
std::vector<WarpStores> stores;  // by warp, of all blocks

// Row lane % 8 of matrix lane / 8: pair i of it is with lane 4 (lane % 8) + i.
void store_row(MatrixStore& store, unsigned lane) {
  std::uint32_t row[4];
  for (unsigned i = 0; i < 4; ++i) row[i] = store.pairs[lane % 8 * 4 + i][lane / 8];
  if (store.rows[lane] % sizeof row != 0) fail("a row of a matrix at no multiple of 16 bytes");
  std::memcpy(at_address(store.rows[lane], sizeof row), row, sizeof row);
  store.stored |= 1u << lane;
}

}  // namespace

void ld_shared_f32(float& value, std::uint32_t from) { load(&value, from, sizeof value); }
void ld_shared_v2_f32(float& x, float& y, std::uint32_t from) {
  float both[2];
  load(both, from, sizeof both);
  x = both[0], y = both[1];
}
void ld_shared_v4_f32(float& x, float& y, float& z, float& w, std::uint32_t from) {
  float all[4];
  load(all, from, sizeof all);
  x = all[0], y = all[1], z = all[2], w = all[3];
}

void stmatrix_sync_aligned_m8n8_x4_shared_b16(std::uint32_t row, std::uint32_t first, std::uint32_t second, std::uint32_t third,
                                              std::uint32_t fourth) {
  const unsigned warp = running_thread() / 32, lane = running_thread() % 32;
  if (stores.size() <= warp) stores.resize(warp + 1);
  MatrixStore& own = stores[warp].turn[stores[warp].turns[lane]++ % 2];
  if (own.come == ~0u) own.come = own.stored = 0;
  own.come |= 1u << lane;
  own.rows[lane] = row;
  own.pairs[lane] = {first, second, third, fourth};
  for (unsigned each = 0; turns == Turns::by_lane && each < 32; ++each) {
    const std::uint32_t needs = 1u << each | 0xFu << each % 8 * 4;
    if ((own.come & needs) == needs && (own.stored >> each & 1) == 0) store_row(own, each);
  }
  meet_aligned("stmatrix");
  MatrixStore& met = stores[warp].turn[(stores[warp].turns[lane] - 1) % 2];  // the vector may have grown
  if ((met.stored >> lane & 1) == 0) store_row(met, lane);
}

}  // namespace assay::device::host
