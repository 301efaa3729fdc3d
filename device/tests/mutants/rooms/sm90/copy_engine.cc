#include "device/tests/mutants/rooms/sm90/copy_engine.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "device/tests/emulated_gemm/dynamic_shared.h"
#include "device/tests/emulated_gemm/run_kernel.h"
#include "device/tests/mutants/rooms/sm90/barriers.h"
#include "device/tests/mutants/rooms/sm90/together.h"

namespace assay::device::host {

bool copies_are_late = true;

namespace {

// --- maps: words of an opaque map, the last of which says that nothing else was stored there

enum Word { kAddress, kColumns, kRows, kPitch, kBoxColumns, kBoxRows, kSeal = 15 };

std::uint64_t seal_of(const CUtensorMap& map) {
  std::uint64_t seal = 0x7E45'02A9;
  for (int i = 0; i < kSeal; ++i) seal = (seal ^ map.opaque[i]) * 0x100'0000'01B3u;
  return seal;
}
bool is_possible(const CUtensorMap& map) {
  const auto& word = map.opaque;
  constexpr std::uint64_t kMostExtent = std::uint64_t{1} << 32, kMostPitch = std::uint64_t{1} << 40;
  return word[kAddress] != 0 && word[kAddress] % 16 == 0 && word[kColumns] >= 1 && word[kColumns] <= kMostExtent &&
         word[kRows] >= 1 && word[kRows] <= kMostExtent && word[kPitch] % 16 == 0 && word[kPitch] < kMostPitch &&
         word[kPitch] >= word[kColumns] && word[kBoxColumns] == 128 && word[kBoxRows] >= 1 && word[kBoxRows] <= 256;
}
void check(const CUtensorMap& map) {
  if (map.opaque[kSeal] != seal_of(map)) fail("a copy by what is no map");
  if (!is_possible(map)) fail("a copy by a map that the copy engine does not take");
}
void replace(CUtensorMap* map, Word word, std::uint64_t value) {
  if (map->opaque[kSeal] != seal_of(*map)) fail("a part of what is no map is replaced");
  map->opaque[word] = value;
  map->opaque[kSeal] = seal_of(*map);
}

// --- what the engine sees of memory

std::vector<MemoryPart> tensors;
MemoryPart workspace{};
// Bytes of the workspace: as this file last saw them; with those that their threads have released to the engine; and as the engine sees
// them, at first and for threads that have acquired them after the barrier of the grid.
std::vector<std::byte> last_seen, released, visible[2];
std::vector<std::uint64_t> acquired;  // by thread: barriers of the grid before its last fence
std::map<const CUtensorMap*, CUtensorMap> acquired_maps;
std::vector<bool> has_released_maps;  // by thread

template <class Value>
Value& of_thread(std::vector<Value>& values, unsigned thread) {
  if (values.size() <= thread) values.resize(thread + 1);
  return values[thread];
}

bool is_in(const MemoryPart& part, const void* at, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(part.begin);
  const auto* const first = static_cast<const std::byte*>(at);
  return first >= begin && bytes <= part.bytes && first <= begin + (part.bytes - bytes);
}

// What the running thread has stored in the workspace since the last call; `keep`: it is released.
void take_stores(bool keep) {
  const auto* const now = static_cast<const std::byte*>(workspace.begin);
  for (std::size_t i = 0; i < workspace.bytes; i += 64) {
    const std::size_t size = std::min<std::size_t>(64, workspace.bytes - i);
    if (std::memcmp(&last_seen[i], now + i, size) == 0) continue;
    for (std::size_t j = i; j < i + size; ++j) {
      if (last_seen[j] == now[j]) continue;
      last_seen[j] = now[j];
      if (keep) released[j] = now[j];
    }
  }
}

void read(std::byte* to, const void* from, std::size_t bytes, unsigned image) {
  if (is_in(workspace, from, bytes)) {
    std::memcpy(to,
                &visible[image][static_cast<std::size_t>(static_cast<const std::byte*>(from) -
                                                         static_cast<const std::byte*>(workspace.begin))],
                bytes);
    return;
  }
  if (std::none_of(tensors.begin(), tensors.end(), [&](const MemoryPart& each) { return is_in(each, from, bytes); }))
    fail("a copy from beside the tensors");
  std::memcpy(to, from, bytes);
}

// --- copies

struct Copy {
  const CUtensorMap* map = nullptr;  // null: a run
  std::optional<CUtensorMap> given;  // by the launch
  const void* from = nullptr;
  std::int32_t column = 0, row = 0;
  std::uint32_t bytes = 0;
  unsigned image = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> to;  // places and barriers
};
std::deque<Copy> under_way;

CUtensorMap seen(const Copy& copy) {
  if (copy.given) return *copy.given;
  const auto found = acquired_maps.find(copy.map);
  if (found == acquired_maps.end()) fail("a copy by a map of the workspace that the copy engine does not know");
  return found->second;
}

void complete_box(const Copy& copy) {
  const CUtensorMap map = seen(copy);
  check(map);
  const auto& word = map.opaque;
  const auto columns = static_cast<std::int64_t>(word[kColumns]), rows = static_cast<std::int64_t>(word[kRows]);
  const auto* const first = reinterpret_cast<const std::byte*>(word[kAddress]);
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(word[kBoxRows]); ++r) {
    std::byte line[128] = {};
    const std::int64_t row = copy.row + r, begin = std::max<std::int64_t>(copy.column, 0);
    const std::int64_t end = std::min<std::int64_t>(std::int64_t{copy.column} + 128, columns);
    if (row >= 0 && row < rows && begin < end)
      read(line + (begin - copy.column), first + row * static_cast<std::int64_t>(word[kPitch]) + begin,
           static_cast<std::size_t>(end - begin), copy.image);
    for (const auto& [to, barrier] : copy.to) {
      for (std::uint32_t c = 0; c < 128; c += 16)
        std::memcpy(at_address(swizzled(to + static_cast<std::uint32_t>(r) * 128 + c), 16), line + c, 16);
    }
  }
}

void complete(const Copy& copy) {
  if (copy.map != nullptr) {
    complete_box(copy);
  } else {
    read(static_cast<std::byte*>(at_address(copy.to.front().first, copy.bytes)), copy.from, copy.bytes, copy.image);
  }
  for (const auto& [to, barrier] : copy.to) complete_bytes(barrier, copy.bytes);
}

void issue(Copy copy) {
  copy.image = of_thread(acquired, running_thread()) > 0 ? 1 : 0;
  for (const auto& [to, barrier] : copy.to) {
    check_reports_to(barrier);
    void* const place = at_address(to, copy.bytes);
    if (copies_are_late) std::memset(place, 0xFF, copy.bytes);
  }
  if (copies_are_late) {
    under_way.push_back(std::move(copy));
    return;
  }
  complete(copy);
  give_way();
}

void issue_box(const CUtensorMap* map, std::int32_t column, std::int32_t row,
               std::vector<std::pair<std::uint32_t, std::uint32_t>> to) {
  Copy copy;
  copy.map = map, copy.column = column, copy.row = row, copy.to = std::move(to);
  if (!is_in(workspace, map, sizeof *map)) copy.given = *map;
  const CUtensorMap now = seen(copy);
  check(now);
  if (copy.to.front().first % 128 != 0) fail("a box into shared memory at no multiple of 128 bytes");
  copy.bytes = static_cast<std::uint32_t>(now.opaque[kBoxRows]) * 128;
  issue(std::move(copy));
}

}  // namespace

