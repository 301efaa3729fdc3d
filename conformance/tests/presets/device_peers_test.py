#!/usr/bin/env python3
"""Presets of scale rules, as `assay compute` answers them, against what their peers' kernels gave on a GPU.

reference/tests/presets/device_peers.h5 has a group a record: x and its type, the peer and the call, the codes and scales that came
back, and the preset that says how. Rows are some of those of the call. Needs numpy and h5py.

    device_peers_test.py --program build/bin/assay
"""

import argparse
import sys

from peers_test import BITS, SKIPPED, Questions, WITNESSES, read_presets

import h5py
import numpy as np

RECORDED = WITNESSES / "device_peers.h5"
CLAIM = "reference/tests/presets/device_peers.h5"


def unpacked(codes, otype, columns):
    """Codes, one to a byte. torch keeps those of FP6 so, and those of FP4 as two in a byte."""
    if BITS[otype] == 4 and codes.shape[1] * 2 == columns:
        return np.stack([codes & 15, codes >> 4], axis=-1).reshape(codes.shape[0], columns)
    return codes


def ask_records(file, questions):
    """One question a record. Returns the presets that were asked about."""
    asked = set()

    def visit(name, node):
        if not isinstance(node, h5py.Group) or "preset" not in node.attrs:
            return
        preset, otype, block = (str(node.attrs[key]) for key in ("preset", "otype", "block"))
        x = node["in/x"]
        halves = 2 if PRESETS[preset].get("activation") else 1
        codes = unpacked(node["out/codes"][:], otype, x.shape[1] // halves)
        questions.ask(name, preset, x[:], str(x.attrs["dtype"]), (codes, node["out/scale"][:], None), block, otype)
        asked.add(preset)

    file.visititems(visit)
    return asked


PRESETS = {}


def main():
    global PRESETS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    PRESETS = read_presets(arguments.program)
    claimed = {name for name, row in PRESETS.items() if CLAIM in row["evidence"]}

    questions = Questions()
    with h5py.File(RECORDED, "r") as file:
        asked = ask_records(file, questions)
    faults, codes = questions.answer(arguments.program)
    faults += [f"{name}: its evidence names {CLAIM}, which has no record of it" for name in sorted(claimed - asked)]
    for text in faults:
        print(text)
    print(f"{len(questions.asked)} records of {len(asked)} presets with {codes} codes: {len(faults)} differences")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
