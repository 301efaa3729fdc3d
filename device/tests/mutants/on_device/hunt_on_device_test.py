#!/usr/bin/env python3
"""The program that plants mutants on a device, with a library in place of a device's: hunt_on_device_test.py PROGRAM LIBRARY"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
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


def killers(record: dict) -> dict[str, str]:
    """The case that killed each mutant."""
    return {row[0]: record["cases"][row[1]] for row in record["killed"]}


def hunt_with(environment: dict, *options: str, stop_after: float | None = None) -> tuple[int, str, dict]:
    """With the stand-in told how to behave: the exit code, what is said, and the record. Stopped so long after the device has answered."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "record.json"
        program = subprocess.Popen([PROGRAM, "--library", LIBRARY, "--jobs", "2", "--only", "right", "--out", out, *options], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True, env=dict(os.environ, **environment))
        first = program.stderr.readline()
        if stop_after is not None:
            time.sleep(stop_after)
            program.terminate()
        said = first + program.communicate(timeout=150)[1]
        return program.returncode, said, json.loads(out.read_text())


def order(*options: str, profile: str = "standard") -> list[str]:
    done = subprocess.run([PROGRAM, "--profile", profile, "--list", *options], check=True, capture_output=True, text=True, timeout=60)
    return done.stdout.splitlines()


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
        self.assertIn(f"threads={max(1, len(os.sched_getaffinity(0)) // 2)}", record["device"], "two processes share the processors")
        verdicts = record["verdicts"]
        self.assertGreaterEqual(verdicts["passed"], record["calls"], "those that reach no point are not used")
        self.assertEqual([verdicts[word] for word in ("failed", "ended", "not made")], [0, 0, 0])
        self.assertEqual(record["folders"]["device/b"], {"killed": 3, "mutants": 4, "planted": 3, "reached": 3})

    def test_sample(self):
        record = hunt("--sample", "2", "--only", "right")
        self.assertEqual(len(record["killed"]) + len(record["survived"]), 1)
        some = [hunt("--sample", "1", "--only", "device/a", "--seed", str(seed)) for seed in (1, 1)]
        self.assertEqual(some[0]["survived"], some[1]["survived"])
        self.assertEqual([row[0] for row in some[0]["killed"]], [row[0] for row in some[1]["killed"]])

    def test_earlier_record(self):
        with tempfile.TemporaryDirectory() as folder:
            first = pathlib.Path(folder) / "first.json"
            some = hunt("--limit", "2", "--only", "device/a")
            first.write_text(json.dumps(some))
            both = hunt("--limit", "2", "--earlier", str(first))
            self.assertEqual(killers(both)[key("a/wrong", "a byte")], killers(some)[key("a/wrong", "a byte")], "not planted again")
            self.assertEqual(len(both["killed"]), 4)
            self.assertEqual([row[0] for row in both["survived"]], [key("a/right", "nothing")], "planted again, and named once")
            self.assertEqual(both["folders"], hunt("--limit", "2")["folders"])
            calls = order("--cases", "recipe=mxfp8", profile="smoke")
            self.assertLessEqual(set(killers(both).values()), set(calls))
            # A name that an earlier record has twice, and cases that it has and this hunt finds again.
            killer = killers(some)[key("a/wrong", "a byte")]
            twice = {**some, "cases": [calls[0]] * 2 + calls, "killed": [[key("a/wrong", "a byte"), 2 + calls.index(killer), "w", 1]]}
            first.write_text(json.dumps(twice))
            again = killers(hunt("--limit", "2", "--earlier", str(first)))
            self.assertEqual(again[key("a/wrong", "a byte")], killer)
            self.assertEqual(again.keys(), killers(both).keys())
            self.assertLessEqual(set(again.values()), set(calls))
            first.write_text(json.dumps({"killed": []}))
            self.assertEqual(subprocess.run([PROGRAM, "--library", LIBRARY, "--earlier", first], capture_output=True, timeout=60).returncode, 9)

    def test_notes(self):
        with tempfile.TemporaryDirectory() as folder:
            notes = pathlib.Path(folder) / "notes"
            first = hunt("--limit", "2", "--notes", str(notes))
            # Noting takes no time now: a budget that has ended before leaves nothing out.
            again = hunt("--limit", "2", "--notes", str(notes), "--note-budget", "1e-9")
            self.assertEqual(first["verdicts"], again["verdicts"])
            self.assertEqual([row[0] for row in first["killed"]], [row[0] for row in again["killed"]])
            self.assertEqual(first["survived"], again["survived"])
            lines = pathlib.Path(folder) / "lines"
            lines.write_text("quantize recipe=mxfp8 splits=32,0 K=32 seed=1\n")
            hunt("--limit", "2", "--notes", str(notes), "--lines", str(lines))
            kept = hunt("--limit", "2", "--notes", str(notes), "--note-budget", "1e-9")
            self.assertEqual(first["verdicts"], kept["verdicts"], "the notes of calls that a hunt does not make are kept")
            notes.write_bytes(notes.read_bytes()[:-1])
            done = subprocess.run([PROGRAM, "--library", LIBRARY, "--notes", notes], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 9)
            self.assertIn("ends in a note", done.stderr)
            notes.write_bytes(b"x" * 100)
            done = subprocess.run([PROGRAM, "--library", LIBRARY, "--notes", notes], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 9)
            self.assertIn("no library with these mutants", done.stderr)

    def test_decided_elsewhere(self):
        with tempfile.TemporaryDirectory() as folder:
            room, proofs = pathlib.Path(folder) / "room.json", pathlib.Path(folder) / "proofs.json"
            room.write_text(json.dumps({"room": "b", "killed": [[key("b/crash", "ends"), 0, "b", 1]], "equivalent": [key("b/stuck", "does not end")]}))
            proofs.write_text(json.dumps({key("a/right", "nothing"): "It does nothing."}))
            record = hunt("--decided", str(room), "--decided", str(proofs))
            self.assertEqual([row[0] for row in record["killed"]], [key("a/wrong", "a byte"), key("b/lasting", "wrong from now on")])
            self.assertEqual(record["survived"], [])
            proofs.write_text(json.dumps({"a": 1}))
            done = subprocess.run([PROGRAM, "--library", LIBRARY, "--profile", "smoke", "--cases", "recipe=mxfp8", "--decided", proofs],
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 9)
            self.assertIn("neither the record of a room nor a file of proofs", done.stderr)

    def test_lines_of_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            lines = pathlib.Path(folder) / "lines"
            lines.write_text("quantize recipe=mxfp8 splits=32,0 K=32 seed=1\nquantize recipe=mxfp8 splits=64 K=32 seed=2\n")
            self.assertEqual(hunt("--limit", "2", "--lines", str(lines))["calls"], 2)
            lines.write_text("quantize recipe=none\n")
            done = subprocess.run([PROGRAM, "--library", LIBRARY, "--lines", lines], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 9)
            self.assertIn("recipe", done.stderr)

    def test_budget_of_noting(self):
        code, said, record = hunt_with({"STAND_IN_TAKES": "20"}, "--cases", "quantize recipe=mxfp8", "--note-budget", "2")
        verdicts = record["verdicts"]
        self.assertGreater(verdicts["not made"], 0)
        self.assertGreater(verdicts["passed"], 0)
        self.assertEqual(record["failed"], [], "a call that was never made has not failed")
        self.assertEqual([row[0] for row in record["survived"]], [key("a/right", "nothing")], "planted under the calls that were noted")
        self.assertEqual(code, 0)
        self.assertIn(f"{verdicts['not made']} not made", said)

    def test_stopped_while_calls_are_noted(self):
        code, said, record = hunt_with({"STAND_IN_TAKES": "20"}, "--cases", "quantize recipe=mxfp8", stop_after=2)
        self.assertEqual(code, 9)
        self.assertIn("stopped before a mutant was planted", said)
        self.assertGreater(record["verdicts"]["not made"], 0)
        self.assertEqual(record["failed"], [])
        self.assertEqual(record["killed"] + record["survived"], [])

    def test_calls_that_fail(self):
        _, said, record = hunt_with({"STAND_IN_FAILS": "1"}, "--profile", "smoke", "--cases", "quantize recipe=")
        verdicts = record["verdicts"]
        self.assertGreater(verdicts["ended"], 0)
        self.assertGreater(verdicts["failed"], 0)
        self.assertEqual(len(record["failed"]), verdicts["failed"] + verdicts["ended"])
        self.assertIn("the device failed in the call: the stand-in has failed", said)
        self.assertIn("not passed without a mutant", said)

    def test_order_of_calls(self):
        first = order()
        self.assertEqual(first, order("--seed", "1"))
        other = order("--seed", "2")
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(first), sorted(other))
        ops = {line.split()[0] for line in first[:500]}
        self.assertEqual(ops, {line.split()[0] for line in first}, "a part has calls of every op")
        self.assertLess(len(order("--elements", "1000")), len(first))

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
