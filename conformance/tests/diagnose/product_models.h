#pragma once
// Models of grouped GEMM with orders and widths that no plan has, right and wrong ones. They share no arithmetic with the
// reference: products are doubles; elements and scales are read through the reference's view of the problem.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "conformance/ops/grouped_gemm.h"
#include "conformance/tests/judge/rogue_backend.h"
#include "reference/formats/bf16.h"
#include "reference/formats/e4m3.h"
#include "reference/formats/e5m2.h"
#include "reference/formats/f16.h"
#include "reference/gemm/problem.h"
#include "reference/tests/arithmetic/second_route.h"

namespace assay::conformance::models {

// The products of one element of D, k upward, and for kind block the scale of each.
struct Products {
  std::vector<double> value, scale;
};

// Rounds to `fraction` bits below the leading one, to nearest even or toward zero, without subnormals and overflow.
inline double rounded(double x, int fraction, bool nearest) {
  if (x == 0 || !std::isfinite(x)) return x;
  const double quantum = std::ldexp(1.0, std::ilogb(x) - fraction);
  return (nearest ? std::nearbyint(x / quantum) : std::trunc(x / quantum)) * quantum;
}
inline double to_bf16(double x) { return rounded(x, 7, true); }
inline double to_f16(double x) {
  const double r = std::fabs(x) < 0x1p-14 ? std::nearbyint(x * 0x1p24) * 0x1p-24 : rounded(x, 10, true);
  return std::fabs(r) > 65504 ? std::copysign(INFINITY, x) : r;
}

// Steps of `length` products, each cut to `fraction` bits below the largest exponent, sums kept to `kept` fraction bits.
inline double fused(const double* p, std::size_t count, std::size_t length, int fraction, int kept) {
  double acc = 0;
  for (std::size_t first = 0; first < count; first += length) {
    const std::size_t last = std::min(count, first + length);
    if (!std::isfinite(acc) || std::any_of(p + first, p + last, [](double each) { return !std::isfinite(each); })) {
      for (std::size_t k = first; k < last; ++k) acc += p[k];
      continue;
    }
    int largest = acc == 0 ? -10000 : std::ilogb(acc);
    for (std::size_t k = first; k < last; ++k) largest = p[k] == 0 ? largest : std::max(largest, std::ilogb(p[k]));
    if (largest == -10000) continue;
    const double grid = std::ldexp(1.0, largest - fraction);
    double sum = std::trunc(acc / grid) * grid;
    for (std::size_t k = first; k < last; ++k) sum += std::trunc(p[k] / grid) * grid;
    acc = rounded(sum, kept, false);
  }
  return acc;
}

// The f32 sum of the sums of all promotion blocks.
template <class Block>
double by_promotion_blocks(const double* p, std::size_t count, std::size_t length, Block block) {
  float acc = 0;
  for (std::size_t first = 0; first < count; first += length) {
    acc += static_cast<float>(block(p + first, std::min(length, count - first)));
  }
  return acc;
}

// A running sum that is rounded after every 16 products.
template <class Round>
double rounded_every_16(const double* p, std::size_t count, Round round) {
  double acc = 0;
  for (std::size_t first = 0; first < count; first += 16) {
    double sum = acc;
    for (std::size_t k = first; k < std::min(count, first + 16); ++k) sum += p[k];
    acc = round(sum);
  }
  return acc;
}

inline double exact(const double* p, std::size_t count) {
  double sum = 0;
  for (std::size_t k = 0; k < count; ++k) sum += p[k];
  return sum;
}
inline double chain(const double* p, std::size_t count) {
  float acc = 0;
  for (std::size_t k = 0; k < count; ++k) acc += static_cast<float>(p[k]);
  return acc;
}

struct Model {
  std::string name;
  // The sum of one block of products: all of K, but for kind block, whose scales come from outside.
  std::function<double(const double*, std::size_t)> sum = exact;
  std::function<void(Products&)> spoil = {};  // before summing: products dropped, repeated
  double times = 1;                           // of the whole sum
  int neighbour = 0;                          // the rows operand uses the scale of a block so much further on
  bool only_fp22 = false;                     // allowed where the hardware has FP22 sums
};

inline std::vector<Model> right_models() {
  // clang-format off
  std::vector<Model> models{
      {"f32 sums, a product at a time", chain},
      {"the same from the end", [](const double* p, std::size_t n) { std::vector<double> q(p, p + n); std::reverse(q.begin(), q.end()); return chain(q.data(), n); }},
      {"double sums", exact},
      {"even products first", [](const double* p, std::size_t n) {
         std::vector<double> q;
         for (std::size_t k = 0; k < n; k += 2) q.push_back(p[k]);
         for (std::size_t k = 1; k < n; k += 2) q.push_back(p[k]);
         return fused(q.data(), n, 16, 25, 23);
       }},
      {"steps of 8, F = 24", [](const double* p, std::size_t n) { return fused(p, n, 8, 24, 23); }},
      {"steps of 16, F = 25", [](const double* p, std::size_t n) { return fused(p, n, 16, 25, 23); }},
      {"steps of 32, F = 25", [](const double* p, std::size_t n) { return fused(p, n, 32, 25, 23); }},
      {"slices of 64 in f32", [](const double* p, std::size_t n) { return by_promotion_blocks(p, n, 64, [](const double* q, std::size_t m) { return fused(q, m, 16, 25, 23); }); }},
  };
  // clang-format on
  for (const std::size_t length : {std::size_t{16}, std::size_t{32}}) {
    for (const std::size_t interval : {std::size_t{0}, std::size_t{128}, std::size_t{256}}) {
      Model model;
      model.name = "FP22, steps of " + std::to_string(length) + ", promoted every " + std::to_string(interval);
      model.only_fp22 = true;
      model.sum = [=](const double* p, std::size_t n) {
        const auto block = [=](const double* q, std::size_t m) { return fused(q, m, length, 13, 13); };
        return interval == 0 ? block(p, n) : by_promotion_blocks(p, n, interval, block);
      };
      models.push_back(model);
    }
  }
  return models;
}

inline std::vector<Model> wrong_models() {
  // clang-format off
  std::vector<Model> models{
      {"bf16 sums every 16", [](const double* p, std::size_t n) { return rounded_every_16(p, n, to_bf16); }},
      {"f16 sums every 16", [](const double* p, std::size_t n) { return rounded_every_16(p, n, to_f16); }},
      {"sums cut to 12 bits", [](const double* p, std::size_t n) { return rounded_every_16(p, n, [](double x) { return rounded(x, 12, false); }); }},
      {"F = 10", [](const double* p, std::size_t n) { return fused(p, n, 32, 10, 23); }},
      {"F = 12", [](const double* p, std::size_t n) { return fused(p, n, 32, 12, 13); }},
      {"times 1 + 2^-8", exact, {}, 1 + 0x1p-8},
      {"one k twice", exact, [](Products& p) {
         if (p.value.empty()) return;
         p.value.push_back(p.value[p.value.size() / 2]);
         p.scale.push_back(p.scale[p.scale.size() / 2]);
       }},
      {"scales of the next block", exact, {}, 1, 1},
  };
  // clang-format on
  for (const std::size_t tail : {1, 16, 32, 128}) {
    models.push_back({"without the last " + std::to_string(tail), exact, [tail](Products& p) {
                        if (p.value.size() <= tail) return;
                        p.value.resize(p.value.size() - tail);
                        p.scale.resize(p.value.size());
                      }});
  }
  return models;
}

inline double element_at(const OperandView& operand, std::int64_t i, std::int64_t k, int neighbour) {
  const double value = second_route::value_of(operand.type, operand.element(i, k));
  if (operand.scale.data == nullptr || operand.scale.type == Format::f32) return value;
  const std::int64_t block = operand.scale.k_block, blocks = (operand.depth + block - 1) / block;
  const std::uint8_t scale = operand.scale.code(i, neighbour == 0 || blocks < 2 ? k : (k / block + neighbour) % blocks * block);
  if (operand.scale.type == Format::e8m0) return scale == 0xff ? NAN : std::ldexp(value, scale - 127);
  return value * second_route::value_of(operand.scale.type, scale & 0x7F);  // the unit reads UE4M3: no sign
}

inline double outside_scale(const OperandView& operand, std::int64_t i, std::int64_t k, int neighbour) {
  const std::int64_t blocks = (operand.depth + 127) / 128;
  return operand.scale.value(i, neighbour == 0 || blocks < 2 ? k : (k / 128 + neighbour) % blocks * 128);
}

inline double stored(Format type, const void* base, std::int64_t at) {
  return type == Format::f32 ? static_cast<const float*>(base)[at]
                             : second_route::value_of(type, static_cast<const std::uint16_t*>(base)[at]);
}

inline void store(Format type, void* base, std::int64_t at, double value) {
  if (type == Format::f32) {
    static_cast<float*>(base)[at] = static_cast<float>(value);
  } else if (type == Format::e4m3 || type == Format::e5m2) {
    const auto rounded = static_cast<float>(value);
    static_cast<std::uint8_t*>(base)[at] = type == Format::e4m3 ? scalar::encode_e4m3(rounded) : scalar::encode_e5m2(rounded);
  } else {
    static_cast<std::uint16_t*>(base)[at] = static_cast<std::uint16_t>(
        type == Format::bf16 ? scalar::encode_bf16(static_cast<float>(value)) : scalar::encode_f16(static_cast<float>(value)));
  }
}

// The products of every element of D, group after group.
inline std::vector<Products> products_of(const GroupedGemmView& view, int neighbour) {
  std::vector<Products> all;
  for (const GroupView& group : view.groups) {
    std::vector<double> rows, columns;
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t k = 0; k < group.depth; ++k) rows.push_back(element_at(group.rows, i, k, neighbour));
    }
    for (std::int64_t j = 0; j < group.n; ++j) {
      for (std::int64_t k = 0; k < group.depth; ++k) columns.push_back(element_at(group.columns, j, k, 0));
    }
    for (std::int64_t i = 0; i < group.m; ++i) {
      for (std::int64_t j = 0; j < group.n; ++j) {
        Products& products = all.emplace_back();
        for (std::int64_t k = 0; k < group.depth; ++k) {
          products.value.push_back(rows[static_cast<std::size_t>(i * group.depth + k)] *
                                   columns[static_cast<std::size_t>(j * group.depth + k)]);
          products.scale.push_back(view.kind == GemmKind::fp8_block
                                       ? outside_scale(group.rows, i, k, neighbour) * outside_scale(group.columns, j, k, 0)
                                       : 1);
        }
      }
    }
  }
  return all;
}

