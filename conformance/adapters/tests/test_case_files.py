"""The case files of the adapters: what borders.py writes, and what all of them keep to."""

import math
import pathlib
import re
import sys

import pytest

ADAPTERS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ADAPTERS))

import borders

FILES = ["cases", "layouts", "dense", "deepseek_v3", "borders"]


def lines_of(name):
    return [line for line in (ADAPTERS / f"{name}.txt").read_text().splitlines() if line and not line.startswith("#")]


def rows_of(splits):
    """The rows that a list of splits has, also in short forms: 3x128, zipf(16,1000,7), one(8,300,3)."""
    made = re.match(r"(?:zipf|one)\(\d+,(\d+),\d+\)$", splits)
    if made:
        return int(made[1])
    return sum(math.prod(int(part) for part in each.split("x")) for each in splits.split(","))


def test_borders_is_what_its_script_writes():
    assert borders.FILE.read_text() == borders.text()
    assert list(borders.cases()) == lines_of("borders")


@pytest.mark.parametrize("name", ["cases", "dense", "borders"])
def test_products_stay_below_half_a_billion_products(name):
    for line in lines_of(name):
        keys = dict(each.split("=", 1) for each in line.split()[1:])
        if line.startswith("grouped_gemm"):
            assert rows_of(keys["splits"]) * int(keys["N"]) * int(keys["K"]) < 500_000_000, line


def test_no_line_occurs_twice_and_generated_seeds_differ():
    lines = [line for name in FILES for line in lines_of(name)]
    assert len(set(lines)) == len(lines)
    seeds = [re.search(r"seed=(\d+)", line)[1] for line in lines_of("borders")]
    assert len(set(seeds)) == len(seeds)


def test_borders_have_what_they_are_for():
    """Each kind of product meets both sides of the borders of tiles, and every pattern."""
    lines = lines_of("borders")
    for kind in ("kind=fp8_block", "kind=fp8_per_tensor"):
        rows = {rows_of(re.search(r"splits=(\S+)", line)[1]) for line in lines if kind in line}
        assert {15, 16, 17, 63, 66, 127, 129, 255, 257, 2047, 2052} <= rows
        patterns = {(re.search(r"data=(\S+)", line) or ["", "uniform"])[1] for line in lines if kind in line}
        assert set(borders.FP8_PATTERNS) <= patterns
