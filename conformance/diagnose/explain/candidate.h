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
#include "conformance/diagnose/other_calls/product_ways.h"

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
  bool is_fill = false;  // one value for every word: the poison, or 0
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

// Ways to compute a product beyond those of the hints.
using ProductWays = std::vector<diagnosis::NamedVariant>;
ProductWays scale_places(const diagnosis::ProductVariant& right);    // product_places.cc: scales of other blocks, rows, groups
ProductWays operand_places(const diagnosis::ProductVariant& right);  // product_places.cc: elements of other places
ProductWays further_plans(const diagnosis::ProductVariant& right);   // product_plans.cc: slices and their order

}  // namespace assay::conformance::explaining
