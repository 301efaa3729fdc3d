"""The tables that bench/pages.py puts into pages: each a function from the result files to Markdown."""

from __future__ import annotations

import json
import pathlib
import statistics
from collections.abc import Callable
from typing import Any

from figures import BadFile, words
from table import markdown

Figure = dict[str, Any]


class Results:
    """Files of figures, by their names without .json."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.read: dict[str, dict[str, Any]] = {}

    def file(self, name: str) -> dict[str, Any]:
        if name not in self.read:
            try:
                self.read[name] = json.loads((self.folder / f"{name}.json").read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise BadFile(f"bench/results/{name}.json: {error}") from error
        return self.read[name]

    def figures(self, name: str) -> list[Figure]:
        """Each with the words of its label."""
        of = self.file(name)
        figures = of.get("figures", of.get("benchmarks"))
        if not figures:
            raise BadFile(f"bench/results/{name}.json: no figures")
        return [{**(words(figure["label"]) if "label" in figure else {}), **figure} for figure in figures]

    def some(self, name: str, **wanted: object) -> Figure | None:
        """The figure whose label or fields are those; a word that is None is absent."""
        found = [figure for figure in self.figures(name)
                 if all(str(figure.get(key)) == str(value) for key, value in wanted.items())]
        if len(found) > 1:
            raise BadFile(f"bench/results/{name}.json: {len(found)} figures with {wanted}")
        return found[0] if found else None

    def one(self, name: str, **wanted: object) -> Figure:
        found = self.some(name, **wanted)
        if found is None:
            raise BadFile(f"bench/results/{name}.json: no figure with {wanted}")
        return found


def field(figure: Figure, name: str) -> Any:
    if name not in figure:
        raise BadFile(f"figure {figure.get('name', figure)}: no {name}")
    return figure[name]


def device(results: Results, name: str) -> str:
    return str(results.file(name)["context"]["device"]).removesuffix(" 80GB HBM3")


GROUPS_OF_SPLITS = {"zipf(8,32768)": "8 ragged, 32768 rows", "1..64": "64 of 1 to 64"}


def shown_groups(splits: str) -> str:
    count, _, rows = splits.partition("x")
    return GROUPS_OF_SPLITS.get(splits, f"{count} of {rows}")


# --- products -------------------------------------------------------------------------------------------------------------------


def own_products(results: Results) -> str:
    """The own kernel beside cuBLASLt and DeepGEMM in the faster of its layouts: us, and their time over ours."""
    name, rows, seen = "h200_own_product", [], []
    for figure in results.figures(name):
        key = tuple(str(figure[word]) for word in ("splits", "N", "K"))
        if key in seen:
            continue
        seen.append(key)
        beside = {each["peer"]: each for each in results.figures(name) if tuple(str(each[word]) for word in ("splits", "N", "K")) == key}
        for regime, us in (("short", "median_us"), ("sustained", "sustained_us")):
            if us not in figure:
                continue
            try:
                own, library = beside["assay:fp8_block_gemm"][us], beside["assay"][us]
                deepgemm = min(each[us] for peer, each in beside.items() if peer.startswith("deepgemm:"))
            except (KeyError, ValueError) as error:
                raise BadFile(f"bench/results/{name}.json: {key}: no {us} of {error}") from error
            rows.append([f"{shown_groups(key[0])}, {key[1]}, {key[2]}", regime, f"{own:.0f}", f"{library:.0f}", f"{deepgemm:.0f}",
                         f"{library / own:.2f}", f"{deepgemm / own:.2f}"])
    header = ["groups of rows, N, K", "", "this kernel, us", "cuBLASLt", "DeepGEMM", "cuBLASLt / ours", "DeepGEMM / ours"]
    return markdown(header, rows, 2)


def weight_gradients(results: Results) -> str:
    """NT by the own kernel and by cuBLASLt with its set-up: us, and its time over ours."""
    name, rows = "h200_weight_gradient_product", []
    for output, splits, title in (("bf16", "even", "bf16 D"), ("f32", "even", "f32 D"), ("bf16", "ragged", "bf16 D, ragged groups of multiples of 16")):
        figure = results.one(name, regimes="block", output=output, splits=splits)
        for regime in ("short", "sustained"):
            own, library = field(figure, f"own_{regime}_us"), field(figure, f"{regime}_us")
            rows.append([title, regime, f"{own:.0f}", f"{library:.0f}", f"{library / own:.2f}"])
    return markdown(["", "", "this kernel, us", "cuBLASLt", "cuBLASLt / ours"], rows, 2)


def aligned_columns(results: Results) -> str:
    """NT of groups of any rows, with columns at multiples of 16 bytes and with copies."""
    name, rows = "h100_weight_gradient_any_rows", []
    for even, any_rows in (("4 of 8192", "8191, 8193, 8189, 8195"), ("32 of 1024", "32 of 1009 to 1039")):
        beside = results.one(name, groups=even)
        for groups, columns, how in ((even, "dense", "multiples of 16"), (any_rows, "aligned", "aligned columns"), (any_rows, "dense", "copied")):
            figure = results.one(name, groups=groups, columns=columns)
            cells = [f"{groups}, {field(figure, 'N')}, {field(figure, 'K')}", how]
            for regime in ("short_us", "sustained_us"):
                us, least = (statistics.mean(field(each, regime)) for each in (figure, beside))
                cells += [f"{us:.0f}", "" if groups == even else f"{us / least:.2f}"]
            rows.append(cells)
    return markdown(["groups of rows, N, K", "", "short, us", "", "sustained, us", ""], rows, 2)


def starts_of_clusters(results: Results) -> str:
    """Even products whose clusters begin together and one after another: sustained us, and MHz that the kernel counts."""
    figures = [figure for figure in results.figures("h200_even_products") if figure.get("cycles_of_delay_a_block") in (0, 1000)]
    rows = []
    for together in (figure for figure in figures if figure["cycles_of_delay_a_block"] == 0):
        later = [figure for figure in figures if figure["cycles_of_delay_a_block"] == 1000
                 and (figure["run"], figure["groups"]) == (together["run"], together["groups"])]
        if len(later) != 1:
            raise BadFile(f"bench/results/h200_even_products.json: {len(later)} figures to compare with {together['groups']}, run {together['run']}")
        pair = together, later[0]
        cells = [together["run"].split(",")[0], together["groups"]]
        for regime in ("short_us", "sustained_us"):
            before, after = (statistics.mean(figure[regime]) for figure in pair)
            cells += [f"{before:.0f}", f"{after:.0f}", f"{after / before:.3f}"]
        cells += [f"{statistics.mean(middle for _, middle, _ in figure['MHz']):.0f}" if "MHz" in figure else "" for figure in pair]
        rows.append(cells)
    header = ["card", "groups of rows, N, K", "short, together", "later", "", "sustained, together", "later", "", "MHz, together", "later"]
    return markdown(header, rows, 2)


# --- training steps -------------------------------------------------------------------------------------------------------------

SPLITS_OF_STEPS = {"even": "8 of 4096", "ragged": "8 ragged, multiples of 16", "any": "8 ragged, any rows"}


def training_steps(results: Results) -> str:
    """A step of an FP8 block layer by the own kernel, by cuBLASLt's products, and the vendor's in turns with it."""
    rows = []
    for name in ("h200_training_step_own_product", "h100_training_step"):
        for splits, title in SPLITS_OF_STEPS.items():
            own = results.one(name, step="block", splits=splits, options=None)
            library = results.one(name, step="block", splits=splits, options="cublaslt")
            vendor = [f"{own['vendor_us']:.0f}", f"{field(own, 'of_vendor'):.2f}"] if "vendor_us" in own else ["", ""]
            rows.append([device(results, name), title] + [f"{field(own, us):.0f}" for us in ("median_us", "quantize_us", "products_us")]
                        + [f"{field(library, 'median_us'):.0f}"] + vendor)
    header = ["", "groups of rows", "step, us", "its quantization", "its products", "by cuBLASLt's products", "the vendor's", "vendor's / ours"]
    return markdown(header, rows, 2)


# --- quantization ---------------------------------------------------------------------------------------------------------------

STATES = "h200_quantization_speed", "h200_quantization_speed_slower_state"
KERNELS = {"1x128": "1x128", "128x128": "128x128", "mxfp8": "MXFP8", "delayed": "delayed scaling", "current": "current scaling (reads twice)"}


def one_tensor(results: Results) -> str:
    """Share of a copy's rate, of one tensor, in both recorded runs on an H200."""
    rows = []
    for kernel, title in KERNELS.items():
        cells = [title]
        for direction, options in (("rowwise", None), ("both", None), ("both", "dbias")):
            shares = [f"{field(results.one(name, kernel=kernel, direction=direction, options=options, input='bf16', groups=0, rows=32768, columns=7168), 'of_copy'):.2f}"
                      for name in STATES]
            cells.append(" / ".join(shares))
        rows.append(cells)
    of_bound = [f"- / {field(results.one('h200_nvfp4_tiles', kernel='nvfp4', options='amax_given', direction=direction, input='bf16', groups=0, rows=32768, columns=7168), 'of_bound'):.2f}"
                for direction in ("rowwise", "both")]
    rows.append(["NVFP4, emulated, amax given: of its bound"] + of_bound + [""])
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
            figures = [results.one(STATES[1], kernel=kernel, direction=direction, options=None, input="bf16", groups=each, rows=32768, columns=7168)
                       for each in (0, *groups)]
            dense, *ragged = (field(figure, "bytes") / field(figure, "median_us") for figure in figures)
            cells += [f"{each / dense:.2f}" for each in ragged]
        rows.append(cells)
    return markdown(["kernel", "rowwise: 8 groups", "64", "256", "both: 8 groups", "64", "256"], rows, 1)


