#pragma once
// A failed call as the search for its cause sees it: every output, expected and given, element by element.

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/judge/kept_call.h"
#include "conformance/ops/elements.h"
#include "conformance/ops/output_map.h"
#include "conformance/ops/request.h"

namespace assay::conformance::explaining {

// Where an element lies; `rows` and `columns`: of its group's matrix.
struct Spot {
  std::int64_t element = 0, group = 0, row = 0, column = 0, rows = 0, columns = 0;
};

struct FailedOutput {
  std::string name;
  Tensor got, want;  // want: what the call had to leave, the poison where it had to write nothing
  OutputMap map;
  bool is_product = false;
  bool zero_sign_free = false;
  std::int64_t elements = 0;
  std::vector<bool> free_rows;      // that belong to no group and may hold anything; empty: none
  std::vector<std::int64_t> wrong;  // elements

  bool is_judged(std::int64_t element) const;
  // Whether two words are equal: NaN equals NaN in results, +0 and -0 of a code where the call says so.
  bool same(std::uint64_t a, std::uint64_t b) const;
  Spot spot_of(std::int64_t element) const;
};

class Failure {
 public:
  // `kept` must outlive this. A product without a stated plan is compared under the plan that leaves the fewest words wrong.
  // Errors: those of answer() for an invalid call; InvalidArgument for outputs that are not those of the op.
  explicit Failure(const KeptCall& kept);
  Failure(const Failure&) = delete;
  Failure& operator=(const Failure&) = delete;

  const Request& request() const { return request_; }  // with the plan
  const Case& call() const { return call_; }
  const std::vector<FailedOutput>& outputs() const { return outputs_; }
  const FailedOutput* product() const;
  const std::vector<const Case*>& earlier() const { return earlier_; }
  std::uint8_t poison() const { return poison_; }
  std::int64_t wrong() const;  // words
  std::int64_t words() const;  // that are judged
  const std::string& note() const { return note_; }

  // The outputs of another request of the same shapes, over the poison. Errors: those of answer().
  std::map<std::string, Tensor> answered(const Request& request) const;

 private:
  void choose_plan();
  void compare();

  Case call_;
  Request request_;
  std::vector<const Case*> earlier_;
  std::uint8_t poison_;
  std::vector<FailedOutput> outputs_;
  std::string note_;
};

}  // namespace assay::conformance::explaining
