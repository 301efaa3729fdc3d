#pragma once
// A scale rule as data: how a block's scale and codes follow from its largest magnitude (spec scale-rules-1.1). A preset is a rule
// with a name and a source; reference/rules/presets.txt holds those that are known, and a user may add more as text.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "reference/rules/formula.h"
#include "reference/rules/scale_storage.h"
#include "reference/types/format.h"

namespace assay {

// Rows and columns of x that share a scale; 0 is the whole extent of the group. Text: "1x128", "128x128", "1xall", "allx1".
struct BlockShape {
  std::int64_t rows = 1, columns = 128;
  bool operator==(const BlockShape&) const = default;
};

// What a NaN does to the largest magnitude of its block.
enum class AmaxNan : std::uint8_t {
  ignored,     // passed over, as fmaxf does
  propagated,  // the largest magnitude is NaN, as torch.amax does
};

// Of what the rule has a second, outer amax.
enum class OuterAmax : std::uint8_t { none, tensor, row };

// How the value of `code` becomes a code (spec scale-rules-3.1).
struct CodeRounding {
  // To the nearest code, a value in the middle to the even one, the nearer to zero or the farther; truncate: toward zero.
  enum class Round : std::uint8_t { even, down, away, truncate } round = Round::even;
  // special: values that round past the largest finite one become what follows it, infinity (e5m2) or NaN (e4m3).
  enum class Overflow : std::uint8_t { saturate, special } overflow = Overflow::saturate;
  // Codes without NaN: what a NaN becomes.
  enum class NanCode : std::uint8_t { largest, zero } nan = NanCode::largest;
  // Whether negative zero occurs: kept; only where a negative underflows (an exact -0 is +0); never.
  enum class NegativeZero : std::uint8_t { kept, underflow, never } negative_zero = NegativeZero::kept;
  bool operator==(const CodeRounding&) const = default;
};

// Names that a rule's formula may use (spec scale-rules-2.3), in this order of variables.
inline constexpr std::string_view kRuleNames[] = {"amax",  "outer_amax", "output_max", "output_pow2", "output_mantissa_bits",
                                                  "x_max", "x"};
enum RuleVariable { kAmax, kOuterAmax, kOutputMax, kOutputPow2, kOutputMantissaBits, kInputMax, kElement, kRuleVariables };

// Names that the formula of an activation may use (spec scale-rules-1.3).
inline constexpr std::string_view kActivationNames[] = {"gate", "up", "x_max"};
enum ActivationVariable { kGate, kUp, kActivationInputMax };

struct ScaleRule {
  std::string name;
  std::vector<BlockShape> blocks;   // granularities of the source; the first is used where none is requested
  std::vector<Format> outputs;      // types of the codes; the first is used where none is requested
  Format scale_type = Format::f32;  // f32, e8m0 or e4m3
  AmaxNan nan = AmaxNan::ignored;
  OuterAmax outer = OuterAmax::none;
  CodeRounding rounding;
  std::string storage;          // name of the usual ScaleStorage
  std::string text;             // the formula as written
  Formula formula;              // compiled; assigns `scale` and `code`, and only `code` depends on x
  std::string activation_text;  // empty: x is what is given
  Formula activation;           // compiled; assigns `x`
  std::string source;           // where the rule stands
  std::string evidence;         // what it was compared with
  int scale = -1;               // variable and statement of `scale` and `code`
  int code = -1;
  std::size_t scale_statement = 0, code_statement = 0;

  // Whether x is computed from the two halves of a row twice as long.
  bool is_gated() const { return !activation_text.empty(); }
  // Matrices side by side in x: gate and up, or x alone.
  std::int64_t matrices_in_x() const { return is_gated() ? 2 : 1; }
  // Whether the formula joins values of the elements of a block (spec scale-rules-2.4): then blocks are 1x16.
  bool reduces() const;
};

inline constexpr BlockShape kReducedBlock{1, 16};

// The rules of `text`, a row each, which messages call `file` (spec scale-rules-1.2).
// Errors (InvalidArgument), as "my.txt:3: round is 'odd': expected even, down, away or truncate".
std::deque<ScaleRule> parse_scale_rules(std::string_view text, std::string_view file);

// All presets: those of presets.txt, then those added. References stay valid.
const std::deque<ScaleRule>& scale_rules();
// The rule with this name, or null.
const ScaleRule* find_scale_rule(std::string_view name);
// Adds the rules of `text`, all or none. A row in equal words of a rule that is known changes nothing. Call it before other threads
// ask. Errors (InvalidArgument): those of parse_scale_rules; another rule has the name.
void add_scale_rules(std::string_view text, std::string_view file);

// The row as it stands in a file, in one line: fields with their plain value are left out.
std::string to_text(const ScaleRule& rule);

std::string to_text(const BlockShape& block);
// Errors (InvalidArgument): anything but ROWSxCOLUMNS, each 1 to 1024 or "all".
BlockShape parse_block_shape(std::string_view argument, std::string_view text);

// Constants of an output format that formulas use: its largest finite value, the power of two at or below that, and its mantissa
// bits.
float output_pow2(Format format);
int output_mantissa_bits(Format format);

namespace scalar {
// The code of `value`: spec scale-rules-3.1.
std::uint8_t round_to_code(Format format, const CodeRounding& rounding, float value);
}  // namespace scalar

}  // namespace assay
