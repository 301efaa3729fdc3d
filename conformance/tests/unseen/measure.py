#!/usr/bin/env python3
"""What the suite and `assay explain` make of the faults of faults.txt.

    measure.py BUILD lines                 each fault fails on its line; without a fault every line passes
    measure.py BUILD kills OUT.json        which faults the profiles smoke and standard find, by the cases of the op and the recipe,
                                           kind or preset of its line alone: how many of them fail; standard where smoke has none
    measure.py BUILD explain OUT.json      what explain says to each, from a bundle of --save-got
    measure.py BUILD named NAME...         these are named rightly, and first
    measure.py BUILD judge OUT.json        how that compares with answers.txt, the patterns that right names match

NAME... after that: these faults alone. Entries of OUT.json that are not measured again stay.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

FOLDER = os.path.dirname(os.path.realpath(__file__))


def faults():
    """(name, line, cause) of each."""
    blocks = []
    with open(os.path.join(FOLDER, "faults.txt"), encoding="utf-8") as file:
        for line in file:
            text = line.rstrip("\n")
            if not text or text.startswith("#"):
                continue
            if not text.startswith(" "):
                blocks.append([text])
            else:
                blocks[-1].append(text.strip())
    assert all(len(block) == 3 for block in blocks), "faults.txt: a name, a line and a cause"
    return [tuple(block) for block in blocks]


class Assay:
    def __init__(self, build):
        self.program = os.path.join(build, "bin", "assay")
        self.backend = os.path.join(build, "conformance", "tests", "unseen", "unseen_faults.so")

    def run(self, *words, fault=None, backend=True, timeout=None):
        command = [self.program, *words]
        if backend:
            command += ["--backend", self.backend]
        if fault:
            command += ["--backend-options", "fault=" + fault]
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)


def lines(assay, chosen):
    """Names of faults whose line passes, and what a run without a fault ends with."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "lines.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(line + "\n" for _, line, _ in chosen)
        right = assay.run("run", "--cases", path, "--quiet", "--timeout", "600")
    return [name for name, line, _ in chosen if assay.run("repro", line, fault=name).returncode != 1], right


def kills(assay, chosen):
    made = {}
    for name, line, _ in chosen:
        words = line.split()[:2]
        words = words[:1] if "=" not in words[1] or words[1].split("=")[0] not in ("recipe", "kind", "preset") else words
        found = {}
        for profile in ("smoke", "standard"):
            if found.get("smoke"):
                break
            ended = assay.run("run", *words, "--profile", profile, "--quiet", "--show", "0", fault=name)
            count = re.search(r"(\d+) failed", ended.stdout.strip().splitlines()[-1])
            found[profile] = int(count[1]) if count else 0
        made[name] = found
        print(name, found, file=sys.stderr, flush=True)
    return made


def explain(assay, chosen, seconds):
    made = {}
    for name, line, _ in chosen:
        with tempfile.TemporaryDirectory() as folder:
            assay.run("repro", line, "--save-got", folder, fault=name)
            bundles = [os.path.join(folder, each) for each in os.listdir(folder)]
            if not bundles:
                made[name] = {"said": [], "seconds": 0, "note": "no output is wrong"}
                continue
            start = time.time()
            try:
                ended = assay.run("explain", bundles[0], "--quiet", "--most", "12", "--seconds", str(seconds), backend=False,
                                  timeout=2 * seconds + 60)
                said = [each.strip() for each in ended.stdout.splitlines() if re.match(r"\s+(cause|or|and|nearest) ", each)]
                made[name] = {"said": said, "seconds": round(time.time() - start, 1)}
            except subprocess.TimeoutExpired:
                made[name] = {"said": [], "seconds": seconds, "note": "no answer"}
        print(name, made[name]["seconds"], (made[name]["said"] or ["-"])[0], file=sys.stderr, flush=True)
    return made


def answers():
    """Patterns of right names by fault; a line without a pattern: nothing that explain says is right."""
    made = {}
    with open(os.path.join(FOLDER, "answers.txt"), encoding="utf-8") as file:
        for line in file:
            if line.strip() and not line.startswith("#"):
                name, _, pattern = line.strip().partition(" ")
                made[name] = pattern.strip()
    return made


def outcome(said, pattern):
    """first, among, not named, or wrong: other causes alone give every word, and of more words than chance could explain."""
    full = [each for each in said if "every word" in each]
    right = [bool(pattern and re.search(pattern, each)) for each in full]
    if any(right):
        return "first" if right[0] else "among"
    return "wrong" if any("chance could do it" not in each for each in full) else "not named"


def judge(path):
    with open(path, encoding="utf-8") as file:
        given = json.load(file)
    patterns, counts = answers(), {}
    for name, _, _ in faults():
        if name not in given["faults"]:
            continue
        entry = given["faults"][name]
        entry["outcome"] = outcome(entry["said"], patterns.get(name, ""))
        counts[entry["outcome"]] = counts.get(entry["outcome"], 0) + 1
    given["outcomes"] = counts
    with open(path, "w", encoding="utf-8") as file:
        json.dump(given, file, indent=1, ensure_ascii=False)
        file.write("\n")
    return counts


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("what", choices=("lines", "kills", "explain", "named", "judge"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--seconds", type=int, default=100)
    parser.add_argument("--note", default="")
    parser.add_argument("--every", type=int, default=1, help="every n-th fault alone")
    options = parser.parse_args()
    has_out = options.what not in ("lines", "named")
    out = options.rest[0] if has_out else None
    names = options.rest[1 if has_out else 0 :]
    chosen = [each for each in faults() if not names or each[0] in names][:: options.every]
    assay = Assay(options.build)
    if options.what == "judge":
        print(judge(out))
        return 0
    if options.what == "lines":
        passing, right = lines(assay, chosen)
        print("pass with their fault:", ", ".join(passing) or "none", "\n" + right.stdout.strip().splitlines()[-1])
        return 1 if passing or right.returncode != 0 else 0
    if options.what == "named":
        patterns = answers()
        said = {name: entry["said"] for name, entry in explain(assay, chosen, options.seconds).items()}
        missed = {name: texts for name, texts in said.items() if outcome(texts, patterns.get(name, "")) != "first"}
        print("not named first:", missed or "none")
        return 1 if missed or len(said) != len(names) else 0
    made = kills(assay, chosen) if options.what == "kills" else explain(assay, chosen, options.seconds)
    given = {"note": options.note, "faults": {}}
    if os.path.exists(out):
        with open(out, encoding="utf-8") as file:
            given = json.load(file)
    for name, entry in made.items():
        given["faults"].setdefault(name, {}).update(entry)
    with open(out, "w", encoding="utf-8") as file:
        json.dump(given, file, indent=1, ensure_ascii=False)
        file.write("\n")
    if options.what == "explain":
        print(judge(out))
    return 0


if __name__ == "__main__":
    sys.exit(main())
