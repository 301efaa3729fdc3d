// A report as one HTML file without scripts. Every text of a result file passes through html_text().

#include <fmt/format.h>

#include <map>

#include "conformance/publish/formats.h"
#include "conformance/publish/html_parts.h"
#include "conformance/publish/tables.h"
#include "conformance/report/page_text.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

constexpr std::size_t kSlowestOfPage = 20, kMostShown = 4;  // of implementations

std::string number_of(std::int64_t number, const char* what) {
  return fmt::format("{} {}{}", number, what, number == 1 ? "" : "s");
}

// "14,125,193".
std::string with_commas(std::int64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// A bar whose parts are as long as their numbers, and the same numbers in words.
std::string report_counts(const Counts& counts) {
  const std::pair<std::int64_t, const char*> parts[] = {
      {counts.passed, "passed"}, {counts.failed, "failed"},
      {counts.flaky, "flaky"},   {counts.other - counts.flaky - counts.waived, "other"},
      {counts.waived, "waived"}, {counts.not_run, "absent"}};
  std::string bar, words;
  for (const auto& [number, name] : parts) {
    if (number == 0 && std::string_view(name) != "passed" && std::string_view(name) != "failed") continue;
    if (number > 0) bar += fmt::format("<span class=\"is-{}\" style=\"flex-grow:{}\"></span>", name, number);
    words += fmt::format("<li><span class=\"key is-{0}\"></span><b>{1}</b> {0}</li>", name, number);
  }
  return fmt::format("<div class=\"bar-of-counts\" aria-hidden=\"true\">{}</div>\n<ul class=\"counts\">{}</ul>\n", bar, words);
}

// The verdict as people say it. The codes follow in small print.
std::string headline(const Collected& all) {
  if (all.outcome.exit_code() == ExitCode::passed) return all.verdict();
  const auto without = static_cast<std::int64_t>(failures(all).size());
  if (without > 0) return fmt::format("FAIL: {} of {} did not pass", without, number_of(all.counts.cases(), "case"));
  return all.faults.empty() ? all.verdict() : fmt::format("FAIL: {}", all.faults.front().first);
}

std::string report_header(const Collected& all) {
  const bool good = all.outcome.exit_code() == ExitCode::passed;
  std::string made = fmt::format("<header>\n<p class=\"kind\">Assay conformance report{}</p>\n<h1 class=\"{}\">{}</h1>\n",
                                 all.date().empty() ? "" : ", " + html_text(all.date().substr(0, 10)), good ? "good" : "bad",
                                 html_text(headline(all)));
  std::string judged;
  for (std::size_t i = 0; i < all.implementations.size(); ++i)
    judged += "<p class=\"judged\">" + html_text(all.implementation_text(i)) + "</p>\n";
  const bool many = all.implementations.size() > kMostShown;
  made += many ? fmt::format("<details><summary>{} implementations</summary>\n{}</details>\n", all.implementations.size(), judged)
               : judged;
  made += report_counts(all.counts);
  const std::string code =
      good ? "" : " Exit code" + html_text(all.verdict().substr(std::string_view("FAIL: exit").size())) + ".";
  return made + fmt::format("<p class=\"quiet\">{}, {} elements compared, {} of judging.{}</p>\n</header>\n",
                            number_of(all.counts.cases(), "case"), with_commas(all.counts.elements), seconds_text(all.seconds()),
                            code);
}

std::string report_navigation(const std::vector<std::pair<std::string, std::string>>& sections) {
  std::string made = "<nav aria-label=\"Sections\"><ul>";
  for (const auto& [id, title] : sections) made += fmt::format("<li><a href=\"#{}\">{}</a></li>", id, title);
  return made + "</ul></nav>\n";
}

std::string matrix_cell(const std::string& title, const Counts& counts, const std::string& anchor) {
  const std::int64_t other = counts.other - counts.waived;
  const bool fails = counts.failed > 0 || other > 0;
  const char* state = fails ? "fails" : counts.waived > 0 ? "waives" : counts.passed > 0 ? "passes" : "absents";
  std::string text = counts.passed > 0 || !fails ? fmt::format("<span class=\"big\">{}</span>", counts.passed) : "";
  if (fails) text += fmt::format("<a class=\"failed\" href=\"#{}\">{} without a pass</a>", anchor, counts.failed + other);
  if (counts.waived > 0) text += fmt::format("<small>{} waived</small>", counts.waived);
  if (counts.not_run > 0) text += fmt::format("<small>{} absent</small>", counts.not_run);
  return fmt::format("<td class=\"cell {}\" data-title=\"{}\">{}</td>", state, html_text(title), text);
}

std::string report_matrix(const Collected& all) {
  const std::vector<std::string> shapes = used_shapes(all);
  std::string made =
      "<section id=\"matrix\"><h2>Ops, recipes and shapes</h2>\n<p class=\"quiet\">The number of passes; below it what did not "
      "pass, "
      "with a link, and what is absent.</p>\n"
      "<div class=\"scroll\" role=\"region\" aria-label=\"Ops, recipes and shapes\" tabindex=\"0\"><table class=\"wide "
      "matrix\">\n"
      "<thead><tr><th scope=\"col\">op and recipe</th><th scope=\"col\">all</th>";
  for (const std::string& each : shapes) made += fmt::format("<th scope=\"col\">{}</th>", each);
  made += "</tr></thead>\n<tbody>\n";
  std::size_t implementation = all.implementations.size();
  for (const ReportRow& row : report_rows(all)) {
    if (all.implementations.size() > 1 && row.implementation != implementation) {
      made += fmt::format("<tr class=\"of\"><th scope=\"colgroup\" colspan=\"{}\">{}</th></tr>\n", shapes.size() + 2,
                          html_text(all.implementation_text(row.implementation)));
      implementation = row.implementation;
    }
    const std::string anchor = failures_anchor(row.implementation, row.op, row.recipe);
    made += fmt::format("<tr><th scope=\"row\">{}{}</th>{}", html_name(row.op), html_small(row.recipe == "-" ? "" : row.recipe),
                        matrix_cell("all", row.all, anchor));
    for (const std::string& shape : shapes) {
      const auto found = row.shapes.find(shape);
      made += found == row.shapes.end() ? "<td class=\"none\"></td>" : matrix_cell(shape, found->second, anchor);
    }
    made += "</tr>\n";
  }
  return made + "</tbody>\n</table></div></section>\n";
}

std::string report_slowest(const Collected& all) {
  const std::vector<const PublishedCase*> found = slowest(all, kSlowestOfPage);
  if (found.empty()) return "";
  const double most = std::max(found.front()->report.judgement.seconds, 1e-9);
  std::string made =
      "<section id=\"slowest\"><h2>Slowest cases</h2>\n<table class=\"wide\">\n<thead><tr><th scope=\"col\">time</th>"
      "<th scope=\"col\">case</th></tr></thead>\n<tbody>\n";
  for (const PublishedCase* each : found) {
    const double seconds = each->report.judgement.seconds;
    made += fmt::format(
        "<tr><td class=\"time\" data-title=\"time\">{}<span class=\"length\" style=\"width:{:.0f}%\"></span></td>"
        "<td data-title=\"case\"><code>{}</code></td></tr>\n",
        seconds_text(seconds), 100 * seconds / most, html_text(each->title));
  }
  return made + "</tbody>\n</table></section>\n";
}

std::string report_absences(const Collected& all) {
  const std::vector<Absence> found = absences(all);
  if (found.empty() && all.not_tried.empty()) return "";
  std::string made = "<section id=\"absences\"><h2>What is absent</h2>\n";
  if (!found.empty()) {
    made += fmt::format(
        "<p>Each absence is proved: {}.</p>\n<table class=\"wide\">\n<thead><tr><th scope=\"col\">reason given</th>"
        "<th scope=\"col\">cases</th><th scope=\"col\">of</th></tr></thead>\n<tbody>\n",
        absence_proof());
  }
  for (const Absence& each : found) {
    std::string where;
    for (const auto& [name, number] : each.where) where += fmt::format("{}{} ({})", where.empty() ? "" : ", ", name, number);
    made += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"number\" data-title=\"cases\">{}</td><td data-title=\"of\">{}</td></tr>\n",
        html_text(each.reason), each.cases, html_text(where));
  }
  if (!found.empty()) made += "</tbody>\n</table>\n";
  for (const auto& [what, why] : all.not_tried) made += "<p>Not run: " + html_text(what) + ": " + html_text(why) + ".</p>\n";
  return made + "</section>\n";
}

