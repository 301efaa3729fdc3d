#pragma once
// The expected result of a case, and the comparison with it.

#include <map>
#include <string>
#include <vector>

#include "conformance/backend.h"
#include "conformance/judge/compare/output_digest.h"
#include "conformance/judge/judge.h"
#include "conformance/judge/predictions.h"
#include "reference/gemm/error_bound.h"

namespace assay::conformance {

using Outputs = std::map<std::string, std::vector<std::byte>>;

// The same call once more, its outputs filled with another poison.
struct OtherPoison {
  const Outputs* outputs = nullptr;  // null: every element was as expected
  std::uint8_t poison = 0;
};

class Expectation {
 public:
  // `stated`: the numerics that the backend states. The reference follows its accumulation plan and its sign of zero,
  // also for fixtures: a product that a fixture recorded is expected only under the plan that the
  // fixture names, or else its architecture's. Without a plan a product is bounded, in the arithmetic of the stated unit if
  // there is one. `step`, `linked`: of PredictedCall. `problem` must outlive this. Errors: as judge(); where there is a prediction, or with
  // options.answers_later, those of the answer come once it is needed.
  Expectation(const Case& problem, const Case* fixture, const std::vector<OutputSpec>& specs, const assay_numerics& stated,
              const JudgeOptions& options, std::int64_t step = 0, std::string linked = "");

  CheckBasis basis() const { return basis_; }
  // Adds the elements that will be compared, and those that cannot be, to the judgement's counts.
  void count_elements(Judgement& judgement) const;
  std::int64_t elements() const { return exact_ + bounded_; }
  // The backend whose answer is expected; empty where it is the reference's or a fixture's.
  const std::string& expected_by() const { return expected_by_; }
  // Not empty when the statement cannot be followed: a plan or a unit that is not in the tables.
  const std::string& statement_fault() const { return statement_fault_; }

  // How the expected outputs were had; known once outputs were compared.
  Predicted predicted() const { return predicted_; }
  // It is to be predicted, and is not: JudgeOptions::predictions asks not to judge it.
  bool is_left_out() const;
  // What a prediction is found by, and what it says. Not of bounds.
  PredictedCall predicted_call() const;
  PredictedOutputs predicted_outputs() const;
  // All bytes of the outputs, over memory that was filled with `poison`. Not of bounds.
  Outputs expected_outputs(std::uint8_t poison) const;

  // Whether all is right: differences() is empty.
  bool holds(const Outputs& outputs, std::uint8_t poison) const;

  // Earlier calls on the same memory, the latest last: a wrong value may be one of theirs. They must outlive this.
  void after(std::vector<const Case*> earlier) { earlier_ = std::move(earlier); }

  // The outputs of a call whose outputs were filled with `poison` first. Empty when all is right; else a block of lines for
  // each output that is wrong (compare.h): scales before the codes that depend on them.
  // `details`, if given, receives one line for each wrong tile that could be explained;
  // `findings` one entry for each output that is wrong. `other`: what the call gave over another poison, if it was made.
  std::string differences(const Outputs& outputs, std::uint8_t poison, std::vector<std::string>* details = nullptr,
                          std::vector<Finding>* findings = nullptr, const OtherPoison* other = nullptr) const;

  // The call that gave these outputs, to be explained later.
  std::shared_ptr<const KeptCall> kept(const Outputs& outputs, std::uint8_t poison, const std::string& when,
                                       const Judgement& judgement) const;

  // Elements of a bounded product that two runs wrote differently: they depend on more than the inputs. Empty if none; else lines as above.
  std::string disagreement(const std::map<std::string, std::vector<std::byte>>& first,
                           const std::map<std::string, std::vector<std::byte>>& second) const;

 private:
  struct Output {
    OutputSpec spec;
    std::vector<std::byte> want;
    std::int64_t prefix = -1;           // bytes written from the first on; -1: `written` says
    std::vector<std::uint8_t> written;  // by byte: 1 where the op writes
    bool zero_sign_free = false;

