#include "conformance/judge/calls/content_faults.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "reference/types/error.h"
#include "reference/types/sizes.h"

namespace assay::conformance {
namespace {

using Values = std::vector<std::int64_t>;

Values values_of(const Tensor& tensor) {
  Values values(tensor.bytes.size() / (tensor.type == Format::i32 ? 4 : 8));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.type == Format::i32) {
      std::int32_t value = 0;
      std::memcpy(&value, tensor.bytes.data() + 4 * i, 4);
      values[i] = value;
    } else {
      std::memcpy(&values[i], tensor.bytes.data() + 8 * i, 8);
    }
  }
  return values;
}

void store(const Values& values, Tensor& tensor) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (tensor.type == Format::i32) {
      const auto value = static_cast<std::int32_t>(values[i]);
      std::memcpy(tensor.bytes.data() + 4 * i, &value, 4);
    } else {
      std::memcpy(tensor.bytes.data() + 8 * i, &values[i], 8);
    }
  }
}

// The tensor that says which rows belong to which group.
std::string name_of_places(const Case& right) {
  for (const char* const name : {"psum", "m_indices", "row_map", "splits"}) {
    if (right.in.count(name) != 0) return name;
  }
  return "first";
}

class Planter {
 public:
  Planter(const CaseLine& line, const Case& right, std::string name) : right_(right), name_(std::move(name)) {
    const Tensor& tensor = right.in.at(name_);
    narrow_ = tensor.type == Format::i32;
    values_ = values_of(tensor);
    const bool by_token = name_ == "m_indices" || name_ == "row_map";
    require(!values_.empty(), name_, by_token ? "without rows" : "without groups",
            by_token ? "a row to put a fault into" : "a group to put a fault into");
    least_ = narrow_ ? std::numeric_limits<std::int32_t>::min() : std::numeric_limits<std::int64_t>::min();
    most_ = narrow_ ? std::numeric_limits<std::int32_t>::max() : std::numeric_limits<std::int64_t>::max();
    for (const Parameter& each : line.parameters) {
      if (each.key == "extra_rows") spare_ = line.integer("extra_rows");
    }
  }

  std::vector<ContentFault> made(std::string_view word) {
    const bool ends = name_ == "psum", counts_with_room = right_.attributes.contains("max_m");
    if (word == "negative_split" && ends) end_before_start();
    if (word == "negative_split" && !ends) negative();
    if (word == "excess_rows" && ends) end_beyond_rows();
    if (word == "excess_rows" && counts_with_room) count_above_room();
    if (word == "excess_rows" && !ends && !counts_with_room) excess();
    if (word == "wrong_group") wrong_group();
    if (word == "wrong_row") outside(permuted_rows());
    if (word == "sum_overflow") overflow();
    if (word == "unaligned_rows") unaligned();
    return std::move(faults_);
  }

 private:
  using Change = std::pair<std::size_t, std::int64_t>;
  std::size_t last() const { return values_.size() - 1; }
  std::size_t middle() const { return values_.size() / 2; }

  void plant(const std::vector<Change>& changes) {
    Values values = values_;
    std::string what;
    for (const auto& [at, value] : changes) {
      values[at] = value;
      what += (what.empty() ? "" : ", ") + name_ + "[" + std::to_string(at) + "] = " + std::to_string(value) + " (" +
              std::to_string(values_[at]) + " is right)";
    }
    ContentFault& fault = faults_.emplace_back();
    fault.what = what;
    fault.problem = right_;
    store(values, fault.problem.in.at(name_));
  }

  // Three groups whose sum, modulo 2^64 or 2^32, is that of these groups now.
  void wrap_around() {
    if (values_.size() < 3) return;
    plant({{0, most_}, {1, most_}, {2, 2 + values_[0] + values_[1] + values_[2]}});
  }

  void negative() {
    plant({{0, -1}});
    plant({{middle(), least_}});
    plant({{last(), -std::max<std::int64_t>(values_[last()], 1)}});
    if (values_.size() > 1) plant({{0, -5}, {last(), values_[last()] + values_[0] + 5}});
  }

