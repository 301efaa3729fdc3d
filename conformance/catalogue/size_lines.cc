#include "conformance/catalogue/size_lines.h"

#include "reference/types/error.h"

namespace assay::conformance {
namespace {

using Lengths = std::vector<std::int64_t>;

// Each recipe has lines at the end of the range; the other sizes are distributed over the recipes.
const Lengths kLongest{4097, 4096}, kLong{1025, 257, 2048, 513, 256, 2049, 1024, 512};
const Lengths kShort{1, 15, 16, 17, 33, 32, 64, 65, 112, 127, 128, 129};

}  // namespace

void Lines::add(const std::string& text, const std::vector<Axis>& options) {
  for (std::size_t attempt = 0; attempt < 64; ++attempt, ++turn_) {
    std::string full = text;
    std::size_t rest = turn_;
    for (const Axis& axis : options) {
      full += " " + axis[rest % axis.size()];
      rest = rest / axis.size() + turn_;
    }
    try {
      made_.push_back(parse_case_line(full + " seed=" + show(seed_)));
      ++seed_, ++turn_;
      return;
    } catch (const InvalidArgument&) {
      continue;
    }
  }
  throw InvalidArgument("line", text, "options that go together");
}

std::vector<Pair> pairs(std::size_t turn, std::size_t others, std::int64_t unit, std::size_t longest) {
  const auto up = [unit](std::int64_t length) { return (length + unit - 1) / unit * unit; };
  std::vector<Pair> all;
  for (std::size_t i = 0; i < longest + others; ++i) {
    const std::int64_t length = i < longest ? kLongest[(turn + i) % kLongest.size()] : kLong[(turn + i - longest) % kLong.size()];
    const std::size_t shorts = length > 2000 ? 6 : kShort.size();  // the longest beside the shortest
    all.push_back({up(length), up(kShort[(3 * turn + i) % shorts])});
  }
  return all;
}

std::string words(const char* first, std::int64_t value, const char* second, std::int64_t other) {
  return " " + std::string(first) + "=" + show(value) + " " + second + "=" + show(other);
}

void small_sizes(const std::string& op, const char* rows, const std::vector<Axis>& options, Lines& lines) {
  for (const auto& [one, other] : kBeside) lines.add(op + words(rows, one, "K", other), options);
}

}  // namespace assay::conformance
