"""E8M0 scales of blocks of 32: torchao's four modes, microxcaling. peers.py says what each function takes."""

import numpy as np

from small_floats import FORMATS, encode, torch_cast
from steps import amax, bits, blocks, clamp_nan, f32, from_bits, ieee_div, log2_f32, power_of_two, spread, unblock

BLOCK = (1, 32)


def torchao_cast(y, fmt):
    """FP8 is clamped and cast by torch; FP6 and FP4 saturate by themselves, and have no code for a NaN, which gives 0 here."""
    if fmt.sign == 0x80:
        return torch_cast(clamp_nan(y, fmt.largest), fmt)
    return encode(y, fmt, nan=0)


def check(name, x, x_type):
    if x_type == "f16" or x.shape[1] % 32:
        raise ValueError(f"{name}: x is {x_type} [{x.shape[0]}, {x.shape[1]}], expected bf16 or f32 and K a multiple of 32")


def torchao_mx(x, x_type, mode, fmt="e4m3"):
    """prototype/mx_formats/mx_tensor.py: to_mx in the modes floor, ceil and even. Byte 0 divides by 2^-126, byte 255 by
    infinity."""
    check(f"torchao.mx_{mode}", x, x_type)
    fmt = FORMATS[fmt]
    b = blocks(x, BLOCK)
    a = amax(b, "kept")
    nan = np.isnan(a)
    pattern = bits(np.where(nan, f32(1), a)).astype(np.int64)
    if mode == "even":
        pattern = (pattern + (1 << (23 - fmt.mantissa_bits - 1))) & ~0x7FFFFF
    exponent = (pattern >> 23) - 127 - fmt.largest_exponent
    if mode == "ceil":
        exponent = exponent + ((pattern & 0x7FFFFF) != 0)
    byte = np.where(nan, 255, np.clip(exponent, -127, 128) + 127).astype(np.uint8)
    scale = np.maximum(from_bits(byte.astype(np.uint32) << 23), np.finfo(f32).tiny)
    return unblock(torchao_cast(b / spread(scale), fmt), x.shape), byte, None


def e8m0_up(d):
    """cvt.rp.satfinite.ue8m0x2.f32: the byte of the least power of two from 2^-127 to 2^127 that is not below |d|; infinity gives the
    largest, NaN 255."""
    pattern = bits(d).astype(np.int64) & 0x7FFFFFFF
    byte = np.where(pattern <= 1 << 22, 0, np.maximum((pattern >> 23) + ((pattern & 0x7FFFFF) != 0), 1))
    return np.where(np.isnan(d), 255, np.minimum(byte, 254)).astype(np.uint8)


def torchao_mx_rceil(x, x_type, fmt="e4m3", div=ieee_div, exact=False):
    """to_mx in the mode rceil. exact: the instruction of compiled code on SM100; otherwise ceil of a rounded log2. Byte 0
    multiplies by 1."""
    check("torchao.mx_rceil", x, x_type)
    fmt = FORMATS[fmt]
    b = blocks(x, BLOCK)
    d = div(amax(b, "kept"), fmt.largest)
    if exact:
        byte = e8m0_up(d)
    else:
        log2 = np.ceil(log2_f32(d))
        exponent = np.clip(np.nan_to_num(log2, posinf=127, neginf=-127), -127, 127)
        byte = np.where(np.isnan(d), 255, np.where(np.isinf(d), 254, exponent + 127)).astype(np.uint8)
    multiplier = np.where(byte == 0, f32(1), power_of_two(127 - byte.astype(np.int64)))
    multiplier = np.where(byte == 255, d, multiplier)
    return unblock(torchao_cast(clamp_nan(b * spread(multiplier), fmt.largest), fmt), x.shape), byte, None


def microxcaling(x, x_type, fmt="e4m3", rounding="nearest", method="max", flush_fp32_subnorms=False):
    """mx/mx_ops.py: _quantize_mx on float32 tensors; rounding nearest (half away from zero, its default), even or floor.

    It has no codes and no bytes, only dequantized values: here they are split into both. A block with a NaN or an infinity is
    NaN throughout: byte 255 and codes 0. method none: an exponent for each element.
    """
    fmt = FORMATS[fmt]
    b = blocks(x, BLOCK)
    a = np.abs(b) if method == "none" else spread(amax(b, "kept"))
    exponent = np.floor(log2_f32(np.where(a == 0, f32(2.0**-126), a)))
    if flush_fp32_subnorms:
        b = b * (exponent > -127).astype(f32)
    exponent = exponent - f32(fmt.largest_exponent)
    lost = np.isnan(exponent) | (exponent > 127)
    exponent = np.maximum(np.where(lost, f32(0), exponent), -127)
    y = np.where(lost, f32(0), b / power_of_two(exponent))
    value = np.minimum(microxcaling_round(np.abs(y), fmt, rounding), fmt.largest)
    # A zero that was zero before has no sign.
    codes = encode(np.where(np.signbit(y) & (y != 0), -value, value), fmt)
    byte = np.where(lost, 255, exponent + 127).astype(np.uint8)
    return unblock(codes, x.shape), byte.reshape(x.shape[0], -1), None


def microxcaling_round(a, fmt, rounding):
    """_quantize_elemwise_core of magnitudes: the exponent of each is floor of a rounded log2 too."""
    own = np.floor(log2_f32(np.where(a == 0, f32(1), a)))
    unit = power_of_two(np.maximum(own, 1 - fmt.bias) - fmt.mantissa_bits)
    whole = a / unit
    if rounding == "floor":
        return np.floor(whole) * unit
    up = np.floor(whole + f32(0.5))
    if rounding == "even":
        up = up - (np.mod(whole - f32(0.5), f32(2)) == 0)
    return up.astype(f32) * unit
