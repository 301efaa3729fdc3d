#pragma once
// Internal to the generator: one function an op or family of ops, each in its own file. They fill in attributes and inputs
// of a case whose name and op are set.

#include "conformance/cases/case_line.h"
#include "conformance/cases/former_words.h"
#include "golden/io/fixture.h"
#include "reference/layout/scale_shape.h"

namespace assay::conformance::inputs {

void generate_quantize(const CaseLine& line, Case& result);
void generate_grouped_gemm(const CaseLine& line, Case& result);
void generate_offsets(const CaseLine& line, Case& result);
void generate_delayed_update(const CaseLine& line, Case& result);
void generate_dequantize(const CaseLine& line, Case& result);
void generate_swizzle(const CaseLine& line, Case& result);
void generate_quantize_by_rule(const CaseLine& line, Case& result);
void generate_grouped_dbias(const CaseLine& line, Case& result);
void generate_permute(const CaseLine& line, Case& result);
void generate_unpermute(const CaseLine& line, Case& result);
void generate_linear(const CaseLine& line, Case& result);

// The value of a key as an attribute, which keeps the former words (former_words.h).
inline void set_text_attribute(const CaseLine& line, std::string_view key, Case& result) {
  result.attributes[std::string(former_key(line.op, key))] = std::string(former_value(line.op, key, line.text(key)));
}

inline Recipe recipe_of(const CaseLine& line) { return *recipe_named(line.text("recipe")); }

}  // namespace assay::conformance::inputs
