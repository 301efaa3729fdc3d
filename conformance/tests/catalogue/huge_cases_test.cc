// The cases of conformance/cases/huge/: which tensors have more elements than 31 and 32 bits count, and that a machine can hold them.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/case_text.h"
#include "conformance/catalogue/catalogue.h"

namespace assay::conformance {
namespace {

struct Sizes {
  std::map<std::string, std::int64_t> elements;  // by tensor
  double bytes = 0, macs = 0;
};

double bytes_of_type(const std::string& name) {
  return name == "f32" ? 4 : name == "bf16" || name == "f16" ? 2 : name == "e2m1" ? 0.5 : 1;
}

void add(Sizes& sizes, const std::string& name, std::int64_t rows, std::int64_t columns, double bytes) {
  sizes.elements[name] = rows * columns;
  sizes.bytes += static_cast<double>(rows * columns) * bytes;
}

std::int64_t sum(const std::vector<std::int64_t>& splits) {
  std::int64_t all = 0;
  for (const std::int64_t each : splits) all += each;
  return all;
}

Sizes sizes_of(const CaseLine& line) {
  Sizes sizes;
  const std::int64_t K = line.integer("K");
  if (line.op == "grouped_gemm") {
    const std::string kind = line.text("kind"), layout = line.text("layout");
    const double width = kind == "bf16" ? 2 : kind == "nvfp4" ? 0.5 : 1, d_width = bytes_of_type(line.text("d_type"));
    const auto groups = static_cast<std::int64_t>(line.splits().size());
    const std::int64_t N = line.integer("N");
    const std::int64_t rows = line.text("grouped_layout") == "masked" ? groups * line.integer("max_m") : sum(line.splits());
    if (layout != "NN") add(sizes, "x", rows, K, width);
    if (layout != "TN") add(sizes, "dy", rows, N, width);
    if (layout != "NT") add(sizes, "w", groups * N, K, width);
    add(sizes, "d", layout == "NT" ? groups * N : rows, layout == "TN" ? N : K, d_width);
    sizes.macs = static_cast<double>(sum(line.splits())) * static_cast<double>(N * K);
    return sizes;
  }
  if (line.op == "quantize") {
    const std::int64_t rows = line.has("splits") ? sum(line.splits()) : line.integer("R");
    add(sizes, "quantize x", rows, K, 2);
    add(sizes, "codes", 2 * rows, K, 1);  // in both directions
    sizes.elements["codes"] /= 2;
    return sizes;
  }
  const double width = bytes_of_type(line.text("x_type"));
  add(sizes, line.op + " tokens", line.integer("R"), K, width);
  add(sizes, line.op + " rows", line.integer("R") * line.integer("topk"), K, width);
  return sizes;
}

TEST(HugeCases, HaveTensorsPast31And32Bits) {
  const std::string path = std::string(ASSAY_CASE_FILES) + "/huge/cases.txt";
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::map<std::string, std::int64_t> largest;
  const CaseText cases = parse_case_text(text.str(), path, Marks::optional);
  for (const CaseLine& line : cases.of(Profile::smoke)) {
    SCOPED_TRACE(to_text(line));
    const Sizes sizes = sizes_of(line);
    bool huge = false;
    for (const auto& [name, elements] : sizes.elements) {
      huge = huge || elements > std::int64_t{1} << 31;
      largest[name] = std::max(largest[name], elements);
    }
    EXPECT_TRUE(huge);
    EXPECT_LT(sizes.bytes, 9e9);
    EXPECT_LT(sizes.macs, 36e9);
  }
  for (const char* name : {"x", "dy", "w", "d", "quantize x", "codes", "permute rows", "unpermute rows"}) {
    EXPECT_GT(largest[name], std::int64_t{1} << 31) << name;
  }
  for (const char* name : {"x", "w", "d"}) EXPECT_GT(largest[name], std::int64_t{1} << 32) << name;
}

}  // namespace
}  // namespace assay::conformance
