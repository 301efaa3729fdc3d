"""E2M1 in blocks of 16 with E4M3 scales: vLLM, ModelOpt, torchao, fouroversix, TransformerEngine with row scales.

peers.py says what each function takes.
"""

import numpy as np

from small_floats import E2M1, E4M3, encode, satfinite, torch_cast
from steps import FLT_MAX, amax, blocks, clamp_nan, f32, ieee_div, ieee_rcp, spread, unblock

BLOCK = (1, 16)


def sixteen(name, x):
    if x.shape[1] % 16:
        raise ValueError(f"{name}: K is {x.shape[1]}, expected a multiple of 16")
    return blocks(x, BLOCK)


def tensor_amax(x):
    """Of the whole tensor as torch forms it: NaN where one element is."""
    return np.abs(x).max()


def vllm(x, x_type, global_scale=None, rcp=ieee_rcp, emulated=False):
    """csrc/.../fp4/nvfp4_utils.cuh: cvt_warp_fp16_to_fp4. global_scale: 448 * 6 / amax of the tensor, as its callers pass it.

    On a GPU rcp is rcp.approx.ftz. emulated: ref_nvfp4_quant of nvfp4_emulation_utils.py, where a scale of 0 has another use.
    """
    b = sixteen("nvfp4.vllm", x)
    g = f32(2688) / tensor_amax(x) if global_scale is None else f32(global_scale)
    a = amax(b, "kept" if emulated else "passed")
    h = g * (a * rcp(f32(6)))
    if emulated:
        sf = torch_cast(clamp_nan(h, E4M3.largest), E4M3)
        product = E4M3.decode(sf) * rcp(g)
        multiplier = rcp(np.where(product == 0, f32(1e8), product))
        y = clamp_nan(b * spread(multiplier), E2M1.largest)
        codes = np.where(y == 0, 0, encode(y, E2M1))
    else:
        sf = satfinite(h, E4M3)
        multiplier = np.where(sf == 0, f32(0), rcp(E4M3.decode(sf) * rcp(g)))
        codes = satfinite(b * spread(multiplier), E2M1)
    return unblock(codes.astype(np.uint8), x.shape), sf, np.array([g], f32)


def modelopt(x, x_type, div=ieee_div):
    """modelopt/torch/quantization/qtensor/nvfp4_tensor.py: NVFP4QTensor.quantize"""
    b = sixteen("nvfp4.modelopt", x)
    t = div(tensor_amax(x), 2688)
    d = amax(b, "kept") / (f32(6) * t)
    d = np.where(d == 0, f32(1), d)
    sf = torch_cast(np.clip(d, f32(2.0**-9), E4M3.largest), E4M3)
    y = b / spread(decode_or_nan(sf) * t)
    codes = encode(y, E2M1, nan=7)
    codes = np.where(np.signbit(y) & ~(y < 0), codes & 7, codes)
    return unblock(codes.astype(np.uint8), x.shape), sf, np.array([t], f32)


def decode_or_nan(sf):
    return np.where(sf == 0x7F, f32("nan"), E4M3.decode(np.where(sf == 0x7F, 0, sf)))


def torchao(x, x_type, two_level=True, div=ieee_div):
    """prototype/mx_formats/nvfp4_tensor.py: nvfp4_quantize. The scale of a block is at least 2^-6."""
    if x_type == "f16":
        raise ValueError("nvfp4.torchao: x is f16, expected bf16 or f32")
    b = sixteen("nvfp4.torchao", x)
    d = div(amax(b, "kept"), 6)
    t = div(tensor_amax(x), 2688) if two_level else None
    if two_level:
        d = d / t
    sf = torch_cast(np.clip(d, f32(2.0**-6), E4M3.largest), E4M3)
    multiplier = ((f32(1) / t) if two_level else f32(1)) / decode_or_nan(sf)
    codes = encode(clamp_nan(b * spread(multiplier), E2M1.largest), E2M1, nan=0)
    return unblock(codes, x.shape), sf, None if t is None else np.array([t], f32)


def four_over_six_code(y):
    """fake_quantize_to_e2m1: nothing is clamped, and what rounds to 8 takes the bits of a negative zero, or of zero."""
    a = np.abs(y)
    value = np.where(a < 2, np.rint(2 * a) / 2, np.where(a < 4, np.rint(a), 2 * np.rint(a / 2))).astype(f32)
    return value * np.sign(y)


