#!/usr/bin/env python3
"""pow2_ceil of the language of rules, as `assay compute` stores it in E8M0, against the vendor's conversion.

reference/tests/presets/peers.h5 has, of CUDA's __nv_cvt_float_to_e8m0 with every float asked, the first float that gives each byte. A
rule of its own makes amax the operand: the program is asked at both ends of each of those steps. Needs numpy and h5py.

    conversion_test.py --program build/bin/assay
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from peers_test import SKIPPED, WITNESSES  # noqa: F401: SKIPPED is the exit status where a package is missing

import h5py
import numpy as np
from peers_record_test import RECORD, Recorded, around

BLOCK = 32
RULE = (f'name=e8m0_up blocks=1x{BLOCK} scale_type=e8m0 amax_nan=propagated rule="scale = pow2_ceil(amax); code = x"\n'
        '  source="none" evidence="a conversion by itself"\n')


def bytes_of(program, patterns):
    """The stored scales of blocks, each with one element that is not 0."""
    x = np.zeros((len(patterns), BLOCK), np.uint32)
    x[np.arange(len(patterns)), np.arange(len(patterns)) % BLOCK] = patterns
    with tempfile.TemporaryDirectory() as folder:
        rules, source, target = (Path(folder) / name for name in ("rules.txt", "in.h5", "out.h5"))
        rules.write_text(RULE)
        with h5py.File(source, "w") as file:
            file.attrs["assay_schema"] = np.int64(2)
            case = file.create_group("case")
            case.attrs["op"], case.attrs["preset"], case.attrs["block"] = "quantize_by_rule", "e8m0_up", f"1x{BLOCK}"
            case.attrs["otype"], case.attrs["storage"] = "e4m3", "k_major"
            case.create_dataset("in/x", data=x.view(np.float32)).attrs["dtype"] = "f32"
        subprocess.run([program, "compute", source, "-o", target, "--quiet", "--presets", rules], check=True)
        with h5py.File(target, "r") as file:
            return file["case/out/scale_inv"][:].reshape(-1).view(np.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    recorded, faults, asked = Recorded(RECORD), 0, 0
    for entry in recorded.index["conversions"]:
        first = recorded.array(entry["first"])
        patterns = around(first)
        sign = (np.arange(len(patterns), dtype=np.uint32) & 1) << 31
        want = (np.searchsorted(first, patterns, side="right") - 1).astype(np.uint8)
        patterns, want = np.append(patterns | sign, np.uint32(0x7FC00000)), np.append(want, np.uint8(255))
        got = bytes_of(arguments.program, patterns)
        asked += len(got)
        for at in np.flatnonzero(got != want)[:10]:
            print(f"{entry['conversion']} of {patterns[at]:#010x}: assay {got[at]}, {entry['source']} {want[at]}")
        faults += np.count_nonzero(got != want)
    print(f"{asked} floats: {faults} differences")
    return 1 if faults or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
