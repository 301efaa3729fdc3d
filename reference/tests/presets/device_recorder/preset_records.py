#!/usr/bin/env python3
"""Adds records of builds.h5, which record.py wrote, to the witnesses of presets.

    preset_records.py builds.h5 --to device_peers.h5

A record there has rows of x, the codes and the scales in f32. Rows are independent where a block lies in one row: of
long and of many rows some are kept. Records of calls that no preset describes are left out, and named.
"""

import argparse
import json
import sys

import h5py
import numpy as np

MOST_ROWS = 24
LONG_ROWS = 6

# Where sglang-kernel 0.4.6 stores one f32 a block, the flag for powers of two changes nothing.
SAME_AS = {"group_v1_ue8m0/": "sglang.group_v1.sm100", "group_v2_ue8m0/": "sglang.group_v2.sm100"}


def preset_of(name, node):
    """The preset whose rule the call follows, or None."""
    if "_eps/" in name or "group_v1_ue8m0_packed" in name:
        return None
    for part, preset in SAME_AS.items():
        if part in name:
            return preset
    return str(node.attrs["preset"]).removesuffix(", packed")


def rows_of(name, block, rows):
    """Which rows are kept: all of a tensor with one scale, else some."""
    if block == "allxall":
        return np.arange(rows)
    if "_long" in name:
        return np.r_[:LONG_ROWS - 2, rows - 2:rows]
    return np.arange(min(rows, MOST_ROWS))


def scales_of(node, rows, blocks):
    """[rows, blocks] of f32. Four exponents in a word are taken apart and become the powers of two that they stand for."""
    scale = node["out/scale"][:]
    if scale.dtype == np.int32:
        return (scale.reshape(rows, -1).view(np.uint8)[:, :blocks].astype(np.uint32) << 23).view(np.float32)
    return scale.reshape(rows, -1)


def record(name, node, preset):
    """(attributes, {path: (array, dtype label)})"""
    block, rows = str(node.attrs["block"]), node["in/x"].shape[0]
    columns = node["in/x"].shape[1]
    width = columns if block.endswith("all") else int(block.split("x")[1])
    kept = rows_of(name, block, rows)
    scale = scales_of(node, 1 if block == "allxall" else rows, columns // width)
    scale = scale if block == "allxall" else scale[kept]
    attributes = {key: node.attrs[key] for key in ("block", "call", "peer")} | {"preset": preset, "otype": "e4m3"}
    return attributes, {"in/x": (node["in/x"][:][kept], node["in/x"].attrs["dtype"]), "out/codes": (node["out/codes"][:][kept], None),
                        "out/scale": (np.ascontiguousarray(scale).reshape(-1), None)}


def put(group, path, array, label, known):
    content = (label, array.dtype.str, array.shape, array.tobytes())
    if content in known:
        group[path] = known[content]
        return
    pressed = {"compression": 9, "shuffle": array.itemsize > 1} if array.size > 64 else {}
    known[content] = group.create_dataset(path, data=array, **pressed)
    if label:
        known[content].attrs["dtype"] = label


def add_provenance(file, builds):
    """That of the file, with the wheels of builds.h5; both must be of one device, driver and torch."""
    old, new = json.loads(file.attrs["provenance"]), json.loads(builds.attrs["provenance"])
    for key in ("device", "driver", "torch"):
        if old[key] != new[key]:
            raise SystemExit(f"{key} is {new[key]!r}, expected {old[key]!r}, as of the other records")
    old["wheels"].update(new["wheels"])
    old["version"] += f"; {new['version']}"
    old["producer"] += f"; {new['producer']}"
    file.attrs["provenance"] = json.dumps(old)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("builds")
    parser.add_argument("--to", required=True)
    arguments = parser.parse_args()
    with h5py.File(arguments.builds, "r") as builds, h5py.File(arguments.to, "a") as file:
        found, known, left_out = [], {}, 0
        builds.visititems(lambda name, node: found.append(name) if "preset" in node.attrs else None)

        def keep(_, node):
            if isinstance(node, h5py.Dataset):
                known[(node.attrs.get("dtype"), node.dtype.str, node.shape, node[()].tobytes())] = node

        file.visititems(keep)
        for name in found:
            preset = preset_of(name, builds[name])
            if preset is None or "untouched" in builds[name].attrs:
                print(f"left out: {name}")
                left_out += 1
                continue
            attributes, arrays = record(name, builds[name], preset)
            case = file.create_group(name)
            for key, value in attributes.items():
                case.attrs[key] = value
            for path, (array, label) in arrays.items():
                put(case, path, array, label, known)
        add_provenance(file, builds)
        print(f"{len(found) - left_out} records added")
    return 0


if __name__ == "__main__":
    sys.exit(main())
