#!/usr/bin/env python3
"""Every preset of scale rules: the answer of `assay compute` against its peer.

Two witnesses, neither of which shares code with the reference: the bytes that the peers' own code gave
(reference/tests/presets/peers.h5), and peers.py, their formulas in numpy, for inputs drawn here. Needs numpy and h5py.

    peers_test.py --program build/bin/assay
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77

try:
    import h5py
    import numpy as np
except ImportError as missing:
    print(f"not run: {missing.name} is not installed")
    sys.exit(SKIPPED)

WITNESSES = Path(__file__).resolve().parents[3] / "reference" / "tests" / "presets"
sys.path.insert(0, str(WITNESSES))

import peers  # noqa: E402
import steps  # noqa: E402
from peers_layouts import LAYOUTS  # noqa: E402

# Presets without a peer: the recipes of TransformerEngine, which te_rules_test.cc compares.
OURS = {"te", "te.pow2", "te.per_tensor", "te.mx", "nvfp4.te"}

# Built with fast math: products with reciprocals, and those by the approximate instruction.
FAST = {"div": steps.reciprocal_div, "rcp": steps.rcp_approx_ftz}

# Presets that are another name, or the GPU form, of a function in peers.py.
FORMS = {
    "deepgemm.cuda": ("deepgemm", {"div": steps.reciprocal_div}),
    "deepgemm.ue8m0.packed": ("deepgemm.ue8m0", {}),
    "torchao.block.rhs": ("torchao.block", {}),
    "sglang.group_v1": ("sglang.group_v1", FAST),
    "sglang.group_v2": ("sglang.group_v2", {"rcp": steps.rcp_approx_ftz}),
    "sglang.group_v2.ue8m0": ("sglang.group_v2", {"ue8m0": True}),
    "sglang.per_token": ("sglang.per_token", FAST),
    "sglang.per_token.many": ("sglang.per_token", {**FAST, "many_tokens": True}),
    "sglang.group_v1.sm100": ("sglang.group_v1", {}),
    "sglang.group_v2.sm100": ("sglang.group_v2", {}),
    "sglang.group_v2.ue8m0.sm100": ("sglang.group_v2.ue8m0", {}),
    "sglang.per_token.sm100": ("sglang.per_token", {}),
    "sglang.per_tensor.sm100": ("sglang.per_tensor", {}),
    "torchao.mx_rceil.cuda": ("torchao.mx_rceil.compiled", {}),
}


def stored(x, x_type):
    """x as bits of its type; bits of 16-bit types pass through."""
    if x.dtype == np.uint16:
        return x
    if x_type == "bf16":
        return (x.view(np.uint32) >> 16).astype(np.uint16)
    return x.astype(np.float16).view(np.uint16) if x_type == "f16" else x


def unpacked(data, bits, shape):
    """Codes, one to a byte, from bytes in which they follow one another."""
    if bits == 8:
        return data.reshape(shape)
    stream = np.unpackbits(data.reshape(-1), bitorder="little").reshape(-1, bits)
    return (stream * (1 << np.arange(bits))).sum(axis=1).astype(np.uint8).reshape(shape)


BITS = {"e4m3": 8, "e5m2": 8, "e3m2": 6, "e2m3": 6, "e2m1": 4}


class Questions:
    """Cases for one run of `assay compute`, and what is expected of each."""

    def __init__(self):
        self.asked = []

    def ask(self, title, preset, x, x_type, want, block, otype="e4m3", storage="k_major", nan_codes=True):
        self.asked.append((title, preset, x, x_type, want, block, otype, storage, nan_codes))

    def answer(self, program):
        faults, codes = [], 0
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.h5", Path(folder) / "out.h5"
            with h5py.File(source, "w") as file:
                file.attrs["assay_schema"] = np.int64(2)
                for number, (title, preset, x, x_type, _, block, otype, storage, _) in enumerate(self.asked):
                    case = file.create_group(f"case_{number:04d}")
                    case.attrs["op"] = "quantize_by_rule"
                    case.attrs["preset"], case.attrs["block"] = preset, block
                    case.attrs["otype"], case.attrs["storage"] = otype, storage
                    dataset = case.create_dataset("in/x", data=stored(x, x_type))
                    dataset.attrs["dtype"] = x_type
            done = subprocess.run([program, "compute", source, "-o", target, "--quiet"], capture_output=True, text=True)
            if done.returncode != 0:
                return [f"assay compute: exit {done.returncode}: {done.stderr.strip()}"], 0
            with h5py.File(target, "r") as file:
                for number, asked in enumerate(self.asked):
                    out = file[f"case_{number:04d}/out"]
                    faults += difference(asked, out)
                    codes += asked[4][0].size
        return faults, codes


def difference(asked, out):
    title, preset, x, _, (want_codes, want_scale, want_amax), _, otype, _, nan_codes = asked
    faults = []
    codes = unpacked(out["data"][:].view(np.uint8), BITS[otype], want_codes.shape)
    same = codes == want_codes
    if BITS[otype] == 8:  # the sign of a computed NaN is the machine's
        largest = 0x7E if otype == "e4m3" else 0x7C
        same |= ((codes & 0x7F) > largest) & ((want_codes & 0x7F) > largest)
    if not nan_codes:  # of formats without NaN, for which the peer gives meaningless bits
        same |= np.isnan(x)
    if preset.startswith("fouroversix"):  # its reference gives values that round to 8 the code of zero
        same |= (codes & 7 == 7) & (want_codes & 7 == 0)
    if not same.all():
        at = tuple(int(i) for i in np.argwhere(~same)[0])
        faults.append(f"{title}: {np.count_nonzero(~same)} of {same.size} codes differ, first at {at}: x {x[at]!r}, "
                      f"assay 0x{codes[at]:02x}, peer 0x{want_codes[at]:02x}")
    got = out["scale_inv"][:]
    want = np.asarray(want_scale).reshape(-1)
    if want.dtype == np.float32:
        want = want.view(np.uint32)
    got = got.view(np.uint32 if want.dtype == np.uint32 else np.uint8)
    if got.shape != want.shape:
        return faults + [f"{title}: {got.size} scales, the peer has {want.size}"]
    nan = np.isnan(got.view(np.float32)) & np.isnan(want.view(np.float32)) if want.dtype == np.uint32 else np.zeros(got.shape, bool)
    wrong = (got != want) & ~nan
    if wrong.any():
        at = int(np.argwhere(wrong)[0][0])
        faults.append(f"{title}: {np.count_nonzero(wrong)} of {wrong.size} scales differ, first {at}: assay {got[at]:#x}, peer {want[at]:#x}")
    return faults


def block_text(block):
    return "x".join("all" if extent is None else str(extent) for extent in block)


def drawn(rng, x_type, rows, columns, kind):
    """float32 values that are exact in x_type."""
    bits = rng.integers(0, 1 << 32, (rows, columns), dtype=np.uint32)
    if kind == "bits":
        x = bits.view(np.float32).copy()
    else:
        spread = rng.integers(-12, 13, (rows, (columns + 31) // 32)).repeat(32, axis=1)[:, :columns]
        x = np.ldexp(rng.standard_normal((rows, columns)).astype(np.float32), spread.astype(np.int32))
    if kind == "zeros":
        x[rng.random(x.shape) < 0.98] = 0
        x[rng.random(x.shape) < 0.3] *= -1
    if kind == "tiny":
        x = x * np.float32(2.0 ** -112)
    if x_type == "bf16":
        x = (np.asarray(x, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)
    elif x_type == "f16":
        with np.errstate(over="ignore"):
            x = np.asarray(x, np.float32).astype(np.float16).astype(np.float32)
    return np.ascontiguousarray(x, np.float32)


# Options of a record that name another preset of ours, or another type of codes.
def named(preset, options):
    """Our preset and type of codes for a recorded one, or None where we have no such rule."""
    options = dict(options)
    otype = options.pop("fmt", "e2m1" if preset.startswith(("nvfp4", "fouroversix", "deepgemm.fp4")) else "e4m3")
    block = options.pop("block", ())
    rounding = options.pop("rounding", None)
    if preset == "microxcaling" and rounding is not None:
        preset += {"nearest": "", "even": ".even", "floor": ".floor"}[rounding]
    if preset == "nvfp4.torchao" and options.pop("two_level", True) is False:
        preset += ".one_level"
    if preset == "nvfp4.vllm" and options.pop("emulated", False):
        preset += ".emulated"
    if preset == "sglang.per_token" and options.pop("many_tokens", False):
        preset += ".many"
    if preset == "torchao.mx_rceil.compiled":
        preset = "torchao.mx_rceil.cuda"
    if preset == "torchao.block" and tuple(block) == (128, 1):
        preset += ".rhs"
    for ours in (preset + ".sm100", preset, {"fbgemm.block": "fbgemm.row"}.get(preset)):
        if ours in PRESETS and not options:
            return ours, otype
    return None


def block_of(preset, options):
    block = options.get("block")
    if block is not None:
        return "x".join("all" if extent is None else str(extent) for extent in block)
    return PRESETS[preset]["blocks"][0]


def read_presets(program):
    """Name to blocks and types of codes, from the rows as the program prints them."""
    made = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "presets.json"
        subprocess.run([program, "list", "--presets", "--json", file], check=True, capture_output=True)
        for row in json.loads(file.read_text())["presets"]:
            made[row["name"]] = row
    return made


# Records of values that a source does not define: NaN in a format without NaN.
def compare_with_records(program):
    from peers_record_test import RECORD, Recorded

    recorded, questions, unmatched = Recorded(RECORD), Questions(), {}
    for record in recorded.index["records"]:
        found = named(record["preset"], record["options"])
        if found is None:
            unmatched.setdefault(record["preset"] + " " + json.dumps(record["options"]), record["source"])
            continue
        preset, otype = found
        x, x_type = recorded.input(record["input"])
        if record.get("rows"):
            x = x[: record["rows"]]
        codes, scale = recorded.array(record["codes"]), recorded.array(record["scale"])
        title = f"{preset} {otype} on recorded {record['input']}"
        questions.ask(title, preset, x, x_type, (codes, scale, None), block_of(preset, record["options"]), otype,
                      nan_codes=BITS[otype] == 8)
    return questions, unmatched


def reachable(preset, x, x_type, options, block):
    """The peer's answer for these inputs, or None if the peer refuses them."""
    function, implied = peers.PRESETS[preset]
    try:
        with np.errstate(all="ignore"):
            return function(x, x_type, **{**implied, **options})
    except ValueError:
        return None