std::string report_plans(const Collected& all) {
  const std::vector<PlanRow> found = plan_rows(all);
  if (found.empty()) return "";
  std::string made =
      "<section id=\"plans\"><h2>Accumulation plans and their ground</h2>\n<p class=\"quiet\">The order of the additions that an "
      "implementation states for a product decides its bits; without one, only what every order gives is compared.</p>\n"
      "<table class=\"wide\">\n<thead><tr><th scope=\"col\">plan</th><th scope=\"col\">how it is known</th><th "
      "scope=\"col\">passed"
      "</th><th scope=\"col\">not passed</th><th scope=\"col\">passes by</th></tr></thead>\n<tbody>\n";
  for (const PlanRow& each : found) {
    std::string bases;
    for (const auto& [basis, number] : each.bases) bases += fmt::format("{}{} ({})", bases.empty() ? "" : ", ", basis, number);
    const std::string of = all.implementations.size() > 1 ? all.implementation_text(each.implementation) : "";
    made += fmt::format(
        "<tr><th scope=\"row\">{}{}</th><td data-title=\"how it is known\">{}</td><td class=\"number\" "
        "data-title=\"passed\">{}</td>"
        "<td class=\"number\" data-title=\"not passed\">{}</td><td data-title=\"passes by\">{}</td></tr>\n",
        html_name(each.plan), html_small(of), html_text(each.ground), each.passed, each.not_passed, html_text(bases));
  }
  return made + "</tbody>\n</table></section>\n";
}

