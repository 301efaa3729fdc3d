#include "reference/gemm/merge_shape.h"

#include <charconv>
#include <string>

#include "reference/types/error.h"

namespace assay {
namespace {

// Reads the text from its start, one sum within another. `failed` where it does not follow the grammar.
struct ShapeReader {
  std::string_view text;
  std::vector<std::int64_t> postfix;
  std::size_t at = 0;
  bool failed = false;

  bool take(char wanted) {
    if (at >= text.size() || text[at] != wanted) failed = true;
    if (!failed) ++at;
    return !failed;
  }
  void term() {
    if (at < text.size() && text[at] == '(') return sum();
    std::int64_t number = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), number);
    const auto digits = static_cast<std::size_t>(read.ptr - (text.data() + at));
    if (read.ec != std::errc{} || text[at] == '-' || (digits > 1 && text[at] == '0')) failed = true;
    if (failed) return;
    at += digits;
    postfix.push_back(number);
  }
  void sum() {
    if (!take('(')) return;
    term();
    if (failed || !take('+')) return;
    term();
    if (failed || !take(')')) return;
    postfix.push_back(-1);
  }
};

}  // namespace

void require_merge_shape(std::string_view shape, std::int64_t slices) {
  constexpr std::size_t kMaxText = 16 * 1024;  // 1024 slices, and a depth that recursion can follow
  ShapeReader reader{.text = shape, .postfix = {}};
  if (shape.size() <= kMaxText) reader.sum();
  const bool read = shape.size() <= kMaxText && !reader.failed && reader.at == shape.size();
  require(read, "plan.merge", shape, "a shape of sums of two, such as ((0+1)+(2+3))");
  std::vector<int> times(static_cast<std::size_t>(slices), 0);
  for (const std::int64_t each : reader.postfix) {
    if (each < 0) continue;
    require(each < slices, "plan.merge", shape, "slices 0 to " + show(slices - 1) + ", each once; there is no " + show(each));
    ++times[static_cast<std::size_t>(each)];
  }
  for (std::int64_t slice = 0; slice < slices; ++slice) {
    require(times[static_cast<std::size_t>(slice)] == 1, "plan.merge", shape,
            "slices 0 to " + show(slices - 1) + ", each once; " + show(slice) + " is there " +
                show(times[static_cast<std::size_t>(slice)]) + " times");
  }
}

std::vector<std::int64_t> postfix_of_shape(std::string_view shape) {
  ShapeReader reader{.text = shape, .postfix = {}};
  reader.sum();
  return reader.postfix;
}

}  // namespace assay
