#include "conformance/backends/call_layout.h"

#include <utility>

namespace assay::conformance {
namespace {

constexpr std::size_t kMaxItemBytes = 4096;

// Bytes up to the end of the four sizes.
constexpr std::size_t kTableWithSizes = offsetof(assay_backend, axis_size) + sizeof(std::size_t);
static_assert(offsetof(assay_backend, parameter_size) == kFirstTable);

}  // namespace

std::string fault_in_sizes(const assay_backend& table) {
  if (table.struct_size < kFirstTable) {
    return "has a function table of " + std::to_string(table.struct_size) + " bytes: expected at least " +
           std::to_string(kFirstTable);
  }
  if (table.struct_size == kFirstTable) return "";
  if (table.struct_size < kTableWithSizes) {
    return "has a function table of " + std::to_string(table.struct_size) + " bytes: expected " + std::to_string(kFirstTable) +
           ", or at least " + std::to_string(kTableWithSizes);
  }
  struct Stated {
    const char* name;
    std::size_t size, first;
  };
  for (const Stated& each : {Stated{"parameter_size", table.parameter_size, kFirstSizes.parameter},
                             {"tensor_size", table.tensor_size, kFirstSizes.tensor},
                             {"algorithm_size", table.algorithm_size, kFirstSizes.algorithm},
                             {"axis_size", table.axis_size, kFirstSizes.axis}}) {
    if (each.size >= each.first && each.size <= kMaxItemBytes && each.size % 8 == 0) continue;
    return std::string("states ") + each.name + " " + std::to_string(each.size) +
           ": expected what sizeof gives, a multiple of 8 from " + std::to_string(each.first) + " to " +
           std::to_string(kMaxItemBytes);
  }
  return "";
}

assay_backend known_table(const assay_backend& table) {
  assay_backend known{};
  std::memcpy(static_cast<void*>(&known), &table, std::min(table.struct_size, sizeof known));
  known.struct_size = sizeof known;
  if (table.struct_size > kFirstTable) return known;
  known.parameter_size = kFirstSizes.parameter;
  known.tensor_size = kFirstSizes.tensor;
  known.algorithm_size = kFirstSizes.algorithm;
  known.axis_size = kFirstSizes.axis;
  return known;
}

}  // namespace assay::conformance
