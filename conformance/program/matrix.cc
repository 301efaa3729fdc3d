// assay matrix RESULTS...: one page from the result files of several runs.

#include "conformance/report/matrix.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {

Action add_matrix(cli::App& verb) {
  struct Options {
    std::vector<std::string> results;
    std::string html, markdown;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("RESULTS", options->results, "Files of --results or --json of run, verify or repro")->required();
  verb.add_option("--html", options->html, "Write the page as HTML to this file");
  verb.add_option("--markdown", options->markdown, "Write it as Markdown to this file; without either: to standard output");
  return [options] {
    for (const std::string& path : {options->html, options->markdown}) {
      if (!path.empty()) check_output(path);
    }
    const Matrix matrix = collect_matrix(options->results);
    if (matrix.verdicts() == 0) {
      warn("assay: the result files hold no verdicts on an implementation\n");
      return ExitCode::nothing_selected;
    }
    if (!options->html.empty()) write_output(options->html, matrix_html(matrix));
    if (!options->markdown.empty()) write_output(options->markdown, matrix_markdown(matrix));
    if (options->html.empty() && options->markdown.empty()) say("{}", matrix_markdown(matrix));
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
