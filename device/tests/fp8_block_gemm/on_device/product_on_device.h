#pragma once
// Products of the FP8 block GEMM on the device, whose groups have operands that depend on their seed and rows alone.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "device/fp8_block_gemm/fp8_block_gemm.h"
#include "device/support/error.h"

namespace assay::device {

inline void check(cudaError_t error, const char* call) {
  if (error != cudaSuccess) throw CudaError(std::string(call) + ": " + cudaGetErrorString(error));
}

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(cudaMalloc(&at_, bytes + 256), "cudaMalloc"); }
  template <class T>
  explicit Memory(const std::vector<T>& values) : Memory(values.size() * sizeof(T)) {
    check(cudaMemcpy(at_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  Memory(const Memory&) = delete;
  ~Memory() { cudaFree(at_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(at_);
  }

 private:
  void* at_ = nullptr;
};

struct Group {
  std::uint32_t seed;  // of its codes and scales
  std::int64_t rows;
};

inline constexpr std::int64_t kN = 400, kK = 1040;
inline std::int64_t blocks(std::int64_t size) { return (size + 127) / 128; }
inline std::int64_t by4(std::int64_t size) { return (size + 3) / 4 * 4; }

// Scales that round in products; or powers of two, of which one in 16 may lie anywhere in the range, so that products overflow and
// underflow too.
enum class DrawnScales { any, pow2 };

// Finite E4M3 codes, and scales. What a group has depends on its seed and rows alone.
class Draw {
 public:
  Draw(std::uint32_t seed, DrawnScales scales) : bits_(seed), scales_(scales) {}
  void codes(std::vector<std::uint8_t>& to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto code = static_cast<std::uint8_t>(bits_());
      to.push_back((code & 0x7F) == 0x7F ? std::uint8_t{0x40} : code);
    }
  }
  void scales(std::vector<float>& to, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i)
      to.push_back(scales_ == DrawnScales::pow2 ? power_of_two() : 0.5f + static_cast<float>(bits_() >> 8) * 0x1p-24f);
  }

 private:
  float power_of_two() {
    const bool far = bits_() % 16 == 0;
    const auto number = static_cast<int>(bits_() % (far ? 255 : 17));
    return std::ldexp(1.0f, number - (far ? 127 : 8));
  }

  std::mt19937 bits_;
  DrawnScales scales_;
};

// A product on the device, with D of its own. With DrawnScales::pow2 the call promises powers of two.
class Product {
 public:
  Product(GemmLayout layout, WeightBlock block, const std::vector<Group>& groups, DrawnScales scales = DrawnScales::any)
      : layout_(layout),
        groups_(groups),
        host_(made(layout, block, groups, scales)),
        a_(host_.a),
        b_(host_.b),
        a_scales_(host_.a_scales),
        b_scales_(host_.b_scales),
        splits_(host_.splits),
        d_(elements() * sizeof(float)),
        status_(std::vector<std::uint32_t>{0}) {
    call_.kind = GemmKind::fp8_block;
    call_.layout = layout;
    call_.weight_block = block;
    call_.split_accumulator = true;
    call_.rows = {rows(), splits_.as<std::int64_t>(), static_cast<int>(groups.size())};
    call_.N = kN, call_.K = kK;
    call_.pow2_scales = scales == DrawnScales::pow2;
    const bool wgrad = layout == GemmLayout::NT;
    const auto operand = [&](const Memory& data, const Memory& scales) {
      GemmOperand made;
      made.type = Format::e4m3;
      made.data = data.as<void>(), made.scale_inv = scales.as<void>();
      made.columnwise = wgrad;
      return made;
    };
    (wgrad ? call_.dy : call_.x) = operand(a_, a_scales_);
    (wgrad ? call_.x : call_.w) = operand(b_, b_scales_);
    call_.d_type = Format::f32;
    call_.d = d_.as<void>();
    call_.status = status_.as<std::uint32_t>();
    workspace_ = std::make_unique<Memory>(static_cast<std::size_t>(fp8_block_gemm_workspace_bytes(call_, {})));
    call_.workspace = workspace_->as<void>();
    call_.workspace_bytes = fp8_block_gemm_workspace_bytes(call_, {});
  }

  void enqueue(const Fp8BlockSettings& settings, Stream stream) const { fp8_block_grouped_gemm(call_, settings, stream); }

  void clear() const { check(cudaMemset(d_.as<void>(), 0xA5, elements() * sizeof(float)), "cudaMemset"); }
  std::vector<std::uint32_t> output() const {
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::uint32_t> words(elements());
    check(cudaMemcpy(words.data(), d_.as<void>(), words.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    const std::uint32_t status = take_status();
    if (status != 0) throw CudaError("status " + describe_status(status));
    return words;
  }
  std::vector<std::uint32_t> run(const Fp8BlockSettings& settings = {}) const {
    clear();
    enqueue(settings, nullptr);
    return output();
  }

  // The same bits, by the kernel that takes any scales.
  std::vector<std::uint32_t> run_without_promise() const {
    GroupedGemmCall call = call_;
    call.pow2_scales = false;
    clear();
    fp8_block_grouped_gemm(call, {}, nullptr);
    return output();
  }

  // The status word after a call in which scale `index` of A, or of B, is no power of two.
  std::uint32_t status_with_other_scale(bool of_a, std::size_t index) const {
    std::vector<float> scales = of_a ? host_.a_scales : host_.b_scales;
    scales.at(index) = std::nextafter(1.0f, 2.0f);
    const Memory other(scales);
    GroupedGemmCall call = call_;
    (of_a ? call.dy : call.x).scale_inv = other.as<void>();
    fp8_block_grouped_gemm(call, {}, nullptr);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return take_status();
  }
  std::size_t scale_count(bool of_a) const { return (of_a ? host_.a_scales : host_.b_scales).size(); }

  // NT: D as a list, in which each group has the place of another one: the first that of the last.
  std::vector<std::uint32_t> run_in_list() const {
    std::vector<void*> list;
    for (std::size_t i = groups_.size(); i-- > 0;) list.push_back(d_.as<float>() + static_cast<std::int64_t>(i) * kN * kK);
    GroupedGemmCall listed = call_;
    listed.d = nullptr, listed.d_list = list.data();
    clear();
    fp8_block_grouped_gemm(listed, {}, nullptr);
    return output();
  }

  // TN: w as a list of matrices and of scales, which lie apart and in the opposite order.
  std::vector<std::uint32_t> run_with_listed_w() const {
    const std::size_t groups = groups_.size(), scales_of_group = host_.b_scales.size() / groups;
    std::vector<std::uint8_t> codes;
    std::vector<float> scales;
    for (std::size_t i = groups; i-- > 0;) {
      codes.insert(codes.end(), host_.b.begin() + i * kN * kK, host_.b.begin() + (i + 1) * kN * kK);
      scales.insert(scales.end(), host_.b_scales.begin() + i * scales_of_group,
                    host_.b_scales.begin() + (i + 1) * scales_of_group);
    }
    const Memory listed_codes(codes), listed_scales(scales);
    std::vector<const void*> list, scale_list;
    for (std::size_t i = groups; i-- > 0;) {
      list.push_back(listed_codes.as<std::uint8_t>() + i * kN * kK);
      scale_list.push_back(listed_scales.as<float>() + i * scales_of_group);
    }
    GroupedGemmCall listed = call_;
    listed.w.data = listed.w.scale_inv = nullptr;
    listed.w.data_list = list.data(), listed.w.scale_inv_list = scale_list.data();
    const Memory workspace(static_cast<std::size_t>(fp8_block_gemm_workspace_bytes(listed, {})));
    listed.workspace = workspace.as<void>(), listed.workspace_bytes = fp8_block_gemm_workspace_bytes(listed, {});
    clear();
    fp8_block_grouped_gemm(listed, {}, nullptr);
    return output();
  }

  // D at the address that is so many elements behind a multiple of 256 bytes.
  std::vector<std::uint32_t> run_at(std::int64_t elements_on) const {
    const Memory memory((elements() + static_cast<std::size_t>(elements_on)) * sizeof(float));
    float* const place = memory.as<float>() + elements_on;
    GroupedGemmCall call = call_;
    call.d = place;
    fp8_block_grouped_gemm(call, {}, nullptr);
    check(cudaMemcpy(d_.as<void>(), place, elements() * sizeof(float), cudaMemcpyDeviceToDevice), "cudaMemcpy");
    return output();
  }

  // Of a call with other splits and a promise: whether a byte of D was written, and the status word.
  std::pair<bool, std::uint32_t> run_refused(const std::vector<std::int64_t>& splits, std::int64_t rows_multiple) const {
    const Memory other(splits);
    GroupedGemmCall call = call_;
    call.rows.splits = other.as<std::int64_t>(), call.rows_multiple = rows_multiple;
    clear();
    fp8_block_grouped_gemm(call, {}, nullptr);
    check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    std::vector<std::uint32_t> words(elements());
    check(cudaMemcpy(words.data(), d_.as<void>(), words.size() * sizeof(float), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return {std::any_of(words.begin(), words.end(), [](std::uint32_t word) { return word != 0xA5A5A5A5u; }), take_status()};
  }

  // The words of group `index` in the output.
  std::vector<std::uint32_t> of_group(const std::vector<std::uint32_t>& words, std::size_t index) const {
    std::int64_t first = 0;
    for (std::size_t i = 0; i < index; ++i) first += words_of(groups_[i]);
    return {words.begin() + first, words.begin() + first + words_of(groups_[index])};
  }

 private:
  struct Host {
    std::vector<std::uint8_t> a, b;
    std::vector<float> a_scales, b_scales;
    std::vector<std::int64_t> splits;
  };
  static Host made(GemmLayout layout, WeightBlock block, const std::vector<Group>& groups, DrawnScales scales) {
    Host host;
    for (const Group& group : groups) {
      Draw draw(group.seed, scales);
      host.splits.push_back(group.rows);
      if (layout == GemmLayout::NT) {
        draw.codes(host.a, kN * group.rows), draw.scales(host.a_scales, blocks(group.rows) * by4(kN));
        draw.codes(host.b, kK * group.rows), draw.scales(host.b_scales, blocks(group.rows) * by4(kK));
      } else {
        draw.codes(host.a, group.rows * kK), draw.scales(host.a_scales, blocks(kK) * by4(group.rows));
        draw.codes(host.b, kN * kK);
        draw.scales(host.b_scales, block == WeightBlock::b128x128 ? blocks(kN) * by4(blocks(kK)) : blocks(kK) * by4(kN));
      }
    }
    return host;
  }

  std::uint32_t take_status() const {
    std::uint32_t status = 0;
    check(cudaMemcpy(&status, status_.as<void>(), sizeof status, cudaMemcpyDeviceToHost), "cudaMemcpy");
    check(cudaMemset(status_.as<void>(), 0, sizeof status), "cudaMemset");
    return status;
  }

  std::int64_t words_of(const Group& group) const { return layout_ == GemmLayout::NT ? kN * kK : group.rows * kN; }
  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const Group& group : groups_) sum += group.rows;
    return sum;
  }
  std::size_t elements() const {
    std::int64_t sum = 0;
    for (const Group& group : groups_) sum += words_of(group);
    return static_cast<std::size_t>(sum);
  }

  GemmLayout layout_;
  std::vector<Group> groups_;
  Host host_;
  Memory a_, b_, a_scales_, b_scales_, splits_, d_, status_;
  std::unique_ptr<Memory> workspace_;
  GroupedGemmCall call_;
};

}  // namespace assay::device
