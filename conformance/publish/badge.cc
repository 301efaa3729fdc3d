// A badge: two boxes of text, as SVG. Its widths are computed from the text, since a browser may have any font.

#include <fmt/format.h>

#include "conformance/publish/formats.h"
#include "conformance/publish/tables.h"

namespace assay::conformance {
namespace {

constexpr int kLetterWidth = 7, kPadding = 6, kHeight = 20;

int width_of(const std::string& text) { return static_cast<int>(text.size()) * kLetterWidth + 2 * kPadding; }

std::string badge_text(const std::string& text, int x, int width) {
  return fmt::format("<text x=\"{}\" y=\"14\" textLength=\"{}\">{}</text>", x + kPadding, width - 2 * kPadding, text);
}

}  // namespace

std::string badge_svg(const Collected& all) {
  const bool good = all.outcome.exit_code() == ExitCode::passed;
  const bool whole = good && all.counts.not_run == 0 && all.counts.waived == 0;
  const std::string left = "assay", right = good ? counts_text(all.counts) : "FAIL: " + counts_text(all.counts);
  const int first = width_of(left), second = width_of(right);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" role=\"img\" aria-label=\"{2}: {3}\">"
      "<title>{2}: {3}</title><rect width=\"{0}\" height=\"{1}\" rx=\"3\" fill=\"{4}\"/><path d=\"M3 0h{5}v{1}H3a3 3 0 0 "
      "1-3-3V3a3 3 0 0 1 3-3z\" "
      "fill=\"#444c56\"/><g fill=\"#ffffff\" font-family=\"DejaVu Sans,Verdana,sans-serif\" font-size=\"11\">{6}{7}</g></svg>\n",
      first + second, kHeight, left, right,
      !good   ? "#a40e26"
      : whole ? "#1a7f37"
              : "#7a5c00",
      first - 3, badge_text(left, 0, first), badge_text(right, first, second));
}

}  // namespace assay::conformance
