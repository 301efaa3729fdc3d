// The table of faults is complete, and the lines that it names are cases of the catalogue.

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "conformance/cases/case_line.h"
#include "conformance/catalogue/catalogue.h"

namespace assay::conformance {
namespace {

struct Row {
  std::string item, fault, found_by;
};

std::vector<Row> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  std::string text;
  const std::regex row(R"(\| ([^|]+) \| ([^|]+) \| (.+) \|)");
  while (std::getline(file, text)) {
    std::smatch cells;
    if (text.empty() || text[0] != '|' || text.starts_with("|---") || text.starts_with("| item ")) continue;
    EXPECT_TRUE(std::regex_match(text, cells, row)) << text;
    if (cells.size() == 4) rows.push_back({cells[1], cells[2], cells[3]});
  }
  return rows;
}

std::vector<std::string> lines_of(const Row& row) {
  std::vector<std::string> lines;
  const std::regex quoted("`([^`]+)`");
  for (std::sregex_iterator at(row.found_by.begin(), row.found_by.end(), quoted), end; at != end; ++at) lines.push_back((*at)[1]);
  return lines;
}

bool out_of_reach(const Row& row) { return row.found_by.starts_with("out of reach: "); }

TEST(FaultTable, HoldsEveryItem) {
  std::map<std::string, int> met;
  for (const Row& row : rows_of(ASSAY_FAULTS)) ++met[row.item];
  for (const auto& [letter, last] : std::map<char, int>{{'A', 26}, {'B', 13}, {'C', 21}, {'D', 7}, {'E', 5}}) {
    for (int number = 1; number <= last; ++number) {
      const std::string item = letter + std::to_string(number);
      EXPECT_GT(met[item], 0) << item;
      met.erase(item);
    }
  }
  for (const char* released : {"6456362", "6681084", "6580689", "CUB-10481"}) {
    EXPECT_GT(met[released], 0) << released;
    met.erase(released);
  }
  for (const char* registered : {"ASSAY-0005", "ASSAY-0007", "ASSAY-0009"}) {  // docs/faults/, without a report
    EXPECT_GT(met[registered], 0) << registered;
    met.erase(registered);
  }
  const std::regex reports(R"([\w.-]+/[\w.-]+#\d+(, [\w.-]+/[\w.-]+#\d+)*)");
  EXPECT_GE(std::erase_if(met, [&](const auto& each) { return std::regex_match(each.first, reports); }), 50u);
  for (const auto& [item, rows] : met) ADD_FAILURE() << item << " is no item";
}

TEST(FaultTable, NamesLinesOfTheCatalogueOrAReason) {
  std::set<std::string> all;
  for (const CaseLine& line : catalogue(Profile::full)) all.insert(to_text(line));
  int lines = 0, reasons = 0;
  for (const Row& row : rows_of(ASSAY_FAULTS)) {
    if (out_of_reach(row)) {
      EXPECT_GT(row.found_by.size(), std::string("out of reach: ").size() + 20) << row.item << ": a reason";
      ++reasons;
      continue;
    }
    const std::vector<std::string> found_by = lines_of(row);
    EXPECT_FALSE(found_by.empty()) << row.item << ": " << row.fault;
    std::string rest = std::regex_replace(row.found_by, std::regex("`[^`]+`"), "");
    EXPECT_EQ(rest.find_first_not_of(' '), std::string::npos) << row.item << ": " << rest;
    for (const std::string& text : found_by) {
      CaseLine line;
      ASSERT_NO_THROW(line = parse_case_line(text)) << row.item << ": " << text;
      EXPECT_TRUE(all.count(to_text(line))) << row.item << ": no line of the catalogue: " << text;
      ++lines;
    }
  }
  EXPECT_GE(lines, 100);
  EXPECT_GE(reasons, 15);
}

// Only these items may have a reason in place of a line that finds the fault.
TEST(FaultTable, LeavesOnlyTheseOutOfReach) {
  std::map<std::string, bool> reached;
  for (const Row& row : rows_of(ASSAY_FAULTS)) reached[row.item] = reached[row.item] || !out_of_reach(row);
  std::string none, reports;
  for (const auto& [item, any] : reached) {
    const bool report = item.find('#') != std::string::npos;
    (report ? reports : none) += any ? "" : item + " ";
  }
  EXPECT_EQ(none, "A18 A26 A4 A7 B11 B13 B6 B8 B9 C13 C14 C15 C16 C17 D2 ");
  EXPECT_EQ(reports,
            "NVIDIA/cudnn-frontend#1126 ROCm/rocm-libraries#10811 deepseek-ai/DeepGEMM#449 deepseek-ai/DeepGEMM#451 "
            "flashinfer-ai/flashinfer#3103 flashinfer-ai/flashinfer#5053 marin-community/marin#9183 pytorch/pytorch#193633 "
            "sgl-project/sglang#28685 ");
}

}  // namespace
}  // namespace assay::conformance
