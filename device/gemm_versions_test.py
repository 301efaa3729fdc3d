"""gemm_versions.py with a program in place of assay, whose library is right, wrong, stuck, slow or crashing."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
VERSIONS = os.path.join(HERE, "gemm_versions.py")

# Cases a, b, c of the suite in two shards, a scenario of products and one of a layer; ASSAY_CUBLASLT names what is wrong.
FAKE = '''\
import json, os, signal, sys, time
fault, words = os.environ.get("ASSAY_CUBLASLT"), sys.argv[1:]
at = words.index("--json")
path = words[at + 1]
del words[at:at + 2]
lines = {"a": "grouped_gemm kind=a", "b": "grouped_gemm kind=b replay=4:data", "c": "grouped_gemm kind=c"}
scenarios = {"s": "scenario recipe=none steps=TN,NN/NT splits=1", "l": "scenario recipe=none steps=forward,NT splits=1"}

def value(name):
    return words[words.index(name) + 1]

def write(contents):
    with open(path, "w") as file:
        json.dump(contents, file)

def entry(line):
    name = next((n for n, text in {**lines, **scenarios}.items() if text == line), "x")
    made = {"suite": "generated", "name": name, "case": line, "verdict": "passed"}
    if fault == "wrong" and "kind=a" in line:
        made.update(verdict="failed", text="FAILED  " + line + "\\n    kind=a\\n  when    replay 3\\n  d       3 wrong\\n  hint    scale  of another block\\n")
    if fault == "lost" and "kind=b" in line:
        made.update(verdict="machine failed", text="FAILED  " + line + "\\n  when    capture\\n  call    returned 'device lost'\\n")
    if fault == "old":
        made.update(verdict="not run", text="needs 13.4\\nmore")
    if fault == "stuck" and "kind=b" in line:  # as assay reports a call that did not finish
        made.update(verdict="unfinished", text="FAILED  " + line + "\\n  call    returned 'timeout': not finished after 15000 ms\\n")
    if fault == "slow" and "replay" in line:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        time.sleep(1000)
    if fault == "dies" and "kind=c" in line:
        os.abort()
    return made

if words[0] != "list" and value("--backend-options") != "assume_plan=13.10":
    sys.exit("judged by another plan")
if words[0] == "doctor":
    write([{"subject": "cublaslt", "good": True, "text": "13.6.0, " + fault}, {"subject": "threads", "good": True, "text": "2"}])
elif words[0] == "list":
    write([{"name": n, "case": c} for n, c in (lines if words[-1] == "grouped_gemm" else scenarios).items()])
elif words[0] == "repro":
    write({"cases": [{"suite": "self-check", "name": "z", "verdict": "passed"}, entry(words[-1])]})
elif words[0] == "run":
    assert words[-1] == "grouped_gemm" and value("--profile") == "smoke", words
    shard, shards = map(int, value("--shard").split("/"))
    write({"cases": [entry(line) for line in list(lines.values())[shard::shards]]})
'''

KNOWN = """\
# comment

