#pragma once
// A case is a line of text:
//
//   quantize recipe=block_1x128 x_type=bf16 otype=e4m3 pow2=1 splits=0,128,127 K=512 data=uniform seed=7
//
// The first word is the op, the others are key=value in any order. The line regenerates inputs, expected output and
// command. `to_text` prints the canonical form: keys in the order of the schema, values in one spelling, defaults left
// out, so that two lines say the same exactly when their canonical texts are equal.
//
// Rows of groups (`splits`, `first`, `last`) are a comma list whose items may be
//   128                    one group of 128 rows
//   4x128                  4 groups of 128 rows
//   one(G,ROWS,g)          G groups, all ROWS rows in group g
//   zipf(G,ROWS,SEED)      G groups that share ROWS in proportion to 1/rank, ranks shuffled by SEED
// and `0x0` for no groups at all. Canonical text writes three and more equal neighbours as COUNTxROWS and keeps no
// generator.

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace assay::conformance {

struct Parameter {
  std::string key, value;
  bool operator==(const Parameter&) const = default;
};

struct CaseLine {
  std::string op;
  std::vector<Parameter> parameters;  // canonical: order of the schema, canonical values, none that equals its default

  bool operator==(const CaseLine&) const = default;

  // True when the key has a value: given, or by default other than "none".
  bool has(std::string_view key) const;
  // The value, given or by default. Errors (InvalidArgument): the op has no such key; the key has no value.
  std::string text(std::string_view key) const;
  std::int64_t integer(std::string_view key) const;
  double real(std::string_view key) const;
  std::vector<double> reals(std::string_view key) const;
  std::vector<std::int64_t> splits(std::string_view key = "splits") const;
};

// Errors (InvalidArgument): an unknown op, key or value; a key given twice; a required key left out; keys that do not go
// together. The message names the word, shows the value and says what was expected, with the nearest word if one is near.
CaseLine parse_case_line(std::string_view line);

// Canonical text; parse_case_line(to_text(c)) == c.
std::string to_text(const CaseLine& line);

// The same case with one key changed, or put back to its default when `value` is empty. Errors: as parse_case_line.
CaseLine with(const CaseLine& line, std::string_view key, std::string_view value);

// A path of words for people and for selection: "quantize/block_1x128/bf16-e4m3/grouped/uniform/3f2a91c0". Distinct for
// distinct lines.
std::string name_of(const CaseLine& line);

// Canonical text of rows of groups, and its inverse.
std::string splits_text(const std::vector<std::int64_t>& splits);
std::vector<std::int64_t> parse_splits(std::string_view argument, std::string_view text);

// Rows in proportion to 1/rank, ranks shuffled by `seed`; the sum is exactly `rows`. Integers only.
std::vector<std::int64_t> zipf_splits(std::int64_t groups, std::int64_t rows, std::uint64_t seed);

// What a comparison of this case can claim (spec exactness-1.1).
enum class CheckKind { bits, order_free, bound };
CheckKind check_kind(const CaseLine& line);

// Whether D shows the unit that computes it (generate/unit_probes.h).
bool is_unit_probe(const CaseLine& line);

// What changes between the replays of a captured call: `replay=16:data,splits,noop`.
struct ReplayPlan {
  int count = 0;  // 0: the case is not replayed
  bool data = false, splits = false, scales = false, noop = false;
  bool pieces = false;  // of data and scales no more than 16 bytes of each input
};
ReplayPlan replay_plan(const CaseLine& line);

// One output of splits_to_offsets_multi.
struct OffsetsOutputSpec {
  std::int64_t stride = 1;
  bool is_int32 = false;
  bool inclusive = false;  // no leading zero
  bool absent = false;     // the call does not ask for it
};
std::vector<OffsetsOutputSpec> offsets_outputs(const CaseLine& line);

}  // namespace assay::conformance
