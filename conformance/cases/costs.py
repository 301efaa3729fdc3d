#!/usr/bin/env python3
"""What each second of a run buys: cases, words and time by group of lines, from the file that `assay run --json FILE` writes.

    ./assay run --profile standard --json run.json && conformance/cases/costs.py run.json
"""
import json
import re
import sys

# Group, how its lines are recognised, their purpose. A case belongs to the first group that fits.
GROUPS = [
    ("self-check", lambda case, line: case["suite"] == "self-check", "that the harness finds planted faults here and today"),
    ("fixtures", lambda case, line: case["suite"] != "generated", "recorded bits of other implementations"),
    ("scenarios", lambda case, line: line.startswith("scenario"), "state between calls, graphs of several calls, streams, shared workspaces"),
    ("wrong calls", lambda case, line: "contract=1" in line, "refusals, and the right call after them"),
    ("faulty contents", lambda case, line: "fault=" in line, "negative splits and too many rows: reported, and nothing else touched"),
    ("replays", lambda case, line: "replay=" in line, "values kept from a capture or an earlier call"),
    ("unit probes", lambda case, line: "data=unit_probes" in line, "another tensor-core unit than the stated one"),
    ("units and plans", lambda case, line: " plan=" in line and 93000 <= seed(line) < 94000, "one field of a unit or of a plan that is another"),
    ("order-free sums", lambda case, line: "data=wide_sums" in line, "narrow sums where no plan is stated"),
    ("outputs left out", lambda case, line: re.search(r" outputs=[a-z]|:absent", line) and seed(line) >= 90000 or ":absent" in line,
     "what is right only where another output is requested too"),
    ("sizes", lambda case, line: seed(line) >= 60000, "thresholds and residues in every length, many groups, rare values"),
    ("pairs of options", lambda case, line: seed(line) >= 10000, "options that meet only in pairs"),
    ("written", lambda case, line: True, "one rule or one known fault each"),
]


def seed(line):
    found = re.search(r" seed=(\d+)", line)
    return int(found[1]) if found else 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            cases = json.load(file)["cases"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        sys.exit(f"{sys.argv[1]}: {error!r}: expected what `assay run --json` writes")
    rows = {}
    for case in cases:
        line = case.get("case", "")
        name, _, finds = next(each for each in GROUPS if each[1](case, line))
        op = case["op"] if name in ("sizes", "pairs of options", "written") else ""
        op = "linear_*" if op.startswith("linear_") else op
        row = rows.setdefault((name, op), [0, 0, 0.0, finds])
        row[0] += 1
        row[1] += case["elements"] if "elements" in case else case["words"]  # the former name
        row[2] += case["seconds"]
    total = sum(row[2] for row in rows.values()) or 1.0
    print("| lines | op | cases | elements | share of the time | there for |\n|---|---|---|---|---|---|")
    for (name, op), (count, elements, seconds, finds) in sorted(rows.items(), key=lambda item: -item[1][2]):
        print(f"| {name} | {op} | {count} | {elements:,} | {100 * seconds / total:.1f} % | {finds} |")
    print(f"| all | | {sum(row[0] for row in rows.values())} | {sum(row[1] for row in rows.values()):,} | 100 % | |")


if __name__ == "__main__":
    main()