large, f32 --axis pointer_mode=host --expect-by emulated: grouped_gemm kind=a N=9
small: grouped_gemm kind=d
"""


class GemmVersionsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.assay = self.file("assay", f"#!{sys.executable}\n{FAKE}")
        os.chmod(self.assay, 0o755)
        self.known = self.file("known.txt", KNOWN)
        self.out = os.path.join(self.folder.name, "out")

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def judge(self, *versions, more=()):
        done = subprocess.run([sys.executable, VERSIONS, self.out, self.assay, *versions, "--known", self.known, "--shards", "2", *more],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    def result(self):
        with open(os.path.join(self.out, "versions.json"), encoding="utf-8") as file:
            return {version["name"]: version for version in json.load(file)["versions"]}

    def test_sound_wrong_and_old(self):
        code, text, errors = self.judge("13.9=sound", "13.6=wrong", "13.1=old")
        self.assertEqual(code, 0, errors)
        result = self.result()
        self.assertEqual(result["13.9"]["counts"], {"known": {"passed": 2, "failed": 0, "not_run": 0, "other": 0},
                                                    "replay": {"passed": 1, "failed": 0, "not_run": 0, "other": 0},
                                                    "suite": {"passed": 3, "failed": 0, "not_run": 0, "other": 0}})
        self.assertEqual((result["13.9"]["failing"], result["13.9"]["version"]), ([], "13.6.0"))
        hint = "hint: scale of another block"
        self.assertEqual(result["13.6"]["known"], {"large, f32": {"verdict": "failed", "hint": hint}, "small": {"verdict": "passed", "hint": ""}})
        self.assertEqual({(f["part"], f["case"], f["verdict"], f["hint"]) for f in result["13.6"]["failing"]},
                         {("known", "grouped_gemm kind=a N=9", "failed", hint), ("suite", "grouped_gemm kind=a", "failed", hint)})
        self.assertEqual(result["13.1"]["not_run"], {"needs 13.4": 6})
        self.assertRegex(text, r"\| 13.6 +\| 13.6.0 +\| 1 / 1 / 0 / 0 \| 1 / 0 / 0 / 0 \| 2 / 1 / 0 / 0 \|")
        self.assertRegex(text, r"\| large, f32 \| right \| WRONG \| absent \|")
        self.assertIn(f"- `grouped_gemm kind=a N=9`\n  - 13.6: failed: {hint}\n", text)
        self.assertIn("13.1: not run, 6 cases: needs 13.4", text)
        with open(os.path.join(self.out, "13.6", "known-1.log"), encoding="utf-8") as file:
            self.assertIn("--axis pointer_mode=host --expect-by emulated", file.read())

    def test_what_ends_badly_takes_no_other_along(self):
        short = ("--shard-seconds", "3", "--case-seconds", "3", "--single-seconds", "3")
        code, text, errors = self.judge("t=slow", "d=dies", "l=lost", "s=sound", more=short)
        self.assertEqual(code, 5, errors)
        result = self.result()
        # b is alone in its shard; c crashes the process of a, which is run again.
        self.assertEqual([(f["case"], f["verdict"], f["hint"]) for f in result["t"]["failing"]],
                         [("grouped_gemm kind=b replay=4:data", "not_finished", "not finished in 3 s")])
        self.assertEqual([(f["case"], f["verdict"], f["hint"]) for f in result["d"]["failing"]],
                         [("grouped_gemm kind=c", "no_verdict", "ended by SIGABRT")])
        self.assertEqual(result["d"]["counts"]["suite"], {"passed": 2, "failed": 0, "not_run": 0, "other": 1})
        self.assertEqual([(f["case"], f["verdict"], f["hint"]) for f in result["l"]["failing"]],
                         [("grouped_gemm kind=b replay=4:data", "machine_failed", "call: returned 'device lost'")])
        self.assertEqual(result["s"]["failing"], [])
        self.assertIn("t: shard 1: not finished in 3 s", text)
        self.assertIn("d: shard 0: ended by SIGABRT", text)

    def test_a_call_that_was_given_up_is_a_hang(self):
        self.known = self.file("known.txt", "b: grouped_gemm kind=b replay=4:data\nslow: grouped_gemm kind=e replay=1\n")
        code, text, _ = self.judge("h=stuck", "t=slow", more=("--shard-seconds", "3", "--case-seconds", "3", "--single-seconds", "3"))
        self.assertEqual(code, 5)
        self.assertRegex(text, r"\| b +\| HANG +\| not finished in 3 s \|")
        self.assertRegex(text, r"\| slow +\| right +\| not finished in 3 s \|")
        failing = self.result()["h"]["failing"]
        hint = "call: returned 'timeout': not finished after 15000 ms"
        self.assertEqual({(f["part"], f["case"], f["verdict"], f["hint"]) for f in failing},
                         {(part, "grouped_gemm kind=b replay=4:data", "hang", hint) for part in ("known", "suite")})
        # It is not run a second time.
        logs = [name for name in os.listdir(os.path.join(self.out, "h")) if re.fullmatch(r"suite-.*\.log", name)]
        self.assertEqual(len(logs), 2, logs)

    def test_another_plan(self):
        _, _, errors = self.judge("s=sound", more=("--backend-options", "assume_plan=13.4"))
        self.assertIn("'other': 3", errors.replace('"', "'"))

    def test_no_time_left(self):
        code, text, errors = self.judge("s=sound", more=("--seconds", "0"))
        self.assertEqual(code, 5, errors)
        self.assertEqual({part: counts["other"] for part, counts in self.result()["s"]["counts"].items()}, {"known": 2, "replay": 1, "suite": 3})
        self.assertRegex(text, r"\| small +\| not tried \|")

    def test_refusals(self):
        for versions in (["13.4"], ["13.4="], ["a/b=c"], ["a=b", "a=c"]):
            with self.subTest(versions):
                self.assertEqual(self.judge(*versions)[0], 2)
        self.known = self.file("known.txt", "no line\n")
        self.assertIn("known.txt:1: expected NAME: LINE", self.judge("a=b")[2])

    def test_the_known_faults_have_names_of_their_own(self):
        sys.path.insert(0, HERE)
        self.addCleanup(sys.path.remove, HERE)
        import gemm_versions  # noqa: PLC0415
        known = gemm_versions.read_known(os.path.join(HERE, "gemm_versions.txt"))
        self.assertGreater(len(known), 30)
        self.assertEqual(len({name for name, _, _ in known}), len(known))
        for _, options, line in known:
            self.assertTrue(line.startswith("grouped_gemm "), line)
            self.assertEqual(len(options) % 2, 0, options)


if __name__ == "__main__":
    unittest.main()
