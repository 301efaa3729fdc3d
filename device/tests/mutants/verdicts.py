#!/usr/bin/env python3
"""What is known of each mutant of the kernels, from all records: a row for each folder, and for each room.

    verdicts.py [--list VERDICT] [--write]

--list prints the mutants of a verdict, with the reason where there is one. --write puts the tables into README.md.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from collections import Counter

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.insert(0, str(HERE))

import mutate  # noqa: E402

# In the order of the table; the first that is true of a mutant counts.
KILLED, IN_A_ROOM, EQUIVALENT, OPEN, SURVIVED, CONSTANT, NOT_REACHED, NOT_PLANTED = VERDICTS = (
    "killed on a GPU", "killed in a room", "equivalent", "open", "survived", "constant", "not reached", "not planted")
MARKS = (("<!-- made by verdicts.py -->\n", "<!-- end -->\n"), ("<!-- rooms made by verdicts.py -->\n", "<!-- end of rooms -->\n"))


def read(name: str) -> dict:
    return json.loads((HERE / name).read_text())


def sources() -> list[str]:
    """The sources that on_device/CMakeLists.txt mutates."""
    paths = [str(path.relative_to(ROOT)) for path in (ROOT / "device").rglob("*.cu*")]
    left_out = ("device/tests/", "device/support/launch.cuh", "device/fp8_block_gemm/wgmma.cuh")
    return sorted(path for path in paths if path.endswith((".cu", ".cuh")) and not path.startswith(left_out))


def key_of(mutant: mutate.Mutant) -> str:
    return f"{mutant.file}: {mutant.name}: {mutant.change}"


def mutants() -> list[str]:
    return [key_of(each) for file in sources() for each in mutate.mutate(file, (ROOT / file).read_text(), 0, host=True)[1]]


# The size of an array, and the condition of `if constexpr`.
SIZE = re.compile(r"(?!return )(?:(?:extern )?__shared__ |alignas\(\d+\) |__align__\(\d+\) |const )*[\w:<>]+(?: \w+)? \w+\[[^()]*\]")
CONSTANT_LINE = re.compile(SIZE.pattern + r"|.*\bif constexpr \(")


def is_constant(key: str) -> bool:
    """Whether the compiler alone reads the numbers of the mutant's line: no kernel evaluates such a point."""
    return CONSTANT_LINE.match(key.split(": ", 1)[1]) is not None


def rooms() -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted((HERE / "rooms").glob("*.json"))]


class Records:
    """Mutants by what was found of them."""

    def __init__(self) -> None:
        hunt = read("on_device/hunt.json")
        compiled = json.loads((HERE.parent / "fp8_block_gemm" / "compiled_mutants.json").read_text())["mutants"]
        self.on_device = {row[0] for row in hunt["killed"]} | {key for key, each in compiled.items() if each.get("failure")}
        self.survived = {row[0]: f"{row[1]} calls" for row in hunt["survived"]}
        self.not_reached = set(hunt["not_reached"])
        self.in_rooms = {row[0] for record in rooms() for row in record["killed"]}
        for record in rooms():  # a room's hunt counts as much as one on a GPU
            for key in record["open"]:
                self.survived.setdefault(key, f"room {record['room']}")
        self.equivalent: dict[str, str] = read("equivalent.json")
        self.open: dict[str, str] = read("open.json")

    def verdict(self, key: str) -> str:
        for verdict, decided in ((KILLED, self.on_device), (IN_A_ROOM, self.in_rooms), (EQUIVALENT, self.equivalent), (OPEN, self.open),
                                 (SURVIVED, self.survived)):
            if key in decided:
                return verdict
        if key in self.not_reached:
            return CONSTANT if is_constant(key) else NOT_REACHED
        # Behind `if constexpr (...)` more may stand on a line than its condition.
        return CONSTANT if SIZE.match(key.split(": ", 1)[1]) else NOT_PLANTED

    def reason(self, key: str) -> str:
        if key in self.equivalent or key in self.open:
            return self.equivalent.get(key) or self.open[key]
        return self.survived.get(key, "")


def table(keys: list[str], records: Records) -> str:
    counts: dict[str, Counter[str]] = {}
    for key in keys:
        file = key.split(": ")[0]
        for row in (file.rsplit("/", 1)[0].removeprefix("device/"), "all"):
            counts.setdefault(row, Counter())[records.verdict(key)] += 1
    lines = ["| folder | mutants | " + " | ".join(VERDICTS) + " |\n", "|---|" + "--:|" * (len(VERDICTS) + 1) + "\n"]
    for row in sorted(counts, key=lambda each: (each == "all", each)):
        lines.append(f"| {row} | {sum(counts[row].values())} | " + " | ".join(str(counts[row][verdict]) for verdict in VERDICTS) + " |\n")
    return "".join(lines)


def table_of_rooms() -> str:
    lines = ["| room | mutants | killed | by cases | not reached |\n", "|---|--:|--:|--:|--:|\n"]
    for record in rooms():
        counts = [record["mutants"], *(len(record[part]) for part in ("killed", "cases", "not_reached"))]
        lines.append(f"| `{record['room']}` | " + " | ".join(map(str, counts)) + " |\n")
    return "".join(lines)


def page_with(page: str, tables: list[str]) -> str:
    for (begin, end), rows in zip(MARKS, tables, strict=True):
        page = page[:page.index(begin) + len(begin)] + rows + page[page.index(end):]
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", choices=VERDICTS, metavar="VERDICT", help="one of: " + ", ".join(VERDICTS))
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    given = parser.parse_args()
    keys, records = mutants(), Records()
    if given.list is not None:
        for key in keys:
            if records.verdict(key) == given.list:
                print(key + (f"\n    {records.reason(key)}" if records.reason(key) else ""))
        return 0
    tables = [table(keys, records), table_of_rooms()]
    if given.write:
        page = HERE / "README.md"
        page.write_text(page_with(page.read_text(), tables))
    else:
        print("\n".join(tables), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
