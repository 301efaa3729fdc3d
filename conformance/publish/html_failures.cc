// The failures of report.html.

#include <fmt/format.h>

#include <algorithm>

#include "conformance/publish/formats.h"
#include "conformance/publish/html_parts.h"
#include "conformance/publish/pictures.h"
#include "conformance/publish/tables.h"
#include "conformance/report/matrix.h"
#include "conformance/report/page_text.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kUnfolded = 3;  // failures that are unfolded
constexpr std::size_t kPlaceDigits = 16;

std::string bits_and_value(const std::string& hex, const std::string& value) {
  return hex.empty() ? html_text(value) : "<code>" + html_text(hex) + "</code> " + html_text(value);
}

std::string report_finding(const Finding& finding) {
  std::string made = "<div class=\"finding\"><dl>\n";
  const auto row = [&](const char* name, const std::string& html) {
    if (!html.empty()) made += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, html);
  };
  if (finding.element < 0) {
    row(finding.kind.c_str(), html_text(finding.text));
    row("when", html_text(finding.when));
    return made + "</dl></div>\n";
  }
  row("output", html_text(finding.output));
  row("wrong", fmt::format("<b>{}</b> of {}", finding.wrong, finding.compared));
  row("when", html_text(finding.when));
  row("first", html_text(finding.place));
  row("got", bits_and_value(finding.got_hex, finding.got));
  row("want", bits_and_value(finding.want_hex, finding.want));
  row("where", html_text(finding.where));
  for (const std::string& hint : finding.hints) row("hint", "<mark>" + html_text(hint) + "</mark>");
  made += "</dl>\n<div class=\"pictures\">\n";
  for (const WrongMap& map : finding.maps) made += wrong_map_figure(map);
  return made + ulp_figure(finding.ulp) + "</div></div>\n";
}

std::string report_failure(const Collected& all, const PublishedCase& each, bool open) {
  const CaseReport& report = each.report;
  std::string made = fmt::format(
      "<details class=\"failure\"{}><summary><span class=\"verdict\">{}</span> <code>{}</code><small>{}</small></summary>\n",
      open ? " open" : "", name_of(report.judgement.verdict), html_text(each.title), html_text(first_line_of_failure(each)));
  // A link to it unfolds it, since the place that it names is inside.
  const std::string key = fmt::format("{}\n{}\n{}", each.implementation, report.suite, each.title);
  const std::string place = "c-" + hex_digest(key).substr(0, kPlaceDigits);
  made += fmt::format("<span id=\"{}\"></span>\n", place);
  if (report.waiver && report.waiver->state == WaiverStanding::State::other_failure)
    made += "<p>A waiver covers another failure of this case: " + html_text(waiver_text(*report.waiver)) + "</p>\n";
  for (const Finding& finding : report.judgement.findings) made += report_finding(finding);
  if (!report.tries.empty()) {
    made += "<p>Tries:";
    for (const TriedVerdict& tried : report.tries) made += fmt::format(" {}", html_text(std::string(name_of(tried.verdict))));
    made += ".</p>\n";
  }
  if (!each.repro.empty())
    made += "<p class=\"quiet\">To repeat it:</p><pre class=\"repro\">" + html_text(each.repro) + "</pre>\n";
  made += "<details><summary>As it was printed</summary><pre>" + html_text(each.body) + "</pre></details>\n";
  return made + fmt::format(
                    "<p class=\"quiet\">fingerprint <code>{}</code>, from {}; <a href=\"#{}\">link to this case</a></p>\n"
                    "</details>\n",
                    html_text(report.fingerprint), html_text(all.runs[each.run].file), place);
}

}  // namespace

std::string failures_anchor(std::size_t implementation, const std::string& op, const std::string& recipe) {
  std::string made = fmt::format("f{}-", implementation + 1);
  for (const char letter : op + "-" + recipe) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    made += plain ? std::string(1, letter) : fmt::format("_{:02x}", static_cast<unsigned char>(letter));
  }
  return made;
}

std::string report_failures(const Collected& all) {
  const std::vector<const PublishedCase*> found = failures(all);
  if (found.empty() && all.faults.empty()) return "";
  std::string made = fmt::format("<section id=\"failures\"><h2>{} without a pass</h2>\n",
                                 found.size() == 1 ? "1 case" : fmt::format("{} cases", found.size()));
  if (!all.faults.empty()) {
    made += "<ul class=\"faults\">\n";
    for (const auto& [what, why] : all.faults) made += fmt::format("<li><b>{}</b>: {}</li>\n", html_text(what), html_text(why));
    made += "</ul>\n";
  }
  std::string last;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const PublishedCase& each = *found[i];
    const std::string anchor = failures_anchor(each.implementation, each.report.op, each.report.recipe);
    if (anchor != last) {
      const std::string of = all.implementations.size() > 1 ? all.implementation_text(each.implementation) : "";
      made += fmt::format("<h3 id=\"{}\">{}{}</h3>\n", anchor, html_text(column_title({each.report.op, each.report.recipe})),
                          html_small(of));
    }
    last = anchor;
    made += report_failure(all, each, i < kUnfolded);
  }
  return made + "</section>\n";
}

}  // namespace assay::conformance
