#include "conformance/generate/replay_steps.h"

#include <algorithm>
#include <cstring>

#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {

bool changes_with_scales(const std::string& name) {
  return name.find("scale") != std::string::npos || name.find("amax") != std::string::npos;
}

namespace {

bool has_key(const CaseLine& line, std::string_view key) { return find_key(*find_op(line.op), key) != nullptr; }

bool changes(const std::string& name, const ReplayPlan& plan) {
  for (const char* integers : {"splits", "m_indices", "psum", "first", "last"}) {
    if (name == integers) return plan.splits;
  }
  if (name == "row_map") return plan.data && !plan.pieces;  // some bytes of another map would name rows twice
  if (name == "noop") return plan.noop;
  return changes_with_scales(name) ? plan.scales : plan.data;
}

// The key's groups, rotated: {a, b, c} becomes {b, c, a}.
CaseLine rotated(const CaseLine& line, std::string_view key, std::int64_t by) {
  std::vector<std::int64_t> splits = line.splits(key);
  if (splits.empty()) return line;
  std::rotate(splits.begin(), splits.begin() + by % static_cast<std::int64_t>(splits.size()), splits.end());
  return with(line, key, splits_text(splits));
}

// The same for numbers, if there is one per group, so that they are an input: alpha and beta.
CaseLine turned(const CaseLine& line, std::string_view key, std::int64_t by) {
  const std::string text = line.text(key);
  std::vector<std::string_view> values = words_of(text, ',');
  if (values.size() < 2) return line;
  std::rotate(values.begin(), values.begin() + by % static_cast<std::int64_t>(values.size()), values.end());
  std::string changed;
  for (const std::string_view each : values) changed += (changed.empty() ? "" : ",") + std::string(each);
  return with(line, key, changed);
}

// Of the elements in which `tensor` differs from `before`, the round before, leaves 16 bytes as they are: the last in round 1, the
// first in round 2, those in the middle in round 3, and so on. The others become what they were.
void keep_piece(const Tensor& before, std::int64_t round, Tensor& tensor) {
  const auto width = static_cast<std::size_t>(std::max(bits_of(tensor.type) / 8, 1));
  std::vector<std::size_t> differ;
  for (std::size_t at = 0; at + width <= tensor.bytes.size(); at += width) {
    if (std::memcmp(tensor.bytes.data() + at, before.bytes.data() + at, width) != 0) differ.push_back(at);
  }
  const std::size_t kept = std::min(differ.size(), 16 / width), rest = differ.size() - kept;
  const std::size_t begin = round % 3 == 1 ? rest : round % 3 == 2 ? 0 : rest / 2;
  std::vector<std::byte> made = before.bytes;
  for (std::size_t i = begin; i < begin + kept; ++i) std::memcpy(made.data() + differ[i], tensor.bytes.data() + differ[i], width);
  tensor.bytes = std::move(made);
}

}  // namespace

std::vector<Case> replay_steps(const CaseLine& line) {
  const ReplayPlan plan = replay_plan(line);
  require(plan.count > 0, "replay", plan.count, "a number of replays");
  const Case first = generate(line);
  std::vector<Case> steps{first};
  if (plan.noop) require(first.in.count("noop") != 0, "replay", "noop", "a case with a skip flag (noop=0 or noop=1)");
  for (std::int64_t i = 1; i < plan.count; ++i) {
    CaseLine changed = line;
    if (plan.splits) {
      for (const char* key : {"splits", "first", "last"}) {
        if (has_key(line, key) && line.has(key)) changed = rotated(changed, key, i);
      }
    }
    if (plan.data) {
      for (const char* key : {"alpha", "beta"}) {
        if (has_key(line, key)) changed = turned(changed, key, i);
      }
    }
    if ((plan.data || plan.scales) && has_key(line, "seed"))
      changed = with(changed, "seed", std::to_string(line.integer("seed") + i));
    Case step = generate(changed);
    step.name = first.name;
    for (auto& [name, tensor] : step.in) {
      const Tensor& before = first.in.at(name);
      require(tensor.type == before.type && tensor.shape == before.shape, "replay", name, "inputs that keep their shape");
      if (!changes(name, plan))
        tensor.bytes = before.bytes;
      else if (plan.pieces)
        keep_piece(steps.back().in.at(name), i, tensor);
    }
    if (plan.noop) {
      constexpr float kFlags[] = {0, 1, 1, 0, 1};
      std::memcpy(step.in.at("noop").bytes.data(), &kFlags[i % 5], sizeof(float));
    }
    steps.push_back(std::move(step));
  }
  if (plan.noop) {
    const float run = 0;
    std::memcpy(steps.front().in.at("noop").bytes.data(), &run, sizeof run);
  }
  return steps;
}

}  // namespace assay::conformance
