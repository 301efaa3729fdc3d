#pragma once
// The backends that are part of the program.

#include <string>
#include <vector>

#include "conformance/backend.h"

namespace assay::conformance {

// The CPU reference behind the interface. Options: "layer=fast" (default) or "layer=scalar".
const assay_backend* reference_backend();

// Claims success for everything and writes nothing. Every case with a byte to write must fail on it.
const assay_backend* null_backend();

// Former names of backends still work, since recorded commands contain them: "bringup" is "emulated".
std::string current_backend_name(const std::string& name);

// In builds that have CUDA (ASSAY_HAS_DEVICE). Options of all three: "device=N", "pool=off".
//
// The CUDA implementation. Options: "gemm=auto", "gemm=assay", "gemm=cublaslt" or "gemm=emulated"; "assume_plan=13.10".
const assay_backend* device_backend();
// Grouped GEMM in integers on CUDA cores, with any known architecture's arithmetic, and nothing else.
const assay_backend* emulated_backend();
// The vendor library's grouped GEMM as it is. Options: "assume_plan=13.10"; "unaligned=on": calls whose rows are
// not multiples of 16 bytes are still made.
const assay_backend* cublaslt_backend();

// A description of the cuBLASLt that would be used: its file and version, then what it lacks on this machine's device (or on
// Hopper and Blackwell, where there is none) and why. Empty in builds without CUDA.
std::vector<std::string> cublaslt_findings();

}  // namespace assay::conformance
