#pragma once
// The worker's side: a process that has the backend loaded and makes the calls that the judge asks for.

#include <optional>
#include <string>

#include "conformance/backend.h"

namespace assay::conformance::worker {

// Where this process was started as a worker, serves until the judge is gone, and gives the exit code; nothing otherwise. To be
// called first of all in main(). Says that the program can be started as a worker (offer_this_program) besides.
std::optional<int> serve_as_worker(int argc, char** argv);

// For a worker that is another program than `assay`: gives the table of a backend that is no library, or says in `refusal` why it
// cannot.
using LoadBackend = const assay_backend* (*)(const std::string& name, std::string& refusal);
void load_backends_with(LoadBackend load);
LoadBackend backend_loader();  // null: none

}  // namespace assay::conformance::worker
