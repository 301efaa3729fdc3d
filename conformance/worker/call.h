#pragma once
// Serializes an assay_call.

#include <deque>
#include <string>
#include <vector>

#include "conformance/backends/call_layout.h"
#include "conformance/worker/wire.h"

namespace assay::conformance::worker {

void put_call(Writer& writer, const assay_call& call);

// A call with everything it points to, except the contents of tensors; elements of its arrays have the sizes of the backend.
class OwnedCall {
 public:
  // Errors: Malformed.
  OwnedCall(Reader& reader, const ArraySizes& sizes);
  OwnedCall(const OwnedCall&) = delete;
  OwnedCall& operator=(const OwnedCall&) = delete;
  const assay_call& get() const { return call_; }

 private:
  const char* text(Reader& reader);
  std::vector<assay_tensor> tensors(Reader& reader, std::int32_t count);

  std::deque<std::string> texts_;
  std::vector<std::uint64_t> parameters_, inputs_, outputs_;
  assay_call call_{};
};

}  // namespace assay::conformance::worker
