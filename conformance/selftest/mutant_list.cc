#include "conformance/selftest/mutant_list.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <string>

#include "conformance/backends/host_backend.h"
#include "conformance/backends/reference_numerics.h"
#include "conformance/ops/answer.h"
#include "conformance/ops/schema_check.h"
#include "conformance/selftest/call_fault.h"
#include "conformance/selftest/fault_effects.h"
#include "conformance/selftest/points.h"
#include "reference/types/error.h"

namespace assay_points {
namespace {

using assay::NotSupported;
using assay::conformance::CallFault;
using assay::conformance::HostBackend;
using assay::conformance::Layer;
using assay::conformance::OutputSpec;
using assay::conformance::Request;

// What each variant of a kind does, in the order of points.h.
struct Kind {
  const char* name;
  const char* variants[kVariants];
};
constexpr Kind kKinds[] = {
    {"less", {"<=", "not <", "one earlier"}},
    {"less_equal", {"<", "not <="}},
    {"greater", {">=", "not >"}},
    {"greater_equal", {">", "not >=", "one earlier"}},
    {"equal", {"!="}},
    {"unequal", {"=="}},
    {"plus", {"-", "one more", "one less"}},
    {"minus", {"+", "one more", "one less"}},
    {"times", {"+", "one more", "one less"}},
    {"divide", {"*", "one more", "one less"}},
    {"modulo", {"left out", "one more", "one less"}},
    {"bit_and", {"|", "left out"}},
    {"bit_or", {"&", "left out"}},
    {"bit_xor", {"|", "left out"}},
    {"shift_left", {">>", "one further"}},
    {"shift_right", {"<<", "one further"}},
    {"condition", {"not", "always true", "always false"}},
    {"conjunct", {"left out"}},
    {"disjunct", {"left out"}},
    {"value", {"one more", "one less"}},
    {"minimum", {"the first", "the second"}},
    {"maximum", {"the first", "the second"}},
    {"fused", {"rounded twice"}},
    {"magnitude", {"left out"}},
    {"sign", {"not", "always +"}},
    {"statement", {"left out"}},
};

const Kind& kind_of(const char* name) {
  for (const Kind& each : kKinds) {
    if (std::strcmp(each.name, name) == 0) return each;
  }
  return kKinds[0];
}

// Arithmetic of values and indices, where a fault of one element can hide.
bool can_be_rare(const PointRow& row) {
  static constexpr const char* kRare[] = {"plus", "minus", "times", "divide", "less", "condition", "fused", "minimum", "maximum"};
  for (const char* each : kRare) {
    if (std::strcmp(each, row.kind) == 0)
      return std::strstr(row.file, "_scalar.cc") != nullptr || std::strstr(row.file, "_step") != nullptr;
  }
  return false;
}

// A point that is wrong once: the time number `first` that it makes a difference.
struct Once {
  std::int32_t point, variant;
  std::int64_t first;
};

struct All {
  std::deque<std::string> texts;
  std::vector<MutantRow> rows;
  std::vector<Once> once;
  std::int32_t first_once = 0, first_call = 0;

  const char* keep(std::string text) { return texts.emplace_back(std::move(text)).c_str(); }

  All() {
    const std::set<std::int32_t> compiled = compiled_points();
    for (const PointRow& point : all_points()) {
      const Kind& kind = kind_of(point.kind);
      const std::string at =
          std::string(point.file) + ":" + std::to_string(point.line) + ": '" + point.text + "' of '" + point.code + "': ";
      for (int v = 0; v < kVariants; ++v) {
        if (kind.variants[v] == nullptr || compiled.count(point.number) == 0) {
          rows.push_back({nullptr, "points", "", false});
        } else {
          rows.push_back({keep(std::string(point.name) + "/" + std::to_string(v)), "points", keep(at + kind.variants[v]), false});
        }
      }
    }
    first_once = static_cast<std::int32_t>(rows.size());
    for (const PointRow& point : all_points()) {
      if (!can_be_rare(point) || compiled.count(point.number) == 0) continue;
      const Kind& kind = kind_of(point.kind);
      const int v = kind.variants[1] == nullptr ? 0 : 1;  // one more, where there is such
      for (const std::int64_t first : {0, 100}) {
        const std::int32_t base = point.number * kVariants + v;
        once.push_back({point.number, v, first});
        const std::string which = first == 0 ? "first" : "hundred-and-first";
        rows.push_back(
            {keep(std::string(point.name) + "/" + std::to_string(v) + (first == 0 ? "/once" : "/late")), "once",
             keep(std::string(rows[static_cast<std::size_t>(base)].says) + ", only the " + which + " time that it matters"),
             false, base, static_cast<std::int32_t>(first + 1)});
      }
    }
    first_call = static_cast<std::int32_t>(rows.size());
    for (const CallFault& each : assay::conformance::call_faults()) {
      rows.push_back({each.id.c_str(), each.family.c_str(), each.says.c_str(), each.benign});
    }
  }
};

const All& all() {
  static const All made;
  return made;
}

const CallFault* selected = nullptr;
std::vector<std::uint8_t> noted_points;  // State::noted
bool points_are_noted = false;

void configure(const std::string&, int&) {}

// Another state of the points, as long as this lives.
class PointOf {
 public:
  explicit PointOf(std::int32_t point) { state.point = point; }
  ~PointOf() { state.point = before_; }

