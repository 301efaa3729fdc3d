"""Steps that several quantizers of other people share: blocks, their amax, quotients by a constant, clamps.

Two things change with the machine. `div(a, c)`, a quotient by a constant: torch on a CPU and plain CUDA divide, torch on a GPU,
Triton and CUDA built with fast math multiply by the rounded reciprocal. `rcp`, a reciprocal at run time: exact, or the
approximate instruction of a GPU, which a caller who has its table can give.
"""


import gzip
from pathlib import Path

import numpy as np

f32 = np.float32
FLT_MAX = np.finfo(f32).max
np.seterr(all="ignore")


def bits(x):
    if np.asarray(x).dtype != f32:
        raise TypeError(f"bits: x is {np.asarray(x).dtype}, expected float32")
    return np.ascontiguousarray(x).view(np.uint32)


def from_bits(b):
    return np.ascontiguousarray(b, np.uint32).view(f32)


def ieee_div(a, constant):
    return a / f32(constant)


def reciprocal_div(a, constant):
    return a * (f32(1) / f32(constant))


def ieee_rcp(x):
    return f32(1) / x


def rcp_approx_ftz(x):
    """rcp.approx.ftz.f32 of SM90, from its measured table: results for 1 + i / 2^23 in golden/approximations."""
    global RCP_TABLE
    if RCP_TABLE is None:
        path = Path(__file__).resolve().parents[3] / "golden" / "approximations" / "rcp.sm90.gz"
        raw = gzip.decompress(path.read_bytes())
        differences = np.frombuffer(raw[4:], "<i2").astype(np.int64)
        RCP_TABLE = np.concatenate(([np.frombuffer(raw[:4], "<u4")[0]], differences)).cumsum()
    x = np.asarray(x, np.float32)
    word = bits(x).astype(np.int64)
    exponent, mantissa = word >> 23 & 255, word & 0x7FFFFF
    found = RCP_TABLE[mantissa] - ((exponent - 127) << 23)
    found = np.where(found < 1 << 23, 0, found)
    found = np.where(exponent == 0, 0x7F800000, np.where(exponent == 255, np.where(mantissa == 0, 0, 0x7FFFFFFF), found))
    return from_bits((found | (word & 0x80000000)).astype(np.uint32))


RCP_TABLE = None


def as_bf16(x):
    """A positive normal constant rounded to nearest bf16."""
    return from_bits((bits(f32(x)) + np.uint32(0x8000)) & np.uint32(0xFFFF0000))


def power_of_two(exponent):
    """2^exponent as float32, subnormal where it has to be."""
    return np.ldexp(np.ones_like(exponent, f32), np.asarray(exponent).astype(np.int64)).astype(f32)


def exp2_f32(x):
    """2^x of an integral x, of infinities and NaN as well."""
    finite = np.isfinite(x)
    power = power_of_two(np.clip(np.where(finite, x, 0), -200, 200))
    return np.where(finite, power, np.where(x == -np.inf, f32(0), x)).astype(f32)


def log2_f32(x):
    """log2 rounded to float32: near a power of two it is the integer itself, so floor and ceil of it can be off by one."""
    return np.log2(x.astype(np.float64)).astype(f32)


def blocks(x, block):
    """[R, K] as [R / r, r, K / k, k], padded with zeros."""
    r, k = (x.shape[0] if block[0] is None else block[0]), (x.shape[1] if block[1] is None else block[1])
    padded = np.zeros((-(-x.shape[0] // r) * r, -(-x.shape[1] // k) * k), f32)
    padded[: x.shape[0], : x.shape[1]] = x
    return padded.reshape(padded.shape[0] // r, r, padded.shape[1] // k, k)


def unblock(b, shape):
    return b.reshape(b.shape[0] * b.shape[1], -1)[: shape[0], : shape[1]]


def amax(b, nan):
    """Of each block. nan: `kept` as torch does, or `passed` over as fmaxf does."""
    a = np.abs(b)
    if nan == "passed":
        a = np.where(np.isnan(a), f32(0), a)
    return a.max(axis=(1, 3))


def spread(s):
    """A value a block as a factor for [R / r, r, K / k, k]; never float64, which would spare a rounding."""
    if s.dtype == np.float64:
        raise TypeError("spread: a factor is float64, expected float32")
    return s[:, None, :, None]


def ceil_exponent(s):
    """Biased exponent of the least power of two that is not below s, by its bits."""
    b = bits(s)
    return ((b >> 23) & 0xFF).astype(np.int64) + ((b & 0x7FFFFF) != 0)


def clamp_min_outside(x, largest):
    """fminf(fmaxf(x, -largest), largest): a NaN becomes -largest."""
    return np.minimum(np.where(np.isnan(x), -largest, np.maximum(x, -largest)), largest)


def clamp_max_outside(x, largest):
    """fmaxf(fminf(x, largest), -largest): a NaN becomes +largest."""
    return np.maximum(np.where(np.isnan(x), largest, np.minimum(x, largest)), -largest)


def clamp_nan(x, largest):
    """torch.clamp: a NaN stays."""
    return np.clip(x, -largest, largest)
