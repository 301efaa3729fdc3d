#pragma once
// A scenario: several calls of one grouped linear layer, or of two, captured in graphs that are replayed together.
//
//   scenario recipe=fp8_block steps=forward/dgrad,wgrad modules=2 order=interleaved splits=128,0,256 N=136 K=144 replay=16:data,splits
//
// `steps` are the calls of a layer in their order; a slash ends a graph. A step is a call that a separate line could request:
//
//   quantize, weights, gradients   op quantize on x, on w (block: 128x128, nvfp4: 16x16) and on dy
//   forward, dgrad, wgrad          the linear ops
//   TN, NN, NT                     grouped_gemm on operands of the recipe's kind (none: bf16 or f16)
//
// A repeated step belongs to the next microbatch: it has its own x, dy and splits, and the layer's w, bias and skip
// flag. Accumulated gradients continue from the previous microbatch, and so does the cache of forward with a skip flag; from
// one replay to the next it keeps what the previous replay left.
// Tensors of the same name within a layer and microbatch are one piece of memory. Two layers share none.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "conformance/cases/case_line.h"

namespace assay::conformance {

// An input whose contents are an output of another call.
struct ScenarioLink {
  std::string input;
  std::size_t call = 0;
  std::string output;
};

struct ScenarioCall {
  std::string step;  // "wgrad"
  int module = 0, microbatch = 0;
  CaseLine line;                      // the call by itself
  std::vector<ScenarioLink> chained;  // of an earlier call, in place: same memory
  std::vector<ScenarioLink> carried;  // of this or a later call in the replay before
};

enum class ScenarioOrder {
  in_turn,      // all graphs of one module, then those of the other
  interleaved,  // first graphs of all modules, second graphs, ...
  streams,      // each module on a stream of its own, all at once
};
enum class ScenarioWorkspace {
  own,     // one per call, filled with poison before each replay
  kept,    // one per call, as the previous replay left it
  shared,  // one for all calls of a module, as the call before left it
};

struct Scenario {
  std::vector<ScenarioCall> calls;               // module after module, in the order of the steps
  std::vector<std::vector<std::size_t>> graphs;  // calls of each, module after module
  std::vector<std::size_t> launches;             // graphs, in the order of a replay
  int modules = 1;
  bool on_streams = false;  // launches of module m go to stream m
  ScenarioWorkspace workspace = ScenarioWorkspace::own;
  bool warm = false;          // the calls are made once before they are captured
  std::uint64_t history = 0;  // seed of the allocations around the captures; 0: none
  ReplayPlan replay;
  std::vector<std::vector<std::int64_t>> turns;  // splits that the replays go through

  // "module 2, microbatch 1, step wgrad", as far as there are several.
  std::string place(std::size_t call) const;
};

// Errors (InvalidArgument): a step that the recipe does not have, keys that do not go together.
Scenario scenario_of(const CaseLine& line);

bool is_layer_step(const std::string& step);    // forward, dgrad, wgrad
bool is_product_step(const std::string& step);  // TN, NN, NT

// The line of one call of a step, with these splits and seed, in a buffer of `rows` rows.
CaseLine line_of_step(const CaseLine& line, const std::string& step, int microbatch, const std::vector<std::int64_t>& splits,
                      std::int64_t rows, std::int64_t seed);

// Rows of the buffers that the splits divide.
std::int64_t buffer_rows(const CaseLine& line);

// The edges of splits whose sum is at most `rows`, multiples of `unit`; the first are the given ones:
// all rows in the first group, in the last, in the middle one; the first, last, middle group empty; neighbours empty; every
// other group empty; fewer rows than the buffer has; none; the given ones in reverse order.
std::vector<std::vector<std::int64_t>> scenario_splits(const std::vector<std::int64_t>& splits, std::int64_t rows,
                                                       std::int64_t unit);

}  // namespace assay::conformance
