#pragma once
// A grouped product by plain loops, with a second implementation of the step of a unit. A fault changes one of its parts.

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "conformance/ops/grouped_gemm.h"
#include "reference/formats/bf16.h"
#include "reference/formats/f16.h"
#include "reference/gemm/problem.h"
#include "reference/tests/arithmetic/second_route.h"

namespace assay::conformance::planted_faults {

struct At {
  const GroupedGemmView& view;
  std::size_t group;
  std::int64_t i, j;
  const GroupView& of() const { return view.groups[group]; }
};

inline std::uint32_t narrowed(Format type, float value) {
  if (type == Format::f32) return std::bit_cast<std::uint32_t>(value);
  return type == Format::bf16 ? scalar::encode_bf16(value) : scalar::encode_f16(value);
}
inline float widened(Format type, std::uint32_t code) { return static_cast<float>(second_route::value_of(type, code)); }
inline float stored(Format type, const void* base, std::int64_t at) {
  std::uint32_t code = 0;
  const int width = type == Format::f32 ? 4 : 2;
  std::memcpy(&code, static_cast<const char*>(base) + at * width, static_cast<std::size_t>(width));
  return widened(type, code);
}

struct Model {
  std::function<float(const At&, std::int64_t k)> row_scale = [](const At& at, std::int64_t k) {
    return at.of().rows.scale.value(at.i, k);
  };
  std::function<float(const At&, std::int64_t k)> column_scale = [](const At& at, std::int64_t k) {
    return at.of().columns.scale.value(at.j, k);
  };
  std::function<void(TensorCoreUnit&)> unit = [](TensorCoreUnit&) {};
  std::function<std::int64_t(const At&)> begin = [](const At&) { return std::int64_t{0}; };
  std::function<std::int64_t(const At&)> end = [](const At& at) { return at.of().depth; };
  std::int64_t interval = -1;  // -1: the plan's
  int promotion = -1;
  // The sum of a range of K, if not as the plan says. `part` is the plan's own for a range.
  using Part = std::function<float(std::int64_t first, std::int64_t last)>;
  std::function<float(const At&, const Part& part)> sum = {};
  // The stored code of the running value; empty: nearest even of the plan's epilogue.
  std::function<std::uint32_t(const At&, float acc, float factor)> finish = {};
};

class Product {
 public:
  explicit Product(const Case& call) : request_(Request::read_only(call)) {
    request_.out.clear();
    parse_grouped_gemm(request_, parsed_);
    alignas(16) static const std::byte nowhere[16] = {};
    view_ = view_of(parsed_.problem, nowhere);
  }
  const GroupedGemmView& view() const { return view_; }

  // Writes the elements for which `where` holds as the model gives them.
  void write(
      Tensor& d, const Model& model, const std::function<bool(const At&)>& where = [](const At&) { return true; }) const {
    TensorCoreUnit unit = *view_.unit;
    model.unit(unit);
    for (std::size_t g = 0; g < view_.groups.size(); ++g) {
      for (std::int64_t i = 0; i < view_.groups[g].m; ++i) {
        for (std::int64_t j = 0; j < view_.groups[g].n; ++j) {
          const At at{view_, g, i, j};
          if (!where(at)) continue;
          const std::uint32_t code = element(model, unit, at);
          const int width = view_.d_type == Format::f32 ? 4 : 2;
          std::memcpy(d.bytes.data() + (at.of().d_offset + i * at.of().n + j) * width, &code, static_cast<std::size_t>(width));
        }
      }
    }
  }

 private:
  float chain(const TensorCoreUnit& unit, const At& at, std::int64_t first, std::int64_t last) const {
    std::uint32_t acc = 0;
    for (std::int64_t k = first; k < last; k += unit.products_per_step) {
      second_route::Vector v{at.of().rows.type, at.of().columns.type, {}, {}, acc, {}, {}};
      for (std::int64_t e = k; e < std::min<std::int64_t>(k + unit.products_per_step, last); ++e) {
        v.a.push_back(at.of().rows.element(at.i, e));
        v.b.push_back(at.of().columns.element(at.j, e));
        if (unit.scaling == StepScaling::none || e % at.of().rows.scale.k_block != 0) continue;
        v.scale_a.push_back(at.of().rows.scale.code(at.i, e));
        v.scale_b.push_back(at.of().columns.scale.code(at.j, e));
      }
      acc = second_route::step(unit, v);
    }
    return std::bit_cast<float>(acc);
  }

  float range(const Model& model, const TensorCoreUnit& unit, const At& at, std::int64_t first, std::int64_t last) const {
    const Promotion promotion = model.promotion < 0 ? view_.plan->promotion : static_cast<Promotion>(model.promotion);
    const std::int64_t plan = model.interval < 0 ? view_.plan->promotion_interval : model.interval;
    if (promotion == Promotion::none) return chain(unit, at, first, last);
    const std::int64_t interval = plan == 0 ? std::max<std::int64_t>(last - first, 1) : plan;
    float acc = 0;
    for (std::int64_t k = first; k < last; k += interval) {
      const float t = chain(unit, at, k, std::min(k + interval, last));
      if (promotion == Promotion::add) {
        acc += t;
        continue;
      }
      const float rows = model.row_scale(at, k), columns = model.column_scale(at, k);
      if (promotion == Promotion::fma_scales_first) acc = std::fma(rows * columns, t, acc);
      if (promotion == Promotion::fma_rows_first) acc = std::fma(t * rows, columns, acc);
      if (promotion == Promotion::fma_cols_first) acc = std::fma(t * columns, rows, acc);
    }
    return acc;
  }

  std::uint32_t element(const Model& model, const TensorCoreUnit& unit, const At& at) const {
    const auto part = [&](std::int64_t first, std::int64_t last) { return range(model, unit, at, first, last); };
    const float acc = model.sum ? model.sum(at, part) : part(model.begin(at), model.end(at));
    float factor = at.of().alpha;
    if (view_.kind == GemmKind::fp8_per_tensor) {
      const float with_columns = factor * model.column_scale(at, 0);
      factor = with_columns * model.row_scale(at, 0);
    }
    if (model.finish) return model.finish(at, acc, factor);
    float value = factor == 1 ? acc : acc * factor;
    if (at.of().beta != 0)
      value = std::fma(acc, factor, at.of().beta * stored(view_.d_type, view_.c, at.of().d_offset + at.i * at.of().n + at.j));
    std::uint32_t code = narrowed(view_.d_type, value);
    if (at.of().bias != nullptr)
      code = narrowed(view_.d_type, widened(view_.d_type, code) + stored(view_.d_type, at.of().bias, at.j));
    return code;
  }

  Request request_;
  ParsedGroupedGemm parsed_;
  GroupedGemmView view_;
};

using Where = std::function<bool(const At&)>;

// A product by a changed model, in a part of D.
inline std::function<void(Case&, const Case*)> modelled(
    std::function<void(Model&)> change, Where where = [](const At&) { return true; }) {
  return [change, where](Case& call, const Case*) {
    Model model;
    change(model);
    Product(call).write(call.out.at("d"), model, where);
  };
}

}  // namespace assay::conformance::planted_faults
