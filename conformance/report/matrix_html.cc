// A matrix as one HTML file without scripts. Every text of a result file passes through html_text().

#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/matrix.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

constexpr std::string_view kHead = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Assay: conformance matrix</title>
<style>
:root { color-scheme: light dark; --text: #1b1f24; --page: #ffffff; --quiet: #57606a; --line: #d0d7de; --box: #f6f8fa;
  --link: #0756b3; --failed: #a40e26; }
@media (prefers-color-scheme: dark) {
  :root { --text: #e6edf3; --page: #0d1117; --quiet: #9aa4af; --line: #3d444d; --box: #161b22; --link: #6cb0ff;
    --failed: #ff8182; }
}
body { margin: 0 auto; padding: 1rem; max-width: 80rem; color: var(--text); background: var(--page);
  font: 1rem/1.45 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; } h3 { font-size: 1rem; margin: 1.75rem 0 0.25rem; }
a { color: var(--link); }
small, .quiet { color: var(--quiet); font-size: 0.85rem; }
small { display: block; font-weight: 400; }
.failed { color: var(--failed); font-weight: 600; }
div.scroll { overflow-x: auto; } div.scroll td { min-width: 8rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border: 1px solid var(--line); padding: 0.4rem 0.6rem; text-align: left; vertical-align: top; }
th { font-weight: 600; background: var(--box); }
td.number { text-align: right; width: 4rem; overflow-wrap: normal; }
pre { margin: 0.4rem 0; padding: 0.6rem; background: var(--box); border: 1px solid var(--line); overflow-x: auto;
  font-size: 0.85rem; }
pre.repro { white-space: pre-wrap; }
details { margin: 0.3rem 0; } summary { cursor: pointer; }
details details { margin-left: 1rem; }
:target { outline: 2px solid var(--link); outline-offset: 0.4rem; }
@media (max-width: 48rem) {
  .wide thead { display: none; }
  .wide, .wide tbody, .wide tr, .wide th, .wide td { display: block; width: auto; }
  .wide tr { margin-bottom: 1rem; }
  .wide td { border-top: 0; }
  .wide td.none { display: none; }
  .wide td::before { content: attr(data-title); display: block; color: var(--quiet); font-size: 0.85rem; }
}
</style>
</head>
<body>
)";

std::string html_text(std::string_view text) {
  std::string made;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&': made += "&amp;"; break;
      case '<': made += "&lt;"; break;
      case '>': made += "&gt;"; break;
      case '"': made += "&quot;"; break;
      case '\'': made += "&#39;"; break;
      default: made += letter;
    }
  }
  return made;
}

// Names may break after the marks that join their words.
std::string html_name(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(":._,", at), text.size() - 1) + 1;
    made += html_text(text.substr(at, end - at)) + (end < text.size() ? "<wbr>" : "");
    at = end;
  }
  return made;
}

std::string html_small(const std::string& text) { return text.empty() ? "" : "<small>" + html_text(text) + "</small>"; }

// The row's heading: name, version, place.
std::string html_implementation(const MatrixImplementation& each) {
  return html_name(each.name) + html_small(each.version()) + html_small(each.place());
}

std::string html_cell(const Matrix& matrix, std::size_t row, std::size_t column) {
  const std::string title = html_text(column_title(matrix.columns[column]));
  const auto found = matrix.rows[row].cells.find(column);
  if (found == matrix.rows[row].cells.end()) return "<td class=\"none\" data-title=\"" + title + "\"></td>\n";
  const MatrixCell& cell = found->second;
  return fmt::format("<td data-title=\"{}\"><a href=\"#{}\"{}>{}</a>{}{}</td>\n", title, cell_anchor(row, column),
                     cell.failures.empty() ? "" : " class=\"failed\"", cell_counts(cell), html_small(cell_grounds(cell)),
                     html_small(cell_dates(matrix, cell) + ", " + cell_digests(matrix, cell)));
}

std::string html_table(const Matrix& matrix) {
  std::string made = "<div class=\"scroll\"><table class=\"wide\">\n<thead><tr><th>implementation</th>";
  for (const auto& column : matrix.columns) made += "<th>" + html_text(column_title(column)) + "</th>";
  made += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    made += "<tr><th>" + html_implementation(matrix.rows[row].implementation) + "</th>\n";
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) made += html_cell(matrix, row, column);
    made += "</tr>\n";
  }
  return made + "</tbody>\n</table></div>\n";
}

