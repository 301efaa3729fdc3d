#!/usr/bin/env python3
"""Every row of the table of units against outside sources.

  unit_steps_test.py --tool TOOL                  against unit_steps.txt, recorded from MMA-Sim 2.1.1 and Intel's manual
  unit_steps_test.py --tool TOOL --mmasim         against MMA-Sim itself, on new vectors; says so where it is not installed
  unit_steps_test.py --tool TOOL --record         writes unit_steps.txt anew

TOOL is unit_step_tool. With --mmasim: --vectors N of each unit, --seed S (printed), --unit WORD."""
import argparse
import hashlib
import os
import re
import subprocess
import sys

import step_vectors

RECORDED = os.path.join(os.path.dirname(os.path.abspath(__file__)), "unit_steps.txt")
RECORDED_SHA256 = "b2cec8d3ba3f472c8deef681fcb0ad4277e890d5f21d9b7fcd7692f04a5f3af6"
RECORDED_OF_EACH = {"fused": 16, "joined": 128, "exact": 64, "tree": 64, "chains": 32}  # by the kind of sum


def units_of(tool):
    text = subprocess.run([tool, "--units"], check=True, capture_output=True, text=True).stdout
    rows = [dict(re.findall(r'(\w+)=("[^"]*"|\S+)', line)) for line in text.splitlines()]
    return {row["name"]: row for row in rows}


def ours(tool, lines):
    """Results of the tool for lines as it reads them."""
    run = subprocess.run([tool], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr)
    return [int(each, 16) for each in run.stdout.split()]


def line_of(name, vector):
    a_form, b_form, a, b, c, scales = vector
    words = [c, len(a), *a, *b, len(scales[0]), *scales[0], *scales[1]]
    return " ".join([name, a_form, b_form] + [f"{word:x}" for word in words])


def is_nan(unit, code):
    if unit.get("accumulator") == "f16_nearest":
        return code & 0x7FFF > 0x7C00
    return code & 0x7FFFFFFF > 0x7F800000


def differs(unit, got, want):
    """The NaN of NVIDIA's steps has one code. Of others, and of the plain addition in emulated FP8, torch has its own."""
    if (not unit["name"].startswith("sm") or "execution" in unit) and is_nan(unit, got) and is_nan(unit, want):
        return False
    return got != want


def theirs(unit, vectors):
    """Results of the outside source, in order; vectors of the same operand types go in one call."""
    import mmasim_steps
    results = [None] * len(vectors)
    for types in sorted({each[:2] for each in vectors}):
        places = [i for i, each in enumerate(vectors) if each[:2] == types]
        for place, result in zip(places, mmasim_steps.steps(unit, [vectors[i] for i in places])):
            results[place] = result
    return results


def compare(tool, units, count, seed):
    """The number of units that differ somewhere."""
    print(f"seed {seed}, {count} vectors of each unit", flush=True)
    wrong = 0
    for name, unit in units.items():
        source = step_vectors.Vectors(unit, seed)
        vectors = [source.draw(number) for number in range(count)]
        want = theirs(unit, vectors)
        got = ours(tool, [line_of(name, each) for each in vectors])
        known = sum(each is not None for each in want)
        different = [i for i in range(count) if want[i] is not None and differs(unit, got[i], want[i])]
        print(f"{name}: {known} of {count} answered, {len(different)} differ", flush=True)
        for i in different[:3]:
            print(f"  vector {i}: want {want[i]:x}, got {got[i]:x}: {line_of(name, vectors[i])}")
        wrong += bool(different) or known * 4 < count
    return wrong


HEADER = """# Steps of tensor-core units by outside sources (spec tensor-core-6.1).
# Source: MMA-Sim 2.1.1 (PyPI mmasim, on torch {torch}, CPU); of amx.*: the operation in Intel's manual, in exact fractions; of
# sm90.mma.fp8 and sm100.mma.fp8: MMA-Sim's f16 steps in the order of spec tensor-core-3.3.
# Written by unit_steps_test.py --record. A line: unit, operand types, C, count, a ..., b ..., scales, = and the result.
"""


def record(units):
    import torch
    lines = []
    for name, unit in units.items():
        source = step_vectors.Vectors(unit, "recorded")
        vectors = [source.draw(number) for number in range(RECORDED_OF_EACH[unit.get("sum", "fused")])]
        lines += [f"{line_of(name, each)} = {want:x}" for each, want in zip(vectors, theirs(unit, vectors)) if want is not None]
    with open(RECORDED, "w", encoding="utf-8") as file:
        file.write(HEADER.format(torch=torch.__version__.split("+")[0]) + "\n".join(lines) + "\n")


def check_recorded(tool, units):
    with open(RECORDED, "rb") as file:
        data = file.read()
    digest = hashlib.sha256(data).hexdigest()
    if digest != RECORDED_SHA256:
        raise SystemExit(f"{RECORDED} has the SHA-256 {digest}: expected {RECORDED_SHA256}")
    rows = [line.split(" = ") for line in data.decode().splitlines() if not line.startswith("#")]
    got = ours(tool, [line for line, _ in rows])
    wrong = [(line, want, each) for (line, want), each in zip(rows, got)
             if differs(units[line.split()[0]], each, int(want, 16))]
    for line, want, each in wrong[:10]:
        print(f"want {want}, got {each:x}: {line}")
    missing = set(units) - {line.split()[0] for line, _ in rows}
    print(f"{len(rows)} recorded steps of {len(units) - len(missing)} units, {len(wrong)} differ; no step of: {sorted(missing)}")
    return len(wrong) + len(missing)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--mmasim", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--vectors", type=int, default=400)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--unit", default="")
    options = parser.parse_args()
    units = {name: row for name, row in units_of(options.tool).items() if options.unit in name}
    if not (options.mmasim or options.record):
        return int(check_recorded(options.tool, units) != 0)
    try:
        import mmasim_steps
    except ImportError as error:
        print(f"not run: MMA-Sim is not installed here ({error}); pip install mmasim==2.1.1, which needs torch")
        return 0
    del mmasim_steps
    if options.record:
        record(units)
        return 0
    return int(compare(options.tool, units, options.vectors, options.seed) != 0)


if __name__ == "__main__":
    sys.exit(main())
