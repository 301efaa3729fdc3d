#!/usr/bin/env python3
"""peers.py against peers.h5, the bytes that the peers' own code gave. Needs numpy and h5py."""

import hashlib
import json
import sys
from pathlib import Path

SKIPPED = 77

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"not run: {missing.name} is not installed")
    sys.exit(SKIPPED)

import peers
from peers_layouts import LAYOUTS
from peers_mx import e8m0_up

RECORD = Path(__file__).with_name("peers.h5")
SHA256 = "3ad658503f61012663a5f76c4c975d289638e04358e790ce9dd145071d97413c"


class Recorded:
    def __init__(self, path):
        with h5py.File(path, "r") as file:
            self.data = file["bytes"][:].tobytes()
            self.index = json.loads(file["index"][:].tobytes())

    def array(self, place):
        count = int(np.prod(place["shape"]))
        return np.frombuffer(self.data, place["type"], count, place["at"]).reshape(place["shape"])

    def input(self, name):
        place = self.index["inputs"][name]
        stored = self.array(place)
        if place["x_type"] == "bf16":
            return (stored.astype(np.uint32) << 16).view(np.float32), "bf16"
        if place["x_type"] == "f16":
            return stored.view(np.float16).astype(np.float32), "f16"
        return stored.view(np.float32), "f32"


def one_nan(scale):
    scale = np.asarray(scale)
    if scale.dtype == np.float32:
        scale = scale.view(np.uint32)
    if scale.dtype == np.uint32:
        return np.where(np.isnan(scale.view(np.float32)), np.uint32(0x7FC00000), scale)
    return scale


def difference(what, want, got):
    """Where two arrays of codes or scales differ first, or nothing."""
    if what != "word":
        want, got = one_nan(want), one_nan(got)
    if want.shape != got.shape or want.dtype != got.dtype:
        return f"{what} is {got.dtype}{list(got.shape)}, recorded {want.dtype}{list(want.shape)}"
    wrong = np.argwhere(want != got)
    if len(wrong) == 0:
        return None
    at = tuple(wrong[0])
    return f"{what}{list(at)} is {got[at]:#x}, recorded {want[at]:#x}; {len(wrong)} of {want.size} differ"


def around(first):
    """Bit patterns of floats next to those of `first`, and some others between them."""
    near = (first.astype(np.int64)[:, None] + np.arange(-40, 41)).reshape(-1)
    between = (np.arange(1 << 20, dtype=np.int64) * 2039) % 0x7F800001
    return np.concatenate([near[near >= 0], between, [0x7F800000]]).astype(np.uint32)


def compare_conversion(entry, recorded):
    """e8m0_up at the ends of each step of the recorded function, with both signs; and NaN. Returns the differences."""
    first = recorded.array(entry["first"])
    patterns = around(first)
    want = (np.searchsorted(first, patterns, side="right") - 1).astype(np.uint8)
    found = [difference("byte", want, e8m0_up((patterns | sign).view(np.float32))) for sign in (np.uint32(0), np.uint32(1 << 31))]
    nan = np.array([0x7F800001, 0x7FC00000, 0xFFFFFFFF], np.uint32).view(np.float32)
    return [*found, difference("byte", np.full(3, 255, np.uint8), e8m0_up(nan))]


def main():
    digest = hashlib.sha256(RECORD.read_bytes()).hexdigest()
    if digest != SHA256:
        print(f"{RECORD.name}: SHA-256 is {digest}, expected {SHA256}")
        return 1
    recorded = Recorded(RECORD)
    failures, codes, presets = 0, 0, set()
    for entry in recorded.index["records"]:
        x, x_type = recorded.input(entry["input"])
        options = {k: tuple(v) if isinstance(v, list) else v for k, v in entry["options"].items()}
        got_codes, got_scale, got_tensor = peers.quantize(entry["preset"], x, x_type, **options)
        found = [difference("code", recorded.array(entry["codes"]), got_codes),
                 difference("scale", recorded.array(entry["scale"]), got_scale)]
        if "tensor_scale" in entry:
            found.append(difference("tensor scale", recorded.array(entry["tensor_scale"]), got_tensor))
        codes += got_codes.size
        presets.add(entry["preset"])
        for text in filter(None, found):
            failures += 1
            print(f"{entry['preset']} {options} on {entry['input']}: {text} ({entry['source']})")
    for entry in recorded.index["layouts"]:
        scales = recorded.array(entry["scales"])
        text = difference("word", recorded.array(entry["stored"]), LAYOUTS[entry["layout"]](scales))
        if text:
            failures += 1
            print(f"{entry['layout']} of {list(scales.shape)} scales: {text} ({entry['source']})")
    for entry in recorded.index["conversions"]:
        for text in filter(None, compare_conversion(entry, recorded)):
            failures += 1
            print(f"{entry['conversion']}: {text} ({entry['source']})")
    unrecorded = (set(peers.PRESETS) - presets) | (set(LAYOUTS) - {entry["layout"] for entry in recorded.index["layouts"]})
    if unrecorded:
        print(f"no recorded bytes of: {', '.join(sorted(unrecorded))}")
        failures += 1
    counts = f"{len(recorded.index['records'])} records of {len(presets)} presets, {len(recorded.index['layouts'])} layouts"
    print(f"{counts}, {codes} codes: {failures} differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
