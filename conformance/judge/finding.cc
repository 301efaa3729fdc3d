#include "conformance/judge/finding.h"

#include <fmt/format.h>

namespace assay::conformance {
namespace {

// "0x81 (-0.5)" is bits and a value; what has no bits in the text is a whole number, and `bits` tells them.
void part(const std::string& shown, std::string& hex, std::string& value) {
  const std::size_t open = shown.find(" (");
  if (!shown.starts_with("0x") || open == std::string::npos || !shown.ends_with(')')) {
    value = shown;
    return;
  }
  hex = shown.substr(0, open);
  value = shown.substr(open + 2, shown.size() - open - 3);
}

}  // namespace

void set_got(Finding& finding, const std::string& shown) { part(shown, finding.got_hex, finding.got); }

Finding finding_of(const Difference& difference) {
  Finding finding;
  finding.kind = "bits";
  finding.output = difference.output;
  finding.compared = difference.total;
  finding.wrong = difference.count;
  finding.element = difference.first_element;
  finding.place = difference.first_place;
  part(difference.got_text, finding.got_hex, finding.got);
  part(difference.want_text, finding.want_hex, finding.want);
  if (finding.got_hex.empty()) finding.got_hex = fmt::format("0x{:X}", difference.got);
  if (finding.want_hex.empty()) finding.want_hex = fmt::format("0x{:X}", difference.want);
  finding.where = difference.where;
  finding.hints = difference.hints;
  finding.ulp = difference.ulp;
  finding.maps = difference.maps;
  finding.digest = fmt::format("{:016x}", difference.digest);
  return finding;
}

}  // namespace assay::conformance