def compare_with_formulas(seed):
    """Inputs drawn here: every preset that peers.py has, with its blocks and types of codes."""
    rng, questions = np.random.default_rng(seed), Questions()
    asked = set()
    for ours, row in PRESETS.items():
        name, options = FORMS.get(ours, (ours, {}))
        if name == "microxcaling.even" or name == "microxcaling.floor":
            name, options = "microxcaling", {"rounding": name.split(".")[1]}
        if name == "nvfp4.torchao.one_level":
            name, options = "nvfp4.torchao", {"two_level": False}
        if name == "nvfp4.vllm.emulated":
            name, options = "nvfp4.vllm", {"emulated": True}
        if name == "sglang.per_token.many.sm100":
            name, options = "sglang.per_token", {"many_tokens": True}
        if name not in peers.PRESETS:
            continue
        for otype in row["outputs"]:
            given = dict(options)
            if len(row["outputs"]) > 1:
                given["fmt"] = otype
            for block in row["blocks"]:
                for x_type in ("bf16", "f16", "f32"):
                    # peers.py does not flush subnormals, which fast math does: the records of a GPU have those.
                    flushed = "ftz(" in row["rule"]
                    for kind in ("spread", "zeros") if flushed else ("spread", "bits", "zeros", "tiny"):
                        x = drawn(rng, x_type, 12 if block.startswith("1x") else 128, 256, kind)
                        if name.startswith("fouroversix") and kind in ("zeros", "tiny", "bits"):
                            continue  # the reference indexes past the list of codes where a scale is subnormal
                        if name.startswith("nvfp4") and kind == "bits":
                            x[~np.isfinite(x)] = 1
                        want = answer_for_block(name, given, x, x_type, block, row)
                        if want is None:
                            continue
                        if ours.endswith(".packed") or ours == "sglang.group_v2.ue8m0":  # the same exponents as bytes
                            want = (want[0], (want[1] >> 23).astype(np.uint8), None)
                        asked.add(ours)
                        questions.ask(f"{ours} {otype} {block} of {x_type} {kind}, seed {seed}", ours, x, x_type, want, block, otype,
                                      "k_major", nan_codes=BITS[otype] == 8)
    ask_storages(rng, questions)
    return questions, asked


