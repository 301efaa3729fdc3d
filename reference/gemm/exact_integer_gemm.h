#pragma once
// Grouped GEMM whose result is the same on all hardware: order-free bits (spec exactness-1.2).
//
// Where every product is a multiple of one unit u, and the magnitudes of the products of one element of D sum to at most
// 2^13 u, every partial sum in any order is an integer of at most 2^13 times u. Thirteen fraction bits below the leading one
// hold it, so no fused step that leaves its sum in FP22 or f32, and no addition in f32, can lose a bit:
//
//   e_max - 13 <= log2(u)      the grid of a step is no coarser than u: e_max is at most the larger of the largest
//                              encoded exponent of a product (checked here) and log2 of a partial sum (at most 13 + log2 u)
//   |sum| <= 2^13 u            a sum fits 13 fraction bits
//
// That covers every unit of the tensor-core table except those that accumulate in f16, and every merge of slices in f32.
//
// Then D = RN_D(alpha * sum + beta * C) with nothing rounded before RN_D, and the bias added as grouped_gemm.h says.

#include <cstdint>
#include <span>

#include "reference/gemm/grouped_gemm.h"

namespace assay {

// product [m,n] = rows [m,depth] . columns [n,depth]^T over the integers, row-major. Errors: sizes that do not fit the
// spans; values so large that a sum could leave int64.
void exact_integer_gemm(std::int64_t m, std::int64_t n, std::int64_t depth, std::span<const std::int64_t> rows,
                        std::span<const std::int64_t> columns, std::span<std::int64_t> product);

// The order-free result of `problem`, whose plan is not used but must exist. Errors: those of grouped_gemm(); and
// InvalidArgument, before anything is written, where the data are not order-free in the sense above: an element or scale
// that is not finite, magnitudes that sum to more than 2^13 units, an exponent out of range, or alpha, beta, C or bias that
// give a value which f32 does not hold exactly.
void exact_integer_gemm(const GroupedGemmProblem& problem, void* d);

}  // namespace assay
