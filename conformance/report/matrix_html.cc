// A matrix as one HTML file without scripts. Every text of a result file passes through html_text().

#include <fmt/format.h>

#include "conformance/report/matrix.h"
#include "conformance/report/page_text.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

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
  std::string made = html_head("Assay: conformance matrix");
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
