#!/usr/bin/env python3
"""The page of speed beside other projects' kernels, made from what measure.py wrote.

  bench/peers/page.py speed.json                              prints the tables
  bench/peers/page.py a.json b.json --merge bench/results/h100_beside_others.json     one file of one run, a line a figure
  bench/peers/page.py --write                                 makes docs/matrix/speed.md of bench/results/*_beside_others.json,
                                                              and of what h200_training_step.json has beside TransformerEngine
  bench/peers/page.py --check                                 says whether it is what they give

Exit codes: 0; 1 the page is not what the files give; 2 wrong usage, or a file could not be read.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import re
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

import figures as recorded  # noqa: E402
import table  # noqa: E402
from figures import BadFile, words  # noqa: E402
from table import markdown  # noqa: E402

PAGE, PATTERN = ROOT / "docs/matrix/speed.md", "*_beside_others.json"
BESIDE_VENDOR = "h200_training_step.json"  # of bench/device/vendor_quantize_bench.cc
OURS, ALONE, COPY = "assay", "cublaslt", "copy"
SAME = ("device", "driver", "cuda", "torch", "cublaslt", "commit", "sustained_s")

HEAD = """# Speed beside other projects' kernels

The same problems, timed in one run after a pass by bits. Made by [bench/peers/page.py](../../bench/peers/page.py) from {files}, which
[bench/peers/measure.py](../../bench/peers/measure.py) wrote; [how to repeat it](../track_performance.md#beside-other-projects-kernels).

- **By bits first.** On the timed operands every code, scale and element of D was compared with what the suite expects of the
  implementation's rule or plan: by the interpreter of scale rules and by the emulated tensor core. After the timing, again.
- **ours / theirs**: our rate over its rate, the median over the turns. Above 1 ours is faster.
- The operators are called as the [adapters](../../conformance/adapters/README.md) call them. Only the operator's own call is timed, from a
  CUDA graph; what brings scales and rows into its order is not.
- **short**: the first 50 ms after a rest of 250 ms. **sustained**: the second half of some seconds, where the card is at its limit of power.
  MHz and W are those of that time; pJ are picojoules an operation, W over operations a second, a multiplication and an addition
  being two.
"""


def read(path: pathlib.Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Context and figures; each figure has the words of its label under "words".

    Raises:
        BadFile: it is not what measure.py writes.
    """
    try:
        text = json.loads(path.read_text(encoding="utf-8"))
        context, figures = text["context"], text["benchmarks"]
        for each in figures:
            each["words"] = words(each["label"])
            for field in ("peer", "problem", "rows"):
                each["words"][field]  # noqa: B018
            if "error_occurred" not in each:
                for field in ("bytes", "median_us", "ours_of_theirs", "version", "checked"):
                    each[field]  # noqa: B018
        for field in ("device", "date", "sustained_s"):
            context[field]  # noqa: B018
    except OSError as error:
        raise BadFile(f"{path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise BadFile(f"{path}: no file of measure.py: {type(error).__name__}: {error}") from error
    return context, figures


def by_problem(figures: list[dict[str, Any]], problem: str) -> dict[str, list[dict[str, Any]]]:
    """The figures of one kind of problem, by the label without the implementation."""
    found: dict[str, list[dict[str, Any]]] = {}
    for each in figures:
        if each["words"]["problem"] == problem:
            found.setdefault(each["label"].partition(" ")[2], []).append(each)
    return found


def title(given: dict[str, str]) -> str:
    groups = "" if given.get("groups", "0") == "0" else f"{given['groups']} groups, {given['splits']}, "
    if given["problem"] == "quantize":
        block = "1x128" if given["block"] == "1x128" else "a scale a row"
        return f"{block}, {groups}{given['rows']} x {given['columns']}"
    return f"{groups}{given['rows']} rows, N {given['N']}, K {given['K']}"


def missing(figures: list[dict[str, Any]]) -> str:
    """Who is not timed, and why; of a long list of rows the first four."""
    said = [(each["words"]["peer"], re.sub(r"\[((?:\d+, ){4})[^]]*]", r"[\1...]", each["error_message"])) for each in figures
            if "error_occurred" in each]
    return "".join(f"\n{peer}: {message}\n" for peer, message in said)


def quantize_table(figures: list[dict[str, Any]]) -> str:
    timed = [each for each in figures if "error_occurred" not in each]
    copy = next((each["median_us"] for each in timed if each["words"]["peer"] == COPY), None)
    rows = [[each["words"]["peer"], f"{each['median_us']:.1f}", f"{each['bytes'] / each['median_us'] * 1e-3:.0f}",
             "" if copy is None else f"{copy / each['median_us']:.2f}", f"{each['ours_of_theirs']:.3f}"] for each in timed]
    return markdown(["implementation", "us", "GB/s", "of copy", "ours / theirs"], rows, 1)


def picojoules(watts: float, microseconds: float, operations: float) -> str:
    return f"{watts * microseconds * 1e6 / operations:.3f}"


def product_table(figures: list[dict[str, Any]]) -> str:
    timed = [each for each in figures if "error_occurred" not in each]
    has_power = any("W" in each for each in timed)  # files of before 2026-11-26 have it of sustained runs alone
    rows = []
    for each in timed:
        cells = [each["words"]["peer"], each.get("groups", "plain"), f"{each['median_us']:.1f}", f"{each['flops'] / each['median_us'] * 1e-6:.0f}",
                 f"{each['bytes'] / each['median_us'] * 1e-3:.0f}", f"{each['MHz']:.0f}"]
        if has_power:
            cells += [f"{each['W']:.0f}", picojoules(each["W"], each["median_us"], each["flops"])] if "W" in each else ["", ""]
        cells.append(f"{each['ours_of_theirs']:.3f}")
        if "sustained_us" in each:
            cells += [f"{each['sustained_us']:.1f}", f"{each['flops'] / each['sustained_us'] * 1e-6:.0f}", f"{each['sustained_MHz']:.0f}",
                      f"{each['sustained_W']:.0f}", picojoules(each["sustained_W"], each["sustained_us"], each["flops"]),
                      f"{each['sustained_ours_of_theirs']:.3f}"]
        rows.append(cells)
    header = ["implementation", "groups", "short us", "TFLOP/s", "GB/s", "MHz", *(["W", "pJ"] if has_power else []), "ours / theirs"]
    if any(len(row) > len(header) for row in rows):
        header += ["sustained us", "TFLOP/s", "MHz", "W", "pJ", "ours / theirs"]
    return markdown(header, [row + [""] * (len(header) - len(row)) for row in rows], 2)


def who(figures: list[dict[str, Any]]) -> str:
    """A row for each implementation and what its bits were compared with."""
    seen: dict[tuple[str, str], list[str]] = {}
    for each in figures:
        if "error_occurred" not in each:
            checks = seen.setdefault((each["words"]["peer"], each["version"]), [])
            if each["checked"] not in checks:
                checks.append(each["checked"])
    return markdown(["implementation", "version", "bits compared with"], [[name, version, "; ".join(checks)] for (name, version), checks in seen.items()], 3)


def spread(figures: list[dict[str, Any]]) -> str:
    """How far two rows of the same kernel lie apart: ours with the set-up of its groups, and without."""
    found = [abs(each[field] - 1) for each in figures if each["words"]["peer"] == ALONE for field in ("ours_of_theirs", "sustained_ours_of_theirs")
             if field in each]
    return "" if not found else (f"`{OURS}` and `{ALONE}` run the same kernel, one with the kernel that sets up its groups: they lie up to "
                                 f"{100 * max(found):.1f} % apart, either way, so smaller differences between rows say nothing.\n\n")


def alone(figures: list[dict[str, Any]]) -> str:
    """Of a run of one project beside ours, its name."""
    projects = {each["words"]["peer"].partition(":")[0] for each in figures} - {"assay", "cublaslt", COPY}
    return f", {projects.pop()}" if len(projects) == 1 else ""


def tables(context: dict[str, Any], figures: list[dict[str, Any]]) -> str:
    parts = [f"## {context['device']}{alone(figures)}\n\n{context['date']}, driver {context.get('driver')}, PyTorch {context.get('torch')}, cuBLASLt "
             f"{context.get('cublaslt')}, commit {context.get('commit')}. Sustained: {context.get('sustained_s'):g} s.\n"]
    products, quantizations = by_problem(figures, "product"), by_problem(figures, "quantize")
    if products:
        parts.append("### Grouped products, FP8 blocks of 1x128 by 128x128, TN, bf16 D\n\n" + spread(figures)
                     + "`groups` is where the rows of a group lie: plain: after those of the one before; contiguous, psum: at multiples of 128, which "
                     "`psum` pads in memory; masked: a place of 128 rows for each group ([grouped-gemm-1.4](../../reference/spec/grouped-gemm.md)). GB/s "
                     "counts operands, scales and D once.\n")
        parts += [f"**{title(each[0]['words'])}**\n\n{product_table(each)}\n{missing(each)}" for each in products.values()]
    if quantizations:
        parts.append("### Quantization of bf16 to e4m3, rowwise\n\n`copy` moves as many bytes. `assay:by_rule` and, where a row has one scale, `assay` "
                     "are the interpreter of scale rules, which this library has for any rule and which is no kernel for production. The scale rules differ; "
                     "what is moved does not. Of groups ours alone knows: its scales lie by groups, those of the others as for one tensor.\n")
        parts += [f"**{title(each[0]['words'])}**\n\n{quantize_table(each)}\n{missing(each)}" for each in quantizations.values()]
    return "\n".join([*parts, "### Implementations\n", who(figures) + "\n"])


def beside_vendor(path: pathlib.Path) -> str:
    """What the C++ benchmark measured beside TransformerEngine: quantization in one and in both directions.

    Raises:
        BadFile: there is no such figure.
    """
    found, contexts, unread = recorded.read([path])
    found = [each for each in found if each["label"].startswith("beside=")]
    if unread or not found:
        raise BadFile(unread[0] if unread else f"{path}: no figure beside=")
    context = contexts[0]
    return (f"\n## {context['device']}, TransformerEngine\n\n{context['date'][:10]}, driver {context['driver']}, commit {context['commit']}, {context.get('command')}, from "
            f"[{path.name}](../../bench/results/{path.name}), by [vendor_quantize_bench.cc](../../bench/device/vendor_quantize_bench.cc), which compares "
            f"every code first.\n\n{table.tables(found)}\n")


def page(paths: list[pathlib.Path], vendor: pathlib.Path) -> str:
    names = ", ".join(f"[{path.name}](../../bench/results/{path.name})" for path in paths)
    return HEAD.format(files=names) + "".join("\n" + tables(*read(path)) for path in paths) + beside_vendor(vendor)


def merged(paths: list[pathlib.Path]) -> str:
    """One file of the files of one run.

    Raises:
        BadFile: they are of different devices, versions or commits.
    """
    texts = [read(path) for path in paths]
    first = texts[0][0]
    for path, (context, _) in zip(paths, texts, strict=True):
        for key in SAME:
            if context.get(key) != first.get(key):
                raise BadFile(f"{path}: {key} is {context.get(key)!r}: expected {first.get(key)!r}, as in {paths[0]}")
    lines = []
    for each in (figure for _, figures in texts for figure in figures):
        kept = {key: float(f"{value:.5g}") if isinstance(value, float) else value for key, value in each.items() if key not in ("words", "run_type")}
        lines.append("  " + json.dumps(kept, ensure_ascii=False))
    return json.dumps({"context": first}, indent=1)[:-2] + ",\n \"benchmarks\": [\n" + ",\n".join(lines) + "\n ]\n}\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--merge", type=pathlib.Path, metavar="OUT", help="write the figures of the files to one file")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    parser.add_argument("--check", action="store_true", help=f"compare {PAGE.relative_to(ROOT)} with the files")
    arguments = parser.parse_args()
    if bool(arguments.files) == (arguments.write or arguments.check) or (arguments.merge and not arguments.files):
        parser.error("expected files, or --write or --check")
    try:
        if arguments.merge:
            arguments.merge.write_text(merged(arguments.files), encoding="utf-8")
            return 0
        if arguments.files:
            print("\n".join(tables(*read(path)) for path in arguments.files), end="")
            return 0
        results = ROOT / "bench" / "results"
        made = page(sorted(results.glob(PATTERN)), results / BESIDE_VENDOR)
    except BadFile as error:
        print(f"page.py: {error}", file=sys.stderr)
        return 2
    if arguments.write:
        PAGE.write_text(made, encoding="utf-8")
    elif not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != made:
        print(f"page.py: {PAGE.relative_to(ROOT)} is not what the files give: bench/peers/page.py --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
