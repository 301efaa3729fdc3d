#!/usr/bin/env python3
"""Units against outputs of tensor cores that others published (spec tensor-core-6.2): MATLAB-tensor-core, of Khattak and Mikaitis (arXiv
2512.07004).

  published_steps_test.py --tool TOOL                      the kept vectors, published_steps.txt
  published_steps_test.py --tool TOOL --checkout FOLDER    every vector of a checkout of north-numerical-computing/MATLAB-tensor-core
  ... --record                                             with --checkout: writes published_steps.txt anew

TOOL is unit_step_tool. --checkout needs git, numpy and ml_dtypes. A vector is a row of A, a column of B, one C and one D of a GPU."""
import argparse
import hashlib
import os
import subprocess
import sys

from unit_steps_test import ours, units_of

KEPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "published_steps.txt")
KEPT_SHA256 = "47b0b74230024217a462d7e64488d0eaf6282d1e456b1d00c09888ac247ad9d4"
KEPT_OF_EACH = 20
REVISION = "b12b5a7"
# FP8 to f32 of Hopper: later files of D, the same for both GPUs, are of another C than the one beside them, which was not published.
REVISION_OF_HOPPER_FP8_F32 = "109e412"
HEADER = f"""# Outputs of tensor cores: MATLAB-tensor-core, commit {REVISION}, model_validation/ (BSD-2-Clause, Copyright 2025 Faizan A. Khattak and
# Mantas Mikaitis), D of FP8 to f32 of H100 and H200 of commit {REVISION_OF_HOPPER_FP8_F32}; every 250th vector of each file. Written by
# published_steps_test.py --record.
# A line: GPU, unit, operand type, C, count, a ..., b ..., = and D; codes in hexadecimal. More products than the unit has in a step are
# several steps in a chain.
"""

# Folders of model_validation/ and the generation whose mma.sync units they ran on.
GPUS = {"V100": "sm70", "A100": "sm80", "A2": "sm80", "Ada": "sm89", "L40S": "sm89", "H100": "sm90", "H200": "sm90", "B200": "sm100"}
TYPES = {"fp16": ("f16", "f16"), "bf16": ("bf16", "f16"), "tf32": ("tf32", "tf32"), "E4M3": ("e4m3", "fp8"), "E5M2": ("e5m2", "fp8")}
SHORT = {("sm90", "tf32"): ".k4"}  # four products a vector, where eight are one step


