#pragma once
// The reference's answer to a request: which outputs there are, and their bytes.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/ops/request.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

enum class Layer { fast, scalar };

struct OutputSpec {
  std::string name;
  Format type;
  std::vector<std::int64_t> shape;  // as a fixture stores it
  bool rows_follow_splits = false;  // rows beyond the sum of the splits are not written
};

// Ops that the reference answers, in a fixed order.
std::vector<std::string_view> known_ops();

// Every output that the op can give for these inputs. Of the request's own `out` only the names matter: a requested dbias is one.
// Errors: as `answer`.
std::vector<OutputSpec> outputs_of(const Request& request);

// Writes the requested outputs and nothing else: what the op leaves untouched keeps its bytes.
// Errors: InvalidArgument for a request that makes no sense, NotSupported for one that is unknown here (an attribute that
// no recipe reads, a missing plan, ...). Nothing is written then.
void answer(const Request& request, Layer layer);

// What the reference states about the request: the row of the tensor-core table and the accumulation plan that it follows,
// empty where the op has none.
struct Numerics {
  std::string unit;
  std::string plan;
};
Numerics numerics_of(const Request& request);

// The output whose bits the accumulation plan decides: d of grouped_gemm, y, dx or dw of the linear steps. Empty for other ops.
std::string product_output(const std::string& op);

// For an op with a product: an interval for each element of that output, valid for every order of summation
// (error_bound.h), in the arithmetic of `unit`, a row of the tensor-core table, or if that is empty in any that may serve
// (any_order.h). Errors: as `answer`; InvalidArgument for a unit that is none or does not take these operands.
std::vector<CertifiedBound> bounds_of(const Request& request, const std::string& unit = "");

// How many bytes of each requested output are written, for ops that write a contiguous part from the start; nothing for others.
std::optional<std::map<std::string, std::int64_t>> written_prefixes(const Request& request);

// Which bytes of each requested output the op writes (1) and which it leaves alone (0).
std::map<std::string, std::vector<std::uint8_t>> written_bytes(const Request& request);

}  // namespace assay::conformance
