// Claims success for everything and writes nothing: the suite must never count it as a pass.

#include "conformance/backends/built_in.h"
#include "conformance/backends/host_backend.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

void configure_null(const std::string& options, int&) {
  if (!options.empty())
    throw InvalidArgument("--backend-options", "'" + options + "'", "nothing: the null backend has no options");
}
void perform_null(const assay_call&, int, bool) {}
void state_null(const assay_call&, assay_numerics& numerics) {
  numerics.keeps_zero_sign = -1;
  numerics.deterministic = -1;
  numerics.batch_invariant = -1;
}

constexpr HostBackend kNull{"null", "claims success and writes nothing: every case with an element to write must fail",
                            configure_null, perform_null, state_null};

}  // namespace

const assay_backend* null_backend() { return host_table<kNull>(); }

}  // namespace assay::conformance
