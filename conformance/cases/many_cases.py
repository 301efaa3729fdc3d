#!/usr/bin/env python3
"""Many small case lines, for tests of runs in parts: each differs, and judging one takes a millisecond.

    conformance/cases/many_cases.py 100000 --seed 7 > many.txt
    ./assay run --cases many.txt

The lines depend on the number and the seed alone. They use the ops that every backend may have, with sizes at and around the block
sizes; the catalogue is what finds faults.
"""
import argparse
import random
import sys


def splits(draw, most):
    return ",".join(str(draw.choice([0, 1, 2, 3, 5, 8, draw.randint(0, most)])) for _ in range(draw.randint(1, 4)))


def quantize(draw, number):
    recipe = draw.choice(["block_1x128", "mxfp8", "tensor_current"])
    k = 32 * draw.randint(1, 5) if recipe == "mxfp8" else 8 * draw.randint(1, 18)
    data = draw.choice(["uniform", "normal", "every_code"])
    if recipe == "mxfp8":
        return f"quantize recipe={recipe} R={draw.randint(1, 24)} K={k} data={data} seed={number}"
    return f"quantize recipe={recipe} splits={splits(draw, 12)} K={k} data={data} seed={number}"


def grouped_gemm(draw, number):
    kind = draw.choice(["bf16", "f16"])
    return f"grouped_gemm kind={kind} splits={splits(draw, 9)} N={8 * draw.randint(1, 4)} K={8 * draw.randint(1, 6)} seed={number}"


def offsets(draw, number):
    return f"splits_to_offsets splits={number},{splits(draw, 300)}"


def lines(count, seed):
    draw = random.Random(f"assay many cases {seed}")
    for number in range(1, count + 1):
        yield draw.choice([quantize, quantize, grouped_gemm, offsets])(draw, number)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="number of lines")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error(f"{arguments.count} lines: expected at least 1")
    sys.stdout.write("".join(line + "\n" for line in lines(arguments.count, arguments.seed)))


if __name__ == "__main__":
    main()
