"""FP8 with float32 scales: DeepSeek-V3, DeepGEMM, SGLang, vLLM, FBGEMM, torchao. peers.py says what each function takes."""

import numpy as np

from small_floats import E2M1, E4M3, FORMATS, encode, satfinite, torch_cast
from steps import (amax, as_bf16, bits, blocks, ceil_exponent, clamp_max_outside, clamp_min_outside, clamp_nan, exp2_f32,
                   f32, from_bits, ieee_div, ieee_rcp, log2_f32, power_of_two, reciprocal_div, spread, unblock)

# --- DeepSeek-V3, inference/kernel.py: act_quant ------------------------------------------------------------------------------


def deepseek_v3(x, x_type, ue8m0=False, div=ieee_div, rcp=None):
    """1x128. On a GPU Triton makes of the quotients div=reciprocal_div and x * rcp(s): give both."""
    if x.shape[1] % 128:
        raise ValueError(f"deepseek_v3: K is {x.shape[1]}, expected a multiple of 128")
    b = blocks(x, (1, 128))
    s = div(np.maximum(amax(b, "passed"), f32(1e-4)), 448)
    if ue8m0:
        s = exp2_f32(np.ceil(log2_f32(s)))
    y = b / spread(s) if rcp is None else b * spread(rcp(s))
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


# --- DeepGEMM, deep_gemm/utils/math.py: per_token, per_channel and per_block casts -------------------------------------------


def deepgemm(x, x_type, ue8m0=False, block=(1, 128), div=ieee_div):
    """Blocks of 1x128, 128x1 or 128x128; both dimensions are padded with zeros, but 128x1 refuses a ragged R."""
    if block[0] > 1 and block[1] == 1 and x.shape[0] % block[0]:
        raise ValueError(f"deepgemm: R is {x.shape[0]}, expected a multiple of {block[0]}")
    b = blocks(x, block)
    s = div(np.maximum(amax(b, "kept"), f32(1e-4)), 448)
    if ue8m0:
        s = power_of_two(np.clip(ceil_exponent(s), 1, 254) - 127)
    return unblock(torch_cast(b * spread(f32(1) / s), E4M3), x.shape), bits(s), None


def deepgemm_fp4(x, x_type, ue8m0=False, block=(1, 128), div=ieee_div):
    """per_token_cast_to_fp4: ties go towards zero, no zero is negative, NaN gives 0."""
    b = blocks(x, block)
    s = div(np.maximum(amax(b, "kept"), f32(1e-4)), 6)
    if ue8m0:
        s = power_of_two(np.clip(ceil_exponent(s), 1, 254) - 127)
    y = b * spread(f32(1) / s)
    code = encode(y, E2M1, nan=0, ties="zero")
    return unblock(np.where(code == 8, 0, code).astype(np.uint8), x.shape), bits(s), None


# --- SGLang, sgl-kernel/csrc/gemm --------------------------------------------------------------------------------------------


def sglang_group_v1(x, x_type, group=128, div=ieee_div, rcp=None):
    """per_token_group_quant_8bit.cu. The library for SM90 is built with fast math: div=reciprocal_div there."""
    b = blocks(x, (1, group))
    s = div(np.maximum(amax(b, "passed"), f32(1e-10)), 448)
    y = b / spread(s) if rcp is None else b * spread(rcp(s))
    return unblock(satfinite(clamp_min_outside(y, E4M3.largest), E4M3), x.shape), bits(s), None


