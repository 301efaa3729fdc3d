#pragma once
// The library's choice of an algorithm. Internal to this folder.

#include <vector>

#include "device/cublaslt/product.h"

namespace assay::device::cublaslt {

// Up to `max_count` candidates, best first. Errors: NotSupported where there is none.
std::vector<CublasLtAlgorithm> ask_heuristic(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call,
                                             const CublasLtSettings& settings, const Product& product, int max_count);

// The heuristic's first candidate, cached for calls that look the same to the heuristic.
CublasLtAlgorithm chosen_algorithm(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call,
                                   const CublasLtSettings& settings, CublasLtRoute route, const Product& product);

}  // namespace assay::device::cublaslt
