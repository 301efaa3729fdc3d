#pragma once
// The verbs of the program. Each adds its options to a CLI11 sub-command and returns what to do when it is chosen.

#include <functional>

#include "conformance/program/cli.h"
#include "conformance/report/exit_code.h"

namespace assay::conformance {

using Action = std::function<ExitCode()>;

Action add_run(cli::App& verb);
Action add_verify(cli::App& verb);
Action add_compute(cli::App& verb);
Action add_list(cli::App& verb);
Action add_repro(cli::App& verb);
Action add_scale_map(cli::App& verb);
Action add_trace(cli::App& verb);
Action add_emit(cli::App& verb);
Action add_explain(cli::App& verb);
Action add_shrink(cli::App& verb);
Action add_matrix(cli::App& verb);
Action add_report(cli::App& verb);
Action add_merge(cli::App& verb);
Action add_predict(cli::App& verb);
Action add_selftest(cli::App& verb);
Action add_doctor(cli::App& verb);
// golden build | check
Action add_golden_build(cli::App& verb);
Action add_golden_check(cli::App& verb);

}  // namespace assay::conformance
