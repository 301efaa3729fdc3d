#include "conformance/backends/device/token_call.h"

#include <string>
#include <vector>

#include "conformance/backends/device/call_parts.h"
#include "conformance/ops/token_request.h"
#include "device/layout/token_permutation.h"

namespace assay::conformance {
namespace {

device::TokenMap map_of(const RowMap& map) { return {map.rows.data(), map.tokens, map.topk, map.permuted_rows}; }

}  // namespace

DeviceCall permute_call(const Request& request) {
  const PermuteRequest parsed = permute_request_of(request);
  refuse_other_outputs(request, {"permuted", "permuted_scale_inv"});
  struct Move {
    std::int64_t row_bytes;
    const void* from;
    void* to;
  };
  std::vector<Move> moves;
  const auto add = [&](const TensorView* from, const std::string& to) {
    if (from == nullptr) return;
    const std::int64_t columns = from->shape[1];
    void* data = request.output(to, from->type, parsed.map.permuted_rows * columns);
    if (data != nullptr) moves.push_back({columns * bits_of(from->type) / 8, from->data, data});
  };
  add(parsed.x, "permuted");
  add(parsed.scales, "permuted_scale_inv");
  Parts parts;
  const std::int64_t own = parts.add(device::kTokenMapWorkspaceBytes);
  return {parts.bytes(), [=, map = map_of(parsed.map)](device::Stream stream, void* workspace, std::uint32_t* status) {
            // Without an output, and of one without elements, the map is checked all the same.
            if (moves.empty()) device::permute_rows(map, 0, nullptr, nullptr, part<void>(workspace, own), status, stream);
            for (const Move& move : moves)
              device::permute_rows(map, move.row_bytes, move.from, move.to, part<void>(workspace, own), status, stream);
          }};
}

DeviceCall unpermute_call(const Request& request) {
  const UnpermuteProblem parsed = unpermute_problem_of(request);
  refuse_other_outputs(request, {"x"});
  device::UnpermuteCall call;
  call.map = map_of(parsed.map);
  call.type = parsed.type;
  call.columns = parsed.columns;
  call.permuted = parsed.permuted;
  call.weights = parsed.weights;
  call.sums = parsed.sums;
  call.x = request.output("x", parsed.type, parsed.map.tokens * parsed.columns);
  Parts parts;
  const std::int64_t own = parts.add(device::kTokenMapWorkspaceBytes);
  return {parts.bytes(), [=](device::Stream stream, void* workspace, std::uint32_t* status) {
            device::UnpermuteCall ready = call;
            if (call.x == nullptr) ready.columns = 0;  // the map is checked all the same
            ready.workspace = part<void>(workspace, own);
            ready.status = status;
            device::unpermute(ready, stream);
          }};
}

}  // namespace assay::conformance
