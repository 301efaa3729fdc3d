// assay shrink LINE: the smallest line that fails in the same way.

#include <fmt/format.h>

#include "conformance/program/backend_options.h"
#include "conformance/program/failed_call.h"
#include "conformance/program/verbs.h"
#include "conformance/report/version.h"
#include "conformance/suites/judge_line.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/shrink.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_error.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

struct ShrinkInterrupted {};

// The judged backend; another one where a case has made it useless.
class LineJudging {
 public:
  explicit LineJudging(const BackendChoice& choice) : choice_(choice) {}
  CaseReport operator()(const CaseLine& line) {
    if (opened_ == nullptr || opened_->is_given_up()) opened_ = choice_.open();
    if (expecting_ == nullptr || expecting_->is_given_up()) expecting_ = choice_.open_expecting();
    return judge_line(line, {*opened_, expecting_.get()}, choice_);
  }

 private:
  const BackendChoice& choice_;
  std::unique_ptr<Backend> opened_, expecting_;
};

}  // namespace

Action add_shrink(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    BackendChoice backend;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("LINE", options->words, "A case line, quoted or not, which the backend fails")->required();
  add_judge_options(verb, options->backend);
  verb.footer(
      "Makes the case smaller, one change at a time: keys at their defaults, fewer groups, fewer rows, smaller sizes. A change "
      "is\n"
      "kept where the smaller line fails in the same way: the first finding is of the same kind (bits, bound, memory, call, ...) "
      "and\n"
      "about the same output. The steps are printed on standard error, the smallest line alone on standard output. Exit code 1, "
      "as the\n"
      "line fails; 0 where the given line passes and nothing is printed but that.");
  return [options] {
    options->backend.explains = false;  // the hints of every step are of no use
    const CaseLine line = parse_case_line(joined(options->words));
    LineJudging judging(options->backend);
    const CaseReport first = judging(line);
    const std::string kind = failure_kind(first.judgement);
    if (kind.empty()) {
      warn("assay shrink: {}: {}: only a line that fails can be made smaller\n", to_text(line), name_of(first.judgement.verdict));
      return first.judgement.verdict == Verdict::passed ? ExitCode::passed : ExitCode::incomplete;
    }
    warn("assay shrink: {}\n  fails by {}\n", to_text(line), kind);
    CaseLine smallest = line;
    try {
      const Shrunk shrunk = shrink(
          line, kind,
          [&](const CaseLine& candidate) {
            if (interrupted()) throw ShrinkInterrupted();
            return failure_kind(judging(candidate).judgement);
          },
          [&](const CaseLine& kept, const std::string& change) {
            smallest = kept;
            warn("  {}: {}\n", change, to_text(kept));
          });
      warn("  {} lines were judged\n", shrunk.judged);
    } catch (const ShrinkInterrupted&) {
      warn("assay shrink: interrupted: the line may not be the smallest\n");
      say("{}\n", to_text(smallest));
      return ExitCode::incomplete;
    }
    say("{}\n", to_text(smallest));
    return ExitCode::failed;
  };
}

}  // namespace assay::conformance
