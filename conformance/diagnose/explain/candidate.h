#pragma once
// A cause that the search tries: the same call with one thing changed, as outputs.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "conformance/diagnose/explain/failure.h"
#include "conformance/diagnose/other_calls/other_call.h"
#include "conformance/diagnose/other_calls/product_ways.h"
#include "conformance/diagnose/other_calls/quantize_rules.h"

namespace assay::conformance::explaining {

using Words = std::vector<std::optional<std::uint64_t>>;
using Outputs = std::map<std::string, Tensor>;

struct Candidate {
  std::string text;  // "with both scales multiplied first"
  int cost = 0;      // of two that explain as much the lower is named first
  // Some elements of the product, to reject at little cost; empty: the whole is as cheap.
  std::function<Words(std::span<const std::int64_t> elements)> some = {};
  // All outputs, given as expected. False: nothing is changed, or the call cannot be made.
  std::function<bool(Outputs& outputs)> all = {};
  bool is_fill = false;     // one value for every word: the poison, or 0
  bool has_regions = true;  // it may hold in a part of an output alone

  // What it can be combined with another by; one at most is set (combined.cc).
  bool is_transform = false;  // `all` changes the outputs that it is given, whatever they are
  std::shared_ptr<const diagnosis::NamedVariant> way = nullptr;
  const diagnosis::NamedRules* rules = nullptr;
  std::shared_ptr<const diagnosis::OtherCall> call = nullptr;
  bool is_option = false;  // `call` has another option
};

// Receives candidates one after another.
using Propose = std::function<void(Candidate)>;

// Whether the skip flag of the call says that nothing is written.
bool is_skipped(const Request& request);

// Families, from plausible to far-fetched; each in the file of its name.
void propose_calls(const Failure& failure, const Propose& propose);  // candidate_calls.cc: options, inputs, replays
void propose_rules(const Failure& failure, const Propose& propose);  // candidate_rules.cc: quantization, presets
void propose_products(const Failure& failure, const diagnosis::ProductVariant& right,
                      const Propose& propose);                               // candidate_products.cc: plans, units, reads
void propose_quantized(const Failure& failure, const Propose& propose);      // quantized_places.cc: scales of other blocks
void propose_input_places(const Failure& failure, const Propose& propose);   // input_places.cc: scales of dequantization
void propose_output_places(const Failure& failure, const Propose& propose);  // output_places.cc: written elsewhere, or not

void propose_dbias(const Failure& failure, const Propose& propose);          // dbias_ways.cc: orders of sums of a bias gradient
void propose_small_ops(const Failure& failure, const Propose& propose);      // small_ops.cc: offsets, tokens, dequantization
void propose_scale_layouts(const Failure& failure, const Propose& propose);  // scale_layouts.cc: scales in another layout

// Both causes at once; nothing where they cannot be combined. `right` is null where there is no product.
std::optional<Candidate> combined(const Failure& failure, const diagnosis::ProductVariant* right, const Candidate& first,
                                  const Candidate& second);  // combined.cc

// Writes every word of the product that the variant predicts; the others stay. False: it is too large.
bool write_product(const diagnosis::ProductVariant& variant, const FailedOutput& output, Tensor& tensor);
// Outputs of op quantize by these rules. False: none of them follows rules.
bool write_by_rules(const Failure& failure, const diagnosis::QuantizeRules& rules, Outputs& outputs);

// Ways to compute a product beyond those of the hints.
using ProductWays = std::vector<diagnosis::NamedVariant>;
ProductWays scale_places(const diagnosis::ProductVariant& right);    // product_places.cc: scales of other blocks, rows, groups
ProductWays operand_places(const diagnosis::ProductVariant& right);  // product_places.cc: elements of other places
ProductWays further_plans(const diagnosis::ProductVariant& right);   // product_plans.cc: slices and their order

}  // namespace assay::conformance::explaining
