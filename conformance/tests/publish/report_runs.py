"""Runs of the program that the tests of reports share, and counts of their result files that share no code with the program."""

import json
import os
import subprocess
import tempfile


class Program:
    def __init__(self, program, faulty):
        self.program, self.faulty = os.path.realpath(program), os.path.realpath(faulty)
        self.folder = tempfile.TemporaryDirectory(prefix="assay_report_")
        self.environment = {**os.environ, "NO_COLOR": "1"}
        for name in ("ASSAY_GOLDEN", "ASSAY_UNITS", "ASSAY_COMMAND", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"):
            self.environment.pop(name, None)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def assay(self, *words):
        done = subprocess.run([self.program, *words], capture_output=True, text=True, env=self.environment, check=False,
                              cwd=self.folder.name)
        return done.returncode, done.stdout, done.stderr

    def run(self, name, fault, *words):
        """A run of the faulty library: its exit code. Results go to NAME."""
        return self.assay("run", "--backend", self.faulty, "--backend-options", fault, "--profile", "smoke", "--quiet", "--show", "0",
                          "--results", self.path(name), *words)[0]


def cases_of(*paths):
    """The last verdict on each case and setting, by suite, name and setting."""
    cases = {}
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                entry = json.loads(line)
                if entry["record"] == "case":
                    cases[entry["suite"], entry["name"], entry.get("setting", "")] = entry
    return cases


def title_of(entry):
    title = entry.get("case") or entry["suite"] + "/" + entry["name"]
    return title + (f" ({entry['setting']})" if entry.get("setting") else "")


def state_of(entry):
    """What a report has to say of a case."""
    waiver = entry.get("waiver", {}).get("state")
    if waiver in ("covers", "expired"):
        return "waived" if waiver == "covers" else "waiver expired"
    if waiver == "passes":
        return "waiver passes"
    return entry["verdict"]
