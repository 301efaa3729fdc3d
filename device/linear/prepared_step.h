#pragma once
// A step in two halves: first all checks, then all launches. A call of several steps prepares all of them before it launches
// the first.

#include <memory>

#include "device/linear/linear_steps.h"

namespace assay::device {

class PreparedStep {
 public:
  PreparedStep();  // nothing to do
  // `Call`: a call of linear_steps.h, which must outlive this object, as must the objects of its path. Errors: the step's.
  template <class Call>
  PreparedStep(const Call& call, const LinearKernels& kernels);
  PreparedStep(PreparedStep&&) noexcept;
  PreparedStep& operator=(PreparedStep&&) noexcept;
  ~PreparedStep();

  // May be called once. Only CUDA or the library can refuse it.
  LinearReport launch(Stream stream);
  // The product that launch() will run; `ran` is false where there is none.
  LinearReport::Product product() const;

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace assay::device
