// assay compute IN.h5 -o OUT.h5: the reference's answers, as a fixture.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "conformance/ops/answer.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/verbs.h"
#include "conformance/report/version.h"
#include "conformance/suites/golden_cases.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"
#include "golden/io/contained_reader.h"
#include "golden/io/replace_file.h"
#include "golden/io/writer.h"
#include "reference/gemm/plan.h"
#include "reference/support/parallel.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// Provenance: the program that computed the outputs, and the input file's own provenance, once, however often it is recomputed.
std::string provenance_of(const std::string& before) {
  constexpr int kDeepest = 64;  // the text of a file can be nested without limit
  using Json = nlohmann::ordered_json;
  bool is_deep = false;
  const auto watch = [&](int depth, Json::parse_event_t, const Json&) { return !(is_deep |= depth > kDeepest); };
  Json old = Json::parse(before, watch, false);
  if (is_deep || !old.is_object()) old = before.empty() ? Json() : Json(before);
  if (old.is_object() && old.value("producer", Json()) == "assay compute") old = old.value("inputs", Json());
  Json made{{"producer", "assay compute"}, {"version", kVersion}, {"note", "outputs computed by the CPU reference"}};
  if (!old.is_null()) made["inputs"] = std::move(old);
  return made.dump();
}

// One line that names what is in the input file and not in the output file.
void tell_left_out(const std::string& file, const golden::LeftOut& left_out) {
  if (left_out.count == 0) return;
  std::string text;
  for (const std::string& each : left_out.named) text += (text.empty() ? "" : ", ") + each;
  const auto more = left_out.count - static_cast<std::int64_t>(left_out.named.size());
  say("{}: not kept, since no case has it: {}{}\n", file, text, more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

Action add_compute(cli::App& verb) {
  struct Options {
    std::string in, out, plan;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("IN.h5", options->in, "Fixture whose cases have inputs; outputs that are there are replaced")->required();
  verb.add_option("-o,--output", options->out, "Fixture to write: the same cases with every expected output")->required();
  verb.add_option("--plan", options->plan,
                  "Accumulation plan of every product, by name or as a line (assay list --plans), in place of the case's own");
  add_table_options(verb);
  verb.add_flag("--quiet", options->quiet, "No progress");
  verb.footer(
      "The file is written whole or not at all. Each output is a dataset of its own, also where two are equal; tensors of more\n"
      "than 1 MiB are stored uncompressed. What the input file holds beside cases is named and not kept. Each op's attributes\n"
      "and tensors: assay list --schema.");
  return [options] {
    if (!options->plan.empty()) {
      const AccumulationPlan* plan = find_accumulation_plan(options->plan);
      require(plan != nullptr, "--plan", options->plan, "the name or the line of an accumulation plan (assay list --plans)");
    }
    golden::check_replaceable(options->out);
    golden::LeftOut left_out;
    golden::Fixture fixture = golden::read_fixture_contained(options->in, {}, &left_out);
    const std::string shown = golden::one_line(options->in);
    if (fixture.cases.empty()) {
      say("{}: no cases: a case is a group with a string attribute 'op'\n", shown);
      return ExitCode::nothing_selected;
    }
    Progress line("compute", static_cast<std::int64_t>(fixture.cases.size()), !options->quiet);
    std::vector<std::string> troubles(fixture.cases.size());
    parallel_for(static_cast<std::int64_t>(fixture.cases.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end && !interrupted(); ++i) {
        Case& each = fixture.cases[static_cast<std::size_t>(i)];
        try {
          if (!options->plan.empty() && !product_output(each.op).empty()) each.attributes["plan"] = options->plan;
          require_room(each);
          fill_outputs(each);
        } catch (const InvalidArgument& error) {
          troubles[static_cast<std::size_t>(i)] = error.what();
        } catch (const NotSupported& error) {
          troubles[static_cast<std::size_t>(i)] = error.what();
        }
        line.done(each.name, !troubles[static_cast<std::size_t>(i)].empty());
      }
    });
    if (interrupted()) {
      say("interrupted: nothing was written\n");
      return ExitCode::incomplete;
    }
    bool good = true;
    for (std::size_t i = 0; i < troubles.size(); ++i) {
      if (troubles[i].empty()) continue;
      say("{}: /{}: {}\n", shown, fixture.cases[i].name, golden::one_line(troubles[i], 1000));
      good = false;
    }
    if (!good) {
      say("nothing was written\n");
      return ExitCode::bad_fixture;
    }
    for (const Case& each : fixture.cases) fixture.schema = std::max(fixture.schema, schema_of(each));
    fixture.provenance = provenance_of(fixture.provenance);
    golden::write_fixture(options->out, fixture, {.shares_outputs = false, .leaves_large_uncompressed = true});
    tell_left_out(shown, left_out);
    std::size_t tensors = 0;
    for (const Case& each : fixture.cases) tensors += each.out.size();
    say("{}: {} case{}, {} output{}\n", golden::one_line(options->out), fixture.cases.size(),
        fixture.cases.size() == 1 ? "" : "s", tensors, tensors == 1 ? "" : "s");
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
