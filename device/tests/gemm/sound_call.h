#pragma once
// A valid call of any kind and layout. Addresses are invented: no test reads what they point to.

#include <cstdint>

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

template <class T = void>
inline T* address(std::uintptr_t value) {
  return reinterpret_cast<T*>(value);
}

inline GroupedGemmCall sound(GemmKind kind, GemmLayout layout) {
  GroupedGemmCall call;
  call.kind = kind;
  call.layout = layout;
  call.rows = {512, address<const std::int64_t>(0x1000), 4};
  call.N = 256;
  call.K = 384;
  const Format type = kind == GemmKind::bf16    ? Format::bf16
                      : kind == GemmKind::f16   ? Format::f16
                      : kind == GemmKind::nvfp4 ? Format::e2m1
                                                : Format::e4m3;
  std::uintptr_t at = 0x10000;
  for (GemmOperand* operand : {&call.x, &call.w, &call.dy}) {
    operand->type = type;
    operand->data = address(at);
    operand->scale_inv = address(at + 0x100);
    operand->amax = address<const float>(at + 0x200);
    at += 0x1000;
  }
  call.x.columnwise = call.dy.columnwise = layout == GemmLayout::NT;
  call.w.columnwise = layout == GemmLayout::NN;
  call.d = address(0x80000);
  return call;
}

}  // namespace assay::device
