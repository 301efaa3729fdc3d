#pragma once
// Deferred weight gradients: backward stores the work, backward_dw() does it later (spec grouped-linear-2.4).

#include <cstddef>
#include <deque>
#include <memory>

#include "reference/linear/grouped_linear.h"

namespace assay {

// Work is done in the order in which it was stored, each piece once. Operands, splits and scales are copied, so
// their buffers may be reused before it runs; dw is written, and read when accumulating, only then. Bias gradients are
// not deferred: backward computes them at once, by linear_dbias().
class DeferredWgrad {
 public:
  DeferredWgrad() = default;
  DeferredWgrad(const DeferredWgrad&) = delete;  // a copy would apply the work twice
  DeferredWgrad& operator=(const DeferredWgrad&) = delete;

  // Errors: all those of linear_wgrad(); nothing is stored then.
  void store(const LinearConfig& config, const LinearShape& shape, const LinearWgrad& operands, void* dw);

  std::size_t pending() const { return work_.size(); }

  // Computes the oldest piece. Errors (InvalidArgument): there is none.
  void backward_dw();

 private:
  struct Work;
  std::deque<std::shared_ptr<const Work>> work_;
};

}  // namespace assay
