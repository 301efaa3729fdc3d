#!/usr/bin/env python3
"""Writes borders.txt: cases at the borders of the tiles of other projects' kernels.

    python3 conformance/adapters/borders.py            writes the file
    python3 conformance/adapters/borders.py --check    says whether the file is what this script writes

Each section names what its sizes are for. Patterns of data, and scales, go round, so that neighbours in a section differ in them;
every case has a seed of its own.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import sys
from collections.abc import Iterator

FILE = pathlib.Path(__file__).with_name("borders.txt")
HEAD = """# Cases at the borders of the tiles of other projects' kernels, below 0.5 GMAC each. Written by borders.py, which says what each section is
# for: change it there.
#
#   assay run --backend python:adapters.sglang:blockwise_grouped --cases conformance/adapters/borders.txt kind=fp8_block
"""

BLOCK, ROW_COLUMN, BF16 = "kind=fp8_block", "kind=fp8_per_tensor scaling=per_row_column", "kind=bf16"
PATTERNS = ["uniform", "normal", "clustered", "block_scales", "adversarial_cancelling", "integers", "full_exponent", "every_special",
            "sparse", "near_underflow", "wide_sums", "one_hot", "specials", "every_code", "subnormals", "adversarial_alignment",
            "adversarial_output_ties"]
# Of bf16: it has no codes, and no scales that a pattern could choose.
BF16_PATTERNS = [each for each in PATTERNS if each != "every_code"]
FP8_PATTERNS = PATTERNS + ["adversarial_promotion"]

# One row less than a tile has, as many, one more: tiles of 4 (SGLang, vLLM swap operands), 16, 32, 64, 128, 256 rows; 2048 is where
# SGLang goes from one kernel to the other.
ROWS = [2, 3, 5, 8, 15, 16, 17, 31, 33, 63, 66, 96, 127, 129, 132, 192, 255, 257, 260, 511, 516, 1023, 1028, 2047, 2052]


class Lines:
    """Lines with seeds, one after the other, and patterns that go round."""

    def __init__(self) -> None:
        self.text: list[str] = [HEAD]
        self.seed = 6000
        self.patterns = {kind: itertools.cycle(BF16_PATTERNS if kind == BF16 else FP8_PATTERNS) for kind in (BLOCK, ROW_COLUMN, BF16)}

    def section(self, why: str) -> None:
        self.text.append(f"\n# {why}")

    def product(self, kind: str, keys: str, data: str | None = None) -> None:
        data = data or next(self.patterns[kind])
        chosen = "" if data == "uniform" else f" data={data}"
        self.add(f"grouped_gemm {kind} {keys}{chosen}")

    def add(self, line: str) -> None:
        self.seed += 1
        self.text.append(f"{line} seed={self.seed}")


def one_group(lines: Lines) -> None:
    lines.section("One group: rows at the borders of tiles of 4 to 256 rows, and where a library takes another kernel.")
    sizes = itertools.cycle([(256, 512), (384, 256), (128, 640), (512, 384)])
    for rows in ROWS:
        n, k = next(sizes)
        lines.product(BLOCK, f"splits={rows} N={n} K={k}")
        lines.product(ROW_COLUMN, f"splits={rows} N={n} K={k}")
    for rows in ROWS[::2]:
        n, k = next(sizes)
        lines.product(BLOCK, f"d_type=f32 splits={rows} N={n} K={k}")
        lines.product(BLOCK, f"d_type=f16 splits={rows} N={n} K={k}", "normal")
        lines.product(ROW_COLUMN, f"split_accumulator=1 splits={rows} N={n} K={k}")

    lines.section("One group: columns of D and lengths of sums, from one block of scales to those of real layers.")
    for n, k in [(128, 128), (256, 128), (640, 128), (896, 256), (1152, 128), (1536, 256), (2304, 128), (3072, 256), (4096, 128), (5120, 256),
                 (7168, 128), (128, 384), (128, 768), (128, 896), (256, 1152), (128, 1536), (256, 2304), (128, 3072), (256, 4096), (128, 5120),
                 (256, 7168), (512, 2048), (2048, 512)]:
        rows = 68 if n * k > 500_000 else 132
        lines.product(BLOCK, f"splits={rows} N={n} K={k}")
        lines.product(ROW_COLUMN, f"splits={rows} N={n} K={k}")


def groups(lines: Lines) -> None:
    lines.section("Groups at the borders of tiles; empty ones first, last and in rows; rows of one group alone.")
    splits = ["63,64,65", "127,128,129", "255,256,257", "1,0,2,0,3,0,4", "31x0,7,32x0", "0,1,0,2,0,4,0,8,0,16,0,32,0,64", "16x4", "33x5",
              "7x64,63", "64x1,1000", "77x0,130,122x0", "255x0,64", "200x0,1", "1,200x0,1", "3,1021", "4x257", "64x17",
              "15x16,17", "2047,1", "1000,0,1048,5"]
    sizes = itertools.cycle([(256, 384), (128, 256), (384, 128), (128, 512)])
    for each in splits:
        n, k = next(sizes)
        for kind in (BLOCK, ROW_COLUMN, BF16):
            lines.product(kind, f"splits={each} N={n} K={k}")

    lines.section("Scales beside contents, in groups: a flush, an order of products or a sign would show.")
    for scales, data in itertools.product(("edge", "specials", "opposed", "negative", "two_roundings", "pow2"),
                                          ("uniform", "clustered", "adversarial_cancelling")):
        for kind in (BLOCK, ROW_COLUMN):
            lines.product(kind, f"splits=40,0,29 N=256 K=384 scales={scales}", data)


    lines.section("The same in one group.")
    for scales, data in itertools.product(("edge", "specials", "opposed", "two_roundings"), ("uniform", "adversarial_cancelling")):
        for kind in (BLOCK, ROW_COLUMN):
            lines.product(kind, f"splits=68 N=128 K=384 scales={scales}", data)
            lines.product(kind, f"splits=68 N=256 K=256 scales={scales}", data)


def layouts(lines: Lines) -> None:
    lines.section("Groups that do not follow one another: m_indices, psum, masked. Where max_m is a multiple of 128 no tile of a group meets the next.")
    shapes = [(256, 512), (512, 256), (768, 384)]
    splits = ["1,0,127,128", "129,255", "0,0,1,0", "64,63,65", "16x8", "257,3", "100x0,50", "128x1"]
    for layout, kind in itertools.product(("m_indices", "psum"), (BLOCK, BF16)):
        for index, each in enumerate(splits):
            n, k = shapes[index % 3]
            lines.product(kind, f"splits={each} N={n} K={k} grouped_layout={layout}")
    for kind in (BLOCK, BF16):
        for index, (each, rows) in enumerate([("1,0,127,128", 128), ("129,256", 256), ("0,0,1,0", 128), ("64,63,65", 128), ("8x16", 128),
                                              ("257,384,3", 384), ("12x0,50", 128), ("32x1", 128), ("128x4", 128), ("127,1,128,0", 256)]):
            n, k = shapes[index % 3]
            lines.product(kind, f"splits={each} N={n} K={k} grouped_layout=masked max_m={rows}")
    lines.section("The gradient of x (NN), where the groups do not follow one another.")
    for index, each in enumerate(splits):
        n, k = shapes[index % 3]
        lines.product(BF16, f"layout=NN splits={each} N={n} K={k} grouped_layout=m_indices")


def onto_c(lines: Lines) -> None:
    lines.section("The contraction is grouped: rows of each group are multiples of 128, and the product is added onto C.")
    splits = ["128", "256,128", "0,128,0,256", "8x128", "384,128,640", "1024", "32x0,128,31x0", "128,3x0,512"]
    for kind, (index, each) in itertools.product((BLOCK, BF16), enumerate(splits)):
        for n, k in ((128, 256), (256, 128)) if index % 2 else ((256, 256),):
            lines.product(kind, f"layout=NT d_type=f32 beta=1 splits={each} N={n} K={k}")
    for addends in ("every_special", "negative_zeros"):
        for kind in (BLOCK, BF16):
            lines.add(f"grouped_gemm {kind} layout=NT d_type=f32 beta=1 splits=128,0,256 N=128 K=256 data=clustered addends={addends}")

    lines.section("One group, 1x128 scales on both sides, onto C in f32.")
    sizes = itertools.cycle([(256, 512), (512, 256)])
    for rows in (1, 4, 16, 60, 63, 64, 65, 100, 127, 128, 129, 256, 257, 1000):
        n, k = next(sizes)
        lines.product(BLOCK, f"weight_block=1x128 d_type=f32 beta=1 splits={rows} N={n} K={k}")
    for scales in ("edge", "opposed", "negative", "two_roundings"):
        lines.product(BLOCK, f"weight_block=1x128 d_type=f32 beta=1 splits=64 N=256 K=512 scales={scales}", "normal")

    lines.section("One group in bf16: D, the gradients of x and of w, in bf16, in f32 and onto C.")
    for layout, ending in itertools.product(("TN", "NN", "NT"), ("", " d_type=f32", " d_type=f32 beta=1")):
        for rows in (64, 72, 128, 136, 264):
            n, k = next(sizes)
            lines.product(BF16, f"{'' if layout == 'TN' else f'layout={layout}'}{ending} splits={rows} N={n} K={k}".lstrip())


def quantizers(lines: Lines) -> None:
    lines.section("Quantizers: one block and the columns of real layers, one row and many, all types of x, where a pattern meets a rule's limits.")
    data = itertools.cycle(["uniform", "full_exponent", "near_underflow", "subnormals", "every_special", "ties", "block_scales",
                            "adversarial_midpoints", "adversarial_amax"])
    types = itertools.cycle(["bf16", "f16", "f32"])
    sizes = [(1, 128), (1, 5120), (2, 2048), (7, 256), (16, 768), (63, 384), (65, 640), (128, 128), (129, 1152), (257, 512), (1023, 256),
             (500, 128)]
    for preset in ("sglang.group_v1", "sglang.group_v2", "vllm.group", "vllm.group.ue8m0.log2", "sglang.per_token", "vllm.per_token",
                   "fbgemm.per_row", "deepseek_v3.cuda"):
        for rows, columns in sizes:
            pattern = next(data)
            x_type = next(types)
            if preset == "sglang.group_v2" and x_type == "f32" or preset == "fbgemm.per_row":
                x_type = "bf16"  # group_v2 has no f32; per_row reads other types as bf16: ASSAY-0009
            lines.add(f"quantize_by_rule preset={preset}{'' if x_type == 'bf16' else f' x_type={x_type}'} R={rows} K={columns}"
                      f"{'' if pattern == 'uniform' else f' data={pattern}'}")
        if preset != "deepseek_v3.cuda":
            lines.add(f"quantize_by_rule preset={preset} splits=63,0,65,0,0,1 K=256 extra_rows=3")
            lines.add(f"quantize_by_rule preset={preset} splits=64x1 K=128 extra_rows=1")


def orders(lines: Lines) -> None:
    lines.section("Scales of rows and columns of opposite sizes, where the order of the two products shows in every word: kernels that swap\n"
                  "# operands for few rows have the other order.")
    for each in ("1", "4", "5", "16", "17", "32", "33", "63", "64", "65", "128", "129", "32,32", "33,0,32", "8x1"):
        for n in (128, 2048):
            lines.product(ROW_COLUMN, f"splits={each} N={n} K=128 scales=opposed", "uniform")


def text() -> str:
    lines = Lines()
    for part in (one_group, groups, layouts, onto_c, quantizers, orders):
        part(lines)
    return "\n".join(lines.text) + "\n"


def cases() -> Iterator[str]:
    return (line for line in text().splitlines() if line and not line.startswith("#"))


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes borders.txt: cases at the borders of tiles.")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 where the file differs from what would be written")
    if parser.parse_args().check:
        if FILE.read_text(encoding="utf-8") != text():
            print(f"{FILE.name}: differs from what borders.py writes", file=sys.stderr)
            return 1
        return 0
    FILE.write_text(text(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
