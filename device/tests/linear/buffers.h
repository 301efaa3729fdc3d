#pragma once
// The memory of a caller of the module GroupedLinear: the buffers of one microbatch, and their expected contents by the
// reference's own layer.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "device/linear/grouped_linear.h"
#include "device/tests/linear/layer.h"

namespace assay::device_linear_suite {

using device::GemmPath;
using device::GroupedLinearBackward;
using device::GroupedLinearForward;
using device::GroupedLinearOptions;

inline GroupedLinearOptions options_of(const Case& c, GemmPath path = GemmPath::cublaslt) {
  GroupedLinearOptions options;
  options.config = c.config;
  options.groups = static_cast<int>(c.layout.groups());
  options.N = c.layout.N;
  options.K = c.layout.K;
  options.rows_capacity = c.layout.rows();
  options.path = path_of(c, path);
  options.dw_type = c.dw_type;
  return options;
}

// Everything that one microbatch reads and writes, at addresses that stay the same when the contents change.
struct Buffers {
  Case c;
  Operands o;
  std::vector<std::int64_t> splits;
  Matrix y, dx, dbias, dw;
  std::vector<Matrix> w_parts, bias_parts, dbias_parts, dw_parts;
  std::vector<const void*> w_list, bias_list;
  std::vector<void*> dbias_list, dw_list;
  bool lists = false;

  explicit Buffers(const Case& of, std::uint64_t seed = 1, bool in_lists = false) : c(of), lists(in_lists) {
    o = make_operands(c, seed);
    splits = c.layout.splits;
    const linear_suite::Layout& l = c.layout;
    dbias = Matrix(c.config.type, l.groups() * l.N, kPoison);
    dw = o.main_grad;
    for (std::int64_t t = 0; t < l.groups(); ++t) {
      w_parts.emplace_back(c.config.type, l.N * l.K);
      bias_parts.emplace_back(c.config.type, l.N);
      dbias_parts.emplace_back(c.config.type, l.N, kPoison);
      dw_parts.emplace_back(c.dw_type, l.N * l.K);
    }
    for (auto& each : w_parts) w_list.push_back(each.data());
    for (auto& each : bias_parts) bias_list.push_back(each.data());
    for (auto& each : dbias_parts) dbias_list.push_back(each.data());
    for (auto& each : dw_parts) dw_list.push_back(each.data());
    scatter(dw, dw_parts);
    clear();
    share();
  }
  // Other contents at the same addresses. The capacity does not change.
  void fill(const Case& other, std::uint64_t seed) {
    ASSERT_EQ(other.layout.rows(), c.layout.rows());
    c = other;
    const Operands from = make_operands(other, seed);
    const auto copy = [](auto& to, const auto& source) { std::copy(source.begin(), source.end(), to.begin()); };
    for (Matrix Operands::*member : {&Operands::x, &Operands::dy, &Operands::w, &Operands::bias})
      copy((o.*member).bytes, (from.*member).bytes);
    for (std::vector<float> Operands::*member : {&Operands::x_scale, &Operands::dy_scale, &Operands::w_scale})
      copy(o.*member, from.*member);
    copy(splits, other.layout.splits);
    share();
  }
  void fill_weights(const Operands& from) {
    std::copy(from.w.bytes.begin(), from.w.bytes.end(), o.w.bytes.begin());
    std::copy(from.w_scale.begin(), from.w_scale.end(), o.w_scale.begin());
    share();
  }
  void clear() {
    y = cleared(y, c.layout.rows() * c.layout.N);
    dx = cleared(dx, c.layout.rows() * c.layout.K);
  }
  Matrix& cleared(Matrix& matrix, std::int64_t elements) const {
    if (matrix.bytes.empty()) matrix = Matrix(c.config.type, elements, kPoison);
    std::fill(matrix.bytes.begin(), matrix.bytes.end(), kPoison);
    return matrix;
  }
  static void scatter(const Matrix& all, std::vector<Matrix>& parts) {
    std::size_t at = 0;
    for (Matrix& part : parts) {
      std::copy_n(all.bytes.begin() + static_cast<std::ptrdiff_t>(at), part.bytes.size(), part.bytes.begin());
      at += part.bytes.size();
    }
  }
  static void gather(const std::vector<Matrix>& parts, Matrix& all) {
    std::size_t at = 0;
    for (const Matrix& part : parts) {
      std::copy(part.bytes.begin(), part.bytes.end(), all.bytes.begin() + static_cast<std::ptrdiff_t>(at));
      at += part.bytes.size();
    }
  }
  void share() {
    scatter(o.w, w_parts);
    scatter(o.bias, bias_parts);
  }
  void collect() {
    if (!lists) return;
    gather(dbias_parts, dbias);
    gather(dw_parts, dw);
  }
  void set_dw(const Matrix& to) {
    std::copy(to.bytes.begin(), to.bytes.end(), dw.bytes.begin());
    scatter(dw, dw_parts);
  }

  device::Rows rows() const { return {c.layout.rows(), splits.data(), static_cast<int>(c.layout.groups())}; }
  GroupedLinearForward forward() {
    GroupedLinearForward call;
    call.x = o.x.data();
    call.rows = rows();
    if (lists) {
      call.w.list = w_list.data();
      if (c.bias) call.bias_list = bias_list.data();
    } else {
      call.w.data = o.w.data();
      if (c.bias) call.bias = o.bias.data();
    }
    call.x_scale = o.x_scale.data();
    call.w_scale = o.w_scale.data();
    call.y = y.data();
    return call;
  }
  GroupedLinearBackward backward(int microbatch) {
    GroupedLinearBackward call;
    call.microbatch = microbatch;
    call.dy = o.dy.data();
    call.dy_scale = o.dy_scale.data();
    call.dx = dx.data();
    if (lists) {
      call.dbias_list = dbias_list.data();
      call.dw_list = dw_list.data();
    } else {
      call.dbias = dbias.data();
      call.dw = dw.data();
    }
    return call;
  }
  Operands with_weights_of(const Operands& other) const {
    Operands made = o;
    made.w = other.w;
    made.w_scale = other.w_scale;
    return made;
  }
};

inline Matrix y_of(const Case& c, const Operands& o) { return linear_suite::forward(linear_suite::kFast, c, o); }
inline Matrix dx_of(const Case& c, const Operands& o) { return linear_suite::dgrad(linear_suite::kFast, c, o); }
inline Matrix dbias_of(const Case& c, const Operands& o) { return linear_suite::dbias(linear_suite::kFast, c, o); }
// dw where it held `before`.
inline Matrix dw_of(const Case& c, const Operands& o, bool accumulate, const Matrix& before) {
  Case adding = c;
  adding.accumulate = accumulate;
  Operands with = o;
  with.main_grad = before;
  return linear_suite::wgrad(linear_suite::kFast, adding, with);
}

}  // namespace assay::device_linear_suite
