"""Rounding from float32 to the 8-, 6- and 4-bit formats by search in the list of a format's values.

It shares nothing with reference/formats: a format is the sorted list of its magnitudes, and a float32 is compared with the
exact midpoints of neighbours, in float64. Codes stand one to a byte.
"""

import numpy as np

NAN8 = 0x7F


def magnitudes(exponent_bits, mantissa_bits, bias, last):
    """The values of the codes 0 to `last` of a format without its sign bit: float64, ascending."""
    values = []
    for code in range(last + 1):
        exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
        if exponent == 0:
            values.append(np.ldexp(float(mantissa), 1 - bias - mantissa_bits))
        else:
            values.append(np.ldexp(float(mantissa + (1 << mantissa_bits)), exponent - bias - mantissa_bits))
    return np.array(values)


class Format:
    """A small floating-point format: `largest` is its greatest finite magnitude, `sign` the mask of its sign bit."""

    def __init__(self, name, exponent_bits, mantissa_bits, bias, last):
        self.name, self.mantissa_bits, self.bias, self.last = name, mantissa_bits, bias, last
        self.sign = 1 << (exponent_bits + mantissa_bits)
        # One value more than the format has, as if its exponents went on: what lies nearer to it is an overflow.
        self.values = magnitudes(exponent_bits, mantissa_bits, bias, last + 1)
        self.midpoints = (self.values[:-1] + self.values[1:]) / 2
        self.largest = np.float32(self.values[last])
        self.largest_exponent = int(np.floor(np.log2(self.values[last])))

    def decode(self, codes):
        """float32 values of finite codes."""
        codes = np.asarray(codes)
        value = self.values[codes & (self.sign - 1)].astype(np.float32)
        return np.where(codes & self.sign, -value, value).astype(np.float32)


E4M3 = Format("e4m3", 4, 3, 7, 0x7E)
E5M2 = Format("e5m2", 5, 2, 15, 0x7B)
E3M2 = Format("e3m2", 3, 2, 3, 0x1F)
E2M3 = Format("e2m3", 2, 3, 1, 0x1F)
E2M1 = Format("e2m1", 2, 1, 1, 0x7)
FORMATS = {f.name: f for f in (E4M3, E5M2, E3M2, E2M3, E2M1)}


def nearest(x, fmt, ties="even"):
    """Codes of the magnitudes of x, and whether a magnitude goes beyond the largest. ties: even, away or zero."""
    a = np.abs(x.astype(np.float64))
    below = np.searchsorted(fmt.midpoints, a, side="left")
    tie = (below < len(fmt.midpoints)) & (a == fmt.midpoints[np.minimum(below, len(fmt.midpoints) - 1)])
    if ties == "even":
        below = below + (tie & (below % 2 == 1))
    elif ties == "away":
        below = below + tie
    return np.minimum(below, fmt.last), below > fmt.last


def encode(x, fmt, beyond="largest", nan=NAN8, ties="even"):
    """Codes of x. beyond: what a magnitude that rounds beyond the largest becomes, `largest`, `nan` or `inf`.

    A NaN takes the code `nan` without a sign: the sign of a computed NaN depends on the machine.
    """
    x = np.asarray(x, np.float32)
    code, over = nearest(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), fmt, ties)
    if beyond == "nan":
        code = np.where(over, fmt.last + 1, code)
    elif beyond == "inf":
        code = np.where(over, fmt.last + 1, code)
    code = np.where(np.signbit(x), code | fmt.sign, code)
    if beyond == "nan":
        code = np.where(over, nan, code)
    return np.where(np.isnan(x), nan, code).astype(np.uint8)


def torch_cast(x, fmt):
    """tensor.to(float8) of torch up to 2.11: beyond the largest E4M3 gives NaN and E5M2 infinity."""
    return encode(x, fmt, "nan" if fmt is E4M3 else "inf")


def satfinite(x, fmt):
    """cvt.rn.satfinite: beyond the largest, infinity included, it gives the largest; NaN stays NaN."""
    return encode(x, fmt, nan=NAN8 if fmt.sign == 0x80 else fmt.last)