std::string report_waivers(const Collected& all) {
  const std::vector<const PublishedCase*> found = waived(all);
  if (found.empty() && all.unused_waivers.empty()) return "";
  std::string made = "<section id=\"waivers\"><h2>Waivers</h2>\n";
  if (!found.empty()) {
    made +=
        "<table class=\"wide\">\n<thead><tr><th scope=\"col\">case</th><th scope=\"col\">state</th><th scope=\"col\">reason</th>"
        "<th scope=\"col\">owner</th><th scope=\"col\">until</th></tr></thead>\n<tbody>\n";
  }
  for (const PublishedCase* each : found) {
    const WaiverStanding& waiver = *each->report.waiver;
    const bool holds = waiver.state == WaiverStanding::State::covers;
    const char* state = holds ? "waived" : waiver.state == WaiverStanding::State::expired ? "expired" : "the case passes";
    made += fmt::format(
        "<tr><th scope=\"row\"><code>{}</code></th><td data-title=\"state\"{}>{}</td><td "
        "data-title=\"reason\">{}<small>{}<br>{}</small></td>"
        "<td data-title=\"owner\">{}</td><td class=\"date\" data-title=\"until\">{}</td></tr>\n",
        html_text(each->title), holds ? "" : " class=\"failed\"", state, html_text(waiver.reason), html_text(waiver.link),
        html_text(waiver.at), html_text(waiver.owner), html_text(waiver.expires));
  }
  if (!found.empty()) made += "</tbody>\n</table>\n";
  for (const std::string& at : all.unused_waivers) made += "<p>Selects no case: " + html_text(at) + "</p>\n";
  return made + "</section>\n";
}

}  // namespace

std::string report_html(const Collected& all) {
  const std::pair<const char*, std::pair<const char*, std::string>> parts[] = {
      {"matrix", {"Matrix", report_matrix(all)}},
      {"failures", {"Failures", report_failures(all)}},
      {"waivers", {"Waivers", report_waivers(all)}},
      {"absences", {"Absences", report_absences(all)}},
      {"plans", {"Plans", report_plans(all)}},
      {"slowest", {"Slowest", report_slowest(all)}},
      {"environment", {"Environment", report_environment(all)}}};
  std::vector<std::pair<std::string, std::string>> sections;
  std::string body;
  for (const auto& [id, part] : parts) {
    if (part.second.empty()) continue;
    sections.emplace_back(id, part.first);
    body += part.second;
  }
  return html_head("Assay: " + all.verdict(), report_style()) + report_header(all) + report_navigation(sections) + "<main>\n" +
         body +
         fmt::format("</main>\n<footer class=\"quiet\">Made by <code>assay report</code> {}.</footer>\n</body>\n</html>\n",
                     kVersion);
}

}  // namespace assay::conformance