std::string html_failures(const Matrix& matrix, const MatrixCell& cell) {
  std::string made = fmt::format("<details open><summary>{} without a pass: each with its text and its command</summary>\n",
                                 cell.failures.size());
  for (const MatrixFailure& each : cell.failures) {
    made += fmt::format("<details><summary>{}: {}{}</summary>\n<pre>{}</pre>\n<pre class=\"repro\">{}</pre>\n{}</details>\n",
                        html_text(each.verdict), html_text(each.title),
                        each.setting.empty() ? "" : " (" + html_text(each.setting) + ")", html_text(each.text),
                        html_text(each.repro), html_small("from " + matrix.files[each.file].name));
  }
  return made + "</details>\n";
}

std::string html_absences(const MatrixCell& cell) {
  std::string made = fmt::format("<details><summary>{} absent: reasons</summary>\n<table>\n", cell.absent);
  for (const auto& [reason, cases] : sorted_reasons(cell))
    made += fmt::format("<tr><td class=\"number\">{}</td><td>{}</td></tr>\n", cases, html_text(reason));
  return made + "</table>\n</details>\n";
}

std::string html_plans(const MatrixCell& cell) {
  std::string made =
      "<table class=\"wide\">\n<thead><tr><th>plan</th><th>passed</th><th>not passed</th><th>how it is known</th>"
      "</tr></thead>\n<tbody>\n";
  for (const auto& [name, plan] : cell.plans) {
    made += fmt::format(
        "<tr><th>{}</th><td data-title=\"passed\">{}</td><td data-title=\"not passed\">{}</td>"
        "<td data-title=\"how it is known\">{}</td></tr>\n",
        html_name(name), plan.passed, plan.not_passed, html_text(plan.ground));
  }
  return made + "</tbody>\n</table>\n";
}

std::string html_details(const Matrix& matrix, std::size_t row, std::size_t column, const MatrixCell& cell) {
  std::string made = fmt::format("<section id=\"{}\">\n<h3>{}</h3>\n<p>{}; {} elements compared", cell_anchor(row, column),
                                 html_text(column_title(matrix.columns[column])), cell_counts(cell), cell.elements);
  for (const auto& [basis, cases] : cell.bases) made += fmt::format("; {} passed by {}", cases, html_text(basis));
  made += ".";
  if (const std::string replaced = replaced_text(cell); !replaced.empty()) made += " " + replaced;
  made += "<small>";
  for (const std::size_t file : cell.files)
    made += fmt::format("{}<a href=\"#f{}\">{}</a>", file == *cell.files.begin() ? "from " : ", ", file + 1,
                        html_text(matrix.files[file].name));
  made += "</small></p>\n";
  if (!cell.plans.empty()) made += html_plans(cell);
  if (!cell.failures.empty()) made += html_failures(matrix, cell);
  if (cell.absent > 0) made += html_absences(cell);
  return made + "</section>\n";
}

std::string html_files(const Matrix& matrix) {
  std::string made = "<h2>Result files</h2>\n";
  if (matrix.same_files > 0)
    made += fmt::format("<p>Given again with the same bytes, and counted once: {}.</p>\n", matrix.same_files);
  made +=
      "<table class=\"wide\">\n<thead><tr><th>file</th><th>date</th><th>verdicts</th><th>made by</th></tr></thead>\n<tbody>\n";
  for (std::size_t i = 0; i < matrix.files.size(); ++i) {
    const MatrixFile& file = matrix.files[i];
    made += fmt::format(
        "<tr id=\"f{}\"><th>{}{}</th><td data-title=\"date\">{}</td><td data-title=\"verdicts\">{}</td>"
        "<td data-title=\"made by\">{}{}{}</td></tr>\n",
        i + 1, html_text(file.name), html_small("sha256 " + file.sha256),
        file.date.empty() ? "not recorded" : html_text(file.date), file.verdicts, html_text(file.verb), html_small(file.program),
        html_small(file.exit.empty() ? "" : "exit " + file.exit));
  }
  return made + "</tbody>\n</table>\n";
}

}  // namespace

std::string matrix_html(const Matrix& matrix) {
  std::string made(kHead);
  made +=
      "<h1>Conformance matrix</h1>\n<p>A row is an implementation in one version on one device, a column an op and its recipe. "
      "A cell counts verdicts, one for each case and setting, says what the passes rest on, and gives the date and the digest "
      "(SHA-256) of the result file. It leads to its failures with their commands, and to the reasons of absences.</p>\n";
  made += html_table(matrix);
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    made += "<h2>" + html_implementation(matrix.rows[row].implementation) + "</h2>\n";
    for (const auto& [column, cell] : matrix.rows[row].cells) made += html_details(matrix, row, column, cell);
  }
  made += html_files(matrix);
  return made + fmt::format("<p class=\"quiet\">Made by <code>assay matrix</code> {}.</p>\n</body>\n</html>\n", kVersion);
}

}  // namespace assay::conformance