def sglang_group_v2(x, x_type, group=128, ue8m0=False, rcp=ieee_rcp):
    """per_token_group_quant_8bit_v2.cu: the scale is multiplied by RN(1/448) on every machine."""
    b = blocks(x, (1, group))
    a = np.maximum(amax(b, "passed"), f32(1e-10))
    s = reciprocal_div(a, 448)
    multiplier = f32(448) / a if rcp is ieee_rcp else f32(448) * rcp(a)
    if ue8m0:
        # Both powers are made by bits; for an infinite amax the exponent of the multiplier wraps, to minus infinity.
        exponent = ceil_exponent(s)
        s, multiplier = from_bits(exponent << 23), from_bits(((254 - exponent) << 23) & 0xFFFFFFFF)
    y = clamp_min_outside(b * spread(multiplier), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


def sglang_per_token(x, x_type, many_tokens=False, div=ieee_div, rcp=ieee_rcp):
    """per_token_quant_fp8.cu. many_tokens: the kernel that takes over at 16 tokens for each SM; a row of zeros differs."""
    b = blocks(x, (1, None))
    s = div(amax(b, "passed"), 448)
    inverse = np.where(s == 0, f32(0), rcp(s)) if many_tokens else rcp(s)
    y = clamp_max_outside(b * spread(inverse), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


def sglang_per_tensor(x, x_type, div=ieee_div, rcp=ieee_rcp):
    """per_tensor_quant_fp8.cu"""
    b = blocks(x, (None, None))
    s = div(amax(b, "passed"), 448)
    y = clamp_max_outside(b * spread(rcp(s)), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


# --- vLLM, csrc/quantization/w8a8/fp8: per_token_group_quant.cu, common.cu ---------------------------------------------------

MIN_SCALE = f32(1) / f32(448 * 512)


def vllm_group(x, x_type, group=128, eps=1e-10, ue8m0=False):
    b = blocks(x, (1, group))
    s = np.maximum(amax(b, "passed"), f32(eps)) / f32(448)
    if ue8m0:
        s = power_of_two(ceil_exponent(np.maximum(s, f32(1e-10))) - 127)
    y = clamp_min_outside(b / spread(s), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


def vllm_per_token(x, x_type, upper=None):
    """dynamic_per_token_scaled_fp8_quant; upper: its scale_ub, a bound of the amax."""
    b = blocks(x, (1, None))
    a = amax(b, "passed")
    if upper is not None:
        a = np.minimum(a, f32(upper))
    s = np.maximum(a / f32(448), MIN_SCALE)
    y = clamp_max_outside(b / spread(s), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


def vllm_per_tensor(x, x_type):
    """dynamic_scaled_fp8_quant: no floor, and a product with 1/s where per_token divides."""
    b = blocks(x, (None, None))
    s = amax(b, "passed") / f32(448)
    y = clamp_max_outside(b * spread(f32(1) / s), E4M3.largest)
    return unblock(satfinite(y, E4M3), x.shape), bits(s), None


# --- FBGEMM: gen_ai/src/quantize/quantize.cu; gemm/triton_gemm/fp8_gemm.py ---------------------------------------------------


def fbgemm(x, x_type, block=(1, None), upper=None, fmt="e4m3"):
    """quantize_fp8_per_row and, with block (None, None), quantize_fp8_per_tensor."""
    fmt = FORMATS[fmt]
    b = blocks(x, block)
    a = amax(b, "passed")
    if upper is not None:
        a = np.minimum(a, f32(upper))
    s = np.maximum(a / fmt.largest, f32(1) / (fmt.largest * f32(512)))
    return unblock(satfinite(b / spread(s), fmt), x.shape), bits(s), None


def fbgemm_block(x, x_type, block=(1, None), gpu=False, rcp=ieee_rcp):
    """quantize_fp8_row, _block and _group. gpu: the Triton kernel; otherwise the same in torch, whose floor of a row and of a
    block, but not of a group of 128, is rounded to bf16 where x is bf16. On a GPU, give rcp."""
    b = blocks(x, block)
    a = amax(b, "passed" if gpu else "kept")
    eps = as_bf16(1e-12) if x_type == "bf16" and not gpu and block != (1, 128) else f32(1e-12)
    if x_type == "f16" and not gpu and block != (1, 128):
        eps = f32(0)
    # torch forms 448.0 / tensor as a reciprocal and a product; so does Triton on a GPU.
    multiplier = rcp(np.maximum(a, eps)) * f32(448)
    if not gpu:
        multiplier = np.where(np.isinf(multiplier), f32(1), multiplier)
    y = b * spread(multiplier)
    codes = satfinite(clamp_max_outside(y, E4M3.largest), E4M3) if gpu else torch_cast(y, E4M3)
    return unblock(codes, x.shape), bits(rcp(multiplier)), None


# --- torchao: float8/float8_utils.py; prototype/blockwise_fp8_training/kernels.py --------------------------------------------


def torchao_rowwise(x, x_type, fmt="e4m3", pow2=False, block=(1, None)):
    """amax_to_scale and to_fp8_saturated. The quotient is formed in float64; stored is the multiplier, not its reciprocal."""
    fmt = FORMATS[fmt]
    b = blocks(x, block)
    a = np.maximum(amax(b, "kept").astype(np.float64), 1e-12)
    s = (np.float64(fmt.largest) / a).astype(f32)
    if pow2:
        s = exp2_f32(np.floor(log2_f32(s)))
    return unblock(torch_cast(clamp_nan(b * spread(s), fmt.largest), fmt), x.shape), bits(s), None


def torchao_block(x, x_type, block=(1, 128)):
    """Blocks of 1x128, 128x1 or 128x128. The floor is taken in float64, for 128x1 in the type of x."""
    if x.shape[0] % block[0] or x.shape[1] % block[1]:
        raise ValueError(f"torchao.block: x is {x.shape}, expected multiples of {block}")
    b = blocks(x, block)
    eps = {"f32": np.float64(f32(1e-12)), "bf16": np.float64(as_bf16(1e-12)), "f16": 0.0}[x_type] if block == (128, 1) else 1e-12
    multiplier = (448.0 / np.maximum(amax(b, "kept").astype(np.float64), eps)).astype(f32)
    codes = torch_cast(clamp_nan(b * spread(multiplier), E4M3.largest), E4M3)
    return unblock(codes, x.shape), bits(f32(1) / multiplier), None
