#!/usr/bin/env python3
"""`assay selftest`: what it finds, what it refuses, its exit codes, and that nothing depends on the number of processes.

    verb_test.py PROGRAM LIBRARY
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY = sys.argv[1:3]
OFFSETS = "splits_to_offsets*"
BEYOND = "call.splits_to_offsets.out.offsets.beyond"


def run(*words, library=LIBRARY):
    command = [PROGRAM, "selftest", *words] + (["--library", library] if library else [])
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "ASSAY_MUTANT": ""})


class Verb(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text=None):
        path = os.path.join(self.folder.name, name)
        if text is not None:
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
        return path

    def expect(self, ran, code, *parts):
        self.assertEqual(ran.returncode, code, ran.stdout + ran.stderr)
        for part in parts:
            self.assertIn(part, ran.stdout + ran.stderr)

    def survivor(self):
        """A mutant that smoke's cases of offsets do not kill, though it makes a difference in one of them."""
        listed = self.file("list.txt")
        run(OFFSETS, "--mutants", "offsets_scalar", "--family", "points", "--proofs", self.file("none.json", "{}"), "--list", listed)
        with open(listed, encoding="utf-8") as rows:
            return next(row.split("\t")[1] for row in rows if row.startswith("survived\t"))

    def test_every_planted_fault_of_memory_is_found(self):
        ran = run(OFFSETS, "--family", "memory", "--mutants", "call.splits_to_offsets.", "--proofs", self.file("none.json", "{}"))
        self.expect(ran, 0, "PASS selftest", "2 mutants: 2 killed", "0 survived")

    def test_a_survivor_is_named_and_fails_until_it_is_proved(self):
        name = self.survivor()
        self.expect(run(OFFSETS, "--mutants", name, "--family", "points", "--proofs", self.file("none.json", "{}")), 1,
                    "survived", name, "reference/layout/offsets_scalar.cc:", "FAIL selftest")
        proofs = self.file("proofs.json", json.dumps({name: "for this test"}))
        self.expect(run(OFFSETS, "--mutants", name, "--family", "points", "--proofs", proofs), 0, "1 proved equivalent")

    def test_a_proof_of_what_a_case_kills_fails(self):
        proofs = self.file("proofs.json", json.dumps({BEYOND: "it is harmless"}))
        self.expect(run(OFFSETS, "--mutants", BEYOND, "--proofs", proofs), 1, "contradicted", "it is harmless")

    def test_results_do_not_depend_on_the_number_of_processes(self):
        texts = []
        for jobs in ("1", "2", "5"):
            path = self.file(jobs)
            run(OFFSETS, "--mutants", "offsets_scalar", "--jobs", jobs, "--json", path)
            with open(path, encoding="utf-8") as made:
                texts.append(re.sub(r'"date": "[^"]*"', "", made.read()))
        self.assertEqual(texts[0], texts[1])
        self.assertEqual(texts[0], texts[2])

    def test_shards_join_to_one_run(self):
        whole, parts = self.file("whole"), [self.file("0"), self.file("1"), self.file("2")]
        run(OFFSETS, "--mutants", "offsets_scalar", "--json", whole)
        for i, part in enumerate(parts):
            run(OFFSETS, "--mutants", "offsets_scalar", "--shard", f"{i}/3", "--json", part)
        made = self.file("joined")
        words = [word for part in parts for word in ("--matrix", part)]
        run(*words, "--json", made)
        rows = []
        for path in (whole, made):
            with open(path, encoding="utf-8") as text:
                matrix = json.load(text)
            rows.append([(row[:5], [matrix["cases"][k][0] for k in row[5]]) for row in matrix["rows"]])
        self.assertEqual(rows[0], rows[1])
        self.assertGreater(len(rows[0]), 100)

    def rows(self, path):
        with open(path, encoding="utf-8") as text:
            return {row[0]: row for row in json.load(text)["rows"]}

    def test_further_runs_take_what_no_earlier_one_killed(self):
        one, two, both, open_ones = (self.file(name) for name in ("one", "two", "both", "open"))
        chosen = ["--mutants", "call.swizzle.in.", "--mutants", "call.splits_to_offsets.", "--mutants", "offsets_scalar", "--kills", "1"]
        run(OFFSETS, *chosen, "--json", one)
        run("swizzle*", *chosen, "--json", two)
        run(OFFSETS, *chosen, "--survivors-of", one, "--survivors-of", two, "--profile", "standard", "--cost-limit", "2", "--json", both)
        killed = {name for path in (one, two) for name, row in self.rows(path).items() if row[5]}
        first = self.rows(one)
        self.assertEqual(set(self.rows(both)), set(first) - killed)
        # Those that were not reached are among them.
        self.assertTrue(any(first[name][2] == 0 for name in self.rows(both)))
        self.assertTrue(any(first[name][2] > 0 for name in self.rows(both)))
        few = self.file("few")
        run(OFFSETS, *chosen, "--survivors-of", one, "--survivors-of", two, "--killed-by-fewer", "2", "--json", few)
        # With --kills 1 no file has two kills of a mutant, and both of those that each has one of.
        twice = {name for name, row in first.items() if row[5]} & {name for name, row in self.rows(two).items() if row[5]}
        self.assertEqual(set(self.rows(few)), set(first) - twice)
        self.assertTrue(killed - twice)
        proved = next(name for name, row in first.items() if row[2] > 0 and not row[5])
        proofs = self.file("proofs.json", json.dumps({proved: "for this test"}))
        run(OFFSETS, *chosen, "--survivors-of", one, "--survivors-of", two, "--unproved", "--proofs", proofs, "--json", open_ones)
        self.assertEqual(set(self.rows(open_ones)), set(first) - killed - {proved})

    def test_costly_cases_are_left_out_and_counted(self):
        path = self.file("matrix")
        ran = run("unpermute*", "--profile", "standard", "--mutants", BEYOND, "--cost-limit", "2", "--json", path)
        found = re.search(r"above 2: (\d+) left out, (\d+) remain", ran.stdout)
        self.assertTrue(found, ran.stdout)
        self.assertGreater(int(found[1]), 0)
        with open(path, encoding="utf-8") as text:
            matrix = json.load(text)
        self.assertEqual(matrix["judged"]["cases"], int(found[2]))
        self.assertEqual(matrix["words"], ["unpermute*", "cost<=2"])

    def test_a_cover_kills_all_again(self):
        matrix, cover, record = self.file("matrix"), self.file("cover.txt"), self.file("record")
        chosen = ["--mutants", "call.splits_to_offsets.", "--family", "inputs", "--family", "outputs", "--family", "memory"]
        first = run(OFFSETS, *chosen, "--kills", "9", "--json", matrix, "--cover", cover, "--record", record)
        killed = re.search(r"(\d+) killed", first.stdout)[1]
        self.assertGreater(int(killed), 10)
        # The lines of the cover alone, and the recorded kills.
        self.expect(run("--cases", cover, *chosen), 0, f" {killed} killed")
        self.expect(run(OFFSETS, *chosen, "--again", record), 0, f"{killed} kills made again, 0 lost", f" {killed} killed")

    def test_shards_of_a_record_divide_its_cases(self):
        record = self.file("record")
        lines = self.file("lines", "splits_to_offsets splits=299x0,2147483648\nswizzle recipe=mxfp8 splits=17,0,33 K=272 seed=3\n")
        chosen = ["--mutants", "call.splits_to_offsets.", "--mutants", "call.swizzle.in."]
        first = run("--cases", lines, *chosen, "--record", record)
        killed = int(re.search(r"(\d+) killed", first.stdout)[1])
        said = [run(*chosen, "--again", record, "--shard", f"{i}/2").stdout for i in range(2)]
        # Each case is judged in one part alone, with all that it kills.
        self.assertEqual([int(re.search(r"of the record, (\d+) cases", text)[1]) for text in said], [1, 1])
        again = [int(re.search(r"(\d+) kills made again, 0 lost", text)[1]) for text in said]
        self.assertEqual(sum(again), killed)
        self.assertGreater(min(again), 0)
        self.expect(run(*chosen, "--again", record, "--shard", "2/3"), 4, "nothing selected")

    def test_a_kill_that_is_lost_fails(self):
        record = self.file("record")
        run(OFFSETS, "--mutants", BEYOND, "--record", record)
        with open(record, encoding="utf-8") as text:
            held = json.load(text)
        # A case that passes, whatever this mutant does.
        held["cases"][0][0] = "swizzle recipe=mxfp8 splits=17,0,33 K=272 seed=3"
        self.expect(run("--mutants", BEYOND, "--again", self.file("record", json.dumps(held))), 1, "lost", BEYOND, "1 lost")

    def test_variations_that_are_legal_pass_where_they_failed(self):
        lines = self.file("lines", "quantize recipe=block_1x128 zero_sign=positive R=64 K=256 data=specials seed=162\n"
                                   "grouped_gemm kind=fp8_per_tensor d_type=f32 arch=sm100 splits=5,7,0 N=32 K=272 data=wide_sums seed=9571\n")
        self.expect(run("--cases", lines, "--mutants", "benign.by_rule", "--mutants", "benign.unstated.sm89.fp8_tensor.chain"), 0, "benign: 0 failed")

    def test_wrong_usage_is_named(self):
        text = self.file("text", "not JSON")
        for words, code, part in ((["--profile", "smok"], 2, "did you mean smoke"), (["--kills", "0"], 2, "--kills"),
                                  (["--shard", "3/2"], 2, "expected I/N"), (["--seed", "-1"], 2, "--seed"),
                                  (["--again", self.file("absent")], 2, "no such file"), (["--matrix", text], 3, "text"),
                                  (["--matrix", text, text], 2, "--matrix"), (["--matrix", text, "--profile", "full"], 2, "--matrix"),
                                  (["--survivors-of", text], 3, "kill matrix"), (["--proofs", text, OFFSETS, "--mutants", BEYOND], 3, "proofs"),
                                  (["--json", self.file("no/such/folder")], 2, "no/such/folder"),
                                  (["--cover-profiles", self.folder.name], 2, "expected --matrix beside it"), (["--mutants", "no such mutant"], 4, "no mutant"), (["no_such_case"], 4, "no case")):
            self.expect(run(*words), code, part)

    def test_another_library_is_refused(self):
        self.expect(run(OFFSETS, library=self.file("absent.so")), 2, "absent.so", "no such file", "assay_mutants")
        self.expect(run(OFFSETS, library=self.file("text.so", "no library")), 2, "cannot be loaded")
        self.expect(run(OFFSETS, library="libm.so.6" if os.path.exists("libm.so.6") else self.without_entry()), 2, "assay_mutant_library")

    def without_entry(self):
        with open("/proc/self/maps", encoding="utf-8") as maps:
            return next(line.split()[-1] for line in maps if "libc.so" in line or "libc-" in line)

    def test_a_library_of_another_build_is_refused(self):
        path = self.file("matrix")
        run(OFFSETS, "--mutants", BEYOND, "--json", path)
        with open(path, encoding="utf-8") as made:
            found = json.load(made)["commit"]
        with open(LIBRARY, "rb") as file:
            held = file.read()
        other = self.file("other.so")
        with open(other, "wb") as file:
            file.write(held.replace(found.encode() + b"\0", b"x" * len(found) + b"\0"))
        self.expect(run(OFFSETS, library=other), 2, "of another build", "assay_mutants")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
