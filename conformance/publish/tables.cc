#include "conformance/publish/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "conformance/report/report_counts.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

std::string ground_of(const std::string& plan) {
  for (const AccumulationPlan& each : accumulation_plans()) {
    if (each.name == plan) return std::string(evidence_of(each));
  }
  return plan.find('=') != std::string::npos ? "a line that the implementation stated"
                                             : "a name that this version of the program does not know";
}

template <class Test>
std::vector<const PublishedCase*> those(const Collected& all, Test test) {
  std::vector<const PublishedCase*> found;
  for (const PublishedCase& each : all.cases) {
    if (test(each.report)) found.push_back(&each);
  }
  return found;
}

}  // namespace

std::vector<ReportRow> report_rows(const Collected& all) {
  std::vector<ReportRow> rows;
  for (const PublishedCase& each : all.cases) {
    const CaseReport& report = each.report;
    if (report.suite == kSelfCheck) continue;
    const auto same = [&](const ReportRow& row) {
      return row.implementation == each.implementation && row.op == report.op && row.recipe == report.recipe;
    };
    if (rows.empty() || !same(rows.back())) rows.push_back({each.implementation, report.op, report.recipe, {}, {}});
    count(rows.back().shapes[each.shape], report);
    count(rows.back().all, report);
  }
  return rows;
}

std::vector<std::string> used_shapes(const Collected& all) {
  std::set<std::string> used;
  for (const PublishedCase& each : all.cases) {
    if (each.report.suite != kSelfCheck) used.insert(each.shape);
  }
  std::vector<std::string> shapes = shape_classes();
  std::erase_if(shapes, [&](const std::string& each) { return used.count(each) == 0; });
  return shapes;
}

std::vector<Absence> absences(const Collected& all) {
  std::map<std::pair<std::size_t, std::string>, Absence> by_reason;
  for (const PublishedCase& each : all.cases) {
    if (each.report.judgement.verdict != Verdict::not_run) continue;
    const std::string reason = first_line(each.report.judgement.text);
    Absence& absence = by_reason[{each.implementation, reason}];
    absence.implementation = each.implementation;
    absence.reason = reason;
    ++absence.where[each.report.op + (each.report.recipe == "-" ? "" : " " + each.report.recipe)];
    ++absence.cases;
  }
  std::vector<Absence> sorted;
  for (auto& [key, each] : by_reason) sorted.push_back(std::move(each));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Absence& a, const Absence& b) {
    return std::make_tuple(a.implementation, -a.cases) < std::make_tuple(b.implementation, -b.cases);
  });
  return sorted;
}

std::vector<PlanRow> plan_rows(const Collected& all) {
  std::map<std::pair<std::size_t, std::string>, PlanRow> rows;
  for (const PublishedCase& each : all.cases) {
    const Judgement& judgement = each.report.judgement;
    if (each.report.suite == kSelfCheck || each.report.variety.empty() || judgement.verdict == Verdict::not_run) continue;
    PlanRow& row = rows[{each.implementation, judgement.plan}];
    row.implementation = each.implementation;
    row.plan = judgement.plan.empty() ? "no plan stated" : judgement.plan;
    row.ground = judgement.plan.empty() ? "judged by the bits that every order of sums gives, or by computed bounds"
                                        : ground_of(judgement.plan);
    if (judgement.verdict == Verdict::passed) {
      ++row.passed;
      ++row.bases[basis_text(judgement)];
    } else {
      ++row.not_passed;
    }
    row.elements += judgement.elements;
  }
  std::vector<PlanRow> sorted;
  for (auto& [key, each] : rows) sorted.push_back(std::move(each));
  return sorted;
}

std::vector<const PublishedCase*> slowest(const Collected& all, std::size_t most) {
  std::vector<const PublishedCase*> found = those(all, [](const CaseReport& each) { return each.suite != kSelfCheck; });
  std::stable_sort(found.begin(), found.end(), [](const PublishedCase* a, const PublishedCase* b) {
    return a->report.judgement.seconds > b->report.judgement.seconds;
  });
  if (found.size() > most) found.resize(most);
  return found;
}

std::vector<const PublishedCase*> failures(const Collected& all) { return those(all, is_failure); }

std::vector<const PublishedCase*> waived(const Collected& all) {
  return those(all,
               [](const CaseReport& each) { return each.waiver && each.waiver->state != WaiverStanding::State::other_failure; });
}

std::string counts_text(const Counts& counts) {
  std::string text = fmt::format("{} passed", counts.passed);
  for (const auto& [number, word] :
       {std::pair(counts.failed, "failed"), std::pair(counts.not_run, "absent"), std::pair(counts.flaky, "flaky"),
        std::pair(counts.waived, "waived"), std::pair(counts.other - counts.flaky - counts.waived, "other")}) {
    if (number > 0) text += fmt::format(", {} {}", number, word);
  }
  return text;
}

std::string seconds_text(double seconds) {
  return seconds >= 1 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.1f} ms", seconds * 1000);
}

}  // namespace assay::conformance
