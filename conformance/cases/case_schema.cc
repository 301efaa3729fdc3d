#include "conformance/cases/case_schema.h"

#include <algorithm>

#include "conformance/support/wrap.h"
#include "reference/types/error.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance {
namespace {

using enum ValueKind;

// Data patterns (patterns.h): for high-precision values about to be quantized, and for operands of a GEMM.
constexpr std::string_view kValuePatterns =
    "uniform normal full_exponent near_underflow subnormals specials every_special nans ties sparse one_hot clustered every_code integers "
    "block_scales zeros adversarial_midpoints adversarial_amax adversarial_eps adversarial_dbias adversarial_infinities adversarial_four_over_six "
    "adversarial_transform adversarial_thresholds adversarial_gates";
constexpr std::string_view kOperandPatterns =
    "uniform normal full_exponent near_underflow subnormals specials every_special sparse one_hot clustered every_code integers wide_sums block_scales "
    "zeros adversarial_output_ties adversarial_alignment adversarial_promotion adversarial_cancelling unit_probes step_edges adversarial_thresholds";
constexpr std::string_view kLayerPatterns = "uniform normal full_exponent near_underflow every_special sparse one_hot clustered integers block_scales";
// Scales that are inputs (generate/scales.h).
constexpr std::string_view kScales = "plain pow2 edge ones specials opposed negative two_roundings extremes";

constexpr std::string_view kRecipes = "tensor_current tensor_delayed block_1x128 block_128x128 mxfp8 nvfp4";
constexpr std::string_view kStorages =
    "usual k_major mn_major tma_aligned packed swizzled_128x4 swizzled_8x4 k_major_per_group mn_major_per_group tma_aligned_per_group "
    "packed_per_group swizzled_128x4_per_group swizzled_8x4_per_group";
constexpr std::string_view kInputTypes = "bf16 f16 f32";
constexpr std::string_view kScaled = "recipe=tensor_current|tensor_delayed|block_1x128|block_128x128";

const KeySchema kSeed{"seed", integer, "0", "", "", "of the counter-based generator"};
const KeySchema kReplay{"replay", replay, "none", "", "",
                        "COUNT:WHAT,...: capture once, replay COUNT times with WHAT (data, splits, scales, noop) changed "
                        "in device memory between replays; pieces: 16 bytes of each input alone, its last, its first or its middle"};
const KeySchema kExtraRows{"extra_rows", integer, "0", "", "", "rows beyond the sum of the splits"};
const KeySchema kBeyond{"beyond", choice, "nan", "nan large", "", "what the rows beyond hold: NaN, or the largest finite value"};
const KeySchema kContract{"contract", integer, "0", "0 1", "", "1: the call is also made wrong in every way, and each must be refused"};
// Contents of the splits that no call may have (content_faults.h).
constexpr std::string_view kFaultHelp =
    "contents of the splits, or of what stands in their place, that each call must report, and that the right call behind it must not "
    "notice";
const KeySchema kFault{"fault", choice, "none", "negative_split excess_rows", "", kFaultHelp};
const KeySchema kFaultPacked{"fault", choice, "none", "negative_split excess_rows unaligned_rows", "", kFaultHelp};
const KeySchema kFaultPlaces{"fault", choice, "none", "negative_split excess_rows wrong_group unaligned_rows", "", kFaultHelp};
const KeySchema kFaultMap{"fault", choice, "none", "wrong_row", "", kFaultHelp};
const KeySchema kFaultSums{"fault", choice, "none", "negative_split sum_overflow", "", kFaultHelp};

constexpr std::string_view kAloneHelp = "usual: all; a name: that output alone, without the others";

// A matrix is either one tensor of R rows or the groups of `splits`.
const KeySchema kSplits{"splits", splits, "none", "", "", "rows of each group; without it one tensor of R rows"};
const KeySchema kRows{"R", integer, "none", "", "", "rows of a single tensor"};
const KeySchema kColumns{"K", integer, "required", "", "", "columns"};

// One of the three calls of a grouped linear layer, which share most keys.
OpSchema layer_schema(std::string_view op) {
  std::vector<KeySchema> keys{
      {"recipe", choice, "required", "none tensor_current tensor_delayed fp8_block mxfp8 nvfp4", "",
       "none: the 16-bit product; fp8_block: 1x128 activations by 128x128 weights"},
      {"x_type", choice, "bf16", "bf16 f16", "", "type of activations, weights and gradients"},
      {"otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
       "codes of x and w"},
      {"pow2", integer, "0; recipe=fp8_block: 1", "0 1", "recipe=tensor_current|fp8_block", "1: scales are powers of two"},
      {"eps", real, "0", "", "recipe=tensor_current|fp8_block", "amax below this is raised to it"},
      {"sign_mask", integer, "0", "", "recipe=nvfp4", "signs of the Hadamard transform, bit i set: element i is negated"},
      {"arch", choice, "sm90; recipe=mxfp8: sm100; recipe=nvfp4: sm100", "sm80 sm89 sm90 sm100 sm120", "", "whose arithmetic"},
      {"plan", plan, "none", "", "", "accumulation plan of the product, to be followed; without it the backend follows its own"}};
  if (op != "linear_dgrad") {
    keys.push_back({"activation", choice, "off", "off swiglu", "recipe=fp8_block", "swiglu: x holds gate and up side by side, 2 K columns"});
  }
  if (op != "linear_forward") {
    keys.push_back({"grad_otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1",
                    "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4", "codes of dy"});
  }
  if (op == "linear_forward") {
    keys.push_back({"bias", integer, "0", "0 1", "", "1: a row of bias a group is added"});
    keys.push_back({"noop", real, "none", "", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
                    "skip flag of the weight cache: exactly 1 uses the cached weights"});
    keys.push_back({"outputs", choice, "usual", "usual y w_rowwise_data w_rowwise_scale_inv w_rowwise_amax",
                    "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4", kAloneHelp});
  } else if (op == "linear_dgrad") {
    keys.push_back({"bias", integer, "0", "0 1", "", "1: gradients of the bias are requested"});
    keys.push_back({"outputs", choice, "usual", "usual dx dbias", "bias=1", kAloneHelp});
  } else {
    keys.push_back({"bias", integer, "0", "0 1", "", "1: gradients of the bias are requested"});
    keys.push_back({"outputs", choice, "usual", "usual dw dbias", "bias=1", kAloneHelp});
    keys.push_back({"d_type", choice, "f32", "f32 bf16 f16", "", "type of the weight gradients"});
    keys.push_back({"accumulate", integer, "0", "0 1", "", "1: added to the main gradient, which is an input"});
    keys.push_back({"deferred", integer, "0", "0 1", "", "1: stored by backward and carried out by a second call"});
  }
  keys.insert(keys.end(), {{"splits", splits, "required", "", "", "rows of each group"},
                           {"N", integer, "required", "", "", "output features"},
                           {"K", integer, "required", "", "", "input features"},
                           kExtraRows, kBeyond,
                           {"data", choice, "uniform", kLayerPatterns, "", "pattern of activations, weights and gradients"},
                           kSeed,
                           {"check", choice, "bits", "bits order_free bound", "", "what the comparison may claim"},
                           kReplay, kContract, kFault});
  return {op, op == "linear_forward" ? "y = x w^T + bias of a grouped linear layer"
                     : op == "linear_dgrad" ? "gradient of the input" : "gradients of the weights", std::move(keys)};
}

// A table, an entry an op and a row a key, and therefore longer than other functions.
std::vector<OpSchema> make_schema() {
  std::vector<OpSchema> ops;

  ops.push_back({"quantize", "quantize one tensor, or each group of a ragged one",
    {{"recipe", choice, "required", kRecipes, "", "how scales are chosen"},
     {"x_type", choice, "bf16", kInputTypes, "", "type of x"},
     {"otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1", "", "type of the codes"},
     {"pow2", integer, "0", "0 1", kScaled, "1: scales are cut down to powers of two"},
     {"eps", real, "0", "", kScaled, "amax below this is raised to it"},
     {"direction", choice, "both", "both rowwise columnwise", "", "which outputs are requested"},
     {"outputs", choice, "usual", "usual all codes scale_inv scale amax dbias", "",
      "all: also the amax of tensor_delayed or of a given amax, and the scale_inv of each direction; codes, scale_inv, scale, amax, dbias: "
      "these of the direction alone, without the others"},
     {"scale_layout", choice, "compact", "compact swizzled", "recipe=mxfp8|nvfp4", "order of the block scales"},
     {"two_dimensional", integer, "0", "0 1", "recipe=mxfp8|nvfp4", "1: square tiles share a scale (32x32, 16x16)"},
     {"hadamard", integer, "0", "0 1", "recipe=nvfp4", "1: 16 rows are transformed before the columnwise direction"},
     {"sign_mask", integer, "0", "", "hadamard=1", "bit i set: element i of 16 is negated before the transform"},
     {"stochastic", integer, "0", "0 1", "recipe=nvfp4", "1: stochastic rounding"},
     {"draws", choice, "given", "given te_vector_blockwise te_tuned_1d te_2d", "stochastic=1", "random bytes: an input, or as a kernel of TransformerEngine draws them"},
     {"rng_state", choice, "plain", "plain carries last", "draws=te_vector_blockwise|te_tuned_1d|te_2d", "seeds and offsets; carries, last: the counter passes 2^32, 2^64"},
     {"four_over_six", choice, "off", "off mae mse", "recipe=nvfp4", "two scales are tried a block; which error decides"},
     {"e4m3_max", integer, "448", "448 256", "recipe=nvfp4", "largest block scale"},
     {"amax", choice, "own", "own given misfit apart single", "recipe=nvfp4",
      "given: the tensor amax is an input, twice the largest value; misfit: too small, 0, infinite, subnormal, huge or NaN, from group to group; "
      "apart: given, and for the columns another, 8 times the largest value; single: the same two, one value each for all groups"},
     {"scales", choice, "plain", "plain pow2 edge ones specials negative two_roundings", "recipe=tensor_delayed", "the given scales"},
     {"dbias", integer, "0", "0 1", "", "1: the columns of each group are summed too"},
     {"activation", choice, "off", "off swiglu", "recipe=block_1x128|block_128x128", "swiglu: x holds gate and up side by side, 2 K columns"},
     {"noop", real, "none", "", "", "value of the skip flag; exactly 1 means that nothing is written"},
     {"zero_sign", choice, "kept", "kept positive free", "", "what becomes of -0; free: either is right"},
     kSplits, kRows, kColumns, kExtraRows, kBeyond,
     {"data", choice, "uniform", kValuePatterns, "", "pattern of x"}, kSeed, kReplay, kContract, kFaultPacked}});

  ops.push_back({"quantize_by_rule", "quantize by a scale rule of any library: spec scale-rules",
    {{"preset", preset, "required", "", "", "the rule: a name that `assay list --presets` prints"},
     {"block", block, "usual", "", "", "elements that share a scale, ROWSxCOLUMNS, each 1 to 1024 or all; usual: the first of the preset"},
     {"x_type", choice, "bf16", kInputTypes, "", "type of x"},
     {"otype", choice, "usual", "usual e4m3 e5m2 e3m2 e2m3 e2m1", "", "type of the codes; usual: the first of the preset"},
     {"storage", choice, "usual", kStorages, "", "order of the scales (spec scale-rules-4.1); usual: that of the preset"},
     {"transposed", integer, "0", "0 1", "", "1: codes of each group are stored [K, rows]"},
     {"outputs", choice, "usual", "usual data scale_inv amax", "", kAloneHelp},
     {"amax", choice, "own", "own given", "", "given: the amax of the tensor or of each row is an input"},
     kSplits, kRows, kColumns, kExtraRows, kBeyond,
     {"data", choice, "uniform",
      "uniform full_exponent near_underflow subnormals every_special ties block_scales zeros adversarial_midpoints adversarial_amax",
      "", "pattern of x"},
     kSeed, kReplay, kContract, kFault}});

  const KeySchema tokens{"R", integer, "required", "", "", "tokens"}, topk{"topk", integer, "2", "", "", "experts that each token goes to"},
      experts{"experts", integer, "4", "", "", "experts in all", 1}, dropped{"dropped", integer, "0", "", "", "choices that are dropped, of R * topk"},
      alignment{"alignment", integer, "1", "", "", "the rows of each expert start at a multiple of it", 1};
  ops.push_back({"permute", "rows of tokens to the rows of their experts",
    {{"x_type", choice, "bf16", "bf16 f16 f32 e4m3 e5m2", "", "type of x"},
     {"token_scales", choice, "absent", "absent f32 e8m0", "", "scales that each token brings: one for 128 elements in f32, for 32 in e8m0"},
     tokens, topk, experts, dropped, alignment, kColumns,
     {"outputs", choice, "usual", "usual permuted permuted_scale_inv", "", kAloneHelp},
     {"data", choice, "uniform", "uniform full_exponent every_special", "", "pattern of x"},
     kSeed, kReplay, kContract, kFaultMap}});
  ops.push_back({"unpermute", "sums of the rows of each token's experts",
    {{"x_type", choice, "bf16", kInputTypes, "", "type of the rows and of their sums"},
     {"weights", integer, "0", "0 1", "", "1: each row is multiplied by the weight of its choice"},
     {"sums", choice, "fma_f32", "fma_f32 f32 in_type fma_in_type", "", "where sums are rounded (spec token-permutation-1.2)"},
     tokens, topk, experts, dropped, alignment, kColumns,
     {"data", choice, "uniform", "uniform full_exponent every_special near_underflow integers fused_ties", "", "pattern of the rows"},
     kSeed, kReplay, kContract, kFaultMap}});

  ops.push_back({"grouped_gemm", "one matrix product a group",
    {{"kind", choice, "required", "bf16 f16 fp8_per_tensor fp8_block mxfp8 nvfp4", "", "type and scaling of the operands"},
     {"layout", choice, "TN", "TN NN NT", "", "TN D=x w^T, NN D=dy w, NT D=dy^T x"},
     {"x_type", choice, "e4m3", "e4m3 e5m2", "kind=fp8_per_tensor|fp8_block|mxfp8", "codes of x"},
     {"w_type", choice, "e4m3", "e4m3 e5m2 e2m1", "kind=fp8_per_tensor|fp8_block|mxfp8", "codes of w; e2m1: in layout TN of kind mxfp8"},
     {"dy_type", choice, "e4m3", "e4m3 e5m2", "kind=fp8_per_tensor|fp8_block|mxfp8", "codes of dy"},
     {"weight_block", choice, "128x128", "1x128 128x128", "kind=fp8_block", "how w is scaled (TN and NN)"},
     {"scaling", choice, "per_group", "per_group per_row_column", "kind=fp8_per_tensor",
      "one scale for each operand of a group, or one for each row and each column of D"},
     {"split_accumulator", integer, "0; kind=fp8_block: 1", "0 1", "", "1: sums are promoted to f32 every 128 of k"},
     {"d_type", choice, "bf16", "f32 bf16 f16 e4m3 e5m2", "", "type of D; e4m3, e5m2: the f32 value times a scale of the group"},
     {"d_scales", choice, "plain", "plain edge specials negative", "d_type=e4m3|e5m2", "these scales"},
     {"scale_layout", choice, "compact; kind=mxfp8: swizzled; kind=nvfp4: swizzled", "compact swizzled",
      "kind=mxfp8|nvfp4", "order of the block scales"},
     {"alpha", reals, "1", "", "", "one value, or one a group (sm100); inf, -inf and nan are values"},
     {"beta", reals, "0", "", "", "one value, or one a group (sm100); C is given when one is not 0"},
     {"bias", integer, "0", "0 1", "layout=TN", "1: a row of bias a group is added to the rounded product"},
     {"arch", choice, "sm90; kind=mxfp8: sm100; kind=nvfp4: sm100", "sm80 sm89 sm90 sm100 sm120", "", "whose arithmetic"},
     {"plan", plan, "none", "", "", "accumulation plan to be followed; without it the backend follows its own"},
     {"splits", splits, "required", "", "", "rows of each group"},
     {"N", integer, "required", "", "", "rows of each w"},
     {"K", integer, "required", "", "", "columns of x and of each w"},
     {"grouped_layout", choice, "splits", "splits m_indices psum masked", "",
      "where the rows of groups lie: one after another; a group for each row, -1 none; ends of groups, whose starts are aligned; max_m rows each"},
     {"alignment", integer, "128", "", "grouped_layout=m_indices|psum", "each group starts at a multiple of it", 1},
     {"max_m", integer, "none", "", "grouped_layout=masked", "rows that each group has room for"},
     kExtraRows, kBeyond,
     {"scales", choice, "plain; data=integers: pow2; data=wide_sums: pow2; data=adversarial_output_ties: ones; data=adversarial_promotion: ones; "
      "data=unit_probes: ones",
      kScales, "kind=fp8_per_tensor|fp8_block|mxfp8|nvfp4", "scales of the operands, different from block to block"},
     {"data", choice, "uniform", kOperandPatterns, "", "pattern of the operands"},
     {"addends", choice, "plain", "plain every_special negative_zeros", "", "pattern of C and of the bias"},
     kSeed,
     {"check", choice, "bits; kind=nvfp4: bits; data=integers: order_free; data=wide_sums: order_free", "bits order_free bound", "",
      "what the comparison may claim"},
     kReplay, kContract, kFaultPlaces}});

  ops.push_back({"splits_to_offsets", "offsets of the groups, stride * prefix sum, from a leading 0",
    {{"splits", splits, "required", "", "", "rows of each group"},
     {"stride", integer, "1", "", "", "factor of every offset", 1}, kReplay, kContract, kFaultSums}});

  ops.push_back({"splits_to_offsets_multi", "several offset arrays from one reading of the splits",
    {{"splits", splits, "required", "", "", "rows of each group"},
     {"x_type", choice, "i64", "i32 i64", "", "type of the splits"},
     {"outputs", outputs, "required", "", "", "STRIDE:TYPE[:inclusive][:absent],...: TYPE i32 or i64; inclusive: no leading 0; absent: the call has no such output"},
     kReplay, kContract, kFaultSums}});

  ops.push_back({"splits_to_offsets_2d", "prefix sums of first[j] * last[j]",
    {{"first", dims, "required", "", "", "first dimension of each tensor"},
     {"last", dims, "required", "", "", "last dimension of each tensor"},
     {"x_type", choice, "i64", "i32 i64", "", "type of the dimensions and of the offsets"}, kReplay, kContract, kFaultSums}});

  ops.push_back({"delayed_update", "new scales and a rolled amax history for delayed scaling",
    {{"algorithm", choice, "max", "max most_recent", "", "which amax of the history counts"},
     {"bulk", integer, "1", "0 1", "", "1: tensors that were not used keep scale and history"},
     {"otype", choice, "e4m3", "e4m3 e5m2", "", "type whose largest value the scale aims at"},
     {"margin", integer, "0", "", "", "the aim is divided by 2^margin", -126},
     {"reduced", integer, "0", "0 1", "bulk=1", "1: amaxes reduced over other ranks are an input"},
     {"tensors", integer, "required", "", "", "number of scales", 1},
     {"length", integer, "required", "", "", "rows of the history", 1},
     {"data", choice, "uniform", "uniform full_exponent near_underflow specials every_special sparse adversarial_amax", "",
      "pattern of the history; every_special: NaN, infinity, -0, a subnormal and 0 newest, oldest and in the middle, from tensor to tensor"},
     {"scales", choice, "plain", "plain edge specials", "", "the scales before the update"},
     {"outputs", choice, "usual", "usual amax_history scale", "", kAloneHelp},
     kSeed, kReplay, kContract}});

  ops.push_back({"dequantize", "values of codes and scales",
    {{"recipe", choice, "required", kRecipes, "", "how the tensor was quantized"},
     {"otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1", "", "type of the codes"},
     {"d_type", choice, "bf16", "f32 bf16 f16", "", "type of the values"},
     {"direction", choice, "rowwise", "rowwise columnwise", "", "which storage is read"},
     {"scale_layout", choice, "compact", "compact swizzled", "recipe=mxfp8|nvfp4", "order of the block scales"},
     {"e4m3_max", integer, "448", "448 256", "recipe=nvfp4", "largest block scale"},
     kSplits, kRows, kColumns, kExtraRows, kBeyond,
     {"scales", choice, "plain", "plain pow2 edge ones specials negative two_roundings extremes", "", "the scales"},
     {"data", choice, "uniform", "uniform full_exponent near_underflow specials every_special every_code", "", "pattern of the codes"},
     kSeed, kReplay, kContract, kFaultPacked}});

  for (const std::string_view op : {"swizzle", "unswizzle"}) {
    ops.push_back({op, op == "swizzle" ? "block scales from compact to 128x4 order" : "block scales from 128x4 to compact order",
      {{"recipe", choice, "required", "mxfp8 nvfp4", "", "whose scales"},
       {"direction", choice, "rowwise", "rowwise columnwise", "", "scales of which storage"},
       kSplits, kRows, kColumns, kSeed, kReplay, kContract, kFault}});
  }

  ops.push_back({"grouped_dbias", "column sums of each group in f32",
    {{"x_type", choice, "bf16", kInputTypes, "", "type of dy"},
     {"accumulate", integer, "0", "0 1", "", "1: added to what the output holds"},
     {"splits", splits, "required", "", "", "rows of each group"},
     kColumns, kExtraRows, kBeyond,
     {"data", choice, "uniform",
      "uniform normal full_exponent subnormals specials every_special sparse clustered integers adversarial_dbias adversarial_infinities", "",
      "pattern of dy"},
     kSeed,
     {"check", choice, "bits; data=integers: order_free", "bits order_free bound", "", "what the comparison may claim"},
     kReplay, kContract, kFault}});

  for (const std::string_view op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) ops.push_back(layer_schema(op));

  ops.push_back({"scenario", "several calls of one grouped linear layer, or of two, captured in graphs that are replayed together",
    {{"recipe", choice, "required", "none tensor_current tensor_delayed fp8_block mxfp8 nvfp4", "", "of the layer, as of linear_forward"},
     {"steps", steps, "required", "quantize weights gradients forward dgrad wgrad TN NN NT", "",
      "the calls in their order, a slash between graphs: forward/dgrad,wgrad. quantize, weights, gradients: op quantize on x, w, dy; "
      "TN, NN, NT: grouped_gemm; a step again is the next microbatch"},
     {"modules", integer, "1", "1 2", "", "layers alive at once, each with memory of its own"},
     {"order", choice, "in_turn", "in_turn interleaved streams", "modules=2",
      "launches of a replay: one module after the other, graph by graph in alternation, or at once on a stream each"},
     {"workspace", choice, "own", "own kept shared", "",
      "own: one a call, filled anew before each replay; kept: left as it is; shared: one for all calls of a module, left as it is"},
     {"warm", integer, "0", "0 1", "", "1: the calls are made once before they are captured"},
     {"history", integer, "0", "", "", "not 0: memory is taken and given back around the captures, in an order that this number draws"},
     {"x_type", choice, "bf16", "bf16 f16", "", "type of activations, weights and gradients"},
     {"otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
      "codes of x and w"},
     {"grad_otype", choice, "e4m3; recipe=nvfp4: e2m1", "e4m3 e5m2 e2m1", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
      "codes of dy"},
     {"pow2", integer, "0; recipe=fp8_block: 1", "0 1", "recipe=tensor_current|fp8_block", "1: scales are powers of two"},
     {"eps", real, "0", "", "recipe=tensor_current|fp8_block", "amax below this is raised to it"},
     {"activation", choice, "off", "off swiglu", "recipe=fp8_block", "of steps quantize, forward and wgrad, as of linear_forward"},
     {"bias", integer, "0", "0 1", "", "1: the layer has one, and its gradient is requested"},
     {"noop", real, "none", "", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
      "skip flag of weights and forward: exactly 1 keeps the quantized weights"},
     {"d_type", choice, "f32", "f32 bf16 f16", "", "type of the weight gradients"},
     {"accumulate", choice, "0", "0 1 rest", "", "1: weight gradients are added to; rest: the first microbatch overwrites, the others add"},
     {"deferred", integer, "0", "0 1", "", "1: weight gradients are put off and carried out later"},
     {"splits", splits, "required", "", "", "rows of each group"},
     {"change", choice, "rotated", "rotated edges", "",
      "how replays change the splits: groups change places, or every edge in turn: all rows in one group, groups and neighbours empty, "
      "fewer rows than the buffer has, none"},
     {"N", integer, "required", "", "", "output features"},
     {"K", integer, "required", "", "", "input features"},
     kExtraRows,
     {"scales", choice, "plain; data=integers: pow2", "plain pow2", "recipe=tensor_current|tensor_delayed|fp8_block|mxfp8|nvfp4",
      "scales that are inputs"},
     {"data", choice, "uniform", "uniform normal sparse one_hot clustered integers block_scales", "", "pattern of the tensors"},
     kSeed,
     {"replay", replay, "required", "", "", kReplay.help}}});
  return ops;
}

// Edits (insert, delete, replace) from one word to the other.
std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::span<const OpSchema> case_schema() {
  static const std::vector<OpSchema> schema = make_schema();
  return schema;
}

const OpSchema* find_op(std::string_view op) {
  for (const OpSchema& each : case_schema()) {
    if (each.op == op) return &each;
  }
  return nullptr;
}

const KeySchema* find_key(const OpSchema& op, std::string_view key) {
  for (const KeySchema& each : op.keys) {
    if (each.key == key) return &each;
  }
  return nullptr;
}

std::string_view take_word(std::string_view& list, char separator) {
  const std::size_t end = std::min(list.find(separator), list.size());
  const std::string_view word = list.substr(0, end);
  list.remove_prefix(std::min(end + 1, list.size()));
  return word;
}

std::vector<std::string_view> words_of(std::string_view list, char separator) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    if (const std::string_view word = take_word(list, separator); !word.empty()) words.push_back(word);
  }
  return words;
}

