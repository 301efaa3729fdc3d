// The last part of the catalogue: conditions on sizes that a fault could need and that no earlier line meets. A
// condition that a line meets adds nothing; each of the others gets the smallest line that meets it.

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "conformance/generate/generator.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kKinds[] = {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"};
constexpr const char* kLayouts[] = {"TN", "NN", "NT"};
constexpr const char* kOutputs[] = {"f32", "bf16", "f16"};
constexpr std::int64_t kTile = 128;

// Conditions by name, as "quantize mxfp8 K%128=113".
using Conditions = std::set<std::string>;

std::string residue(const std::string& of, const char* length, std::int64_t value) {
  return of + " " + length + "%128=" + show(value % kTile);
}

// The lengths of a product that can be large, in the order in which they are named below.
struct Extents {
  std::int64_t groups, rows, N, K;  // rows: of the largest group
  std::int64_t of(int which) const { return std::array{groups, rows, N, K}[static_cast<std::size_t>(which)]; }
};
constexpr const char* kExtentNames[] = {"groups", "rows", "N", "K"};
// Large beside large: the first beyond 1024 and the second beyond 256; groups: 16 and more of them, the other beyond 511.
bool is_large_pair(const Extents& extents, int first, int second) {
  return first == 0 ? extents.groups >= 16 && extents.of(second) >= 512 : extents.of(first) > 1024 && extents.of(second) > 256;
}
std::string pair_fact(const std::string& kind, int first, int second) {
  return "grouped_gemm " + kind + " " + kExtentNames[first] + " beside " + kExtentNames[second];
}

std::string depth_fact(const std::string& of, std::int64_t depth) {
  return of + " depth " + show(depth % kTile / 16) + "/8 of a tile";
}

void add_quantize(const CaseLine& line, const std::vector<std::int64_t>& splits, std::int64_t rows, Conditions& conditions) {
  if (line.text("direction") != "both" || (line.has("noop") && line.real("noop") == 1)) return;
  const std::string of = "quantize " + line.text("recipe");
  const std::int64_t K = line.integer("K");
  conditions.insert(residue(of, "K", K));
  if (splits.size() > 1 && line.integer("extra_rows") == 0) conditions.insert(residue(of, "rows", rows));
  if (K > 2048 && rows > 128) conditions.insert(of + " long rows");
  if (rows > 2048 && K > 128) conditions.insert(of + " many rows");
  if (line.text("recipe") == "nvfp4" && rows * K > (std::int64_t{1} << 19)) conditions.insert("quantize nvfp4 bytes");
}

void add_product(const CaseLine& line, const std::vector<std::int64_t>& splits, std::int64_t rows, Conditions& conditions) {
  const std::string kind = line.text("kind"), layout = line.text("layout");
  const std::string of = "grouped_gemm " + kind + " " + layout;
  const Extents extents{static_cast<std::int64_t>(splits.size()),
                        splits.empty() ? 0 : *std::max_element(splits.begin(), splits.end()), line.integer("N"),
                        line.integer("K")};
  for (int first = 0; first < 4; ++first) {
    for (int second = 1; second < 4; ++second) {
      if (first != second && is_large_pair(extents, first, second)) conditions.insert(pair_fact(kind, first, second));
    }
  }
  const std::vector<std::int64_t> one{layout == "TN" ? extents.K : extents.N};
  for (const std::int64_t depth : layout == "NT" ? splits : one) {
    if (depth >= kTile) conditions.insert(depth_fact(of + " " + line.text("d_type"), depth));
    if (depth > 4096 && line.text("d_type") == "f32") conditions.insert(of + " deep");
  }
  if (layout != "NT" && line.integer("extra_rows") == 0) conditions.insert(residue("grouped_gemm", "rows", rows));
  conditions.insert(residue("grouped_gemm", "N", extents.N));
  conditions.insert(residue("grouped_gemm", "K", extents.K));
}

void add_layer(const CaseLine& line, std::int64_t rows, Conditions& conditions) {
  const std::string of = line.op + " " + line.text("recipe");
  if (rows > 512) conditions.insert(of + " rows");
  if (line.integer("N") > 512) conditions.insert(of + " N");
  if (line.integer("K") > 512) conditions.insert(of + " K");
}

class Remaining {
 public:
  explicit Remaining(const std::vector<CaseLine>& lines) {
    for (const CaseLine& line : lines) look(line);
  }

