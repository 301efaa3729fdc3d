#pragma once
// Elements of one operand, decoded for the kernels: a run of lines (rows or columns of D) over a run of steps, in the
// order in which fused_kernel.h reads them. Lines and slots that do not exist are zeros.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "reference/gemm/fused_kernel.h"
#include "reference/gemm/problem.h"

namespace assay::gemm {

// Memory that grows and is reused; contents are not kept. Aligned to cache lines, so that no vector load crosses two.
template <class Value>
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Buffer(Buffer&& other) noexcept : data_(other.data_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.capacity_ = 0;
  }
  Buffer& operator=(Buffer&&) = delete;
  ~Buffer() { release(); }

  // At least `count` values.
  Value* take(std::size_t count) {
    if (count > capacity_) {
      release();
      data_ = static_cast<Value*>(::operator new (count * sizeof(Value), std::align_val_t{64}));
      capacity_ = count;
    }
    return data_;
  }
  Value* data() const { return data_; }

 private:
  void release() {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{64});
    data_ = nullptr;
    capacity_ = 0;
  }
  Value* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// Steps of a chunk and where their elements and scales come from.
struct Chunk {
  const ChainRule* rule = nullptr;
  const Step* steps = nullptr;
  std::int64_t step_count = 0;
  std::int64_t slots() const { return step_count * rule->products; }
};

// One group of 8 rows or one panel of 64 columns.
class PackedOperand {
 public:
  // Decodes lines [first, first + count) of `view`; `width` (kRowGroup or kPanel) lines are laid out. With `for_narrow`
  // the narrow form is made as far as the values allow it: see narrow(). Otherwise the wide form is.
  void pack(const OperandView& view, std::int64_t first, int count, int width, const Chunk& chunk, bool for_narrow);

  // Whether the narrow kernel can take these lines.
  bool narrow() const { return narrow_; }

  // Makes the wide form too, from the codes read by pack(). Further calls do nothing.
  void widen();

  const PackedLines& lines() const { return lines_; }

 private:
  template <class Code>
  void decode_narrow(const Code* codes, std::int64_t count);
  template <class Code>
  void decode_wide(const Code* codes, std::int64_t count);
  void pack_scales(const OperandView& view, std::int64_t first, int count);
  void pack_fp4();
  void widen_codes(Format from, std::int64_t count);

  Format type_ = Format::bf16;  // as the unit reads it
  int width_ = 0;
  Chunk chunk_;
  bool narrow_ = false;
  bool wide_ = false;
  PackedLines lines_;
  Buffer<std::uint8_t> codes8_;
  Buffer<std::uint16_t> codes16_;
  Buffer<float> value_, significand_, scale_, next_scale_;
  Buffer<std::int8_t> exponent_byte_;
  Buffer<std::uint32_t> exponent_word_, nonzero_;
  Buffer<std::int32_t> exponent_, scale_exponent_;
  Buffer<std::uint8_t> scale_nan_;  // mxfp8: [step][line], the scale is NaN
};

}  // namespace assay::gemm