bool is_word_of(std::string_view list, std::string_view word, char separator) {
  while (!list.empty()) {
    if (const std::string_view each = take_word(list, separator); !each.empty() && each == word) return true;
  }
  return false;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates) {
  std::string_view nearest;
  std::size_t least = 3;
  for (const std::string_view candidate : candidates) {
    if (word.size() >= candidate.size() + least) continue;  // as many edits at least; a word of a file may be very long
    const std::size_t edits = distance(word, candidate);
    if (edits < least && edits < candidate.size()) {
      least = edits;
      nearest = candidate;
    }
  }
  return nearest.empty() ? "" : " (did you mean " + std::string(nearest) + "?)";
}

std::string value_text(const KeySchema& key) {
  switch (key.kind) {
    case integer: return key.allowed.empty() ? "INTEGER" : std::string(key.allowed);
    case real: return "NUMBER";
    case reals: return "NUMBER[,NUMBER...]";
    case choice: return std::string(key.allowed);
    case splits:
    case dims: return "ROWS,... | COUNTxROWS | one(G,ROWS,g) | zipf(G,ROWS,SEED)";
    case outputs: return "STRIDE:TYPE[:inclusive][:absent],...";
    case replay: return "COUNT:WHAT,...";
    case preset: return "NAME";
    case block: return "ROWSxCOLUMNS | usual";
    case plan: return "NAME | unit=UNIT,FIELD=VALUE,...";
    case steps: return "STEP,.../STEP,... of " + std::string(key.allowed);
  }
  return "";
}

std::string describe_keys(const OpSchema& op) {
  std::string text;
  for (const KeySchema& key : op.keys) {
    text += "  " + wrapped(std::string(key.key) + "=" + value_text(key), 6, 2) + '\n';
    std::string help(key.help);
    if (key.fallback == "required") help += "; required";
    else if (key.fallback != "none") help += "; default " + std::string(key.fallback);
    if (!key.only_with.empty()) help += "; with " + std::string(key.only_with);
    text += "      " + wrapped(help, 6) + '\n';
  }
  return text;
}

const OpSchema& op_named(std::string_view op) {
  std::vector<std::string_view> names;
  for (const OpSchema& each : case_schema()) names.push_back(each.op);
  require(find_op(op) != nullptr, "op", op, "an op of the case schema" + did_you_mean(op, names));
  return *find_op(op);
}

}  // namespace assay::conformance
