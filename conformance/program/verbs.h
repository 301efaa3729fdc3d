#pragma once
// The verbs of the program. Each adds its options to a CLI11 sub-command and returns what to do when it is chosen.

#include <functional>

#include "conformance/program/cli.h"
#include "conformance/report/exit_code.h"

namespace assay::conformance {

using Action = std::function<ExitCode()>;

Action add_run(CLI::App& verb);
Action add_verify(CLI::App& verb);
Action add_compute(CLI::App& verb);
Action add_list(CLI::App& verb);
Action add_repro(CLI::App& verb);
Action add_scale_map(CLI::App& verb);
Action add_trace(CLI::App& verb);
Action add_emit(CLI::App& verb);
Action add_explain(CLI::App& verb);
Action add_shrink(CLI::App& verb);
Action add_matrix(CLI::App& verb);
Action add_report(CLI::App& verb);
Action add_merge(CLI::App& verb);
Action add_predict(CLI::App& verb);
Action add_selftest(CLI::App& verb);
Action add_doctor(CLI::App& verb);
// golden build | check
Action add_golden_build(CLI::App& verb);
Action add_golden_check(CLI::App& verb);

}  // namespace assay::conformance