void describe_memory(std::vector<MemoryPart> of_tensors, MemoryPart of_workspace) {
  tensors = std::move(of_tensors);
  workspace = of_workspace;
}

bool encode_map(CUtensorMap& map, const void* address, const std::uint64_t (&extents)[2], std::uint64_t pitch,
                const std::uint32_t (&box)[2]) {
  map = {};
  map.opaque[kAddress] = reinterpret_cast<std::uintptr_t>(address);
  map.opaque[kColumns] = extents[0], map.opaque[kRows] = extents[1], map.opaque[kPitch] = pitch;
  map.opaque[kBoxColumns] = box[0], map.opaque[kBoxRows] = box[1];
  map.opaque[kSeal] = seal_of(map);
  return is_possible(map);
}

void cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(std::uint32_t to, const void* from, std::uint32_t bytes,
                                                                    std::uint32_t barrier) {
  if (to % 16 != 0 || reinterpret_cast<std::uintptr_t>(from) % 16 != 0 || bytes % 16 != 0)
    fail("a run from, to or of no multiple of 16 bytes");
  if (bytes == 0) return;
  Copy copy;
  copy.from = from, copy.bytes = bytes;
  copy.to = {{to, barrier}};
  issue(std::move(copy));
}

void cp_async_bulk_tensor_2d_shared_cluster_global_mbarrier_complete_tx_bytes(std::uint32_t to, const CUtensorMap* map,
                                                                              std::int32_t column, std::int32_t row,
                                                                              std::uint32_t barrier) {
  issue_box(map, column, row, {{to, barrier}});
}

