#pragma once
// One request in the vocabulary of the fixtures, from any source: a fixture's case, a generated case, or a call through
// the backend interface. The reference answers requests; see answer.h.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/backend.h"
#include "golden/io/fixture.h"
#include "reference/types/format.h"

namespace assay::conformance {

// A tensor in memory of the caller: an input is read, an output is written. `data` is null when there are no elements.
template <class Address>
struct View {
  Format type = Format::f32;
  std::vector<std::int64_t> shape;  // elements as stored: e2m1 counts bytes
  Address data = nullptr;
  std::int64_t bytes = 0;

  std::int64_t elements() const;
};
using TensorView = View<const void*>;
using OutputView = View<void*>;

class Request {
 public:
  explicit Request(std::string op) : op_(std::move(op)) {}

  // Views of a case's own memory: the case must outlive the request.
  static Request of(Case& with);
  // The same for questions: its outputs are named and have no memory, so that it cannot be answered.
  static Request read_only(const Case& with);
  // Views of the caller's memory, which is not read. Errors (InvalidArgument): what a call shows to be wrong by itself, without its op:
  // backend.h, part 2.
  static Request of(const assay_call& call);

  const std::string& op() const { return op_; }
  std::map<std::string, Attribute> attributes;
  std::map<std::string, TensorView> in;
  std::map<std::string, OutputView> out;

  // Attribute values. Errors name the attribute, its value and what was expected. Reading marks an attribute as known.
  std::int64_t integer(const std::string& name) const;
  std::int64_t integer_or(const std::string& name, std::int64_t absent) const;
  bool flag(const std::string& name, bool absent = false) const;  // 0 or 1
  double real_or(const std::string& name, double absent) const;   // an integer is accepted
  std::string text(const std::string& name) const;
  std::string text_or(const std::string& name, std::string_view absent) const;
  Format format(const std::string& name) const;
  Format format_or(const std::string& name, Format absent) const;

  // Input tensors. Reading marks a tensor as known. `find_input` gives null where absent.
  const TensorView& input(const std::string& name) const;
  const TensorView* find_input(const std::string& name) const;
  // The same with its type checked, and its number of elements when `elements` >= 0.
  const TensorView& input(const std::string& name, Format type, std::int64_t elements = -1) const;
  const TensorView* find_input(const std::string& name, Format type, std::int64_t elements = -1) const;
  std::vector<std::int64_t> splits() const;  // i64 or i32

  // Address of an output: null when it is not requested. Checks type and number of elements.
  void* output(const std::string& name, Format type, std::int64_t elements) const;
  bool wants(const std::string& name) const { return out.count(name) != 0; }

  // An attribute or input that the op does not know might change the result, so it is refused: NotSupported, naming it.
  void refuse_unknown() const;
  // Names of attributes and inputs that were read so far, present or not.
  const std::set<std::string>& asked_for() const { return known_; }

 private:
  const Attribute* find(const std::string& name) const;

  std::string op_;
  mutable std::set<std::string> known_;
};

// "[33,272] bf16"
std::string describe(const TensorView& tensor);
std::string describe(const OutputView& tensor);

}  // namespace assay::conformance
