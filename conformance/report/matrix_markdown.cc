// A matrix as Markdown (CommonMark with tables). Every text of a result file passes through markdown_text() or markdown_block().

#include <fmt/format.h>

#include "conformance/report/matrix.h"
#include "conformance/report/page_text.h"
#include "conformance/report/version.h"

namespace assay::conformance {
namespace {

std::string markdown_break(const std::string& text) { return text.empty() ? "" : "<br>" + markdown_text(text); }

std::string markdown_implementation(const MatrixImplementation& each) {
  return markdown_text(each.name) + markdown_break(each.version()) + markdown_break(each.place());
}

std::string markdown_table(const Matrix& matrix) {
  std::string made = "| implementation |", rule = "|---|";
  for (const auto& column : matrix.columns) {
    made += " " + markdown_text(column_title(column)) + " |";
    rule += "---|";
  }
  made += "\n" + rule + "\n";
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    made += "| " + markdown_implementation(matrix.rows[row].implementation) + " |";
    for (std::size_t column = 0; column < matrix.columns.size(); ++column) {
      const auto found = matrix.rows[row].cells.find(column);
      if (found == matrix.rows[row].cells.end()) {
        made += " |";
        continue;
      }
      const MatrixCell& cell = found->second;
      made += fmt::format(" [{}](#{}){}{} |", cell_counts(cell), cell_anchor(row, column), markdown_break(cell_grounds(cell)),
                          markdown_break(cell_dates(matrix, cell) + ", " + cell_digests(matrix, cell)));
    }
    made += "\n";
  }
  return made;
}

std::string markdown_details(const Matrix& matrix, std::size_t row, std::size_t column, const MatrixCell& cell) {
  std::string made = fmt::format("\n### {}\n\n**{}**, {}: {}; {} elements compared", cell_anchor(row, column),
                                 markdown_text(column_title(matrix.columns[column])),
                                 markdown_text(matrix.rows[row].implementation.name), cell_counts(cell), cell.elements);
  for (const auto& [basis, cases] : cell.bases) made += fmt::format("; {} passed by {}", cases, markdown_text(basis));
  made += ".";
  if (const std::string replaced = replaced_text(cell); !replaced.empty()) made += " " + replaced;
  for (const std::size_t file : cell.files)
    made += (file == *cell.files.begin() ? " From " : ", ") + markdown_text(matrix.files[file].name);
  made += ".\n";
  if (!cell.plans.empty()) made += "\n| plan | passed | not passed | how it is known |\n|---|--:|--:|---|\n";
  for (const auto& [name, plan] : cell.plans)
    made += fmt::format("| {} | {} | {} | {} |\n", markdown_text(name), plan.passed, plan.not_passed, markdown_text(plan.ground));
  for (const MatrixFailure& each : cell.failures) {
    made += fmt::format("\n{}: {}{}, from {}\n\n{}", markdown_text(each.verdict), markdown_text(each.title),
                        each.setting.empty() ? "" : " (" + markdown_text(each.setting) + ")",
                        markdown_text(matrix.files[each.file].name), markdown_block(each.text + "\n  repro   " + each.repro));
  }
  if (cell.absent > 0) made += "\n| absent | reason |\n|--:|---|\n";
  for (const auto& [reason, cases] : sorted_reasons(cell)) made += fmt::format("| {} | {} |\n", cases, markdown_text(reason));
  return made;
}

std::string markdown_files(const Matrix& matrix) {
  std::string made = "\n## Result files\n\n";
  if (matrix.same_files > 0) made += fmt::format("Given again with the same bytes, and counted once: {}.\n\n", matrix.same_files);
  made += "| file | date | verdicts | made by | exit | SHA-256 |\n|---|---|--:|---|---|---|\n";
  for (const MatrixFile& file : matrix.files) {
    made += fmt::format("| {} | {} | {} | {}{} | {} | {} |\n", markdown_text(file.name),
                        file.date.empty() ? "not recorded" : markdown_text(file.date), file.verdicts, markdown_text(file.verb),
                        markdown_break(file.program), markdown_text(file.exit), file.sha256);
  }
  return made;
}

}  // namespace

std::string matrix_markdown(const Matrix& matrix) {
  std::string made =
      "# Conformance matrix\n\nA row is an implementation in one version on one device, a column an op and its recipe. "
      "A cell counts verdicts, one for each case and setting, says what the passes rest on, and gives the date and "
      "the digest (SHA-256) of the result file. It leads to its failures with their commands, and to the reasons of "
      "absences.\n\n";
  made += markdown_table(matrix);
  for (std::size_t row = 0; row < matrix.rows.size(); ++row) {
    made += "\n## " + markdown_text(matrix.rows[row].implementation.name) + "\n\n";
    const MatrixImplementation& implementation = matrix.rows[row].implementation;
    if (const std::string version = implementation.version(); !version.empty()) made += markdown_text(version) + "; ";
    made += markdown_text(implementation.place()) + "\n";
    for (const auto& [column, cell] : matrix.rows[row].cells) made += markdown_details(matrix, row, column, cell);
  }
  return made + markdown_files(matrix) + fmt::format("\nMade by `assay matrix` {}.\n", kVersion);
}

}  // namespace assay::conformance
