#pragma once
// The worker's side: a process that has the backend loaded and makes the calls that the judge asks for.

#include <optional>

namespace assay::conformance::worker {

// Where this process was started as a worker, serves until the judge is gone, and gives the exit code; nothing otherwise. To be
// called first of all in main(). Says that the program can be started as a worker (offer_this_program) besides.
std::optional<int> serve_as_worker(int argc, char** argv);

}  // namespace assay::conformance::worker
