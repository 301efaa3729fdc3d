#pragma once
// Approximate f32 instructions that kernels have as asm, by name (mutate.py makes calls of them): the tables of the reference, which are
// those of a device.

#include "reference/approximations/approximations.h"

namespace assay::device::host {

inline void rcp_approx_ftz_f32(float& result, float a) { result = rcp_approx_ftz(a); }
inline void rcp_approx_f32(float& result, float a) { result = rcp_approx(a); }
inline void ex2_approx_ftz_f32(float& result, float a) { result = ex2_approx_ftz(a); }
inline void ex2_approx_f32(float& result, float a) { result = ex2_approx(a); }
inline void rsqrt_approx_ftz_f32(float& result, float a) { result = rsqrt_approx_ftz(a); }
inline void rsqrt_approx_f32(float& result, float a) { result = rsqrt_approx(a); }
inline void tanh_approx_f32(float& result, float a) { result = tanh_approx(a); }
inline void div_full_f32(float& result, float a, float b) { result = div_full(a, b); }
inline void div_approx_ftz_f32(float& result, float a, float b) { result = div_approx_ftz(a, b); }

}  // namespace assay::device::host
