"""Steps by MMA-Sim 2.1.1 (PyPI `mmasim`, which needs torch): the outside source for rows of the table of units. For Intel's
tiles, which MMA-Sim does not have, the operation of the manual in exact fractions."""
import fractions

import mmasim
import torch
from mmasim import amd, nv_ptx

VERSION = "2.1.1"
TORCH = {"f32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "e4m3": torch.float8_e4m3fn,
         "e5m2": torch.float8_e5m2, "e4m3_fnuz": torch.float8_e4m3fnuz, "e5m2_fnuz": torch.float8_e5m2fnuz}
NVIDIA = {"sm70": "Volta", "sm75": "Turing", "sm80": "Ampere", "sm89": "Ada Lovelace", "sm90": "Hopper", "sm100": "Blackwell",
          "sm120": "RTX Blackwell"}


def tensor(form, rows):
    """Codes, a row a vector, as MMA-Sim takes them; FP6 and FP4 in a byte each, FP4 in bits 5 to 2."""
    if form in TORCH:
        kind = TORCH[form]
        whole = {4: torch.int64, 2: torch.int32, 1: torch.int16}[kind.itemsize]
        narrow = {4: torch.int32, 2: torch.int16, 1: torch.uint8}[kind.itemsize]
        return torch.tensor(rows, dtype=whole).to(narrow).view(kind)
    return torch.tensor(rows, dtype=torch.uint8) << (2 if form == "e2m1" else 0)


def packed(rows):
    """FP4 codes, two a byte, as the block-scaled FP4 operations take them."""
    codes = torch.tensor(rows, dtype=torch.uint8)
    return codes[:, 0::2] << 4 | codes[:, 1::2]


def bits_of(values):
    narrow, mask = {2: (torch.int16, 0xFFFF), 4: (torch.int32, 0xFFFFFFFF)}[values.dtype.itemsize]
    return [each & mask for each in values.contiguous().view(narrow).tolist()]


def nvidia(unit, a_form, b_form):
    """The operation of a unit without scales."""
    architecture, kind = unit["name"].split(".")[:2]
    words = unit["name"].split(".")
    d_form = "f16" if words[-1] == "to_f16" else "f32"
    name, length = NVIDIA[architecture], int(unit["products"])
    if kind == "wgmma":
        k = 256 // {"tf32": 32, "bf16": 16, "f16": 16}.get(a_form, 8)
        return nv_ptx.WGMMA(name, f"m64n8k{k}.{d_form}.{a_form}.{b_form}")
    if kind == "tcgen05":
        k = 256 // {"tf32": 32, "bf16": 16, "f16": 16}.get(a_form, 8)
        form = "tf32" if a_form == "tf32" else "f16" if a_form in ("bf16", "f16") else "f8f6f4"
        return nv_ptx.TCGen05MMA(name, f"m64n8k{k}.kind::{form}.{d_form}.{a_form}.{b_form}")
    if architecture == "sm70" or words[-1] == "k4" and a_form == "f16" or words[-2] == "k4":
        return nv_ptx.MMA(name, f"m8n8k4.{d_form}.f16.f16.{d_form}")
    if architecture == "sm120" and "fp8" in words:
        return nv_ptx.MMA(name, f"m16n8k32.kind::f8f6f4.{d_form}.{a_form}.{b_form}.{d_form}")
    if a_form in ("e4m3", "e5m2"):
        return nv_ptx.MMA(name, f"m16n8k{length}.{d_form}.{a_form}.{b_form}.{d_form}")
    shape = {"tf32": f"m16n8k{length}", "f16": f"m16n8k{length}", "bf16": f"m16n8k{length}"}[a_form]
    return nv_ptx.MMA(name, f"{shape}.{d_form}.{a_form}.{b_form}.{d_form}")


def scaled(unit, a_form, b_form):
    words = unit["name"].split(".")
    kind = words[2]
    block, form = unit["scaling"].rsplit("_", 1)[1], "u" + unit["scaling"].split("_")[0]
    k = unit["products"]
    if words[1] == "tcgen05":
        return nv_ptx.TCGen05MMABlockScale("Blackwell", f"m128n8k{k}.kind::{kind}.block{block}.f32.{a_form}.{b_form}.{form}")
    return nv_ptx.MMABlockScale("RTX Blackwell", f"m16n8k{k}.kind::{kind}.block{block}.f32.{a_form}.{b_form}.f32.{form}")


def mfma(unit, a_form, b_form):
    words = unit["name"].split(".")
    suffix = {"cdna1.f16": "f32_16x16x16f16", "cdna1.bf16": "f32_16x16x8bf16", "cdna1.f32": "f32_16x16x4f32",
              "cdna2.f16": "f32_16x16x16f16", "cdna2.bf16": "f32_16x16x8bf16", "cdna2.bf16_1k": "f32_16x16x16bf16_1k",
              "cdna2.f32": "f32_16x16x4f32", "cdna3.f16": f"f32_16x16x16_{a_form}", "cdna3.xf32": "f32_16x16x8_xf32",
              "cdna3.f32": "f32_16x16x4_f32"}.get(f"{words[0]}.{words[2]}")
    if suffix is None:
        spelt = {"e4m3_fnuz": "fp8", "e5m2_fnuz": "bf8"}
        suffix = f"f32_16x16x32_{spelt[a_form]}_{spelt[b_form]}"
    return amd.MFMA(words[0].upper(), suffix)