  void excess() {
    plant({{last(), values_[last()] + spare_ + 1}});
    plant({{0, values_[0] + spare_ + (1 << 20)}});
    if (!narrow_) plant({{middle(), values_[middle()] + (std::int64_t{1} << 32)}});
    plant({{middle(), most_}});
    wrap_around();
  }

  void overflow() {
    plant({{0, most_}});
    plant({{0, most_ / 2 + 1}, {last(), most_ / 2 + 1}});
    if (!narrow_) plant({{last(), std::int64_t{1} << 62}});
    plant({{middle(), most_ - 1}});
    wrap_around();
  }

  std::int64_t attribute(const std::string& name) const { return std::get<std::int64_t>(right_.attributes.at(name)); }
  std::int64_t start_after(std::int64_t end) const {
    return checked_product(ceil_div(end, attribute("alignment")), attribute("alignment"), "alignment", end);
  }

  std::int64_t permuted_rows() const {
    const auto permuted = right_.in.find("permuted");
    return permuted != right_.in.end() ? permuted->second.shape.at(0) : attribute("permuted_rows");
  }

  // psum: a group ends before the aligned end of the one before it.
  void end_before_start() {
    plant({{0, -1}});
    plant({{middle(), least_}});
    if (last() > 0) plant({{last(), start_after(values_[last() - 1]) - 1}});
  }

  void end_beyond_rows() {
    const std::int64_t rows = start_after(values_[last()]) + spare_;
    plant({{last(), rows + 1}});
    plant({{0, rows + 1}});
    plant({{last(), rows + (1 << 20)}});
    plant({{middle(), most_}});
  }

  // masked: more rows than each group has room for.
  void count_above_room() {
    plant({{last(), attribute("max_m") + 1}});
    plant({{0, attribute("max_m") + (1 << 20)}});
    plant({{middle(), most_}});
  }

  // Entries of a map that are neither -1 nor below `count`.
  void outside(std::int64_t count) {
    plant({{0, count}});
    plant({{last(), -2}});
    plant({{middle(), least_}});
    plant({{last(), most_}});
  }

  // m_indices: no group, two groups in one block, a row of a group behind one of none.
  void wrong_group() {
    const std::int64_t groups = attribute("groups");
    outside(groups);
    const auto alignment = static_cast<std::size_t>(attribute("alignment"));
    for (std::size_t row = 1; row < values_.size(); ++row) {
      if (row % alignment == 0 || values_[row] < 0) continue;  // the second row of a group or a later one, in its block
      if (groups > 1) plant({{row, (values_[row] + 1) % groups}});
      plant({{row - 1, -1}});
      return;
    }
  }

  // A row from one group to the next that has rows.
  void unaligned() {
    for (std::size_t from = 0; from < values_.size(); ++from) {
      if (values_[from] == 0) continue;
      const std::size_t to = from == last() ? 0 : last();
      if (to != from) plant({{from, values_[from] - 1}, {to, values_[to] + 1}});
    }
  }

  const Case& right_;
  std::string name_;
  Values values_;
  bool narrow_ = false;
  std::int64_t least_ = 0, most_ = 0, spare_ = 0;
  std::vector<ContentFault> faults_;
};

}  // namespace

std::string_view fault_word(const CaseLine& line) {
  for (const Parameter& each : line.parameters) {
    if (each.key == "fault") return each.value;
  }
  return "";
}

std::vector<ContentFault> content_faults(const CaseLine& line, const Case& right) {
  std::vector<ContentFault> faults = Planter(line, right, name_of_places(right)).made(fault_word(line));
  if (right.in.count("last") != 0) {  // the other factor of splits_to_offsets_2d
    for (ContentFault& each : Planter(line, right, "last").made(fault_word(line))) faults.push_back(std::move(each));
  }
  return faults;
}

}  // namespace assay::conformance