  bool lacks(const std::string& fact) const { return conditions_.count(fact) == 0; }
  // A line, with the next of each axis. Errors: InvalidArgument for an invalid line.
  void add(const std::string& text, const std::vector<Axis>& axes = {}) {
    std::string full = text;
    for (const Axis& axis : axes) full += " " + axis[made_.size() % axis.size()];
    made_.push_back(parse_case_line(full + " seed=" + show(70000 + made_.size())));
    look(made_.back());
  }
  // The same if `fact` is not met and the line is valid; if it is not valid, no line can meet the fact.
  void add_for(const std::string& fact, const std::string& text, const std::vector<Axis>& axes = {}) {
    if (!lacks(fact)) return;
    try {
      add(text, axes);
    } catch (const InvalidArgument&) {}
  }
  std::size_t count() const { return made_.size(); }
  std::vector<CaseLine> take() { return std::move(made_); }

 private:
  void look(const CaseLine& line) {
    if (leaves_outputs_out(line) || line.op == "scenario" || line.op.starts_with("splits_to_offsets") ||
        find_key(*find_op(line.op), "K") == nullptr)
      return;
    // What is read of x is twice as wide.
    if (find_key(*find_op(line.op), "activation") != nullptr && line.text("activation") != "off") return;
    std::vector<std::int64_t> splits;
    if (line.has("splits")) splits = line.splits();
    std::int64_t rows = line.op == "quantize" && line.has("R") ? line.integer("R") : 0;
    for (const std::int64_t each : splits) rows += each;
    if (line.op == "quantize") add_quantize(line, splits, rows, conditions_);
    if (line.op == "grouped_gemm") add_product(line, splits, rows, conditions_);
    if (line.op.starts_with("linear_")) add_layer(line, rows, conditions_);
  }

  Conditions conditions_;
  std::vector<CaseLine> made_;
};

// The lengths from 1 to 128 whose fact is not met.
std::vector<std::int64_t> unmet(const Remaining& remaining, const std::string& of, const char* length, std::int64_t step) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t each = step; each <= kTile; each += step) {
    if (remaining.lacks(residue(of, length, each))) lengths.push_back(each);
  }
  return lengths;
}

// Every residue of the columns and of the rows of all groups, in both directions: the longest of one beside the shortest of the
// other, columns beyond a tile where rows are few.
void quantize_residues(Remaining& remaining) {
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const std::int64_t step = recipe == std::string("nvfp4") ? 2 : 1;
    const std::string of = std::string("quantize ") + recipe, prefix = std::string("quantize recipe=") + recipe;
    const std::vector<std::int64_t> columns = unmet(remaining, of, "K", step);
    std::vector<std::int64_t> rows = unmet(remaining, of, "rows", step);
    std::reverse(rows.begin(), rows.end());
    const Axis input{"x_type=bf16", "x_type=f32", "x_type=f16"}, data{"data=uniform", "data=normal"};
    for (std::size_t i = 0; i < std::max(columns.size(), rows.size()); ++i) {
      const std::int64_t all = i < rows.size() ? rows[i] : 3 * step, first = std::min(all, step);
      const std::int64_t K = i < columns.size() ? columns[i] : 8;
      remaining.add(
          prefix + " splits=" + show(first) + "," + show(all - first) + " K=" + show(all < 32 || K < 16 ? kTile + K : K),
          {input, data});
    }
  }
}

void quantize_large(Remaining& remaining) {
  for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
    const std::string of = std::string("quantize ") + recipe, prefix = std::string("quantize recipe=") + recipe;
    remaining.add_for(of + " long rows", prefix + (recipe == std::string("nvfp4") ? " R=258 K=2066" : " R=130 K=2066"));
    remaining.add_for(of + " many rows", prefix + " R=2066 K=130");
  }
  remaining.add_for("quantize nvfp4 bytes", "quantize recipe=nvfp4 R=258 K=2066");
}

