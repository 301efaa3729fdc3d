#pragma once
// The promises of backend `device`: those that the tensors of a call kept when the backend last saw their contents.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "conformance/ops/request.h"

namespace assay::conformance {

struct PromiseOptions {
  std::int64_t rows_multiple = 1;  // of every group's rows; 1: none
  bool pow2_scales = false;        // NT of FP8 blocks: scales are powers of two
  bool any() const { return rows_multiple != 1 || pow2_scales; }
};

class Promises {
 public:
  // Copies bytes of a tensor to the host.
  using Read = std::function<void(void* to, const void* from, std::size_t bytes)>;
  Promises(const PromiseOptions& options, Read read) : options_(options), read_(std::move(read)) {}

  bool any() const { return options_.any(); }
  // Reads splits and scales: a caller of the library need not, but here they decide. A call without them changes nothing.
  void look(const Request& request);
  // Those of `options` that the tensors of the request kept.
  PromiseOptions kept(const Request& request) const;

 private:
  using ScaleAddresses = std::pair<const void*, const void*>;  // of dy and x

  template <class T>
  std::vector<T> values(const TensorView& tensor) const;

  PromiseOptions options_;
  Read read_;
  std::set<const void*> splits_;  // addresses of those that keep the promise
  std::set<ScaleAddresses> scales_;
};

}  // namespace assay::conformance
