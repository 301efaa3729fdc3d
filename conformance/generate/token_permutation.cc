#include <algorithm>
#include <cstring>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "conformance/generate/fused_ties.h"
#include "conformance/generate/ops.h"
#include "conformance/generate/scales.h"
#include "conformance/generate/tensors.h"
#include "conformance/generate/work_limit.h"
#include "conformance/support/counter_random.h"
#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance::inputs {
namespace {

struct Routing {
  std::int64_t tokens = 0, topk = 0, permuted_rows = 0;
  std::vector<std::int64_t> row_map;  // [tokens, topk]
};

// Random experts for each choice; the rows of one expert follow one another in the order of tokens, those of the next begin at the
// alignment. As many rows as any routing of this line can need.
Routing routing_of(const CaseLine& line) {
  Routing routing{line.integer("R"), line.integer("topk"), 0, {}};
  const std::int64_t experts = line.integer("experts"), alignment = line.integer("alignment"), dropped = line.integer("dropped");
  const std::int64_t entries = checked_product(routing.tokens, routing.topk, "topk", routing.topk);
  routing.permuted_rows =
      checked_sum(entries - dropped, checked_product(experts, alignment - 1, "experts", experts), "alignment", alignment);
  make(Format::i32, {routing.permuted_rows});  // refuses a size that no tensor has
  count_work(entries);
  const CounterRandom random(static_cast<std::uint64_t>(line.integer("seed")), "row_map");
  std::map<std::uint64_t, std::vector<std::int64_t>> of_expert;  // only of those that have any: a line may state any number
  std::vector<std::int64_t> order(static_cast<std::size_t>(entries));
  std::iota(order.begin(), order.end(), 0);
  const auto word = [&](std::int64_t entry) { return random.words(static_cast<std::uint64_t>(entry)); };
  std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
    const auto of_a = word(a)[0], of_b = word(b)[0];
    return of_a != of_b ? of_a < of_b : a < b;
  });
  std::vector<bool> drops(static_cast<std::size_t>(entries));
  for (std::int64_t i = 0; i < dropped; ++i) drops[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = true;
  for (std::int64_t entry = 0; entry < entries; ++entry) {
    if (!drops[static_cast<std::size_t>(entry)]) of_expert[word(entry)[1] % static_cast<std::uint64_t>(experts)].push_back(entry);
  }
  routing.row_map.assign(static_cast<std::size_t>(entries), -1);
  std::int64_t row = 0;
  for (const auto& [expert, entries_of] : of_expert) {
    for (const std::int64_t entry : entries_of) routing.row_map[static_cast<std::size_t>(entry)] = row++;
    row = ceil_div(row, alignment) * alignment;
  }
  return routing;
}

Tensor map_tensor(const Routing& routing) {
  Tensor tensor = make(Format::i32, {routing.tokens, routing.topk});
  for (std::size_t i = 0; i < routing.row_map.size(); ++i)
    tensor.as<std::int32_t>()[i] = static_cast<std::int32_t>(routing.row_map[i]);
  return tensor;
}

PatternRequest pattern_of(const CaseLine& line, const std::string& data, const char* tensor, std::int64_t rows) {
  PatternRequest pattern;
  pattern.pattern = data;
  pattern.type = format_of(line.text("x_type"));
  pattern.seed = static_cast<std::uint64_t>(line.integer("seed"));
  pattern.tensor = tensor;
  pattern.rows = rows;
  pattern.columns = line.integer("K");
  pattern.amplitude = 15;
  return pattern;
}

}  // namespace

void generate_permute(const CaseLine& line, Case& result) {
  const Routing routing = routing_of(line);
  const std::string data = line.text("data");
  result.attributes["permuted_rows"] = routing.permuted_rows;
  result.in["row_map"] = map_tensor(routing);
  result.in["x"] = matrix(pattern_of(line, data, "x", routing.tokens), routing.tokens);
  const std::string scales = line.text("token_scales");
  if (scales == "absent") return;
  const Format type = format_of(scales);
  Tensor& tensor = result.in["scale_inv"] =
      make(type, {routing.tokens, ceil_div(line.integer("K"), type == Format::f32 ? 128 : 32)});
  const CounterRandom random(static_cast<std::uint64_t>(line.integer("seed")), "scale_inv");
  for (std::size_t i = 0; i < tensor.bytes.size(); i += 4) {  // any bits: they are copied
    const std::uint32_t word = random.words(i)[0];
    std::memcpy(tensor.bytes.data() + i, &word, std::min<std::size_t>(4, tensor.bytes.size() - i));
  }
}

// Rows that no choice has are NaN, as are the weights of dropped choices.
void generate_unpermute(const CaseLine& line, Case& result) {
  const Routing routing = routing_of(line);
  const std::string data = line.text("data");
  set_text_attribute(line, "sums", result);
  result.in["row_map"] = map_tensor(routing);
  FusedTies ties;
  Tensor permuted;
  if (data == "fused_ties") {
    const Format type = format_of(line.text("x_type"));
    ties = fused_ties(type, routing.row_map, routing.topk, routing.permuted_rows, line.integer("K"),
                      static_cast<std::uint64_t>(line.integer("seed")));
    permuted = make(type, {routing.permuted_rows, line.integer("K")});
    store(ties.codes, permuted);
  } else {
    permuted = matrix(pattern_of(line, data, "permuted", routing.permuted_rows), routing.permuted_rows);
  }
  std::vector<bool> named(static_cast<std::size_t>(routing.permuted_rows));
  for (const std::int64_t row : routing.row_map) {
    if (row >= 0) named[static_cast<std::size_t>(row)] = true;
  }
  const std::int64_t columns = named.empty() ? 0 : line.integer("K");
  const std::vector<std::uint32_t> poison(static_cast<std::size_t>(columns), nan_code(permuted.type));
  for (std::size_t row = 0; row < named.size(); ++row) {
    if (!named[row]) store(poison, permuted, static_cast<std::int64_t>(row) * columns);
  }
  result.in["permuted"] = std::move(permuted);
  if (line.integer("weights") == 0) return;
  Tensor weights = make(Format::f32, {routing.tokens, routing.topk});
  if (data == "fused_ties") {
    std::copy(ties.weights.begin(), ties.weights.end(), weights.as<float>());
  } else {
    PatternRequest pattern = pattern_of(line, data, "weights", routing.tokens);
    pattern.pattern = data == "integers" ? "integers" : "uniform";
    pattern.type = Format::f32;
    pattern.columns = routing.topk;
    weights = matrix(pattern, routing.tokens);
  }
  const std::uint32_t nan = nan_code(Format::f32);
  for (std::size_t i = 0; i < routing.row_map.size(); ++i) {
    if (routing.row_map[i] < 0) store({&nan, 1}, weights, static_cast<std::int64_t>(i));
  }
  result.in["weights"] = std::move(weights);
}

}  // namespace assay::conformance::inputs
