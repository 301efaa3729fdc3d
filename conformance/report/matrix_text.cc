// Parts that both pages of a matrix have.

#include <fmt/format.h>

#include <algorithm>

#include "conformance/report/matrix.h"
#include "golden/io/utf8.h"

namespace assay::conformance {

std::string MatrixImplementation::version() const {
  std::string made;
  const auto add = [&](const char* title, const std::string& text) {
    if (!text.empty()) made += (made.empty() ? "" : "; ") + (title + text);
  };
  add("", software);
  add("library sha256 ", short_digest(sha256));
  add("options ", options);
  add("algorithm ", algorithm);
  return made;
}

std::string MatrixImplementation::place() const {
  return (device.empty() ? "device not recorded" : device) + (architecture.empty() ? "" : " (" + architecture + ")");
}

std::string column_title(const std::pair<std::string, std::string>& column) {
  return column.second == "-" || column.second.empty() ? column.first : column.first + " " + column.second;
}

std::string cell_anchor(std::size_t row, std::size_t column) { return fmt::format("r{}c{}", row + 1, column + 1); }

std::string cell_counts(const MatrixCell& cell) {
  std::string text = fmt::format("{} passed, {} failed, {} absent", cell.passed, cell.failed, cell.absent);
  return cell.other == 0 ? text : text + fmt::format(", {} other", cell.other);
}

std::string cell_grounds(const MatrixCell& cell) {
  std::string text;
  for (const auto& [basis, cases] : cell.bases) {
    text += (text.empty() ? "by " : ", ") + basis;
    if (cell.bases.size() > 1) text += fmt::format(" {}", cases);
  }
  if (cell.plans.empty()) return text;
  if (!text.empty()) text += "; ";
  return text + (cell.plans.size() == 1 ? "plan " + cell.plans.begin()->first : fmt::format("{} plans", cell.plans.size()));
}

std::string cell_dates(const Matrix& matrix, const MatrixCell& cell) {
  // Files are sorted by date.
  const auto day = [&](std::size_t file) {
    const std::string& date = matrix.files[file].date;
    return date.empty() ? std::string("no date") : date.substr(0, 10);
  };
  const std::string first = day(*cell.files.begin()), last = day(*cell.files.rbegin());
  return first == last ? first : first + " to " + last;
}

std::string cell_digests(const Matrix& matrix, const MatrixCell& cell) {
  const std::string newest = short_digest(matrix.files[*cell.files.rbegin()].sha256);
  return cell.files.size() == 1 ? newest : fmt::format("{} and {} more", newest, cell.files.size() - 1);
}

std::string replaced_text(const MatrixCell& cell) {
  if (cell.replaced == 0) return "";
  return fmt::format(
      "{} older verdict{} on cases that a newer file judges again {} not counted; {} of them differ{} from the newer verdict.",
      cell.replaced, cell.replaced == 1 ? "" : "s", cell.replaced == 1 ? "is" : "are", cell.changed,
      cell.changed == 1 ? "s" : "");
}

std::string short_digest(const std::string& sha256) { return sha256.substr(0, 12); }

std::vector<std::pair<std::string, std::int64_t>> sorted_reasons(const MatrixCell& cell) {
  std::vector<std::pair<std::string, std::int64_t>> sorted(cell.reasons.begin(), cell.reasons.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return sorted;
}

std::string printable(std::string_view text) {
  std::string made;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = golden::utf8_sequence(text, at);
    const std::string_view letter = text.substr(at, std::max<std::size_t>(length, 1));
    made += letter == "\n" || (length > 0 && golden::is_printable_utf8(letter)) ? letter : std::string_view("\uFFFD");
    at += letter.size();
  }
  return made;
}

}  // namespace assay::conformance
