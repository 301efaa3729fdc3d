// A difference as people read it.

#include <cstdio>

#include "conformance/judge/compare/compare.h"
#include "conformance/judge/compare/ulp_buckets.h"
#include "conformance/ops/elements.h"
#include "conformance/support/wrap.h"
#include "reference/types/error.h"

namespace assay::conformance {

std::string show_element(Format type, std::uint64_t bits) {
  if (type == Format::i32) return show(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits)));
  if (type == Format::i64) return show(static_cast<std::int64_t>(bits));
  char hex[24];
  std::snprintf(hex, sizeof hex, "0x%0*llX", bits_of(type) / 4, static_cast<unsigned long long>(bits));
  if (is_nan(type, bits)) return std::string(hex) + " (NaN)";
  const double value = value_of(type, bits);
  return std::string(hex) + " (" + (type == Format::f32 ? show(static_cast<float>(value)) : show(value)) + ")";
}

std::string difference_text(const Difference& d) {
  std::string text;
  const auto line = [&](std::string_view label, std::string_view value) {
    std::string head = "  " + std::string(label);
    head.resize(10, ' ');
    text += head + wrapped(value, 10) + "\n";
  };
  line("output", d.output + ": " + show(d.count) + " of " + show(d.total) + " differ");
  line("first", d.first_place + ": got " + d.got_text + ", want " + d.want_text);
  if (!d.where.empty()) line("where", d.where);
  if (d.has_ulp) {
    std::string histogram;
    for (std::size_t b = 0; b < d.ulp.buckets.size(); ++b) {
      if (d.ulp.buckets[b] == 0) continue;
      const std::uint64_t high = std::uint64_t{1} << b, low = high / 2 + 1;
      const std::string range = b == 0                ? "1"
                                : low == high         ? show(high)
                                : b == kLastUlpBucket ? ">" + show(high / 2)
                                                      : show(low) + "-" + show(high);
      histogram += (histogram.empty() ? "" : "  ") + range + ": " + show(d.ulp.buckets[b]);
    }
    if (d.ulp.zero_sign > 0) histogram += (histogram.empty() ? "" : "  ") + std::string("sign of zero: ") + show(d.ulp.zero_sign);
    if (d.ulp.special > 0) histogram += (histogram.empty() ? "" : "  ") + std::string("NaN or infinity: ") + show(d.ulp.special);
    text += "  ulp     " + histogram + "\n";
  }
  for (const std::string& hint : d.hints) line("hint", hint);
  return text;
}

std::string failure_text(std::string_view case_line, std::string_view body, std::string_view repro_command) {
  std::string text = "FAILED  " + wrapped(case_line, 8) + "\n" + std::string(body);
  if (!repro_command.empty()) text += "  repro   " + std::string(repro_command) + "\n";
  return text;
}

std::string failure_text(std::string_view case_line, const Difference& difference, std::string_view repro_command) {
  return failure_text(case_line, difference_text(difference), repro_command);
}

}  // namespace assay::conformance
