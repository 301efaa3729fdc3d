"""Inputs: words of SplitMix64 of an index and a seed, so that they can be made again; and the sets of peers.h5."""

import json
from pathlib import Path

import numpy as np


def words(seed, count):
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_rows(seed, rows, columns, span, block=16):
    """Values in (-2, 2) times 2^e, e of a block uniform in [-span, span], times 2^-d with d of an element in 0 to 3."""
    w = words(seed, rows * columns).reshape(rows, columns)
    value = ((w & np.uint64(0xFFFFFF)).astype(np.float64) / 2**22 - 2) * np.exp2(-((w >> np.uint64(30)) & np.uint64(3)).astype(np.float64))
    e = (words(seed + 1, rows * (columns // block)) % np.uint64(2 * span + 1)).astype(np.int64) - span
    return np.ldexp(value, np.repeat(e.reshape(rows, -1), block, axis=1)).astype(np.float32)


def some_bytes(seed, count):
    return (words(seed, count) >> np.uint64(13)).astype(np.uint8)


def floats(seed, count, span):
    """Positive float32 with all their bits: 2^e (1 + m), e uniform in [-span, span]."""
    w = words(seed, count)
    m = 1 + (w & np.uint64(0x7FFFFF)).astype(np.float64) / 2**23
    e = ((w >> np.uint64(30)) % np.uint64(2 * span + 1)).astype(np.int64) - span
    return np.ldexp(m, e).astype(np.float32)


class Recorded:
    """The inputs of peers.h5: name -> (x_type, float32 array)."""

    def __init__(self, path):
        import h5py
        with h5py.File(path, "r") as file:
            data = file["bytes"][:].tobytes()
            index = json.loads(file["index"][:].tobytes())
        self.sets = {}
        for name, place in index["inputs"].items():
            count = int(np.prod(place["shape"]))
            stored = np.frombuffer(data, place["type"], count, place["at"]).reshape(place["shape"])
            if place["x_type"] == "bf16":
                value = (stored.astype(np.uint32) << 16).view(np.float32)
            elif place["x_type"] == "f16":
                value = stored.view(np.float16).astype(np.float32)
            else:
                value = stored.view(np.float32)
            self.sets[name] = (place["x_type"], value.reshape(place["shape"]))


def all_sets(folder):
    sets = Recorded(Path(folder) / "peers.h5").sets
    sets["bf16_many"] = ("bf16", random_rows(300, 2304, 128, 12))  # more rows than 16 on each of 132 or 144 multiprocessors
    sets["bf16_long"] = ("bf16", np.concatenate([random_rows(310, 30, 2048, 12), np.zeros((2, 2048), np.float32)]))
    sets["f32_long"] = ("f32", random_rows(320, 16, 2048, 9, block=128))
    sets["f16_long"] = ("f16", random_rows(330, 16, 1024, 5))
    sets["bf16_blocks"] = ("bf16", random_rows(340, 256, 384, 8, block=128))
    sets["f32_blocks"] = ("f32", random_rows(350, 256, 256, 8, block=128))
    return sets


def gates(seed, rows, columns, x_type):
    """[rows, 2 * columns]: gates of all magnitudes up to 2^7, ups with random exponents; then rows of edges."""
    gate = random_rows(seed, rows, columns, 5, block=8)
    up = random_rows(seed + 7, rows, columns, 4 if x_type == "f16" else 10, block=32)
    edge = np.array([0, -0.0, 1e-30 if x_type != "f16" else 6e-8, -1e-30 if x_type != "f16" else -6e-8, 88.5, -88.5, 87.0, -87.25, 104, -104,
                     1.0, -1.0, 20, -20, 1e4, -1e4, 0.5, -0.5, 17.3, -17.3], np.float32)
    gate[0] = np.resize(edge, columns)
    up[0] = np.where(np.arange(columns) % 3 == 0, -1.5, 1.25)
    gate[1], up[1] = 0, up[1]
    gate[2, :] = np.linspace(-12, 12, columns)
    up[2, :] = 1
    up[3] = 0
    return np.concatenate([gate, up], axis=1).astype(np.float32)
