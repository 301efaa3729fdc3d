#pragma once
// The kernels of one program of mutants: which cases they compute, and how.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"
#include "golden/io/fixture.h"

namespace assay::mutants {

extern const char* const kRoom;     // such as "emulated_gemm"
extern const char* const kLines[];  // cases beside those of the catalogue; ends with null

// Whether the kernels here compute the line. Lines with a content fault count too.
bool takes(const conformance::CaseLine& line);

// Bytes past a multiple of 16 at which the tensor begins in the second call, where the op takes it so.
std::size_t begins_past(const std::string& name, const Tensor& tensor);

// Computes the outputs of the case, which are there and poisoned. The status word of the call. Errors: those of the library.
std::uint32_t run(Case& problem);

}  // namespace assay::mutants
