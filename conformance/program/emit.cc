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
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {

Action add_emit(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    std::string out, plan;
    std::int64_t max_bytes = std::int64_t{1} << 20;
    bool c = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("CASE", options->words, "A case line, quoted or not")->required();
  verb.add_flag("--c", options->c,
                "Write C99 (and C++), which needs <stdint.h> and <stddef.h>, and <stdio.h> to print: the only form");
  verb.add_option("-o,--output", options->out, "File to write; without it, standard output");
  verb.add_option("--plan", options->plan,
                  "Accumulation plan of a product, by name or as a line (assay list --plans), in place of the case's own");
  verb.add_option("--max-bytes", options->max_bytes,
                  "Refuse a case whose inputs and expected outputs take more; the text is three to five times as long")
      ->capture_default_str()
      ->check(cli::NonNegativeNumber);
  add_table_options(verb);
  verb.footer(
      "For simulators, RTL and emulators that can load neither a plug-in nor a fixture. The file holds the inputs, the expected\n"
      "outputs and a main() that calls your assay_run() and compares; its first comment says how it is used. A case whose "
      "outputs\n"
      "are compared with intervals (check=bound), several calls or wrong ones cannot be written so, and is refused.");
  return [options] {
    if (!options->c) throw cli::ValidationError("--c", "is missing: expected the form of the file, which can be C alone");
    std::string text;
    for (const std::string& word : options->words) text += (text.empty() ? "" : " ") + word;
    const CaseLine line = parse_case_line(text);
    if (!options->plan.empty()) {
      const AccumulationPlan* plan = find_accumulation_plan(options->plan);
      require(plan != nullptr, "--plan", options->plan, "the name or the line of an accumulation plan (assay list --plans)");
    }
    if (!options->out.empty()) check_output(options->out);
    const ExactCase made = exact_case(line, options->plan, options->max_bytes);
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