void cp_async_bulk_tensor_2d_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster(
    std::uint32_t to, const CUtensorMap* map, std::int32_t column, std::int32_t row, std::uint32_t barrier,
    std::uint16_t blocks) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  for (unsigned rank = 0; rank < 16; ++rank) {
    if ((blocks >> rank & 1) != 0) all.emplace_back(address_in_cluster(to, rank), address_in_cluster(barrier, rank));
  }
  if (all.empty()) fail("a box into no block");
  issue_box(map, column, row, std::move(all));
}

void fence_proxy_async_global() {
  take_stores(true);
  of_thread(acquired, running_thread()) = grid_barriers_passed();
}

void tensormap_replace_tile_global_address_global_b1024_b64(CUtensorMap* map, const void* address) {
  replace(map, kAddress, reinterpret_cast<std::uintptr_t>(address));
}
void tensormap_replace_tile_global_dim_global_b1024_b32(CUtensorMap* map, int dimension, std::uint32_t extent) {
  if (dimension < 0 || dimension > 1) fail("a dimension that the map does not have");
  replace(map, dimension == 0 ? kColumns : kRows, extent);
}
void tensormap_replace_tile_global_stride_global_b1024_b64(CUtensorMap* map, int dimension, std::uint64_t pitch) {
  if (dimension != 0) fail("a stride that the map does not have");
  replace(map, kPitch, pitch);
}
void fence_proxy_tensormap_generic_release_gpu() { has_released_maps[running_thread()] = true; }
void fence_proxy_tensormap_generic_acquire_gpu(const CUtensorMap* map, int bytes) {
  if (bytes != sizeof *map) fail("an acquire of another size than a map's");
  if (!has_released_maps[running_thread()]) return;
  has_released_maps[running_thread()] = false;
  acquired_maps[map] = *map;
}

void begin_copies() {
  const auto* const now = static_cast<const std::byte*>(workspace.begin);
  last_seen.assign(now, now + workspace.bytes);
  released = visible[0] = visible[1] = last_seen;
  acquired.clear();
  has_released_maps.assign(8192, false);
  acquired_maps.clear();
  under_way.clear();
}

// Also: what was released before is what those who acquire it later see.
void note_barrier_of_grid() {
  take_stores(false);
  visible[1] = released;
}

bool complete_a_copy() {
  if (under_way.empty()) return false;
  const Copy copy = std::move(under_way.front());
  under_way.pop_front();
  complete(copy);
  return true;
}

void check_no_copy_goes_to(unsigned slot) {
  for (const Copy& copy : under_way) {
    for (const auto& [to, barrier] : copy.to) {
      if (address_in_block(to, slot) == to) fail("a block ends while a copy goes to its memory");
    }
  }
}

}  // namespace assay::device::host
