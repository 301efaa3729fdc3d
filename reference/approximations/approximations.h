#pragma once
// The approximate f32 instructions of NVIDIA GPUs, bit for bit as SM90 gives them (spec approximations-1.1). CUDA code reaches them by
// its intrinsics (__expf, __fdividef), by -use_fast_math, and by Triton's exp and division.
//
// The names are PTX's: `_ftz` takes a subnormal operand as a zero of its sign, and gives a zero for a subnormal result. Every NaN
// among the results is 0x7FFFFFFF.
//
// The values come from tables of whole mantissas that were measured on a device (golden/approximations). The first call of an
// instruction expands its table: 32 MiB for rcp, 64 MiB for ex2 and for rsqrt, 26 MiB for tanh. Calls from several threads are safe.

namespace assay {

float rcp_approx_ftz(float a);    // 1 / a
float rcp_approx(float a);        // the same with subnormal operands and results
float ex2_approx_ftz(float a);    // 2^a
float ex2_approx(float a);        // the same with subnormal results
float rsqrt_approx_ftz(float a);  // 1 / sqrt(a); NaN below 0
float rsqrt_approx(float a);      // the same with subnormal operands
float tanh_approx(float a);       // tanh(a); |a| below 2^-8 is its own result, subnormal or not

// a / b as the compiler builds it from rcp (spec approximations-1.2): div.full.f32 (Triton's division) scales both operands where b
// is too large or too small; div.approx.ftz.f32 (__fdividef, and division under -use_fast_math) does not, so that |b| above 2^126
// gives 0.
float div_full(float a, float b);
float div_approx_ftz(float a, float b);

// e^a as expf() of CUDA 13.0 computes it without fast math (spec approximations-1.2).
float cuda_expf(float a);

// a, or a zero of its sign where a is subnormal.
float flush_subnormal(float a);

}  // namespace assay
