#include "conformance/generate/work_limit.h"

#include "reference/types/error.h"

namespace assay::conformance {
namespace {

thread_local std::int64_t work_counted = 0, most_work = INT64_MAX;

}  // namespace

WorkLimit::WorkLimit(std::int64_t most) {
  work_counted = 0;
  most_work = most;
}

WorkLimit::~WorkLimit() { most_work = INT64_MAX; }

std::int64_t WorkLimit::counted() const { return work_counted; }

void inputs::count_work(std::int64_t elements) {
  if (__builtin_add_overflow(work_counted, elements, &work_counted)) work_counted = INT64_MAX;
  require(work_counted <= most_work, "the size of the case", "at least " + show(work_counted) + " elements",
          "at most " + show(most_work) + " for a case of this use");
}

}  // namespace assay::conformance