// Every eighth of a tile beyond the first tile of the products of an element, for every kind and layout, TN and NT with every type
// of D too; more than 4096 of them.
void product_depths(Remaining& remaining) {
  for (const char* kind : kKinds) {
    const bool any = kind != std::string("mxfp8") && kind != std::string("nvfp4");
    const std::string short_two = any ? " N=4 K=4" : " N=16 K=16";
    for (const char* layout : kLayouts) {
      const std::string of = std::string("grouped_gemm ") + kind + " " + layout;
      const std::string prefix = std::string("grouped_gemm kind=") + kind + " layout=" + layout;
      for (const char* d : kOutputs) {
        std::string splits;
        for (std::int64_t eighth = 0; eighth < 8; ++eighth) {
          const std::string fact = depth_fact(of + " " + d, eighth * 16);
          // The residue that no line has yet.
          std::int64_t depth = kTile + eighth * 16;
          const char* const length = layout == std::string("TN") ? "K" : "N";
          for (std::int64_t more = any ? 15 : 0; more > 0 && layout != std::string("NT"); --more) {
            if (remaining.lacks(residue("grouped_gemm", length, depth + more))) {
              depth += more;
              break;
            }
          }
          const std::string text = prefix + " d_type=" + d + " splits=3";
          if (layout == std::string("TN")) remaining.add_for(fact, text + " N=16 K=" + show(depth));
          if (layout == std::string("NN") && d == kOutputs[eighth % 3]) remaining.add_for(fact, text + " K=16 N=" + show(depth));
          if (layout == std::string("NT") && remaining.lacks(fact))
            splits += (splits.empty() ? "" : ",") + show(depth + (any ? eighth : 0));
        }
        if (!splits.empty()) remaining.add(prefix + " d_type=" + d + short_two + " splits=" + splits);
      }
      const std::string deep = prefix + " d_type=f32";
      if (layout == std::string("TN")) remaining.add_for(of + " deep", deep + " splits=3 N=16 K=4112");
      if (layout == std::string("NN")) remaining.add_for(of + " deep", deep + " splits=3 K=16 N=4112");
      if (layout == std::string("NT")) remaining.add_for(of + " deep", deep + " splits=4112" + short_two);
    }
  }
}

// Two large lengths, the third 1, and many groups beside a large length. Many rows cost the most, and a kind that is cheap
// there and one with scales of its own for each block of rows stand for all.
void product_pairs(Remaining& remaining) {
  for (const char* kind : kKinds) {
    const bool any = kind != std::string("mxfp8") && kind != std::string("nvfp4");
    const bool has_rows = kind == std::string("bf16") || kind == std::string("fp8_block");
    for (int first = 0; first < 4; ++first) {
      for (int second = 1; second < 4; ++second) {
        if (first == second || (!has_rows && (first == 1 || second == 1))) continue;
        const std::string least = any ? first == 0 ? "4" : "1" : "32";
        std::string sizes[4] = {"", "1", least, least};
        if (first != 0) sizes[first] = "1056";
        sizes[second] = first == 0 ? "544" : "288";
        const std::string rows = first != 0 ? sizes[1] : second == 1 ? "16x0,544" : "17x1";
        remaining.add_for(pair_fact(kind, first, second),
                          std::string("grouped_gemm kind=") + kind + " splits=" + rows + " N=" + sizes[2] + " K=" + sizes[3],
                          {any ? Axis{"layout=TN", "layout=NN", "layout=NT"} : Axis{"layout=TN"}, {"d_type=f32", "d_type=bf16"}});
      }
    }
  }
}

// Every residue of the rows of D, of N and of K.
void product_residues(Remaining& remaining) {
  std::vector<std::int64_t> rows = unmet(remaining, "grouped_gemm", "rows", 1), N = unmet(remaining, "grouped_gemm", "N", 1),
                            K = unmet(remaining, "grouped_gemm", "K", 1);
  std::reverse(N.begin(), N.end());
  const Axis kind{"kind=bf16", "kind=fp8_per_tensor", "kind=f16", "kind=fp8_block", "kind=bf16"},
      layout{"layout=TN", "layout=NN"};
  for (std::size_t i = 0; i < std::max(rows.size(), N.size()); ++i) {
    const std::int64_t all = i < rows.size() ? rows[i] : 2;
    remaining.add("grouped_gemm splits=1," + show(all - 1) + " N=" + show(i < N.size() ? N[i] : 8) + " K=8", {kind, layout});
  }
  for (const std::int64_t each : K) remaining.add("grouped_gemm splits=3 N=8 K=" + show(kTile + each), {kind, layout});
}

void layer_sizes(Remaining& remaining) {
  for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
    for (const char* recipe : {"none", "tensor_current", "tensor_delayed", "fp8_block", "mxfp8", "nvfp4"}) {
      const std::string of = std::string(op) + " " + recipe, prefix = std::string(op) + " recipe=" + recipe;
      remaining.add_for(of + " rows", prefix + " splits=16,0,528 N=32 K=32");
      remaining.add_for(of + " N", prefix + " splits=16 N=544 K=32");
      remaining.add_for(of + " K", prefix + " splits=16 N=32 K=544");
    }
  }
}

}  // namespace

std::vector<CaseLine> remaining_lines(const std::vector<CaseLine>& lines) {
  Remaining remaining(lines);
  quantize_residues(remaining);
  quantize_large(remaining);
  product_depths(remaining);
  product_pairs(remaining);
  product_residues(remaining);
  layer_sizes(remaining);
  return remaining.take();
}

}  // namespace assay::conformance
