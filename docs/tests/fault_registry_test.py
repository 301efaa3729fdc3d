#!/usr/bin/env python3
"""The registry of faults (docs/faults): its fields, its table, and its case lines, which the program reads.

    fault_registry_test.py --program BUILD/bin/assay
"""

import argparse
import functools
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
FOLDER = os.path.join(ROOT, "docs", "faults")
FIELDS = ["library", "versions", "architecture", "op", "case", "case is in", "first fixed version", "upstream"]
IN_TABLE = ["library", "versions", "op", "case", "first fixed version", "upstream"]  # columns behind the identifier
PROGRAM = None


def texts():
    """Name, without its ending -> text of every page of the registry."""
    found = {}
    for name in sorted(os.listdir(FOLDER)):
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            found[os.path.splitext(name)[0]] = file.read()
    return found


def fields_of(text):
    return dict(re.findall(r"^\| (?!field )([a-z ]+) \| (.+) \|$", text.split("\n## ")[0], flags=re.M))


def listed(*arguments):
    """The lines that `assay list` prints; None where it refuses."""
    ran = subprocess.run([PROGRAM, "list", *arguments], text=True, capture_output=True, check=False)
    return ran.stdout.splitlines() if ran.returncode == 0 else None


@functools.lru_cache(maxsize=None)
def whole_catalogue():
    return set(listed("--profile", "full"))


def faults_of_entry(name, text):
    faults = []
    fields = fields_of(text)
    if not re.match(rf"# {name}: \S.*\n", text):
        faults.append(f"{name} does not begin with '# {name}: ' and a title")
    if list(fields) != FIELDS:
        faults.append(f"{name} has the fields {', '.join(fields)}: expected {', '.join(FIELDS)}")
    for heading in ("What happens", "What the suite prints"):
        if not re.search(rf"^## {heading}\n\n\S", text, flags=re.M):
            faults.append(f"{name} lacks text under '{heading}'")
    fixed = fields.get("first fixed version", "")
    if not re.match(r"none known on \d{1,2} [A-Z][a-z]+ \d{4}$|.*\d+\.\d+", fixed):
        faults.append(f"{name}: first fixed version is '{fixed}': expected a version, or none known on a date")
    return faults


def faults_of_case(name, fields, catalogue):
    case, place = fields.get("case", ""), fields.get("case is in", "")
    if not re.fullmatch(r"`[^`]+`", case):
        return [f"{name}: the case is {case}: expected one line between backquotes"]
    line = case[1:-1]
    with tempfile.TemporaryDirectory(prefix="assay_faults_") as folder:
        path = os.path.join(folder, "case.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(line + "\n")
        printed = listed("--cases", path)
    if printed != [line]:
        return [f"{name}: the program reads {line} as {printed}"]
    if place == "the catalogue":
        return [] if line in catalogue else [f"{name}: no line of the catalogue: {line}"]
    path = os.path.join(ROOT, place.strip("`"))
    if not os.path.isfile(path):
        return [f"{name}: the case is in {place}: expected the catalogue or a file"]
    with open(path, encoding="utf-8") as file:
        held = any(each == line or each.endswith(": " + line) for each in file.read().splitlines())
    return [] if held else [f"{name}: {place} does not hold {line}"]


def faults_of_table(pages):
    faults = []
    rows = dict(re.findall(r"^\| \[(ASSAY-\d{4})\]\(\1\.md\) \| (.+) \|$", pages["README"], flags=re.M))
    for name, text in pages.items():
        if name == "README":
            continue
        cells = rows.pop(name, "").split(" | ")
        fields = fields_of(text)
        if len(cells) != len(IN_TABLE):
            faults.append(f"README has no row of {len(IN_TABLE) + 1} cells for {name}")
            continue
        for field, cell in zip(IN_TABLE, cells):
            if not fields.get(field, "").startswith(cell):
                faults.append(f"README: {field} of {name} is '{cell}', but the file says '{fields.get(field)}'")
    return faults + [f"README names {identifier}, which has no file" for identifier in rows]


def faults_of(pages):
    catalogue = whole_catalogue()
    faults = [f"{name} is no page of the registry" for name in pages if not re.fullmatch(r"README|ASSAY-\d{4}", name)]
    for name, text in pages.items():
        if name != "README":
            faults += faults_of_entry(name, text) + faults_of_case(name, fields_of(text), catalogue)
    return faults + faults_of_table(pages)


class FaultRegistry(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.pages = texts()

    def faults_after(self, name, old, new):
        self.assertIn(old, self.pages[name])
        return faults_of({**self.pages, name: self.pages[name].replace(old, new)})

    def test_holds_together(self):
        faults = faults_of(self.pages)
        self.assertEqual(faults, [], "\n" + "\n".join(faults))
        self.assertGreaterEqual(len(self.pages), 7)

    def test_a_field_that_is_missing_is_a_fault(self):
        faults = self.faults_after("ASSAY-0001", "| architecture |", "| device |")
        self.assertTrue(any("has the fields library, versions, device" in fault for fault in faults), faults)
        faults = self.faults_after("ASSAY-0001", "none known on 23 November 2026", "unknown")
        self.assertTrue(any("first fixed version is 'unknown'" in fault for fault in faults), faults)

    def test_a_case_that_is_none_is_a_fault(self):
        faults = self.faults_after("ASSAY-0001", "d_type=f32 splits=8x128 N=2304", "dtype=f32 splits=8x128 N=2304")
        self.assertTrue(any("the program reads" in fault for fault in faults), faults)
        faults = self.faults_after("ASSAY-0001", "seed=901`", "seed=999901`")
        self.assertTrue(any("no line of the catalogue" in fault for fault in faults), faults)
        faults = self.faults_after("ASSAY-0002", "seed=55`", "seed=5999`")
        self.assertTrue(any("does not hold" in fault for fault in faults), faults)

    def test_a_table_that_says_something_else_is_a_fault(self):
        faults = self.faults_after("README", "13.6.0 to 13.10.0", "13.6.0 to 13.11.0")
        self.assertEqual(len(faults), 1, faults)
        pages = dict(self.pages)
        del pages["ASSAY-0006"]
        self.assertEqual(faults_of(pages), ["README names ASSAY-0006, which has no file"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    options, rest = parser.parse_known_args()
    PROGRAM = os.path.realpath(options.program)
    unittest.main(argv=[sys.argv[0], *rest])