 private:
  const std::int32_t before_ = state.point;
};

void perform(const assay_call& call, int, bool dry) {
  if (call.algorithm != -1) throw NotSupported("the reference has one algorithm; pin none");
  Request request = Request::of(call);
  const std::vector<OutputSpec> outputs = outputs_of(request);
  for (const auto& [name, tensor] : request.out) {
    bool known = false;
    for (const OutputSpec& each : outputs) known = known || each.name == name;
    if (!known) throw NotSupported("op " + request.op() + " has no output '" + name + "' here");
  }
  assay::conformance::check_against_schema(request);
  assay::conformance::note_call(dry);
  if (dry) {
    if (selected != nullptr && selected->question) selected->question(request);
    static_cast<void>(numerics_of(request));  // refuses what cannot be carried out
    return;
  }
  if (selected != nullptr) return selected->perform(request);
  if (state.point == kRecord) {
    // Points are noted while the right call is made, and not while a wrong one is.
    const PointOf off(kOff);
    const std::int32_t first = all().first_call;
    const std::uint8_t* const meant = state.meant == nullptr ? nullptr : state.meant + first;
    assay::conformance::note_fault_effects(request, state.effects + first, meant, [&] {
      const PointOf recording(points_are_noted ? kRecord : kOff);
      answer(request, Layer::scalar);
    });
    return;
  }
  answer(request, Layer::scalar);
}

void state_numerics(const assay_call& call, assay_numerics& numerics) {
  Request request = Request::of(call);
  if (selected != nullptr && selected->restate) selected->restate(request);
  assay::conformance::put_reference_numerics(request, numerics);
  if (selected != nullptr && selected->state) selected->state(numerics);
}

constexpr HostBackend kMutated{"mutants", "the reference, in which one thing can be wrong", configure, perform, state_numerics};

}  // namespace

const std::vector<MutantRow>& all_mutants() { return all().rows; }

void select_mutant(std::int32_t mutant) {
  selected = nullptr;
  state.point = kOff;
  state.first = state.seen = 0;
  state.times = INT64_MAX;
  if (mutant < 0) return;
  if (mutant >= all().first_call) {
    selected = &assay::conformance::call_faults()[static_cast<std::size_t>(mutant - all().first_call)];
  } else if (mutant >= all().first_once) {
    const Once& once = all().once[static_cast<std::size_t>(mutant - all().first_once)];
    state.variant = once.variant;
    state.first = once.first;
    state.times = 1;
    state.point = once.point;
  } else {
    state.variant = mutant % kVariants;
    state.point = mutant / kVariants;
  }
}

void record_effects(std::uint8_t* effects, const std::uint8_t* meant) {
  state.effects = effects;
  state.meant = meant;
  noted_points.assign(all_points().size(), 1);
  if (meant != nullptr) {
    for (std::size_t i = 0; i < noted_points.size(); ++i) {
      const std::uint8_t* const variants = meant + i * kVariants;
      noted_points[i] = std::any_of(variants, variants + kVariants, [](std::uint8_t each) { return each != 0; });
    }
  }
  points_are_noted = std::any_of(noted_points.begin(), noted_points.end(), [](std::uint8_t each) { return each != 0; });
  state.noted = noted_points.data();
  state.point = effects == nullptr ? kOff : kRecord;
}

const assay_backend* mutated_reference() { return assay::conformance::host_table<kMutated>(); }

}  // namespace assay_points
