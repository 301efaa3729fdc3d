"""The tables that bench/pages.py puts into pages: each a function from the result files to Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from figures import BadFile
from page_results import Figure, Results, mean, number, positive, rate, word_of
from table import markdown

GROUPS_OF_SPLITS = {"zipf(8,32768)": "8 ragged, 32768 rows", "1..64": "64 of 1 to 64"}


def shown_groups(splits: str) -> str:
    count, _, rows = splits.partition("x")
    return GROUPS_OF_SPLITS.get(splits, f"{count} of {rows}")


# --- products -------------------------------------------------------------------------------------------------------------------


def own_products(results: Results) -> str:
    """The own kernel beside cuBLASLt and DeepGEMM in the faster of its layouts: us, and their time over ours."""
    name, rows = "h200_own_product", []
    keys = list(dict.fromkeys(tuple(word_of(figure, word) for word in ("splits", "N", "K")) for figure in results.figures(name)))
    for splits, n, k in keys:
        problem = {"splits": splits, "N": n, "K": k}
        own = results.one(name, peer="assay:fp8_block_gemm", **problem)
        library = results.one(name, peer="assay", **problem)
        others = [figure for figure in results.some(name, **problem) if word_of(figure, "peer").startswith("deepgemm:")]
        if not others:
            raise BadFile(f"bench/results/{name}.json: no figure of deepgemm with {problem}")
        for regime, us in (("short", "median_us"), ("sustained", "sustained_us")):
            if regime == "sustained" and not any(us in figure for figure in (own, library, *others)):
                continue
            ours, theirs, deepgemm = number(own, us), number(library, us), min(number(figure, us) for figure in others)
            rows.append([f"{shown_groups(splits)}, {n}, {k}", regime, f"{ours:.0f}", f"{theirs:.0f}", f"{deepgemm:.0f}",
                         f"{theirs / ours:.2f}", f"{deepgemm / ours:.2f}"])
    header = ["groups of rows, N, K", "", "this kernel, us", "cuBLASLt", "DeepGEMM", "cuBLASLt / ours", "DeepGEMM / ours"]
    return markdown(header, rows, 2)


def weight_gradients(results: Results) -> str:
    """NT by the own kernel, with powers of two as scales and with any, and by cuBLASLt with its set-up: us, and its time over ours."""
    name, rows = "h200_weight_gradient_product", []
    for output, splits, title in (("bf16", "even", "bf16 D"), ("f32", "even", "f32 D"), ("bf16", "ragged", "bf16 D, ragged groups of multiples of 16")):
        figure = results.one(name, regimes="block", layout="NT", output=output, splits=splits)
        for regime in ("short", "sustained"):
            own, any_scales, library = (number(figure, f"{whose}{regime}_us") for whose in ("own_", "any_scales_", ""))
            rows.append([title, regime, f"{own:.0f}", f"{any_scales:.0f}", f"{library:.0f}", f"{library / own:.2f}"])
    return markdown(["", "", "this kernel, us", "with any scales", "cuBLASLt", "cuBLASLt / ours"], rows, 2)


def aligned_columns(results: Results) -> str:
    """NT of groups of any rows, with columns at multiples of 16 bytes and with copies."""
    name, rows = "h100_weight_gradient_any_rows", []
    for even, any_rows in (("4 of 8192", "8191, 8193, 8189, 8195"), ("32 of 1024", "32 of 1009 to 1039")):
        beside = results.one(name, groups=even, columns="dense")
        for groups, columns, how in ((even, "dense", "multiples of 16"), (any_rows, "aligned", "aligned columns"), (any_rows, "dense", "copied")):
            figure = results.one(name, groups=groups, columns=columns)
            cells = [f"{groups}, {word_of(figure, 'N')}, {word_of(figure, 'K')}", how]
            for regime in ("short_us", "sustained_us"):
                us, least = mean(figure, regime), mean(beside, regime)
                cells += [f"{us:.0f}", "" if groups == even else f"{us / least:.2f}"]
            rows.append(cells)
    return markdown(["groups of rows, N, K", "", "short, us", "", "sustained, us", ""], rows, 2)


def starts_of_clusters(results: Results) -> str:
    """Even products whose clusters begin together and one after another: us, and MHz that the kernel counts in the last call."""
    name, rows = "h200_even_products", []
    for together in results.some(name, cycles_of_delay_a_block=0):
        run, groups = word_of(together, "run"), word_of(together, "groups")
        pair = together, results.one(name, run=run, groups=groups, cycles_of_delay_a_block=1000)
        cells = [run, groups]
        for regime in ("short_us", "sustained_us"):
            before, after = (mean(figure, regime) for figure in pair)
            cells += [f"{before:.0f}", f"{after:.0f}", f"{after / before:.3f}"]
        rows.append(cells + [middle_mhz(figure) for figure in pair])
    header = ["run", "groups of rows, N, K", "short, together", "later", "", "sustained, together", "later", "", "MHz, together", "later"]
    return markdown(header, rows, 2)


def middle_mhz(figure: Figure) -> str:
    """Of [fastest, middle, slowest block] of each turn."""
    if "MHz" not in figure:
        return ""
    turns = figure["MHz"]
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, list) and len(turn) == 3 for turn in turns):
        raise BadFile(f"{figure['file']}: MHz is {turns!r}, expected a list of three numbers for each turn")
    return f"{statistics.mean(positive(turn[1], figure['file'] + ': MHz') for turn in turns):.0f}"


# --- training steps -------------------------------------------------------------------------------------------------------------

# Groups, and whether the vendor's step takes turns with it.
SPLITS_OF_STEPS = {"even": ("8 of 4096", True), "ragged": ("8 ragged, multiples of 16", True), "any": ("8 ragged, any rows", False)}


def training_steps(results: Results) -> str:
    """A step of an FP8 block layer by the own kernel, by cuBLASLt's products, and the vendor's in turns with it."""
    rows = []
    for name in ("h200_training_step_own_product", "h100_training_step"):
        for splits, (title, beside_vendor) in SPLITS_OF_STEPS.items():
            own = results.one(name, step="block", splits=splits, options=None)
            library = results.one(name, step="block", splits=splits, options="cublaslt")
            cells = [results.device(name), title] + [f"{number(own, us):.0f}" for us in ("median_us", "quantize_us", "products_us")]
            cells += [f"{number(library, 'median_us'):.0f}"]
            rows.append(cells + ([f"{number(own, 'vendor_us'):.0f}", f"{number(own, 'of_vendor'):.2f}"] if beside_vendor else ["", ""]))
    header = ["", "groups of rows", "step, us", "its quantization", "its products", "by cuBLASLt's products", "the vendor's", "of vendor"]
    return markdown(header, rows, 2)


# --- quantization ---------------------------------------------------------------------------------------------------------------

QUANTIZATION = "h200_quantization_speed"
KERNELS = {"1x128": "1x128", "128x128": "128x128", "mxfp8": "MXFP8", "delayed": "delayed scaling", "current": "current scaling (reads twice)"}


SHAPE = {"input": "bf16", "rows": 32768, "columns": 7168}


def one_tensor(results: Results) -> str:
    """Share of a copy's rate, of one tensor on an H200."""
    rows = []
    for kernel, title in KERNELS.items():
        cells = [title]
        for direction, options in (("rowwise", None), ("both", None), ("both", "dbias")):
            figure = results.one(QUANTIZATION, kernel=kernel, direction=direction, options=options, groups=0, **SHAPE)
            cells.append(f"{number(figure, 'of_copy'):.2f}")
        rows.append(cells)
    return markdown(["kernel", "rowwise", "both directions", "both, with dbias"], rows, 1)


