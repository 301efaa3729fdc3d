#!/usr/bin/env python3
"""Tests of verdicts.py, and of what the records say: no proof is of a mutant that a call has shown, and no survivor is without one."""

import json
import pathlib
import unittest

import verdicts

HERE = pathlib.Path(__file__).parent


def made_up(**lists: object) -> verdicts.Records:
    records = verdicts.Records.__new__(verdicts.Records)
    for name in ("on_device", "in_rooms", "not_reached"):
        setattr(records, name, set(lists.get(name, ())))
    for name in ("survived", "equivalent", "open"):
        setattr(records, name, dict(lists.get(name, {})))
    return records


class Verdicts(unittest.TestCase):
    def test_what_a_call_showed_counts_first(self):
        records = made_up(on_device=["a: x"], in_rooms=["a: x", "a: y"], survived={"a: y": "3 calls", "a: z": "4 calls", "a: v": "5 calls"}, equivalent={"a: z": "why"},
                          not_reached=["a: u", "a: float b[4]; point 1"])
        found = {key: records.verdict(key) for key in ("a: x", "a: y", "a: z", "a: v", "a: u", "a: w", "a: float b[4]; point 1")}
        self.assertEqual(found, {"a: x": verdicts.KILLED, "a: y": verdicts.IN_A_ROOM, "a: z": verdicts.EQUIVALENT, "a: v": verdicts.SURVIVED,
                                 "a: u": verdicts.NOT_REACHED, "a: w": verdicts.NOT_PLANTED, "a: float b[4]; point 1": verdicts.CONSTANT})
        self.assertEqual([records.reason(key) for key in ("a: z", "a: v", "a: x")], ["why", "5 calls", ""])

    def test_table(self):
        rows = verdicts.table(["device/b/c.cu: x", "device/b/c.cu: y", "device/d.cu: z"], made_up(on_device=["device/b/c.cu: x"]))
        self.assertEqual([line.split("|")[1:4] for line in rows.split("\n")[2:5]],
                         [[" b ", " 2 ", " 1 "], [" device ", " 1 ", " 0 "], [" all ", " 3 ", " 1 "]])

    def test_lines_that_the_compiler_alone_reads(self):
        for line, expected in (("if constexpr (kBytes == 2) {", True), ("uint4 vectors[kTurns + 1];", True), ("float value[4] = {0, 0};", True),
                               ("alignas(16) __shared__ float f[4];", True), ("x[3] = f(4);", False), ("if (a[3] == 2) return;", False),
                               ("return of_warp[3];", False)):
            self.assertEqual(verdicts.is_constant(f"a.cu: {line} point 1: 2 plus 1"), expected, line)


class Recorded(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.records = verdicts.Records()
        cls.keys = verdicts.mutants()

    def test_no_proof_is_of_a_mutant_that_a_call_has_shown(self):
        shown = self.records.on_device | self.records.in_rooms
        for name, reasons in (("equivalent.json", self.records.equivalent), ("open.json", self.records.open)):
            self.assertEqual(sorted(shown & reasons.keys()), [], name)
        self.assertEqual(sorted(self.records.equivalent.keys() & self.records.open.keys()), [])

    # Not "not reached", though no call on a GPU reached it.
    def test_what_a_room_tried_in_vain_survived(self):
        for record in verdicts.rooms():
            for key in record["open"]:
                self.assertNotIn(self.records.verdict(key), (verdicts.NOT_REACHED, verdicts.CONSTANT), key)

    def test_each_survivor_has_a_proof_or_is_open_for_a_reason(self):
        self.assertEqual([key for key in self.keys if self.records.verdict(key) == verdicts.SURVIVED], [])

    def test_a_proof_by_machine_code_was_made_by_a_compiler(self):
        compiled = json.loads((HERE.parent / "fp8_block_gemm" / "compiled_mutants.json").read_text())["mutants"]
        same = {key for key, each in compiled.items() if each == {"code": "same"}}
        self.assertGreater(len(same), 0)
        self.assertEqual(sorted(same & self.records.on_device), [], "a device shows what has the machine code of the unchanged source")
        by_code = {key for key, reason in self.records.equivalent.items() if "compiled_mutants.py" in reason}
        self.assertEqual(sorted(by_code - same), [])

    def test_reasons_are_sentences(self):
        for key, reason in {**self.records.equivalent, **self.records.open}.items():
            self.assertRegex(reason, r"\A\S.{11,}[.)]\Z", key)

    def test_the_page_has_the_table(self):
        page = (HERE / "README.md").read_text()
        self.assertEqual(verdicts.page_with(page, [verdicts.table(self.keys, self.records), verdicts.table_of_rooms()]), page,
                         "README.md: run verdicts.py --write")


if __name__ == "__main__":
    unittest.main()
