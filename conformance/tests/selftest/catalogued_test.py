#!/usr/bin/env python3
"""Each fault that the page of faults names is planted by a mutant, and its cases fail on it.

    catalogued_test.py PROGRAM LIBRARY SOURCE [--large]

--large: also the cases of more than 2^27 products, which take minutes.
"""

import concurrent.futures
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM, LIBRARY, SOURCE = sys.argv[1:4]
LARGE = "--large" in sys.argv
sys.path.insert(0, os.path.join(SOURCE, "conformance", "selftest"))
import mutants  # noqa: E402

# How a case ends on which a fault shows.
CAUGHT = ("failed", "skip without proof", "unfinished")


def lines_of(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as file:
        return file.read().split("\n")


def rows_with_cases():
    """(item, fault) -> case lines, of the tables of conformance/cases/faults.md and of released_faults.txt."""
    rows = {}
    for line in lines_of("conformance/cases/faults.md"):
        cells = re.fullmatch(r"\| (.+?) \| (.+?) \| (.+) \|", line)
        if cells and cells[3].startswith("`"):
            rows[cells[1], cells[2]] = re.findall(r"`([^`]+)`", cells[3])
    item = None
    for line in lines_of("conformance/cases/released_faults.txt"):
        named = re.match(r"# (ASSAY-\d+):", line)
        item = named[1] if named else item
        if line and line[0] not in "#[":
            rows.setdefault((item, "-"), []).append(line)
    return rows


def rows_with_mutants():
    """(item, fault) -> names of mutants, or a text that begins with 'none:'."""
    rows = {}
    for line in lines_of("conformance/selftest/catalogued.txt"):
        if line and not line.startswith("#"):
            item, fault, rest = line.split(" | ")
            assert (item, fault) not in rows, line
            rows[item, fault] = rest if rest.startswith("none: ") else rest.split()
    return rows


def words(line):
    """The line without the order of its keys, which a report changes."""
    return " ".join(sorted(line.split()))


def products(line):
    """About how many products a case has."""
    keys = dict(re.findall(r"(\w+)=(\S+)", line))
    if not line.startswith("grouped_gemm"):
        return 0
    rows = sum(math.prod(map(int, part.split("x"))) for part in keys["splits"].split(",") if re.fullmatch(r"[\dx]+", part))
    return rows * int(keys["N"]) * int(keys["K"])


CASES, MUTANTS = rows_with_cases(), rows_with_mutants()


def verdicts(mutant, lines):
    """How each case ends while the mutant is planted."""
    with tempfile.TemporaryDirectory() as folder:
        cases, report = os.path.join(folder, "cases.txt"), os.path.join(folder, "report.json")
        with open(cases, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        done = subprocess.run([PROGRAM, "run", "--cases", cases, "--backend", LIBRARY, "--backend-options", "mutant=" + mutant, "--quiet",
                               "--show", "0", "--json", report], capture_output=True, text=True, check=False)
        if not os.path.exists(report):
            raise AssertionError(f"{mutant}: exit {done.returncode}: {done.stdout[-400:]}{done.stderr[-400:]}")
        with open(report, encoding="utf-8") as file:
            ends = {words(case["case"]): case["verdict"] for case in json.load(file)["cases"]}
    # A report has lines in full; a shorter line is judged alone.
    return {line: ends[words(line)] if words(line) in ends else verdict_of(mutant, line) for line in lines}


def verdict_of(mutant, line):
    done = subprocess.run([PROGRAM, "repro", line, "--backend", LIBRARY, "--backend-options", "mutant=" + mutant], capture_output=True, check=False)
    return {0: "passed", 1: "failed", 5: "unfinished", 6: "skip without proof"}[done.returncode]


class Catalogued(unittest.TestCase):
    def test_every_row_is_mapped_and_no_other(self):
        self.assertGreater(len(CASES), 120)
        self.assertEqual(set(CASES), set(MUTANTS))

    def test_every_catalogued_mutant_belongs_to_a_row(self):
        known = {row[0] for row in mutants.mutants(LIBRARY) if row[1] == "catalogued"}
        named = {name for names in MUTANTS.values() if isinstance(names, list) for name in names}
        self.assertEqual(known, named)

    def test_the_cases_of_a_row_fail_by_its_mutants(self):
        wanted = {}  # mutant -> lines
        for row, names in MUTANTS.items():
            for name in names if isinstance(names, list) else []:
                wanted.setdefault(name, {}).update((line, None) for line in CASES[row] if LARGE or products(line) < 1 << 27)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            names = [name for name, lines in wanted.items() if lines]
            seen = dict(zip(names, pool.map(lambda name: verdicts(name, list(wanted[name])), names)))
        missing = []
        for row, names in MUTANTS.items():
            lines = [line for line in CASES[row] if LARGE or products(line) < 1 << 27]
            if not isinstance(names, list) or not lines:
                continue
            for name in names:
                if not any(seen[name][line] in CAUGHT for line in lines):
                    missing.append(f"{row[0]}: {name} fails none of {lines}")
            for line in lines:
                if not any(seen[name][line] in CAUGHT for name in names):
                    missing.append(f"{row[0]}: {line} fails by none of {names}")
        self.assertEqual([], missing, "\n" + "\n".join(missing))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