# Of FP8 blocks, 1x128: the options and groups of the columns.
RAGGED = {"8 groups": ("", 8), "64": ("", 64), "256": ("", 256), "8 of 16s": ("rows_of_16", 8), "64 of 16s": ("rows_of_16", 64),
          "256 of 16s": ("rows_of_16", 256), "of 32 rows": ("groups_of_32", 1024), "of 33 rows": ("groups_of_33", 993)}


def ragged_groups(results: Results) -> str:
    """1x128 in both directions, of groups: their rate over that of one tensor with the same options."""
    rows = []
    for name in ("h200_fp8_block_both_directions", "h100_fp8_block_both_directions"):
        def rate(groups: int, *options: str, name: str = name) -> float | None:
            given = "+".join(option for option in options if option) or None
            figure = results.some(name, kernel="1x128", direction="both", input="bf16", options=given, groups=groups, rows=32768, columns=7168)
            return None if figure is None else field(figure, "bytes") / field(figure, "median_us")

        for title, more in (("codes", ""), ("aligned columns", "columns_of_16"), ("with dbias", "dbias"), ("of gate and up", "swiglu")):
            dense = rate(0, "" if more == "columns_of_16" else more)
            rates = [rate(groups, option, more) or rate(groups, more, option) for option, groups in RAGGED.values()]
            if dense is None or not any(rates):
                if more == "columns_of_16":  # not measured on every card
                    continue
                raise BadFile(f"bench/results/{name}.json: no rates {title}")
            rows.append([device(results, name), title] + ["" if each is None else f"{each / dense:.2f}" for each in rates])
    return markdown(["", "1x128, both directions"] + list(RAGGED), rows, 2)


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
