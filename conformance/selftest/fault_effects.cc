#include "conformance/selftest/fault_effects.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "conformance/selftest/call_fault.h"

namespace assay::conformance {
namespace {

// Larger calls are not made once more for each fault: of outputs, whose calls the fast layer answers, and of all others.
constexpr std::size_t kMostOutputBytes = std::size_t{8} << 20, kMostProductBytes = std::size_t{1} << 20,
                      kMostBytes = std::size_t{128} << 10;

bool is_made(const CallFault& fault, const Request& request, std::size_t bytes) {
  if (fault.benign || fault.restate || fault.state || fault.question) return false;
  // Others may keep what they like from call to call, and write where they like.
  static constexpr const char* kTame[] = {"options", "inputs", "outputs", "memory", "plans", "units"};
  if (std::none_of(std::begin(kTame), std::end(kTame), [&](const char* each) { return fault.family == each; })) return false;
  if (fault.family != "outputs") return bytes <= kMostBytes;
  return bytes <= (request.op().find("quantize") == std::string::npos ? kMostProductBytes : kMostOutputBytes);
}

struct Range {
  std::byte* begin;
  std::size_t bytes;
};

// Memory that a call may read or write: outputs with a byte on each side, which the harness guards, and inputs.
class CallMemory {
 public:
  explicit CallMemory(const Request& request) {
    for (const auto& [name, view] : request.out) {
      if (view.bytes > 0) outputs_.push_back({static_cast<std::byte*>(view.data) - 1, view.bytes + 2});
    }
    for (const auto& [name, view] : request.in) {
      if (view.bytes > 0) inputs_.push_back({static_cast<std::byte*>(const_cast<void*>(view.data)), view.bytes});
    }
  }

  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const auto* list : {&outputs_, &inputs_}) {
      for (const Range& each : *list) sum += each.bytes;
    }
    return sum;
  }

  using Contents = std::vector<std::vector<std::byte>>;
  Contents contents() const {
    Contents made;
    for (const auto* list : {&outputs_, &inputs_}) {
      for (const Range& each : *list) made.emplace_back(each.begin, each.begin + each.bytes);
    }
    return made;
  }
  bool is(const Contents& wanted) const {
    return visit(wanted, [](const Range& range, const std::vector<std::byte>& held) {
      return std::memcmp(range.begin, held.data(), range.bytes) == 0;
    });
  }
  // Writes nothing where nothing changed: inputs may be pages that are only read.
  void put(const Contents& wanted) const {
    visit(wanted, [](const Range& range, const std::vector<std::byte>& held) {
      if (std::memcmp(range.begin, held.data(), range.bytes) != 0) std::memcpy(range.begin, held.data(), range.bytes);
      return true;
    });
  }

 private:
  template <class Visit>
  bool visit(const Contents& contents, Visit each_is) const {
    std::size_t at = 0;
    for (const auto* list : {&outputs_, &inputs_}) {
      for (const Range& range : *list) {
        if (!each_is(range, contents[at++])) return false;
      }
    }
    return true;
  }

  std::vector<Range> outputs_, inputs_;
};

}  // namespace

void note_fault_effects(Request& request, std::uint8_t* effects, const std::uint8_t* meant, const std::function<void()>& right) {
  const std::vector<CallFault>& faults = call_faults();
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    if ((meant == nullptr || meant[i] != 0) && effects[i] == 0 && faults[i].applies(request)) tried.push_back(i);
  }
  if (tried.empty()) return right();
  const CallMemory memory(request);
  const std::size_t bytes = memory.bytes();
  const Request asked = request;
  const CallMemory::Contents before = memory.contents();
  right();
  const CallMemory::Contents after = memory.contents();
  for (const std::size_t each : tried) {
    const CallFault& fault = faults[each];
    if (!is_made(fault, request, bytes)) {
      effects[each] = 1;
      continue;
    }
    memory.put(before);
    try {
      Request copy = asked;
      fault.perform(copy);
      effects[each] = !memory.is(after);
    } catch (const std::exception&) {
      effects[each] = 1;
    }
  }
  memory.put(after);
}

}  // namespace assay::conformance
