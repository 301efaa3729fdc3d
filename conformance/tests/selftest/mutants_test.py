#!/usr/bin/env python3
"""The library of mutants: without one every bit is right, planted faults fail, benign variations pass.

    mutants_test.py PROGRAM LIBRARY
"""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "selftest"))
import mutants  # noqa: E402

PROGRAM, LIBRARY = sys.argv[1:3]
QUANTIZE = "quantize recipe=block_1x128 pow2=1 splits=0,128,127 K=272 seed=5"
PRODUCT = "grouped_gemm kind=fp8_block d_type=f32 splits=5,0,33 N=136 K=272 data=block_scales seed=45"
OFFSETS = "splits_to_offsets splits=1,0,127,128,129"
ALL = mutants.mutants(LIBRARY)


def exit_code(line, mutant):
    options = ["--backend-options", "mutant=" + mutant] if mutant else []
    return subprocess.run([PROGRAM, "repro", line, "--backend", LIBRARY, *options], capture_output=True, check=False).returncode


def one(*words):
    for name, family, says, _ in ALL:
        if all(word in name + " " + family + " " + says for word in words):
            return name
    raise AssertionError(f"no mutant has {words}")


class Mutants(unittest.TestCase):
    def test_names_are_distinct_and_many(self):
        names = [row[0] for row in ALL]
        self.assertEqual(len(names), len(set(names)))
        for family in ("points", "once", "options", "inputs", "outputs", "memory", "plans", "units", "benign"):
            self.assertGreater(sum(row[1] == family for row in ALL), 2, family)

    def test_nothing_is_wrong_without_a_mutant(self):
        for line in (QUANTIZE, PRODUCT, OFFSETS):
            self.assertEqual(exit_code(line, ""), 0, line)

    def test_planted_faults_fail(self):
        planted = [(QUANTIZE, one("points", "fp8_block_scalar.cc", "'/' of", "1 / scale", "one more")),
                   (QUANTIZE, one("points", "minifloat.h", "rest > half", "not >")),
                   (PRODUCT, one("points", "grouped_gemm_scalar.cc", "fma(kept(plan, a), kept(plan, b), kept(plan, c))", "rounded twice")),
                   (PRODUCT, one("units", "unit.sm90.wgmma.fp8.fraction_bits.up")),
                   (PRODUCT, one("outputs", "call.grouped_gemm.out.d.last_wrong")),
                   (OFFSETS, one("memory", "call.splits_to_offsets.in.splits.overwritten")),
                   (OFFSETS, one("outputs", "splits_to_offsets.out.offsets.beyond"))]
        for line, mutant in planted:
            self.assertEqual(exit_code(line, mutant), 1, f"{mutant}: {line}")

    def test_benign_variations_pass(self):
        for line in (QUANTIZE, PRODUCT):
            for mutant in ("benign.fast_layer", "benign.twice", "benign.zero_sign"):
                self.assertEqual(exit_code(line, mutant), 0, f"{mutant}: {line}")

    def test_an_unknown_mutant_is_named(self):
        self.assertNotEqual(exit_code(OFFSETS, "nothing"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