def emulated(unit, a_form, b_form, a, b, c):
    """FP8 of mma.sync on SM90 and SM100, which MMA-Sim lacks: its own f16 steps over k mod 4 in {0, 1}, {2, 3}, then C."""
    d_form = "f16" if unit["name"].endswith("to_f16") else "f32"
    step = nv_ptx.MMA(NVIDIA[unit["name"].split(".")[0]], f"m16n8k16.{d_form}.f16.f16.{d_form}")
    wide_a, wide_b = tensor(a_form, a).to(torch.float16), tensor(b_form, b).to(torch.float16)
    total = torch.zeros(len(c), dtype=TORCH[d_form])
    for half in (0, 2):
        taken = [k for k in range(int(unit["products"])) if k & 2 == half]
        total = step.dpa(wide_a[:, taken], wide_b[:, taken], total)
    return bits_of(total + tensor(d_form, c))


def real_of(form, code):
    """The exact value of a finite code of an IEEE format, or None."""
    bits, fraction_bits, bias = {"bf16": (8, 7, 127), "f16": (5, 10, 15), "f32": (8, 23, 127)}[form]
    field, fraction = code >> fraction_bits & ((1 << bits) - 1), code & ((1 << fraction_bits) - 1)
    if field == (1 << bits) - 1:
        return None
    significand = fraction | (1 << fraction_bits if field else 0)
    value = fractions.Fraction(significand) * fractions.Fraction(2) ** (max(field, 1) - bias - fraction_bits)
    return -value if code >> (bits + fraction_bits) else value


def nearest(value):
    """The f32 nearest to a fraction, ties to even, flushed: 24 bits first, then a zero below 2^-126. None: overflow."""
    if value == 0:
        return value
    exponent = value.numerator.bit_length() - value.denominator.bit_length()
    while abs(value) >= fractions.Fraction(2) ** (exponent + 1):
        exponent += 1
    while abs(value) < fractions.Fraction(2) ** exponent:
        exponent -= 1
    unit = fractions.Fraction(2) ** (exponent - 23)
    rounded = round(value / unit) * unit  # round() of a fraction takes ties to even
    if abs(rounded) >= 2 ** 128:
        return None
    return rounded if abs(rounded) >= fractions.Fraction(2) ** -126 else fractions.Fraction(0)


def tile(a_form, a, b, c):
    """TDPBF16PS and TDPFP16PS as Intel's manual has them, or None where infinities, NaN or signs of zero would decide."""
    def read(form, code):
        value = real_of(form, code)
        return value if value is None or abs(value) >= fractions.Fraction(2) ** -126 else fractions.Fraction(0)
    chains = [fractions.Fraction(0)] * 2
    for k, (x, y) in enumerate(zip(a, b)):
        x, y = read(a_form, x), read(a_form, y)
        if x is None or y is None:
            return None
        chains[k % 2] = nearest(chains[k % 2] + x * y)
        if chains[k % 2] is None:
            return None
    start, both = read("f32", c), nearest(sum(chains))
    result = None if start is None or both is None else nearest(start + both)
    if result == 0 and not start and not any(real_of(a_form, x) and real_of(a_form, y) for x, y in zip(a, b)):
        return 0  # the chains are +0, and so is their sum with either zero
    if not result:
        return None
    return bits_of(torch.tensor([float(result)], dtype=torch.float32))[0]


def steps(unit, vectors):
    """The result of each vector, None where this source has none. All of one call have the same operand types."""
    a_form, b_form = vectors[0][:2]
    a, b, c = ([each[i] for each in vectors] for i in (2, 3, 4))
    c_form = "f16" if unit.get("accumulator") == "f16_nearest" else "f32"
    if unit["name"].startswith("amx."):
        return [tile(a_form, *each) for each in zip(a, b, c)]
    if unit.get("execution") == "emulated_fp8":
        return emulated(unit, a_form, b_form, a, b, c)
    if unit["name"].startswith("cdna"):
        return bits_of(mfma(unit, a_form, b_form).dpa(tensor(a_form, a), tensor(b_form, b), tensor(c_form, c)))
    if "scaling" not in unit:
        return bits_of(nvidia(unit, a_form, b_form).dpa(tensor(a_form, a), tensor(b_form, b), tensor(c_form, c)))
    kind = torch.float8_e8m0fnu if unit["scaling"].startswith("e8m0") else torch.float8_e4m3fn
    scales = [torch.tensor([each[5][side] for each in vectors], dtype=torch.uint8).view(kind) for side in (0, 1)]
    form = packed if unit["products"] == "64" else None
    a_values, b_values = (form(a), form(b)) if form else (tensor(a_form, a), tensor(b_form, b))
    return bits_of(scaled(unit, a_form, b_form).dpa(a_values, b_values, tensor(c_form, c), *scales))