def four_over_six_bits(q):
    """Bits of a value of the list 0, 0.5 ... 6 by the exponent and one bit of the mantissa; beyond 6 they run into the sign."""
    a = np.abs(q)
    exponent = np.where(a == 0, 0, np.frexp(np.where(a == 0, 1, a))[1] - 1 + 1)
    mantissa = np.where(a == 0.5, 1, np.where(a / np.ldexp(f32(1), np.maximum(exponent - 1, 0)) >= 1.5, 1, 0))
    code = (np.signbit(q).astype(np.int64) << 3) | (exponent << 1) | np.where(a == 0, 0, mantissa)
    return (code & 0xFF).astype(np.int64)


def sum_of_torch(parts):
    """The sum of 16 as torch 2.11 forms it on x86: eight sums of two, i and i + 8, then these in order."""
    lanes = parts[..., :8] + parts[..., 8:]
    total = lanes[..., 0]
    for i in range(1, 8):
        total = total + lanes[..., i]
    return total


def four_over_six(x, x_type, rule="mse", sum_order=sum_of_torch):
    """src/fouroversix/quantize/pytorch/reference.py. rule: static_6, static_4, mse, mae or abs_max.

    sum_order: how the 16 errors of a block are added, a function of [..., 16].
    """
    b = sixteen("fouroversix", x)
    total = tensor_amax(x)
    largest = f32(4 if rule == "static_4" else 6)
    product = largest * f32(448 if rule.startswith("static") else 256)
    encode_scale = product / total
    h = np.zeros_like(amax(b, "kept")) if total == 0 else amax(b, "kept") / largest * encode_scale
    decode_scale = f32(1) / encode_scale

    def candidate(h):
        sf = torch_cast(h, E4M3)
        s = decode_or_nan(sf)
        y = np.where(spread(sf) != 0, b * spread(f32(1) / (decode_scale * s)), f32(0))
        return four_over_six_code(y), sf, s

    q, sf, s = candidate(h)
    if not rule.startswith("static"):
        q4, sf4, s4 = candidate(h * f32(1.5))
        errors = []
        for values, scale in ((q, s), (q4, s4)):
            difference = values * spread(scale) * total / product - b
            if rule == "abs_max":
                errors.append(np.abs(difference).max(axis=(1, 3)))
            else:
                parts = difference * difference if rule == "mse" else np.abs(difference)
                errors.append(sum_order(parts[:, 0]))
        four = errors[1] < errors[0]
        q, sf = np.where(spread(four), q4, q), np.where(four, sf4, sf)
    code = four_over_six_bits(q)
    # Two codes share a byte: what runs beyond four bits of the lower one is or-ed into the upper one.
    code = unblock(code, x.shape)
    low, high = code[:, 0::2], code[:, 1::2]
    byte = ((high << 4) | low) & 0xFF
    codes = np.stack([byte & 15, byte >> 4], axis=-1).reshape(x.shape)
    return codes.astype(np.uint8), sf, np.array([total], f32)


def te_row_scaled(x, x_type):
    """TransformerEngine, pytorch/custom_recipes/reference_nvfp4.py with row_scaled_nvfp4: a float32 amax for each row."""
    b = sixteen("nvfp4.te_row_scaled", x)
    row = np.abs(x).max(axis=1)
    encode_scale = np.minimum(f32(2688) / row, FLT_MAX)
    encode_scale = np.where(encode_scale == 0, f32(1), encode_scale)[:, None]
    decode_scale = f32(1) / encode_scale
    h = np.minimum(amax(b, "kept") * (encode_scale * (f32(1) / f32(6))), FLT_MAX)
    sf = torch_cast(clamp_nan(h, E4M3.largest), E4M3)
    multiplier = np.minimum(f32(1) / (decode_or_nan(sf) * decode_scale), FLT_MAX)
    y = clamp_nan(b * spread(multiplier), E2M1.largest)
    codes = np.where(y == 0, 0, encode(y, E2M1, nan=0)).astype(np.uint8)
    return unblock(codes, x.shape), sf, row.astype(f32)