// D of a grouped_gemm as the model computes it from these products.
inline void multiply(const Model& model, const GroupedGemmView& view, const std::vector<Products>& all, void* d) {
  std::size_t element = 0;
  for (std::size_t g = 0; g < view.groups.size(); ++g) {
    const GroupView& group = view.groups[g];
    double factor = group.alpha;
    if (view.kind == GemmKind::fp8_per_tensor) {
      const GroupView& other = view.groups[(g + static_cast<std::size_t>(model.neighbour)) % view.groups.size()];
      factor *= static_cast<double>(other.rows.scale.value(0, 0)) * group.columns.scale.value(0, 0);
    } else if (view.kind == GemmKind::nvfp4) {
      factor *= static_cast<double>(group.rows.amax) * group.columns.amax / 7225344.0;
    }
    for (std::int64_t at = group.d_offset; at < group.d_offset + group.m * group.n; ++at, ++element) {
      Products spoilt;
      const Products* products = &all[element];
      if (model.spoil) {
        spoilt = *products;
        model.spoil(spoilt);
        products = &spoilt;
      }
      double acc = 0;
      const std::size_t count = products->value.size(),
                        length = view.kind == GemmKind::fp8_block ? 128 : std::max<std::size_t>(count, 1);
      for (std::size_t first = 0; first < count; first += length) {
        acc = static_cast<float>(acc + model.sum(products->value.data() + first, std::min(length, count - first)) *
                                           products->scale[first]);
      }
      double value = static_cast<float>(acc * model.times * factor);
      if (group.beta != 0) value = static_cast<float>(value + static_cast<double>(group.beta) * stored(view.d_type, view.c, at));
      if (bytes_of(view.d_type, 1) == 1) value = static_cast<float>(value) * group.d_scale;
      store(view.d_type, d, at, value);
      if (group.bias != nullptr) {
        const double bias = stored(view.d_type, group.bias, (at - group.d_offset) % group.n);
        store(view.d_type, d, at, stored(view.d_type, d, at) + bias);
      }
    }
  }
}

inline void multiply(const Model& model, const GroupedGemmProblem& problem, void* d) {
  const GroupedGemmView view = view_of(problem, d);
  multiply(model, view, products_of(view, model.neighbour), d);
}

// Makes the backend compute grouped_gemm with this model, and state nothing about its numerics.
inline void plant(Rogue& rogue, const Model& model) {
  rogue.state = [](assay_numerics& numerics) { numerics.unit[0] = numerics.plan[0] = '\0'; };
  rogue.execute = [&rogue, model](const assay_call& call) {
    const assay_status status = rogue.honest(call);  // checks the call
    if (status != ASSAY_OK) return status;
    const Request request = Request::of(call);
    ParsedGroupedGemm parsed;
    parse_grouped_gemm(request, parsed);
    multiply(model, parsed.problem, tensor(call, "d").data);
    return ASSAY_OK;
  };
}

}  // namespace assay::conformance::models
