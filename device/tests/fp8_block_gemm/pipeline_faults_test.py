#!/usr/bin/env python3
"""The faults of pipeline_faults.json can be planted in the sources as they are, and the record of the last run knows all of them."""

import json
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import pipeline_faults  # noqa: E402


class PipelineFaults(unittest.TestCase):
    def test_each_changes_its_file_in_one_place(self) -> None:
        for fault in pipeline_faults.faults_of():
            with self.subTest(fault["name"]):
                text = (pipeline_faults.ROOT / pipeline_faults.FOLDER / fault["file"]).read_text()
                self.assertNotEqual(pipeline_faults.changed(fault), text)

    def test_a_text_that_is_not_there_is_an_error(self) -> None:
        fault = {"name": "none", "file": "kernel.cuh", "from": "no such text", "to": ""}
        with self.assertRaisesRegex(ValueError, "none: its text stands 0 times in kernel.cuh"):
            pipeline_faults.changed(fault)

    def test_a_program_that_judges_nothing_is_an_error(self) -> None:
        for script, raises in (("echo no fixtures >&2; exit 9", True), ("exit 0", False)):
            with self.subTest(script), tempfile.TemporaryDirectory() as folder:
                program = pathlib.Path(folder) / "assay"
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o755)
                if raises:
                    with self.assertRaisesRegex(RuntimeError, "exit code 9: no fixtures"):
                        pipeline_faults.judge(program, 20, ["run"])
                else:
                    self.assertEqual(pipeline_faults.judge(program, 20, ["run"])[::2], ([], True))

    def test_a_fault_behind_an_option_has_its_cases(self) -> None:
        option = {"name": "one", "file": "kernel.cuh", "from": "", "to": "", "with": "pow2_scales=on"}
        run = pipeline_faults.run_of(option, [])
        self.assertEqual(run[:2] + run[3:], ["run", "--cases", "--backend", "device", "--backend-options", "gemm=assay,pow2_scales=on", "--profile", "full"])
        self.assertTrue(pathlib.Path(run[2]).is_file())
        self.assertEqual(pipeline_faults.run_of(pipeline_faults.UNCHANGED, [])[1:3], list(pipeline_faults.CASES))

    def test_names_are_unique(self) -> None:
        names = [fault["name"] for fault in pipeline_faults.faults_of()]
        self.assertEqual(len(names), len(set(names)))

    def test_the_record_has_every_fault(self) -> None:
        record = json.loads((HERE / "pipeline_faults_found.json").read_text())
        self.assertEqual({each["name"] for each in record["faults"]}, {each["name"] for each in pipeline_faults.faults_of()})
        unseen = {fault["name"] for fault in pipeline_faults.faults_of() if "unseen" in fault}
        for each in record["faults"]:
            self.assertEqual(each["found"], each["name"] not in unseen, each["name"])
            self.assertEqual(each["found"], bool(each["failures"]), each["name"])

    # A wait that is added later needs a fault of its own, or a reason here.
    def test_every_wait_for_a_barrier_has_a_fault(self) -> None:
        without = {
            "kernel.cuh": {"wait(places.full + stage * kNextBarrier, parity);": 2},  # a rest and a tile passed by: nothing is read after
        }
        for file in ("kernel.cuh", "loads.cuh", "scale_products.cuh"):
            text = (pipeline_faults.ROOT / pipeline_faults.FOLDER / file).read_text()
            planted = [fault["from"] for fault in pipeline_faults.faults_of() if fault["file"] == file]
            for call in set(re.findall(r"\bwait\(.*\);", text)):
                with_fault = sum(call in each for each in planted)
                expected = text.count(call) - without.get(file, {}).get(call, 0)
                self.assertGreaterEqual(with_fault, expected, f"{file}: {call}")


if __name__ == "__main__":
    unittest.main()
