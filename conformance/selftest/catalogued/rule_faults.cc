// Catalogued faults of the arithmetic of scales and codes. Each is a scale rule in other words: `quantize` is carried out by such a
// rule in its rowwise direction, `quantize_by_rule` by its own rule with a part exchanged.

#include <cmath>
#include <cstdio>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/fault_parts.h"
#include "reference/layout/scale_shape.h"
#include "reference/layout/swizzle.h"
#include "reference/rules/scale_rule.h"

namespace assay::conformance {
namespace {

// A rule as a row. `%a` in a text is the amax under the epsilon of the call, `%e` that epsilon, `%f` pow2_floor where the call asks for
// powers of two.
std::string row_of(const Request& request, std::string rule, bool mx) {
  char eps[64];
  std::snprintf(eps, sizeof eps, "%a", static_cast<double>(static_cast<float>(request.real_or("eps", 0))));
  const std::pair<std::string, std::string> words[] = {
      {"%a", std::string("max(amax, ") + eps + ")"}, {"%e", eps}, {"%f", request.flag("pow2") ? "pow2_floor" : ""}};
  for (const auto& [from, to] : words) {
    for (std::size_t at = 0; (at = rule.find(from, at)) != std::string::npos; at += to.size()) rule.replace(at, from.size(), to);
  }
  return std::string("name=a.mutant blocks=") + (mx ? "1x32" : "1x128") + " outputs=e4m3,e5m2" + (mx ? " scale_type=e8m0" : "") +
         " rule=\"" + rule + "\" source=\"a mutant\"";
}

// Where scale (row, block) of a group lies in rowwise_scale_inv, counted from the group's first.
std::int64_t place(const Request& request, const ScaleShape& shape, bool mx, std::int64_t row, std::int64_t block) {
  if (!mx) return block * shape.columns + row;
  return request.text_or("scale_layout", "compact") == "swizzled" ? swizzled_index(row, block, shape.columns / 4)
                                                                  : row * shape.columns + block;
}

// Carries `quantize` out, and its rowwise direction again by the rule.
void by_rule(Request& request, const std::string& rule) {
  answer(request, Layer::fast);
  if (request.in.count("noop") != 0) return;
  const bool mx = request.text("recipe") == "mxfp8";
  NewCall other("quantize_by_rule");
  other.request.attributes = {{"rule", row_of(request, rule, mx)},
                              {"block", std::string(mx ? "1x32" : "1x128")},
                              {"storage", std::string("k_major")},
                              {"otype", request.text_or("otype", "e4m3")}};
  other.request.in["x"] = request.in.at("x");
  const auto& made = other.carry_out();
  const std::int64_t rows = request.in.at("x").shape[0], columns = request.in.at("x").shape[1],
                     blocks = (columns + (mx ? 31 : 127)) / (mx ? 32 : 128);
  const std::vector<std::int64_t> splits = request.in.count("splits") != 0 ? request.splits() : std::vector<std::int64_t>{rows};
  const std::int64_t size = mx ? 1 : 4;
  std::int64_t first = 0, scales = 0;
  for (const std::int64_t split : splits) {
    const ScaleShape shape = scale_shape(mx ? Recipe::mxfp8 : Recipe::block_1x128, Direction::rowwise, split, columns);
    for (std::int64_t i = 0; i < split; ++i) {
      for (std::int64_t b = 0; b < blocks && has_output("rowwise_scale_inv")(request); ++b)
        std::memcpy(
            static_cast<std::byte*>(request.out.at("rowwise_scale_inv").data) + (scales + place(request, shape, mx, i, b)) * size,
            made.at("scale_inv").data() + ((first + i) * blocks + b) * size, static_cast<std::size_t>(size));
      if (has_output("rowwise_data")(request))
        std::memcpy(static_cast<std::byte*>(request.out.at("rowwise_data").data) + (first + i) * columns,
                    made.at("data").data() + (first + i) * columns, static_cast<std::size_t>(columns));
    }
    first += split;
    scales += shape.elements();
  }
}

bool is_block(const Request& request) {
  return is_op_of("quantize", "recipe", "block_1x128")(request) && request.attributes.count("activation") == 0;
}
bool is_mx(const Request& request) {
  return is_op_of("quantize", "recipe", "mxfp8")(request) && !request.flag("two_dimensional");
}

struct RuleFault {
  const char* name;
  const char* says;
  const char* block;  // the rule of block_1x128, or null
  const char* mx;     // the rule of mxfp8, or null
};
constexpr const char kBlock[] =
    "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x * m";
constexpr const char kMx[] = "scale = pow2_ceil(amax * (1 / output_max)); code = x * (1 / scale)";
constexpr RuleFault kRuleFaults[] = {
    {"pow2_rounded_up", "a scale that must be a power of two is rounded up",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : pow2_ceil(q == inf ? x_max : q); scale = 1 / m; code = x * m",
     nullptr},
    {"pow2_of_inverse", "the inverse of the scale is cut to a power of two, in place of the scale",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : q == inf ? x_max : q; scale = pow2_floor(1 / m); code = x * (1 / "
     "scale)",
     nullptr},
    {"approximate_division", "the scale comes from an approximate reciprocal",
     "q = output_max * rcp_approx_ftz(%a); m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x * "
     "m",
     nullptr},
    {"eps_added", "epsilon is added to amax",
     "a = amax + %e; q = output_max / a; m = a == 0 ? 1 : a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x * m",
     nullptr},
    {"eps_late", "epsilon is a floor of the finished scale, and the codes do not know of it",
     "q = output_max / amax; m = amax == 0 ? 1 : amax == inf ? 1 : %f(q == inf ? x_max : q); scale = max(1 / m, %e / "
     "output_max); code = x * m",
     nullptr},
    {"quotient_for_product", "codes are quotients by the stored scale where the rule multiplies",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x / scale", nullptr},
    {"multiplier_one_ulp_up", "the multiplier of the codes is one ulp too large",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x * (m * "
     "0x1.000002p0)",
     nullptr},
    {"codes_by_way_of_bf16", "codes are rounded twice, by way of bf16",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = bf16(x * m)",
     nullptr},
    {"zero_block_divided", "a block of zeros divides 0 by 0", "m = output_max / %a; scale = 1 / m; code = x * m", nullptr},
    {"nan_at_tiny_scale", "codes are NaN where the square of the scale underflows",
     "q = output_max / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = scale * scale == 0 "
     "? nan : x * m",
     nullptr},
    {"max_224", "224 is taken for the largest value of E4M3, which is 448",
     "q = 224 / %a; m = %a == 0 ? 1 : %a == inf ? 1 : %f(q == inf ? x_max : q); scale = 1 / m; code = x * m",
     "scale = pow2_ceil(amax * (1 / 224)); code = x * (1 / scale)"},
    {"amax_in_bf16", "amax is rounded to bf16 before it becomes a power of two", nullptr,
     "scale = pow2_ceil(bf16(amax) * (1 / output_max)); code = x * (1 / scale)"},
    {"scale_rounded_after_codes", "the scale is rounded to a power of two after the codes were made with another", nullptr,
     "s = amax * (1 / output_max); scale = pow2_ceil(s); code = x * (s == 0 ? 1 : 1 / s)"},
};

// The rule of a quantize_by_rule, as a row.
std::string row_of_rule(const Request& request) {
  const std::string row = request.text_or("rule", "");
  if (!row.empty()) return row;
  const ScaleRule* rule = find_scale_rule(request.text_or("preset", ""));
  return rule == nullptr ? "" : to_text(*rule);
}

// Parts of rules that are exchanged, the first of them that a rule has.
struct Exchange {
  const char* name;
  const char* says;
  std::vector<std::pair<std::string, std::string>> parts;
};
const std::vector<Exchange>& exchanges() {
  static const std::vector<Exchange> all = {
      {"rule.reciprocal_for_division",
       "the scale is a product with a reciprocal where the rule divides, or the other way round",
       {{"* (1 / 448)", "/ 448"}, {"/ 448", "* (1 / 448)"}}},
      {"rule.other_floor",
       "the floor of amax is that of another kernel of the rule",
       {{"1e-10", "1e-4"}, {"1e-4", "1e-10"}, {"1 / 229376", "1e-4"}}},
      {"rule.no_floor",
       "a block of zeros divides 0 by 0: there is no floor",
       {{"max(amax / 448, 1 / 229376)", "amax / 448"}, {"max(amax, 1e-10)", "amax"}, {"max_nan(amax, 1e-4)", "amax"}}},
      {"rule.amax_in_bf16",
       "amax is rounded to bf16 before it becomes a scale",
       {{"amax / output_max", "bf16(amax) / output_max"}, {"amax / 448", "bf16(amax) / 448"}}},
      {"rule.packing_cuts", "packing cuts scales that are no powers of two", {{"max(pow2_ceil(s), 0x1p-126)", "pow2_floor(s)"}}},
      {"rule.scale_rounded_after_codes",
       "the scale is rounded to a power of two after the codes were made with another",
       {{"code = x * (1 / scale)", "code = x * (1 / s)"}}},
      {"rule.mx_ceil_for_floor", "MXFP4 scales are rounded up in place of down", {{"pow2_floor(amax)", "pow2_ceil(amax)"}}},
      {"rule.approximate_silu",
       "the SiLU in front of the quantization is approximate",
       {{"gate * (1 / (1 + cuda_expf(-gate)))", "gate * (0.5 + 0.5 * tanh_approx(gate * 0.5))"}}},
  };
  return all;
}

std::string exchanged(const Request& request, const Exchange& exchange) {
  std::string row = row_of_rule(request);
  for (const auto& [from, to] : exchange.parts) {
    std::size_t at = row.find(from);
    if (at == std::string::npos) continue;
    for (; at != std::string::npos; at = row.find(from, at + to.size())) row.replace(at, from.size(), to);
    return row;
  }
  return "";
}

// A rule has no option for the sign of zero.
bool has_rule(const Request& request) {
  return (is_block(request) || is_mx(request)) && request.attributes.count("zero_sign") == 0;
}

}  // namespace

void add_rule_faults(std::vector<CallFault>& to) {
  for (const RuleFault& fault : kRuleFaults) {
    const When when = [&fault](const Request& request) {
      return (fault.block != nullptr && is_block(request)) || (fault.mx != nullptr && is_mx(request));
    };
    add_fault(to, fault.name, fault.says, when,
              [&fault](Request& request) { by_rule(request, is_mx(request) ? fault.mx : fault.block); });
  }
  to.push_back({"benign.by_rule", "benign", "FP8 blocks of rows are quantized by the scale rule of the same bits", true, has_rule,
                [](Request& request) {
                  has_rule(request) ? by_rule(request, is_mx(request) ? kMx : kBlock) : answer(request, Layer::fast);
                }});
  for (const Exchange& exchange : exchanges()) {
    add_fault(
        to, exchange.name, exchange.says,
        [&exchange](const Request& request) {
          return request.op() == "quantize_by_rule" && !exchanged(request, exchange).empty();
        },
        [&exchange](Request& request) {
          ChangedCall changed(request);
          changed.request.attributes.erase("preset");
          changed.request.attributes["rule"] = exchanged(request, exchange);
          changed.carry_out(request);
        });
  }
  add_fault(
      to, "pow2_ignored", "scales are not cut to powers of two",
      [](const Request& request) { return request.op() == "quantize" || request.op().rfind("linear_", 0) == 0; },
      [](Request& request) {
        ChangedCall changed(request);
        const bool layer = request.op() != "quantize";
        if (request.flag("pow2") || (layer && request.text("recipe") == "block"))
          changed.request.attributes["pow2"] = std::int64_t{0};
        changed.carry_out(request);
      });
}

}  // namespace assay::conformance
