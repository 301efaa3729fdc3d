#!/usr/bin/env python3
"""The program that plants mutants on a device, with a library in place of a device's: hunt_on_device_test.py PROGRAM LIBRARY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY = sys.argv[1:3]


def key(file: str, change: str) -> str:
    return f"device/{file}.cu: {file.split('/')[1]} point 1: {change}"


def hunt(*options: str) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "record.json"
        subprocess.run([PROGRAM, "--library", LIBRARY, "--profile", "smoke", "--jobs", "2", "--cases", "recipe=mxfp8", "--out", out, *options],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=150)
        return json.loads(out.read_text())


class Hunt(unittest.TestCase):
    def test_each_way_to_end(self):
        record = hunt("--limit", "2")
        self.assertEqual({row[0]: row[2] for row in record["killed"]},
                         {key("a/wrong", "a byte"): "w", key("b/crash", "ends"): "e", key("b/lasting", "wrong from now on"): "e",
                          key("b/stuck", "does not end"): "t"})
        self.assertEqual([row[0] for row in record["survived"]], [key("a/right", "nothing")])
        self.assertEqual(record["survived"][0][1:], [record["calls"]] * 2, "under every call that reaches it")
        self.assertEqual(record["not_reached"], [key("b/unreached", "any")])
        self.assertEqual(record["failed"], [])
        self.assertEqual(record["folders"]["device/b"], {"killed": 3, "mutants": 4, "planted": 3, "reached": 3})

    def test_sample(self):
        record = hunt("--sample", "2", "--only", "right")
        self.assertEqual(len(record["killed"]) + len(record["survived"]), 1)
        some = [hunt("--sample", "1", "--only", "device/a", "--seed", str(seed)) for seed in (1, 1)]
        self.assertEqual(some[0]["survived"], some[1]["survived"])
        self.assertEqual(some[0]["killed"], some[1]["killed"])

    def test_a_device_that_does_not_answer(self):
        done = subprocess.run([PROGRAM, "--library", LIBRARY, "--limit", "1"], capture_output=True, text=True, timeout=100,
                              env=dict(os.environ, STAND_IN_OPENS="never"))
        self.assertEqual(done.returncode, 9)
        self.assertIn("has not answered for 1 s", done.stderr)

    def test_no_library(self):
        done = subprocess.run([PROGRAM, "--library", "/nowhere.so"], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 9)
        self.assertIn("/nowhere.so", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