    std::vector<bool> free_rows;  // rows of no group below the prefix, if there are any: they may hold anything
    std::size_t row_bytes = 1;

    bool is_written(std::size_t byte) const { return prefix < 0 ? written[byte] != 0 : static_cast<std::int64_t>(byte) < prefix; }
    bool is_judged(std::size_t byte) const {
      return is_written(byte) && (free_rows.empty() || byte / row_bytes >= free_rows.size() || !free_rows[byte / row_bytes]);
    }
    // True if every written byte is as expected and all others still hold the poison. What only a weaker rule accepts, such as
    // another NaN, gives false: a full comparison then decides.
    bool is_exact(const std::vector<std::byte>& got, std::uint8_t poison) const;
    Tensor wanted() const { return {spec.type, spec.shape, want}; }
    Tensor filled(std::uint8_t poison) const;
    std::vector<std::uint8_t> mask() const;
  };
  enum class ZeroSign { said, stated, free };  // what decides: the case, the backend; free: either is right
  ZeroSign zero_sign_of(const assay_numerics& stated);
  bool choose_basis(const Case* fixture, const assay_numerics& stated, const JudgeOptions& options);
  // Fills `outputs_`. `stated`: of a fixture's case.
  void answer_all(const Case* fixture, bool follows_fixture, const assay_numerics* stated, const JudgeOptions& options) const;
  void answer_later() const;
  void answer_for(const Request& request, bool follows_fixture, const JudgeOptions& options,
                  std::map<std::string, std::vector<std::byte>>& want) const;
  bool is_zero_sign_free(const OutputSpec& spec) const;
  std::vector<bool> free_rows() const;
  bool find_prediction(const JudgeOptions& options);
  bool are_predicted(const Outputs& outputs, std::uint8_t poison) const;
  bool needs_comparison(const Outputs& outputs, std::uint8_t poison) const;
  DigestRules digest_rules(const OutputSpec& spec, std::size_t bytes) const;
  void follow_zero_sign(const assay_numerics& stated, const JudgeOptions& options, const OutputSpec& spec,
                        std::vector<std::byte>& recorded) const;
  void count(const Output& output, std::size_t bytes) const;
  std::string shown_unit(const Output& output, const Tensor& got, std::vector<Finding>* findings) const;
  bool is_bounded(const Output& output) const { return basis_ == CheckBasis::bound && output.spec.name == product_; }
  void expect_from(Backend& backend, std::int64_t timeout_ms, std::map<std::string, std::vector<std::byte>>& want) const;

  const Case& problem_;
  const std::vector<OutputSpec> specs_;
  const Layer layer_;
  const std::int64_t step_;
  const std::string linked_;
  std::map<std::string, Attribute> attributes_;  // the problem's, and what the statement adds
  std::string product_;                          // the output that the accumulation plan decides, if the op has one
  ZeroSign zero_sign_ = ZeroSign::said;
  CheckBasis basis_ = CheckBasis::bits;
  // The answer, which may come late: where a prediction says that all is right it is not needed.
  mutable bool is_answered_ = false;
  mutable std::vector<Output> outputs_;
  mutable std::vector<CertifiedBound> bounds_;                    // basis bound: one for each element of the product
  mutable std::int64_t exact_ = 0, bounded_ = 0, unbounded_ = 0;  // elements
  mutable std::string expected_by_;
  mutable Predicted predicted_ = Predicted::not_asked;
  std::shared_ptr<const CasePredictions> predictions_;  // null: the run has none
  const PredictedOutputs* prediction_ = nullptr;        // of this call, if there is one
  std::string statement_fault_;
  std::vector<const Case*> earlier_;
  bool explains_;
  std::string probed_unit_;  // the unit that is stated, if the inputs show which it is
};

}  // namespace assay::conformance
