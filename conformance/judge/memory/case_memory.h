#pragma once
// All memory of a case: one allocation of the backend (an arena) in which every byte is checked.
//
//   margin | output | canary | input | canary | ... | margin | workspace | margin
//
// A write far past or before a tensor lands in a margin, a canary or another tensor, and each of them is checked. Tensors
// stand at odd multiples of 256 bytes: the alignment that the interface promises, and no larger one by chance. Tensors of more
// than kArenaBytes together are spread over several arenas. Without gaps each begins at the first multiple of 256 behind the one before
// it, as slices of one allocation do.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "conformance/backends/backend_handle.h"
#include "conformance/backends/call_sequence.h"

namespace assay::conformance {

class CaseMemory {
 public:
  enum class Role { input, output, workspace };
  using Part = std::size_t;
  using Outputs = std::map<Part, std::vector<std::byte>*>;

  enum class Gaps { usual, none, none_reversed };  // reversed: the last tensor comes first

  // `placement`, a number that belongs to the case, varies the order of tensors and the gaps between them.
  CaseMemory(Backend& backend, std::uint64_t placement, Gaps gaps = Gaps::usual)
      : backend_(backend), placement_(placement), gaps_(gaps) {}
  ~CaseMemory();
  CaseMemory(const CaseMemory&) = delete;
  CaseMemory& operator=(const CaseMemory&) = delete;

  // A tensor or workspace of `bytes` bytes; `label` appears in messages. It has memory after the next place().
  Part add(std::string label, Role role, std::int64_t bytes);
  // Allocates what was added since the last call: tensors first, then workspaces behind them. Errors: BackendError, where the
  // backend lacks the memory, and for sizes that no machine has.
  void place();

  void* data(Part part) const { return parts_[part].data; }  // null when there are no bytes
  std::int64_t bytes(Part part) const { return parts_[part].bytes; }
  const std::string& label(Part part) const { return parts_[part].label; }

  // What an input holds from the next write on. `contents` must live until the last look at it.
  void set(Part input, const std::byte* contents);

  // Enqueues on `stream`: inputs, canaries, `poison` in every output; in workspaces `workspace`, or nothing, which leaves them
  // as they are. `piece`, if not 0, is the most bytes of one copy of an input: small ones return before the stream has come to
  // them.
  void write(assay_stream* stream, std::uint8_t poison, std::optional<std::uint8_t> workspace, std::int64_t piece = 0);
  // The first write of what was placed since the last one.
  void write_placed(assay_stream* stream, std::uint8_t poison);
  // Enqueues fills of `poison` in every output and of zeros in every input: contents that are not the case's, and harm no
  // implementation. The next write() is needed before the next look().
  void blank(assay_stream* stream, std::uint8_t poison);

  // Reads everything back on `stream`, waits, and returns a line for each difference from what was written. With `outputs`, where the
  // bytes of each output go, outputs and workspaces may hold anything; without, they too must be as they were written.
  // The next write() restores a changed input.
  std::vector<std::string> look(assay_stream* stream, const Outputs* outputs);

  // look() in two parts, around the end of a sequence of calls: the copies to the host and the wait for them, where memory is small
  // enough to travel with the calls, and the rest. Errors: BackendError.
  void fetch(CallSequence& calls, assay_stream* stream, CallResult& fetched);
  std::vector<std::string> look(assay_stream* stream, const CallResult& fetched, const Outputs* outputs);

  static constexpr const char* kPoisoned = "wait for the poison";       // what the wait for a write() does
  static constexpr std::int64_t kMargin = std::int64_t{72} << 10;       // at both ends, and before workspaces
  static constexpr std::int64_t kGap = std::int64_t{4} << 10;           // between tensors, at least
  static constexpr std::int64_t kArenaBytes = std::int64_t{256} << 20;  // of tensors in one arena, unless one alone has more
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 48;      // of one tensor or workspace

 private:
  struct Tensor {
    std::string label;
    Role role;
    std::int64_t bytes = 0;
    std::int64_t offset = 0;  // in its arena
    void* data = nullptr;
    const std::byte* contents = nullptr;  // of an input
    bool stale = true;                    // an input that memory does not hold
    std::uint8_t poison = 0;              // last written to an output or workspace
  };
  static constexpr Part kNone = ~Part{0};
  // Bytes [begin, end) of an arena: a part, or a canary between two parts.
  struct Range {
    std::int64_t begin = 0, end = 0;
    Part part = kNone, before = kNone, behind = kNone;
    bool far = false;       // a canary that no tensor is near to
    bool inverted = false;  // a canary near a tensor: from one write to the next, so that no constant looks like both
    bool stale = true;      // a canary that is to be written
  };
  // The tensors and canaries that one place() has put into an arena.
  struct Region {
    bool workspaces = false;
    std::vector<Range> ranges;  // without a hole between them
    bool written = false;
  };
  struct Arena {
    std::uint8_t* base = nullptr;
    std::int64_t capacity = 0;
    std::vector<Region> regions;
    std::int64_t end() const { return regions.empty() ? 0 : regions.back().ranges.back().end; }
    bool is_small() const;
  };

  void place_in_arena(const std::vector<Part>& parts);
  void write_region(assay_stream* stream, Arena& arena, Region& region, std::int64_t piece);
  std::int64_t small_bytes() const;
  bool is_small() const;
  void fetch(assay_stream* stream);
  std::vector<std::string> compare(const Outputs* outputs);
  void read_large(assay_stream* stream, Arena& arena, const Outputs* outputs, std::vector<std::string>& damage);
  void wait(assay_stream* stream) const;
  // `found`: the bytes of the range from `from` on.
  void look_at(Range& range, std::int64_t from, const std::byte* found, std::int64_t count, bool outputs_may_differ,
               std::vector<std::string>& damage);
  void look_at_canary(Range& range, const std::byte* found, std::vector<std::string>& damage) const;
  std::string neighbour_text(Part part, std::int64_t at) const;

  Backend& backend_;
  std::uint64_t placement_;
  Gaps gaps_;
  std::vector<Tensor> parts_;
  Part placed_ = 0;  // parts before this one have memory
  std::vector<Arena> arenas_;
  std::vector<std::byte> read_;  // of the thread, for as long as this lives; where the backend has no area
  std::byte* fetched_ = nullptr;
};

}  // namespace assay::conformance
