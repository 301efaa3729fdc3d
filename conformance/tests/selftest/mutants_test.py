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
RULE = "quantize_by_rule preset=vllm.group splits=130,1 K=130 data=near_underflow seed=32903"
GROUPS = "splits_to_offsets splits=zipf(257,65536,3)"
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
        for family in ("points", "once", "options", "inputs", "outputs", "memory", "rare", "order", "rules", "rounding", "plans", "units",
                       "catalogued", "benign"):
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
                   (OFFSETS, one("outputs", "splits_to_offsets.out.offsets.beyond")),
                   (GROUPS, one("rare", "call.splits_to_offsets.out.offsets.group_65_wrong")),
                   ("quantize_by_rule preset=vllm.group R=36 K=272 seed=1", "rule.vllm.group.round.truncate"),
                   (RULE, one("rules", "rule vllm.group is carried out as")),
                   ("grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 seed=1", "rounding.grouped_gemm.toward_zero"),
                   ("grouped_dbias splits=5,0,17 K=24 seed=1", "order.grouped_dbias.dbias.not_cleared"),
                   ("grouped_dbias splits=5,0,17 K=24 seed=1 replay=3:data", "order.grouped_dbias.dbias.last_part_of_call_before")]
        for line, mutant in planted:
            self.assertEqual(exit_code(line, mutant), 1, f"{mutant}: {line}")

    def test_rare_faults_show_where_they_are_alone(self):
        mutant = "call.splits_to_offsets.out.offsets.group_65_wrong"
        self.assertEqual((exit_code(GROUPS, mutant), exit_code(OFFSETS, mutant)), (1, 0))
        for rows, code in ((1000, 0), (1001, 1)):
            line = f"permute R={rows} topk=1 experts=2 K=8 seed=3"
            self.assertEqual(exit_code(line, "call.permute.out.permuted.above_1000_wrong"), code, line)

    def test_benign_variations_pass(self):
        for line in (QUANTIZE, PRODUCT):
            for mutant in ("benign.fast_layer", "benign.twice", "benign.zero_sign", "benign.one_thread", "benign.from_end", "benign.tiles",
                           "benign.by_rule", "benign.nothing_claimed", "benign.nothing_stated"):
                self.assertEqual(exit_code(line, mutant), 0, f"{mutant}: {line}")
        specials = "grouped_gemm kind=bf16 splits=5,0,17 N=24 K=40 data=every_special seed=2"
        placed = "grouped_gemm kind=fp8_block grouped_layout=psum alignment=16 splits=5,0,33 N=136 K=144 d_type=f32 seed=2501"
        for line, mutant in ((specials, "benign.nan_payload"), (placed, "benign.free_rows"), (PRODUCT, "benign.named.cublaslt.sm90.fp8_block.rows_first"),
                             (PRODUCT, "benign.unstated.vllm.sm90.fp8_block.cols_first"), (PRODUCT, "benign.in_turn.vllm.sm90.fp8_block.cols_first")):
            self.assertEqual(exit_code(line, mutant), 0, f"{mutant}: {line}")

    def test_an_unknown_mutant_is_named(self):
        self.assertNotEqual(exit_code(OFFSETS, "nothing"), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
