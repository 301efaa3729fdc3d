// assay compute IN.h5 -o OUT.h5: the reference's answers, as a fixture.

#include <fmt/format.h>

#include <algorithm>

#include "conformance/program/golden_cases.h"
#include "conformance/program/interrupt.h"
#include "conformance/program/progress.h"
#include "conformance/program/verbs.h"
#include "conformance/program/version.h"
#include "golden/io/contained_reader.h"
#include "golden/io/writer.h"
#include "reference/support/error.h"
#include "reference/support/parallel.h"

namespace assay::conformance {

Action add_compute(CLI::App& verb) {
  struct Options {
    std::string in, out;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("IN.h5", options->in, "Fixture whose cases have inputs; outputs that are there are replaced")->required();
  verb.add_option("-o,--output", options->out, "Fixture to write: the same cases with every expected output")->required();
  verb.add_flag("--quiet", options->quiet, "No progress");
  verb.footer("The file is written whole or not at all. Each op's attributes and tensors: assay list --schema.");
  return [options] {
    golden::Fixture fixture = golden::read_fixture_contained(options->in);
    if (fixture.cases.empty()) {
      fmt::print("{}: no cases: a case is a group with a string attribute 'op'\n", options->in);
      return ExitCode::nothing_selected;
    }
    Progress line("compute", static_cast<std::int64_t>(fixture.cases.size()), !options->quiet);
    std::vector<std::string> troubles(fixture.cases.size());
    parallel_for(static_cast<std::int64_t>(fixture.cases.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end && !interrupted(); ++i) {
        golden::Case& each = fixture.cases[static_cast<std::size_t>(i)];
        try {
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
      fmt::print("interrupted: nothing was written\n");
      return ExitCode::incomplete;
    }
    bool good = true;
    for (std::size_t i = 0; i < troubles.size(); ++i) {
      if (troubles[i].empty()) continue;
      fmt::print("{}: /{}: {}\n", options->in, fixture.cases[i].name, troubles[i]);
      good = false;
    }
    if (!good) {
      fmt::print("nothing was written\n");
      return ExitCode::bad_fixture;
    }
    for (const golden::Case& each : fixture.cases) fixture.schema = std::max(fixture.schema, schema_of(each));
    fixture.provenance = fmt::format(R"({{"producer": "assay compute", "version": "{}", "note": "outputs computed by the CPU reference"}})", kVersion);
    golden::write_fixture(options->out, fixture);
    std::size_t tensors = 0;
    for (const golden::Case& each : fixture.cases) tensors += each.out.size();
    fmt::print("{}: {} case{}, {} outputs\n", options->out, fixture.cases.size(), fixture.cases.size() == 1 ? "" : "s", tensors);
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