def chained(tool, units, vectors):
    """The accumulators after all products of vectors (unit, type, c, a, b), step by step."""
    sums = [c for _, _, c, _, _ in vectors]
    for step in range(max(-(-len(a) // int(units[unit]["products"])) for unit, _, _, a, _ in vectors)):
        lines, places = [], []
        for i, (unit, form, _, a, b) in enumerate(vectors):
            length = int(units[unit]["products"])
            first = step * length
            if first >= len(a):
                continue
            zeros = [0] * (length - len(a[first:first + length]))
            words = [sums[i], length, *a[first:first + length], *zeros, *b[first:first + length], *zeros, 0]
            lines.append(" ".join([unit, form, form] + [f"{word:x}" for word in words]))
            places.append(i)
        for place, word in zip(places, ours(tool, lines)):
            sums[place] = word
    return sums


def check_kept(tool, units):
    with open(KEPT, "rb") as file:
        data = file.read()
    digest = hashlib.sha256(data).hexdigest()
    if digest != KEPT_SHA256:
        raise SystemExit(f"{KEPT} has the SHA-256 {digest}: expected {KEPT_SHA256}")
    vectors, want, titles = [], [], []
    for line in data.decode().splitlines():
        if line.startswith("#"):
            continue
        given, result = line.split(" = ")
        gpu, unit, form, *words = given.split()
        c, count, *codes = (int(word, 16) for word in words)
        vectors.append((unit, form, c, codes[:count], codes[count:]))
        want.append(int(result, 16))
        titles.append(f"{gpu} {unit} {form}")
    got = chained(tool, units, vectors)
    wrong = [i for i in range(len(got)) if got[i] != want[i]]
    for i in wrong[:10]:
        print(f"{titles[i]}: want {want[i]:x}, got {got[i]:x}")
    print(f"{len(got)} published outputs of {len(set(titles))} kinds, {len({v[0] for v in vectors})} units: {len(wrong)} differ")
    return len(wrong) + (not got)


# --- A checkout --------------------------------------------------------------------------------------------------------------


def file_of(checkout, gpu, folder, name):
    """The numbers of a file, f32 bits: words in hexadecimal, a row a vector, or one binary word a line. None without the file."""
    import numpy as np
    later = gpu in ("H100", "H200") and folder in ("E4M3", "E5M2") and name.startswith("d_") and name.endswith("fp32")
    revision = REVISION_OF_HOPPER_FP8_F32 if later else REVISION
    shown = subprocess.run(["git", "-C", checkout, "show", f"{revision}:model_validation/{gpu}/{folder}/{name}.txt"],
                           capture_output=True, text=True)
    if shown.returncode != 0:
        return None
    base = 2 if name.startswith(("c_", "d_")) else 16
    return np.array([[int(word, base) for word in line.split()] for line in shown.stdout.splitlines()], np.uint32)


def codes_of(bits, form):
    """Codes of values that f32 bits hold exactly."""
    import ml_dtypes
    import numpy as np
    if form in ("f32", "tf32"):
        return bits
    narrow = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2}[form]
    made = bits.view(np.float32).astype(narrow)
    return made.view(f"u{made.dtype.itemsize}").astype(np.uint32)


def published(checkout):
    """(GPU, unit, type, vectors, results) of each output file. C of a 16-bit accumulator is the f32 C, rounded."""
    for gpu, generation in GPUS.items():
        for folder, (form, kind) in TYPES.items():
            a, b = (file_of(checkout, gpu, folder, f"{side}_{gpu}_{folder}") for side in "ab")
            if a is None:
                continue
            a, b = codes_of(a, form), codes_of(b, form)
            c = file_of(checkout, gpu, folder, f"c_{gpu}_fp32").reshape(-1)
            for output, tail, code in (("fp32", "", "f32"), ("fp16", ".to_f16", "f16")):
                d = file_of(checkout, gpu, folder, f"d_{gpu}_{output}")
                if d is None:
                    continue
                unit = f"{generation}.mma.{kind}" + SHORT.get((generation, kind), "") + tail
                start = codes_of(c, code)
                vectors = [(unit, form, int(start[i]), [int(v) for v in a[i]], [int(v) for v in b[i]]) for i in range(len(a))]
                yield gpu, unit, form, vectors, [int(v) for v in codes_of(d.reshape(-1), code)]


def check_checkout(tool, units, checkout, kept):
    failures = total = 0
    for gpu, unit, form, vectors, want in published(checkout):
        got = chained(tool, units, vectors)
        wrong = sum(x != y for x, y in zip(got, want))
        print(f"{gpu} {unit} {form}: {len(want)} outputs of {len(vectors[0][3])} products, {wrong} differ", flush=True)
        failures += wrong
        total += len(want)
        for i in range(0, len(want), max(1, len(want) // KEPT_OF_EACH)):
            _, _, c, a, b = vectors[i]
            kept.append(f"{gpu} {unit} {form} " + " ".join(f"{word:x}" for word in [c, len(a), *a, *b]) + f" = {want[i]:x}")
    print(f"{total} outputs, {failures} differ")
    return failures + (total == 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--checkout")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    units = units_of(options.tool)
    if not options.checkout:
        return int(check_kept(options.tool, units) != 0)
    kept = []
    failures = check_checkout(options.tool, units, options.checkout, kept)
    if options.record:
        with open(KEPT, "w", encoding="ascii") as file:
            file.write(HEADER + "\n".join(kept) + "\n")
    return int(failures != 0)


if __name__ == "__main__":
    sys.exit(main())
