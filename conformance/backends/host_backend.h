#pragma once
// Common parts of backends on the host: memory, streams that run at once, capture as a list of calls, replay as making
// them again. A host backend is a name and an `answer`; see reference_backend.cc and null_backend.cc.

#include <string>

#include "conformance/backend.h"

namespace assay::conformance {

struct HostBackend {
  const char* name;
  const char* description;
  // Checks and keeps the options. Throws InvalidArgument.
  void (*configure)(const std::string& options, int& mode);
  // Carries the call out, or with `dry` only checks whether it could. Throws InvalidArgument and NotSupported.
  void (*perform)(const assay_call& call, int mode, bool dry);
  // Fills in what is stated about the call.
  void (*state)(const assay_call& call, assay_numerics& numerics);
};

// The function table of `host`, which must be a constant with static storage: host_table<kMine>().
template <const HostBackend& host>
const assay_backend* host_table();

}  // namespace assay::conformance

#include "conformance/backends/host_backend_impl.h"
