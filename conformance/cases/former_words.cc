#include "conformance/cases/former_words.h"

#include <algorithm>
#include <vector>

#include "conformance/cases/case_schema.h"

namespace assay::conformance {
namespace {

constexpr FormerKey kFormerKeys[] = {
    {"x_type", "itype", "grouped_gemm"},
    {"d_type", "dtype_d", ""},
};

constexpr FormerValue kFormerValues[] = {
    {"kind", "fp8_per_tensor", "tensor", "grouped_gemm"},
    {"kind", "fp8_block", "block", "grouped_gemm"},
    {"recipe", "fp8_block", "block", "linear_forward linear_dgrad linear_wgrad scenario"},
};

bool is_op_of(std::string_view op, std::string_view ops) {
  const std::vector<std::string_view> all = words_of(ops);
  return std::find(all.begin(), all.end(), op) != all.end();
}

// `line` with each of its key=value words replaced by `make(op, key, value)`.
template <class Make>
std::string respelled(std::string_view line, Make make) {
  const std::string_view op = line.substr(0, line.find(' '));
  if (find_op(op) == nullptr) return std::string(line);
  std::string text(op);
  for (const std::string_view word : words_of(line.substr(op.size()))) {
    const std::size_t equals = word.find('=');
    text += ' ';
    text += equals == std::string_view::npos ? std::string(word)
                                             : make(op, present_key(op, word.substr(0, equals)), word.substr(equals + 1));
  }
  return text;
}

std::string pair_text(std::string_view key, std::string_view value) { return std::string(key).append("=").append(value); }

}  // namespace

std::span<const FormerKey> former_keys() { return kFormerKeys; }
std::span<const FormerValue> former_values() { return kFormerValues; }

std::string_view present_key(std::string_view op, std::string_view key) {
  for (const FormerKey& each : kFormerKeys) {
    if (key == each.former && op != each.not_of) return each.key;
  }
  return key;
}

std::string_view former_key(std::string_view op, std::string_view key) {
  for (const FormerKey& each : kFormerKeys) {
    if (key == each.key && op != each.not_of) return each.former;
  }
  return key;
}

std::string_view present_value(std::string_view op, std::string_view key, std::string_view value) {
  for (const FormerValue& each : kFormerValues) {
    if (key == each.key && value == each.former && is_op_of(op, each.ops)) return each.value;
  }
  return value;
}

std::string_view former_value(std::string_view op, std::string_view key, std::string_view value) {
  for (const FormerValue& each : kFormerValues) {
    if (key == each.key && value == each.value && is_op_of(op, each.ops)) return each.former;
  }
  return value;
}

std::string present_text(std::string_view line) {
  return respelled(line, [](std::string_view op, std::string_view key, std::string_view value) {
    return pair_text(key, present_value(op, key, value));
  });
}

std::string former_text(std::string_view line) {
  return respelled(line, [](std::string_view op, std::string_view key, std::string_view value) {
    return pair_text(former_key(op, key), former_value(op, key, value));
  });
}

}  // namespace assay::conformance