def ragged_by_kernel(results: Results) -> str:
    """Ragged groups of any rows on an H200: their rate over that of one tensor. Those of FP8 blocks in both directions: ragged_groups()."""
    rows, groups = [], (8, 64, 256)
    for kernel, title in KERNELS.items():
        cells = [title]
        for direction in ("rowwise", "both"):
            if direction == "both" and kernel in ("1x128", "128x128"):
                cells += [""] * len(groups)
                continue
            dense, *ragged = (rate(results.one(QUANTIZATION, kernel=kernel, direction=direction, options=None, groups=each, **SHAPE)) for each in (0, *groups))
            cells += [f"{each / dense:.2f}" for each in ragged]
        rows.append(cells)
    return markdown(["kernel", "rowwise: 8 groups", "64", "256", "both: 8 groups", "64", "256"], rows, 1)


# Of FP8 blocks: the option and the number of the groups of each column.
RAGGED = {"8 groups": (None, 8), "64": (None, 64), "256": (None, 256), "8 of 16s": ("rows_of_16", 8), "64 of 16s": ("rows_of_16", 64),
          "256 of 16s": ("rows_of_16", 256), "of 32 rows": ("groups_of_32", 1024), "of 33 rows": ("groups_of_33", 993)}
ALL, ANY_ROWS, OF_16 = tuple(RAGGED), ("8 groups", "64", "256"), ("8 of 16s", "64 of 16s", "256 of 16s")

# What was measured: file, row, option of the call, option of one tensor, columns.
BOTH_DIRECTIONS = (
    ("h200_fp8_block_both_directions", "codes", None, None, ALL),
    ("h200_fp8_block_both_directions", "aligned columns", "columns_of_16", None, ANY_ROWS + ("of 32 rows", "of 33 rows")),
    ("h200_fp8_block_both_directions", "with dbias", "dbias", "dbias", ANY_ROWS + OF_16),
    ("h200_fp8_block_both_directions", "of gate and up", "swiglu", "swiglu", ("8 groups", "8 of 16s")),
    ("h100_fp8_block_both_directions", "codes", None, None, ALL),
    ("h100_fp8_block_both_directions", "with dbias", "dbias", "dbias", ANY_ROWS + OF_16),
    ("h100_fp8_block_both_directions", "of gate and up", "swiglu", "swiglu", ("8 groups", "8 of 16s")),
)


def ragged_groups(results: Results) -> str:
    """FP8 blocks in both directions, of groups: their rate over that of one tensor with the same options."""
    rows = []
    for name, title, more, of_dense, columns in BOTH_DIRECTIONS:
        dense = rate(results.one(name, kernel="1x128", direction="both", options=of_dense, groups=0, **SHAPE))
        cells = [results.device(name), "1x128, " + title]
        for column, (option, groups) in RAGGED.items():
            options = "+".join(each for each in (option, more) if each) or None
            cells.append("" if column not in columns
                         else f"{rate(results.one(name, kernel='1x128', direction='both', options=options, groups=groups, **SHAPE)) / dense:.2f}")
        rows.append(cells)
    name = "h100_ragged_quantization"
    cells = [results.device(name), "128x128, codes"]
    for column, (option, groups) in RAGGED.items():
        cells.append("" if column in OF_16 else f"{number(results.one(name, kernel='128x128', direction='both', options='', groups=groups), 'of_one_tensor'):.2f}")
    return markdown(["", "both directions"] + list(RAGGED), rows + [cells], 2)


TABLES: dict[str, Callable[[Results], str]] = {
    "own products": own_products,
    "weight gradients": weight_gradients,
    "aligned columns": aligned_columns,
    "starts of clusters": starts_of_clusters,
    "training steps": training_steps,
    "quantization of one tensor": one_tensor,
    "quantization of ragged groups": ragged_by_kernel,
    "FP8 blocks of groups": ragged_groups,
}
