// Rows of groups as text: splits=128,4x0,zipf(8,512,1).

#include <utility>

#include "conformance/cases/case_line.h"
#include "conformance/cases/case_value.h"
#include "conformance/support/counter_random.h"
#include "reference/types/error.h"

namespace assay::conformance {

namespace {
constexpr std::int64_t kMaxGroups = 1 << 20;
}

std::string splits_text(const std::vector<std::int64_t>& splits) {
  if (splits.empty()) return "0x0";
  std::string text;
  for (std::size_t begin = 0; begin < splits.size();) {
    std::size_t end = begin;
    while (end < splits.size() && splits[end] == splits[begin]) ++end;
    const std::size_t run = end - begin >= 3 ? end - begin : 1;
    if (!text.empty()) text += ',';
    if (run >= 3) text += show(run) + "x";
    text += show(splits[begin]);
    begin += run;
  }
  return text;
}

std::vector<std::int64_t> parse_splits(std::string_view argument, std::string_view text) {
  constexpr std::string_view kExpected = "rows separated by commas: ROWS, COUNTxROWS, one(G,ROWS,g) or zipf(G,ROWS,SEED)";
  std::vector<std::int64_t> splits;
  const auto append = [&](std::int64_t count, std::int64_t rows) {
    require(static_cast<std::int64_t>(splits.size()) + count <= kMaxGroups, argument, text, "at most 1048576 groups");
    splits.insert(splits.end(), static_cast<std::size_t>(count), rows);
  };
  for (const std::string_view item : items_of(text)) {
    const std::size_t open = item.find('('), times = item.find('x');
    if (open != std::string_view::npos) {
      const std::string_view name = item.substr(0, open);
      require((name == "one" || name == "zipf") && item.back() == ')', argument, item, kExpected);
      const std::vector<std::string_view> arguments = items_of(item.substr(open + 1, item.size() - open - 2));
      require(arguments.size() == 3, argument, item, name == "one" ? "one(GROUPS,ROWS,GROUP)" : "zipf(GROUPS,ROWS,SEED)");
      const std::int64_t groups = integer_of(argument, arguments[0], 1), rows = integer_of(argument, arguments[1], 0);
      const std::int64_t last = integer_of(argument, arguments[2], 0);
      require(groups <= kMaxGroups, argument, item, "at most 1048576 groups");
      if (name == "one") {
        require(last < groups, argument, item, "a group below " + show(groups));
        append(last, 0);
        append(1, rows);
        append(groups - last - 1, 0);
      } else {
        const std::vector<std::int64_t> drawn = zipf_splits(groups, rows, static_cast<std::uint64_t>(last));
        append(0, 0);
        require(static_cast<std::int64_t>(splits.size() + drawn.size()) <= kMaxGroups, argument, text, "at most 1048576 groups");
        splits.insert(splits.end(), drawn.begin(), drawn.end());
      }
    } else if (times != std::string_view::npos) {
      const auto count = number<std::int64_t>(item.substr(0, times)), rows = number<std::int64_t>(item.substr(times + 1));
      require(count && rows && *count >= 0 && *rows >= 0 && *count <= kMaxGroups, argument, item, kExpected);
      append(*count, *rows);
    } else {
      const auto rows = number<std::int64_t>(item);
      require(rows && *rows >= 0, argument, item, kExpected);
      append(1, *rows);
    }
  }
  return splits;
}

// The group of rank r gets rows * (1/r) / (1 + 1/2 + ... + 1/G), cut to an integer; what is left over goes to rank 1.
std::vector<std::int64_t> zipf_splits(std::int64_t groups, std::int64_t rows, std::uint64_t seed) {
  constexpr std::uint64_t kUnit = std::uint64_t{1} << 32;  // 1/r in 32 fraction bits
  std::uint64_t total = 0;
  for (std::int64_t rank = 1; rank <= groups; ++rank) total += kUnit / static_cast<std::uint64_t>(rank);

  // Ranks are assigned by a Fisher-Yates shuffle.
  std::vector<std::size_t> group_of(static_cast<std::size_t>(groups));
  for (std::size_t i = 0; i < group_of.size(); ++i) group_of[i] = i;
  const CounterRandom random(seed, "zipf");
  for (std::size_t i = group_of.size(); i > 1; --i) {
    std::swap(group_of[i - 1], group_of[random.below(i, static_cast<std::uint32_t>(i))]);
  }

  std::vector<std::int64_t> splits(static_cast<std::size_t>(groups), 0);
  std::int64_t assigned = 0;
  for (std::int64_t rank = 2; rank <= groups; ++rank) {
    const std::uint64_t share = kUnit / static_cast<std::uint64_t>(rank);
    const auto part = static_cast<std::int64_t>(static_cast<unsigned __int128>(rows) * share / total);
    splits[group_of[static_cast<std::size_t>(rank - 1)]] = part;
    assigned += part;
  }
  splits[group_of[0]] = rows - assigned;
  return splits;
}

}  // namespace assay::conformance
