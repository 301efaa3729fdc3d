#!/usr/bin/env python3
"""Runs other people's quantizers on a CPU and writes their bytes to peers.h5.

It needs torch 2.11 with Triton, h5py, and the peers' sources below one directory:
    DeepSeek-V3, DeepGEMM, microxcaling, fouroversix, TransformerEngine, FBGEMM    checkouts
    torchao, modelopt                                                              unpacked wheels
and the folder of a CUDA toolkit (compiled_mx.py compiles a function of its headers for the host).
peer_sources.py imports what it needs from them and nothing else; no text of theirs is kept here. vLLM and SGLang have no
quantizer for a CPU: expressions.py says theirs in torch.

The inputs come from a counter: SplitMix64 of the index and of the seed of each set, so a number does not depend on those before.
NaN codes are recorded as 0x7F: the sign of a computed NaN depends on the machine.
"""

import argparse
import json
import os
import sys
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"
os.environ["ATEN_CPU_CAPABILITY"] = "default"  # the instructions that every machine has

import h5py
import numpy as np
import torch

import compiled_mx
import expressions
from peer_sources import citer, layouts, peers_of

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


# --- Inputs ------------------------------------------------------------------------------------------------------------------


def words(seed, count):
    """`count` words of 64 bits, each a function of the seed and its index alone."""
    with np.errstate(over="ignore"):
        z = (np.arange(1, count + 1, dtype=np.uint64) + np.uint64(seed) * np.uint64(1 << 32)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def random_rows(seed, rows, columns, span, block=16):
    """Values in (-2, 2) times 2^e, e of a block uniform in [-span, span], times 2^-d with d of an element in 0 to 3."""
    w = words(seed, rows * columns).reshape(rows, columns)
    value = ((w & 0xFFFFFF).astype(np.float64) / 2**22 - 2) * np.exp2(-((w >> 30) & 3).astype(np.float64))
    e = (words(seed + 1, rows * columns // block) % np.uint64(2 * span + 1)).astype(np.int64) - span
    return np.ldexp(value, np.repeat(e.reshape(rows, -1), block, axis=1))


def midpoints(columns, amax):
    """A row whose amax is `amax` at each 16th place, and between them multiples of amax/896: midpoints of codes, if amax is the
    largest value of a format times a power of two."""
    i = np.arange(columns)
    return np.where(i % 16 == 0, 1, ((i * 37) % 448) / 448 * np.where(i % 3 == 1, -1, 1)) * amax


def edges(columns):
    """Rows that are not random: zeros, tiny values, subnormals, near-limit values, midpoints, amax at powers of two."""
    r = random_rows(90, 9, columns, 2)
    zeros = np.where(np.arange(columns) % 7 == 3, -0.0, 0.0)
    sparse = np.where(np.arange(columns) % 64 == 5, -3.0, zeros)
    powers = np.where(np.arange(columns) % 16 == 7, np.exp2(np.arange(columns) // 16 - 8.0), 2.0**-12)
    below = np.where(np.arange(columns) % 16 == 7, powers * (1 - 2.0**-8), powers)
    above = np.where(np.arange(columns) % 16 == 7, powers * (1 + 2.0**-7), powers)
    small = [r[0] * 2.0**-14, r[1] * 2.0**-36, r[2] * 2.0**-118, r[3] * 2.0**-131]
    large = [np.where(np.abs(r[4]) > 4, 1, r[4]) * 2.0**124, r[5] * 2.0**100]
    middle = [midpoints(columns, a) for a in (448.0, 6 * 2.0**-20, 7.5, 28 * 2.0**9, 57344.0, 1.75)]
    return np.stack([zeros, sparse, powers, below, above, *small, *large, *middle])


def wide(columns):
    """float32 values with all their bits: amax next to powers of two, and to 448, 6, 7.5 and 28 times them."""
    r = random_rows(80, 8, columns, 6)
    near = []
    for direction in (-np.inf, np.inf):
        e = np.exp2(np.arange(columns // 32) * 5.0 - 10)
        peak = np.stack([np.nextafter((c * e).astype(np.float32), np.float32(direction)) for c in (1, 448, 6, 28)])
        row = r[:4] / 2**22
        row[:, 5::32] = peak
        row[:, 21::32] = -peak
        near.append(row)
    return np.concatenate([r[:6], *near])


def near_midpoints(seed, rows, columns, largest, odd):
    """Rows whose other values are float32 neighbours of amax / largest times midpoints of codes: there a quotient, a product with
    a reciprocal and a second rounding part. odd: numerators of the midpoints between two powers of two."""
    w = words(seed, rows * columns).reshape(rows, columns)
    a = np.ldexp(1 + (w[:, :1] & 0x7FFFFF).astype(np.float64) / 2**23, (w[:, :1] >> np.uint64(40)).astype(np.int64) % 17 - 8)
    step = np.array(odd)[(w >> np.uint64(8)) % np.uint64(len(odd))] / np.exp2(np.floor(np.log2(min(odd))))
    middle = step * np.exp2(np.floor(np.log2(largest)) - ((w >> np.uint64(20)) % np.uint64(6)).astype(np.float64))
    value = np.minimum(middle, largest) * np.where(w >> np.uint64(50) & np.uint64(1), -1, 1) * a / largest
    value[:, :1] = a
    return value.astype(np.float32)


def exact_midpoints(columns):
    """bf16 rows whose amax is 7c and whose other values are c times an odd number, all times powers of two: the scale is c times
    a power of two, x / s is a midpoint of codes of E4M3, and x times RN(1/s) need not be."""
    rows = []
    for c in (3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33):
        odd = np.array([n for n in range(17, 32, 2) if n * c < 1 << (8 + (c & -c).bit_length() - 1) or n * c < 256] or [17, 31])
        i = np.arange(columns)
        value = odd[i % len(odd)] * c * np.exp2(-2.0 - i // len(odd) % 8) * np.where(i % 5 == 2, -1, 1)
        value[0] = 7.0 * c
        rows.append(np.where(np.abs(value) > 7 * c, value / 4, value))
    return np.stack(rows)


def near_midpoints_nvfp4(seed, rows, columns):
    """Blocks of 16 whose values lie next to midpoints of E2M1 times an E4M3 scale and amax / 2688; in every other block the amax
    lies next to 6 times a midpoint of E4M3 instead."""
    w = words(seed, rows * columns).reshape(-1, 16)
    total = 16.5
    eighths = 16 + 2 * ((w[:, 0] >> np.uint64(8)) % np.uint64(8)).astype(np.int64) + np.arange(len(w)) % 2
    scale = np.ldexp(eighths / 16.0, ((w[:, 0] >> np.uint64(20)) % np.uint64(8)).astype(np.int64)) * total / 2688
    middle = np.array([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])[(w >> np.uint64(30)) % np.uint64(7)]
    value = middle * np.where(w >> np.uint64(50) & np.uint64(1), -1, 1) * scale[:, None]
    value[:, 3] = 6 * scale
    value = value.reshape(rows, columns)
    value[:, 0] = total
    return value.astype(np.float32)


# Of the blocks below, those whose choice of 4 or 6 hangs on the order in which the errors are added: found by search.
CLOSE = (50, 175, 232, 236, 357, 359, 527, 545, 621, 638, 677, 704, 714, 816, 923, 964, 1085, 3066, 7117, 9895, 15079, 17104,
         19682, 25704, 26945, 31591, 32114, 34347, 36532, 40906, 43903, 57019)


def close_choices():
    """Blocks of 16 multiples of 1/8, times 2^-3 to 2^3, below a first row that makes the amax of the tensor 16."""
    w = words(1000, 16 * (max(CLOSE) + 1)).reshape(-1, 16)[list(CLOSE)]
    e = ((w[:, :1] >> np.uint64(40)) % np.uint64(7)).astype(np.int64) - 3
    x = np.ldexp(((w % np.uint64(17)).astype(np.int64) - 8) / 8, e).reshape(-1, 128)
    return np.concatenate([np.where(np.arange(128) == 0, 16.0, 0.0)[None], x])


def with_specials(x):
    """NaN in some blocks, infinities in others, all of one block NaN."""
    x = x.copy()
    x[0, 3] = np.nan
    x[1, 40] = np.inf
    x[2, 70] = -np.inf
    x[3, 33], x[3, 34] = np.inf, np.nan
    x[4, 0:32] = np.nan
    return x


def exact(x, x_type):
    """x rounded to x_type, as float32."""
    return torch.from_numpy(np.ascontiguousarray(x, np.float32)).to(DTYPES[x_type]).float().numpy()


def input_sets():
    general = np.concatenate([random_rows(10, 5, 256, 12), edges(256)])
    infinite = random_rows(20, 4, 128, 3)
    infinite[1, 40], infinite[2, 70], infinite[3, 5:9] = np.inf, -np.inf, np.inf
    square = random_rows(60, 128, 128, 6)
    square[:, 0], square[:, 1] = 0, square[:, 1] * 2.0**-60
    sets = {
        "bf16": ("bf16", general),
        "bf16_special": ("bf16", with_specials(random_rows(30, 6, 128, 6))),
        "bf16_infinite": ("bf16", infinite),
        "bf16_plain": ("bf16", np.concatenate([random_rows(40, 6, 128, 3), edges(128)[:2], midpoints(128, 6.0)[None]])),
        "bf16_close": ("bf16", close_choices()),
        "bf16_zero": ("bf16", edges(64)[:1]),
        "bf16_tall": ("bf16", np.concatenate([random_rows(50, 12, 256, 12, block=128), edges(256)[[0, 6, 9, 11]]]).T),
        "bf16_square": ("bf16", square),
        "bf16_middle": ("bf16", exact_midpoints(128)),
        "f32": ("f32", wide(128)),
        "f32_middle": ("f32", near_midpoints(110, 10, 128, 448.0, range(17, 32, 2))),
        "f32_middle_row": ("f32", near_midpoints(121, 1, 512, 448.0, range(17, 32, 2))),
        "f32_middle_fp4": ("f32", near_midpoints(130, 8, 128, 6.0, (5, 7))),
        "f32_nvfp4": ("f32", near_midpoints_nvfp4(140, 12, 128)),
        "f16": ("f16", np.clip(np.concatenate([random_rows(70, 4, 128, 8), edges(128)[[0, 1, 5, 11, 15]]]), -65504, 65504)),
    }
    return {name: (x_type, exact(x, x_type)) for name, (x_type, x) in sets.items()}


# --- Outputs -----------------------------------------------------------------------------------------------------------------


def raw(tensor):
    """Bytes of a torch tensor as numpy: float32 as uint32, 8-bit types as uint8."""
    if tensor.dtype == torch.float32:
        return tensor.contiguous().numpy().view(np.uint32)
    return tensor.contiguous().view(torch.uint8).numpy()


def unsigned(tensor):
    """An int32 tensor as uint32, a uint8 one as it is."""
    array = tensor.contiguous().numpy()
    return array.view(np.uint32) if array.dtype == np.int32 else array


def one_nan(codes, fmt):
    """FP8 codes with one code for every NaN."""
    if fmt == "e4m3":
        return np.where(codes & 0x7F == 0x7F, 0x7F, codes).astype(np.uint8)
    if fmt == "e5m2":
        return np.where(codes & 0x7F > 0x7C, 0x7F, codes).astype(np.uint8)
    return codes


def one_nan_scale(tensor):
    """Bytes of scales with one NaN of each type; E8M0 has one anyway."""
    scale = raw(tensor)
    if tensor.dtype == torch.float32:
        return np.where(np.isnan(scale.view(np.float32)), np.uint32(0x7FC00000), scale)
    return one_nan(scale, "e4m3") if tensor.dtype == torch.float8_e4m3fn else scale


def input_codes(x_type, x):
    """The bit patterns of x in x_type."""
    if x_type == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    return x.view(np.uint32) if x_type == "f32" else x.astype(np.float16).view(np.uint16)


class Store:
    """Arrays one after the other in one string of bytes; equal ones stand once."""

    def __init__(self):
        self.data, self.places = bytearray(), {}

    def take(self, content, index):
        """The arrays of a file that is there, in their order."""
        self.data = bytearray(content)

        def visit(node):
            if isinstance(node, dict) and "at" in node:
                size = int(np.prod(node["shape"])) * np.dtype(node["type"]).itemsize
                self.places.setdefault(bytes(content[node["at"]:node["at"] + size]), node["at"])
            elif isinstance(node, (dict, list)):
                for part in node.values() if isinstance(node, dict) else node:
                    visit(part)

        visit(index)

    def put(self, array):
        content = np.ascontiguousarray(array).tobytes()
        if content not in self.places:
            self.places[content] = len(self.data)
            self.data += content
        return {"at": self.places[content], "type": array.dtype.name, "shape": list(array.shape)}


def add_records(store, index, sets, records):
    for record in records:
        for set_name in record.sets:
            x_type, x = sets[set_name]
            codes, scale, tensor_scale = record.run(torch.from_numpy(x).to(DTYPES[x_type]))
            entry = {"preset": record.preset, "options": record.options, "input": set_name, "source": record.source,
                     "codes": store.put(one_nan(raw(codes), record.fmt)), "scale": store.put(one_nan_scale(scale))}
            if tensor_scale is not None:
                entry["tensor_scale"] = store.put(one_nan_scale(tensor_scale.reshape(-1)))
            index["records"].append(entry)


def add_layouts(store, index, made):
    for name, source, lay_out in made:
        for rows, columns in ((131, 8), (64, 4)) if name == "deepgemm.packed" else ((131, 6), (128, 4), (3, 9)):
            scales = (words(200, rows * columns) % np.uint64(255)).astype(np.uint8).reshape(rows, columns)
            index["layouts"].append({"layout": name, "source": source, "scales": store.put(scales),
                                     "stored": store.put(unsigned(lay_out(torch.from_numpy(scales))))})


def add_compiled(store, index, sets, cite, cuda):
    """What comes last, so that it can be added to a file that has the rest."""
    conversion = compiled_mx.Conversion(cuda)
    index["conversions"] = [{"conversion": "e8m0, up", "source": conversion.source, "first": store.put(conversion.steps())}]
    add_records(store, index, sets, compiled_mx.records(cite, conversion))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sources", type=Path, required=True, help="directory with the peers' checkouts and unpacked wheels")
    parser.add_argument("--revisions", default="", help="NAME=REVISION,... of checkouts that carry no .git")
    parser.add_argument("--cuda", type=Path, default=Path("/usr/local/cuda"), help="folder of a CUDA toolkit")
    parser.add_argument("--append-compiled", action="store_true", help="keep the file, and add the records of compiled_mx.py alone")
    parser.add_argument("--output", type=Path, default=Path(__file__).with_name("peers.h5"))
    arguments = parser.parse_args()
    known = dict(part.split("=") for part in arguments.revisions.split(",") if part)
    sets = input_sets()
    cite = citer(arguments.sources, known)
    store = Store()
    if arguments.append_compiled:
        with h5py.File(arguments.output, "r") as file:
            index = json.loads(file["index"][:].tobytes())
            store.take(file["bytes"][:].tobytes(), index)
        if "conversions" in index:
            raise SystemExit(f"{arguments.output} has the records of compiled_mx.py")
        sys.path.insert(0, str(arguments.sources / "torchao"))
    else:
        index = {"torch": torch.__version__, "cpu_capability": torch.backends.cpu.get_cpu_capability(), "inputs": {}, "records": [],
                 "layouts": []}
        for name, (x_type, x) in sets.items():
            index["inputs"][name] = {"x_type": x_type, **store.put(input_codes(x_type, x))}
        add_records(store, index, sets, [*peers_of(arguments.sources, cite), *expressions.records()])
        add_layouts(store, index, layouts(arguments.sources, cite))
    add_compiled(store, index, sets, cite, arguments.cuda)
    with h5py.File(arguments.output, "w", track_order=True) as file:
        file.create_dataset("bytes", data=np.frombuffer(bytes(store.data), np.uint8), compression=9, chunks=(1 << 16,))
        text = np.frombuffer(json.dumps(index, separators=(",", ":")).encode(), np.uint8)
        file.create_dataset("index", data=text, compression=9)
    print(f"{arguments.output}: {arguments.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
