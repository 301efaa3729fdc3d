// The library of mutants: the scalar layer of the reference with its points, and the faults of calls, as a backend.
//
//   assay repro LINE --backend build/bin/assay_mutants.so --backend-options mutant=ID
//
// plants the mutant ID, as does ASSAY_MUTANT=ID in the environment; with neither nothing is wrong.

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <string>
#include <vector>

#include "conformance/selftest/mutant_list.h"
#include "conformance/selftest/points.h"

namespace assay::conformance {
const char* build_commit();  // of a source that the build makes
}

namespace assay_points {

State state;

bool decide(std::int32_t point, const bool* differs, int variants) {
  if (state.point == kRecord) {
    bool is_open = false;
    for (int i = 0; i < variants; ++i) {
      const std::int32_t at = point * kVariants + i;
      std::uint8_t& times = state.effects[at];
      times = static_cast<std::uint8_t>(times + (differs[i] && times < UINT8_MAX));
      is_open |= times < UINT8_MAX && (state.meant == nullptr || state.meant[at] != 0);
    }
    if (!is_open) state.noted[point] = 0;
    return false;
  }
  if (state.variant >= variants || !differs[state.variant]) return false;
  const std::int64_t number = state.seen++ - state.first;
  return number >= 0 && number < state.times;
}

namespace {

#define ASSAY_POINT_ROW(number, kind, name, file, line, text, code) {number, #kind, name, file, line, text, code},
const PointRow kRows[] = {
#include "points.inc"
};

std::string open_fault;

assay_status open_library(const char* options, assay_context** context) {
  const std::string given = options == nullptr ? "" : options;
  const char* const variable = std::getenv("ASSAY_MUTANT");
  open_fault.clear();
  if (!given.empty() && given.rfind("mutant=", 0) != 0) {
    open_fault = "--backend-options '" + given + "': expected mutant=ID";
    return ASSAY_INVALID_ARGUMENT;
  }
  const std::string id = !given.empty() ? given.substr(7) : variable != nullptr ? variable : "";
  if (!id.empty()) {
    const std::vector<MutantRow>& all = all_mutants();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const MutantRow& each) { return each.id != nullptr && id == each.id; });
    if (found == all.end()) {
      open_fault = "mutant '" + id + "': expected the name of one, as conformance/selftest/mutants.py prints them";
      return ASSAY_INVALID_ARGUMENT;
    }
    select_mutant(static_cast<std::int32_t>(found - all.begin()));
  }
  return mutated_reference()->open("", context);
}

assay_backend make_table() {
  assay_backend table = *mutated_reference();
  table.open = open_library;
  table.last_error = [](assay_context* context) {
    return context == nullptr && !open_fault.empty() ? open_fault.c_str() : mutated_reference()->last_error(context);
  };
  return table;
}

const assay_backend& table() {
  static const assay_backend made = make_table();
  return made;
}

}  // namespace

std::span<const PointRow> all_points() { return kRows; }

}  // namespace assay_points

extern "C" {
// The linker gives a section whose name is an identifier these ends.
extern const std::int32_t __start_assay_points[] __attribute__((visibility("hidden")));
extern const std::int32_t __stop_assay_points[] __attribute__((visibility("hidden")));
}

std::set<std::int32_t> assay_points::compiled_points() { return {__start_assay_points, __stop_assay_points}; }

extern "C" {
__attribute__((visibility("default"))) const assay_points::Library* assay_mutant_library() {
  using namespace assay_points;
  static const Library library{sizeof(Library),
                               static_cast<std::int32_t>(all_mutants().size()),
                               all_mutants().data(),
                               select_mutant,
                               record_effects,
                               &table(),
                               kRows,
                               static_cast<std::int32_t>(std::size(kRows)),
                               __start_assay_points,
                               __stop_assay_points,
                               assay::conformance::build_commit()};
  return &library;
}

__attribute__((visibility("default"))) const assay_backend* assay_backend_v1() { return &assay_points::table(); }
}
