#pragma once
// How much a line may make. A short line can state any size: `alignment=27066557392404` gives each group that many rows.

#include <cstdint>

namespace assay::conformance {

// While one of these lives, generate() on this thread refuses (InvalidArgument) a line that needs more than `most` elements in
// all, before it makes them. Without one there is no limit but that of each tensor. One at a time.
class WorkLimit {
 public:
  explicit WorkLimit(std::int64_t most);
  ~WorkLimit();
  WorkLimit(const WorkLimit&) = delete;
  WorkLimit& operator=(const WorkLimit&) = delete;
  std::int64_t counted() const;
};

namespace inputs {

// Called before `elements` are made, or as many steps are taken: for each tensor, and for what stands beside them.
void count_work(std::int64_t elements);

}  // namespace inputs
}  // namespace assay::conformance