def ask_storages(rng, questions):
    """E8M0 scales as DeepGEMM packs and torchao swizzles them: peers_layouts.py."""
    for storage, layout in (("packed", "deepgemm.packed_mn_major"), ("swizzled_128x4", "torchao.blocked")):
        for rows, columns in ((1, 32), (12, 256), (130, 160), (257, 672)):
            x = drawn(rng, "bf16", rows, columns, "spread")
            codes, scale, _ = peers.quantize("torchao.mx_floor", x, "bf16")
            want = LAYOUTS[layout](scale).reshape(-1).view(np.uint8)
            questions.ask(f"torchao.mx_floor stored {storage}, {rows} x {columns}", "torchao.mx_floor", x, "bf16", (codes, want, None),
                          "1x32", storage=storage)


def answer_for_block(name, options, x, x_type, block, row):
    """The peer with this block: not every function takes one."""
    extents = tuple(None if part == "all" else int(part) for part in block.split("x"))
    attempts = [{**options, "block": extents}, {**options, "group": extents[1]}]
    if block == row["blocks"][0]:
        attempts.append(options)
    for attempt in attempts:
        if "group" in attempt and extents[0] != 1:
            continue
        try:
            with np.errstate(all="ignore"):
                function, implied = peers.PRESETS[name]
                return function(x, x_type, **{**implied, **attempt})
        except TypeError:
            continue
        except ValueError:
            return None
    return None


def main():
    global PRESETS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    PRESETS = read_presets(arguments.program)

    recorded, unmatched = compare_with_records(arguments.program)
    faults, codes = recorded.answer(arguments.program)
    drawn_here, asked = compare_with_formulas(arguments.seed)
    more_faults, more_codes = drawn_here.answer(arguments.program)
    for text in faults + more_faults:
        print(text)
    unasked = set(PRESETS) - asked - OURS - {question[1] for question in recorded.asked}
    unasked -= {name for name, row in PRESETS.items() if "device_peers.h5" in row["evidence"]}  # device_peers_test.py asks those
    for name in sorted(unasked):
        print(f"{name}: no witness")
    for record in sorted(unmatched):
        print(f"note: recorded, but no preset of ours: {record}")
    print(f"{len(recorded.asked)} records with {codes} codes, {len(drawn_here.asked)} drawn matrices with {more_codes} codes, "
          f"{len(PRESETS)} presets: {len(faults) + len(more_faults)} differences")
    return 1 if faults or more_faults or unasked else 0


PRESETS = {}

if __name__ == "__main__":
    sys.exit(main())
