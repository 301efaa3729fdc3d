// assay emit --c CASE: one case as a C file.

#include <fmt/format.h>

#include "conformance/cases/case_line.h"
#include "conformance/emit/c_source.h"
#include "conformance/emit/exact_case.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/support/standard_output.h"
#include "golden/io/fixture_error.h"
#include "reference/arithmetic/tensor_core.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {

Action add_emit(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    std::string out;
    ExactOptions exact{"", false, "", std::int64_t{1} << 20};
    bool c = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("CASE", options->words, "A case line, quoted or not")->required();
  verb.add_flag("--c", options->c,
                "Write C99 (and C++), which needs <stdint.h> and <stddef.h>, and <stdio.h> to print: the only form");
  verb.add_option("-o,--output", options->out, "File to write; without it, standard output");
  verb.add_option("--plan", options->exact.plan,
                  "Accumulation plan of a product, by name or as a line (assay list --plans), in place of the case's own");
  verb.add_flag(
      "--bounds", options->exact.bounds,
      "Compare a product with intervals that hold for every order of additions, in place of the bits of a plan; check=bound does "
      "so too");
  verb.add_option("--unit", options->exact.unit,
                  "With intervals: of this unit's arithmetic (assay list --units); without it of every unit that may serve");
  verb.add_option("--max-bytes", options->exact.max_bytes,
                  "Refuse a case whose inputs and expected outputs take more; the text is three to five times as long")
      ->capture_default_str()
      ->check(cli::NonNegativeNumber);
  add_table_options(verb);
  verb.footer(
      "For simulators, RTL and emulators that can load neither a plug-in nor a fixture. The file holds the inputs, the expected\n"
      "outputs and a main() that calls your assay_run() and compares; its first comment says how it is used. Several calls and\n"
      "wrong ones cannot be written so, and are refused.");
  return [options] {
    if (!options->c) throw cli::ValidationError("--c", "is missing: expected the form of the file, which can be C alone");
    std::string text;
    for (const std::string& word : options->words) text += (text.empty() ? "" : " ") + word;
    const CaseLine line = parse_case_line(text);
    const ExactOptions& exact = options->exact;
    require(exact.plan.empty() || find_accumulation_plan(exact.plan) != nullptr, "--plan", exact.plan,
            "the name or the line of an accumulation plan (assay list --plans)");
    require(exact.unit.empty() || find_tensor_core_unit(exact.unit) != nullptr, "--unit", exact.unit,
            "a row of the tensor-core table (assay list --units)");
    if (!options->out.empty()) check_output(options->out);
    const ExactCase made = exact_case(line, exact);
    const std::string source = c_source(made, to_text(line));
    if (options->out.empty()) {
      print_text(source);
      return ExitCode::passed;
    }
    write_output(options->out, source);
    std::int64_t words = 0;
    for (const ExactOutput& output : made.outputs) {
      words += output.elements;
      for (const OpenRange& range : output.open) words -= range.count;
    }
    say("{}: {} output{}, {} words to compare\n", golden::one_line(options->out), made.outputs.size(),
        made.outputs.size() == 1 ? "" : "s", words);
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
