#!/usr/bin/env python3
"""Tables and result files from the JSON of the benchmarks.

  ./assay bench --out all.json                                (the CPU's in all.json, the device's in all-NAME.json beside it)
  bench/table.py fp8.json mxfp8.json offsets.json             prints Markdown
  bench/table.py *.json --merge bench/results/h200.json --commit 1a2b3c4 --driver 580.1
                                                              also keeps the figures, for people, in one file

Input files may also be result files made by --merge. Everything of a device benchmark is read from its label, KEY=VALUE words,
and its counters; nothing is guessed from its name. Of two figures of one label the later counts; of repetitions in one run the
one with the median time. Benchmarks without a label, as those of the CPU are, have a table of times by name: the median of the
repetitions, their coefficient of variation (cv, standard deviation over mean), and the bytes, elements or products per second.
What could not be read is named on stderr, one line per file or benchmark; the rest is still printed.

Labels (bench/device/device_bench.h):
  kernel=1x128 [options=dbias+swizzled] direction=both input=bf16 groups=64 rows=32768 columns=7168    groups=0: one tensor
                                                        option rows_of_16: the rows of every group are a multiple of 16; groups_of_32: they are 32
  node=offsets [input=int64] [n=256]                                                                   a node of a graph
  gemm=block layout=TN output=f32 route=direct splits=even groups=4 rows=32768 N=4096 K=7168           grouped GEMM
  regimes=block layout=TN output=bf16 route=direct splits=even groups=8 rows=32768 N=4096 K=7168        the same, short and sustained
  step=block [options=bias] splits=even groups=8 rows=32768 N=4096 K=7168 vendor=alike+each+ragged     training step
  beside=1x128 direction=both input=bf16 groups=8 rows=32768 columns=7168 vendor=ragged                quantization beside the vendor's
vendor= tells how the vendor's quantization was called (ragged, alike, each or whole; of a step for each tensor in turn), or
absent (no library was named), failed (the benchmark wrote why) or none (this case has no counterpart).
Counters: bytes (that a launch must move), median_us, of_copy (its share of the rate of the copy in the same run) and, where
memory is not the only bound, of_bound (the bound's time over the measured). Of a grouped GEMM: flops, median_us, library_us
(of the library's kernels alone), of_library (library_us over median_us, pair by pair) and set_up_us (of the set-up kernel). In two regimes: flops, and of short
and of sustained runs the time of a call, the clock of the multiprocessors, the power and the energy of an operation (short_us,
short_MHz, short_W, short_pJ, sustained_us, ...), the same of the library's kernels alone (library_short_us, ...), and
short_of_library and sustained_of_library (turn by turn); where our own kernel takes the call, own_short_us, ..., short_of_own and sustained_of_own;
in NT the same of any_scales, our own kernel without the promise that scales are powers of two. Of a
training step: flops, median_us (replayed, in a row of steps), alone_us (a replay by itself), eager_us, eager_alone_us, products_us
and, where it quantizes, quantize_us; vendor_us, vendor_quantize_us, vendor_products_us and of_vendor (vendor_us over median_us,
round by round) where the vendor was measured. Beside the vendor's: bytes, median_us, of_copy and vendor_us, vendor_of_copy, of_vendor.

Exit code: 0; 2 for wrong usage, or where something could not be read.
"""

import argparse
import sys

from figures import ANY_SCALES_FIELDS, BadFile, NANOSECONDS, OWN_FIELDS, REGIME_FIELDS, latest, merge, read, readable, words

REQUIRED = {  # counters that every figure of a kind has; by the first word of its label
    "gemm": ("flops", "median_us", "library_us", "of_library", "set_up_us"),
    "regimes": ("flops",) + REGIME_FIELDS,
    "step": ("flops", "median_us", "alone_us", "eager_us", "eager_alone_us", "products_us"),
}
REQUIRED_OF_BYTES = ("bytes", "median_us", "of_copy")
NO_VENDOR = {"none": "", "absent": "not measured", "failed": "failed"}
GROUPS = (8, 64, 256)
RAGGED_GOAL = 0.97   # rate of ragged groups over that of one tensor
DBIAS_GOAL = 1.05    # time with dbias over that without
NODE_GOAL_US = 1.3   # offsets
BOUND_GOAL = 0.90    # of kernels that read twice or are held by arithmetic
COPY_GOAL = {"both": 0.92, "rowwise": 0.97}
LIBRARY_GOAL = 0.99  # grouped GEMM: time of the library alone over that of the production path
HELD_TO_COPY = ("1x128", "128x128", "mxfp8", "delayed")
READS_TWICE = ("current", "nvfp4")


def markdown(header, rows, left):
    """A table whose first `left` columns are aligned to the left."""
    widths = [max(len(row[i]) for row in [header] + rows) for i in range(len(header))]

    def line(cells):
        return "| " + " | ".join(cell.ljust(w) if i < left else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths))) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i < left else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([line(header), rule] + [line(row) for row in rows])


def marked(value, digits, met):
    return f"{value:.{digits}f}" + ("" if met else " *")


class Kernel:
    """The figures of one kernel, direction and shape: one tensor, and by the number of ragged groups."""

    def __init__(self, key):
        self.name, self.options, self.input, self.direction = key
        self.dense, self.ragged = None, {}

    def goal(self):
        """(which share, least) of one tensor; least is None where there is no goal."""
        if "of_bound" in self.dense:
            return "of_bound", BOUND_GOAL
        if self.name in READS_TWICE:
            return "of_copy", BOUND_GOAL
        return "of_copy", COPY_GOAL.get(self.direction) if self.name in HELD_TO_COPY else None


def rate(figure):
    return figure["bytes"] / figure["median_us"]


def dense_of_any_rows(kernel, kernels):
    """One tensor of the same kernel, for figures of groups with certain rows (options rows_of_16 and groups_of_32)."""
    options = [option for option in kernel.options.split("+") if option and not option.startswith(("rows_of_", "groups_of_"))]
    plain = kernels.get((kernel.name, "+".join(options), kernel.input, kernel.direction))
    return None if plain is None else plain.dense


def kernel_rows(kernels, elements):
    rows = []
    for kernel in kernels.values():
        cells = [kernel.name + (" " + kernel.options.replace("+", ", ") if kernel.options else ""), kernel.input, kernel.direction]
        one_tensor = kernel.dense or dense_of_any_rows(kernel, kernels)
        others = [figure for groups, figure in kernel.ragged.items() if groups not in GROUPS]
        if kernel.dense is None and one_tensor is not None and others:
            shown = f"{others[0]['of_copy']:.2f} ({rate(others[0]) / rate(one_tensor):.2f} of one tensor)"
            cells += [f"{others[0]['bytes'] / elements:.2f}", f"{others[0]['median_us']:.1f}", shown, ""]
        elif kernel.dense is None:
            cells += ["", "", "", ""]
        else:
            options = [option for option in kernel.options.split("+") if option and option != "dbias"]
            plain = kernels.get((kernel.name, "+".join(options), kernel.input, kernel.direction))
            with_dbias = "dbias" in kernel.options.split("+") and plain is not None and plain.dense is not None
            share, least = kernel.goal()
            value = kernel.dense[share]
            if with_dbias:
                slower = kernel.dense["median_us"] / plain.dense["median_us"]
                goal, met = f"{DBIAS_GOAL:.2f} x time", slower <= DBIAS_GOAL
                shown = marked(kernel.dense["of_copy"], 2, True) + " (" + marked(slower, 2, met) + " x)"
            else:
                met = least is None or value >= least
                goal = "" if least is None else f"{least:.2f}" + (" of bound" if share == "of_bound" else "")
                shown = marked(kernel.dense["of_copy"], 2, met or share == "of_bound")
                if share == "of_bound":
                    shown += " (" + marked(value, 2, met) + " of bound)"
            cells += [f"{kernel.dense['bytes'] / elements:.2f}", f"{kernel.dense['median_us']:.1f}", shown, goal]
        for groups in GROUPS:
            figure = kernel.ragged.get(groups)
            if figure is None:
                cells.append("")
            elif one_tensor is None:
                cells.append(f"({figure['of_copy']:.2f})")
            else:
                share = rate(figure) / rate(one_tensor)
                cells.append(marked(share, 2, share >= RAGGED_GOAL))
        rows.append(cells)
    return rows


def gemm_rows(products):
    """`products`: by kind, output, route, layout and shape, the figures of even and of ragged splits."""
    rows = []
    for key, by_splits in products.items():
        kind, output, route, layout, *shape = key
        cells = [kind + ("" if route == "direct" else f" ({route})"), output, layout] + [str(size) for size in shape]
        for splits in ("even", "ragged"):
            figure = by_splits.get(splits)
            if figure is None:
                cells += [""] * 4
                continue
            share = marked(figure["of_library"], 3, route != "direct" or figure["of_library"] >= LIBRARY_GOAL)
            faulty = products.get((kind, output, "faulty", layout, *shape), {}).get(splits)
            if route == "expanded" and faulty is not None:  # what it costs to go around the fault
                share += f" ({faulty['library_us'] / figure['median_us']:.3f} of faulty)"
            cells += [f"{figure['median_us']:.1f}", f"{figure['flops'] / figure['median_us'] * 1e-6:.0f}", f"{figure['set_up_us']:.2f}", share]
        rows.append(cells)
    return rows


# Counters of our own kernel, where it took turns with a product in two regimes, and the title of its row.
OWN = (("own", OWN_FIELDS, "(the own kernel)"), ("any_scales", ANY_SCALES_FIELDS, "(of any scales)"))


def own_subjects(figure):
    return [subject for subject in OWN if any(field in figure for field in subject[1])]


def regime_rows(products):
    """Two rows a product: the production path, and the library's kernels alone; more where our own kernel took turns with them."""
    rows = []
    for (kind, output, route, layout, splits, *shape), figure in products.items():
        subjects = [("", "library", kind + ("" if route == "direct" else f" ({route})")), ("library_", None, "(the library alone)")]
        subjects += [(f"{whose}_", whose, name) for whose, _, name in own_subjects(figure)]
        for whose, ratio, name in subjects:
            cells = [name] + ([output, layout, *(str(size) for size in shape)] if not whose else [""] * (2 + len(shape)))
            cells.insert(1, splits if not whose else "")
            for regime in ("short", "sustained"):
                us = figure[f"{whose}{regime}_us"]
                cells += [f"{us:.1f}", f"{figure['flops'] / us * 1e-6:.0f}", f"{figure[f'{whose}{regime}_MHz']:.0f}",
                          f"{figure[f'{whose}{regime}_W']:.0f}", f"{figure[f'{whose}{regime}_pJ']:.3f}",
                          f"{figure[f'{regime}_of_{ratio}']:.3f}" if ratio else ""]
            rows.append(cells)
    return rows


def vendor_cells(figure, vendor, formats):
    """Cells of (counter, digits); in the first one the reason why there is nothing."""
    if vendor in NO_VENDOR:
        return [NO_VENDOR[vendor]] + [""] * (len(formats) - 1)
    for field, _ in formats:
        if field not in figure:
            raise BadFile(f"{figure['name']}: no counter {field}")
    return [f"{figure[field]:.{digits}f}" for field, digits in formats]


def vendor_remark(vendors):
    """Sentences about what is missing."""
    return ((" Vendor: not measured, ASSAY_TRANSFORMER_ENGINE names no library." if "absent" in vendors else "")
            + (" Vendor: failed, the benchmark wrote why." if "failed" in vendors else ""))


def step_rows(steps):
    rows = []
    for (kind, options, splits, *shape), (vendor, figure) in steps.items():
        cells = [kind + (", " + options.replace("+", ", ") if options else "") + ("" if splits == "even" else f", {splits}")]
        cells += [str(size) for size in shape]
        for eager, replayed in (("eager_us", "median_us"), ("eager_alone_us", "alone_us")):
            cells += [f"{figure[eager]:.1f}", marked(figure[replayed], 1, figure[replayed] < figure[eager])]
        cells += [f"{figure['flops'] / figure['median_us'] * 1e-6:.0f}"]
        cells += [f"{figure[field]:.1f}" if field in figure else "" for field in ("quantize_us", "products_us")]
        formats = ("vendor_quantize_us", 1), ("vendor_products_us", 1), ("vendor_us", 1), ("of_vendor", 3)
        rows.append(cells + vendor_cells(figure, vendor, formats))
    return rows


def beside_rows(pairs):
    rows = []
    for (kernel, direction, kind, groups, *shape), (vendor, figure) in pairs.items():
        cells = [kernel, kind, direction, "" if groups == 0 else str(groups)] + [str(size) for size in shape]
        cells += [f"{figure['median_us']:.1f}", f"{figure['of_copy']:.2f}"]
        rows.append(cells + vendor_cells(figure, vendor, (("vendor_us", 1), ("vendor_of_copy", 2), ("of_vendor", 3)))
                    + ["" if vendor in NO_VENDOR else vendor])
    return rows


def shown_time(nanoseconds):
    """Four digits and the unit in which there is no more than three before the point."""
    for unit in ("ns", "us", "ms"):
        if nanoseconds < 1000 * NANOSECONDS[unit]:
            return f"{nanoseconds / NANOSECONDS[unit]:.4g} {unit}"
    return f"{nanoseconds / NANOSECONDS['s']:.4g} s"


def plain_table(figures):
    """Markdown of the figures without a label: times by name; nothing where there are none."""
    rows = [[figure["name"], shown_time(figure["ns"]), f"{100 * figure['cv']:.1f} %" if "cv" in figure else "", ", ".join(figure["rates"])]
            for figure in figures if not figure["label"] and "ns" in figure]
    return markdown(["benchmark", "time", "cv", "per second"], rows, 1) if rows else ""


def tables(figures):
    """Markdown of all labelled figures."""
    shapes, nodes, yardsticks, products, regimes, steps, pairs = {}, {}, [], {}, {}, {}, {}
    for figure in latest(figures):
        label = words(figure["label"])
        if "peer" in label:
            raise BadFile(f"{figure['name']}: beside other projects' kernels: bench/peers/page.py prints it")
        own = [field for _, fields, _ in own_subjects(figure) for field in fields]
        for field in (*REQUIRED.get(next(iter(label)), REQUIRED_OF_BYTES), *own):
            if field not in figure:
                raise BadFile(f"{figure['name']}: no counter {field}")
        if "gemm" in label or "regimes" in label:
            try:
                kind = label["gemm" if "gemm" in label else "regimes"]
                key = kind, label["output"], label["route"], label["layout"], *(int(label[k]) for k in ("groups", "rows", "N", "K"))
                if "gemm" in label:
                    products.setdefault(key, {})[label["splits"]] = figure
                else:
                    regimes[key[:4] + (label["splits"],) + key[4:]] = figure
            except (KeyError, ValueError) as error:
                raise BadFile(f"{figure['name']}: label {figure['label']!r} lacks {error}") from error
            continue
        if "step" in label or "beside" in label:
            try:
                if "step" in label:
                    key = label["step"], label.get("options", ""), label["splits"], *(int(label[k]) for k in ("groups", "rows", "N", "K"))
                    steps[key] = label["vendor"], figure
                else:
                    key = label["beside"], label["direction"], label["input"], *(int(label[k]) for k in ("groups", "rows", "columns"))
                    pairs[key] = label["vendor"], figure
            except (KeyError, ValueError) as error:
                raise BadFile(f"{figure['name']}: label {figure['label']!r} lacks {error}") from error
            continue
        if "node" in label:
            if "n" in label:
                nodes.setdefault((label["node"], label.get("input", "")), {})[int(label["n"])] = figure
            else:
                yardsticks.append((label["node"], figure))
            continue
        try:
            shape = int(label["rows"]), int(label["columns"])
            key = label["kernel"], label.get("options", ""), label.get("input", ""), label.get("direction", "")
            groups = int(label["groups"])
        except (KeyError, ValueError) as error:
            raise BadFile(f"{figure['name']}: label {figure['label']!r} lacks {error}") from error
        kernel = shapes.setdefault(shape, {}).setdefault(key, Kernel(key))
        if groups == 0:
            kernel.dense = figure
        else:
            kernel.ragged[groups] = figure

    parts = []
    for (rows, columns), kernels in sorted(shapes.items(), reverse=True):
        header = ["kernel", "input", "direction", "B/element", "us", "of copy", "goal"] + [f"{groups} groups" for groups in GROUPS]
        parts.append(f"{rows} x {columns}. Of copy: share of the rate of a copy in the same run, one tensor. N groups: rate of N ragged "
                     f"groups over that of one tensor, goal {RAGGED_GOAL}; in parentheses of copy. A * is short of its goal.\n\n"
                     + markdown(header, kernel_rows(kernels, rows * columns), 3))
    if nodes or yardsticks:
        sizes = sorted({n for by_n in nodes.values() for n in by_n})
        rows = [[name] + [f"{figure['median_us']:.2f}"] + [""] * (max(len(sizes), 1) - 1) for name, figure in yardsticks]
        for (name, kind), by_n in nodes.items():
            cells = [name + (f" of {kind}" if kind else "")]
            cells += [marked(by_n[n]["median_us"], 2, by_n[n]["median_us"] <= NODE_GOAL_US) if n in by_n else "" for n in sizes]
            rows.append(cells)
        header = ["node of a graph, us"] + ([f"n = {n}" for n in sizes] or ["us"])
        parts.append(f"Offsets as nodes of a graph (goal {NODE_GOAL_US} us)\n\n" + markdown(header, rows, 1))
    if products:
        header = ["grouped GEMM", "output", "layout", "groups", "rows", "N", "K"]
        header += [title for splits in ("", "ragged ") for title in (splits + "us", "TFLOP/s", "set-up us", "of library")]
        parts.append(f"Grouped GEMM from a graph. Of library: time of the library's kernels alone over that of the whole, goal {LIBRARY_GOAL}. "
                     "Expanded: scales are written out first, to go around a fault; faulty: the library as it is there; copied: groups of any rows "
                     "are copied first. These have no goal. A * is short of it.\n\n"
                     + markdown(header, gemm_rows(products), 3))
    if regimes:
        header = ["grouped GEMM", "splits", "output", "layout", "groups", "rows", "N", "K"]
        header += [title for regime in ("short", "sustained") for title in (f"{regime} us", "TFLOP/s", "MHz", "W", "pJ", "of library")]
        parts.append("Grouped GEMM on a rested card (short: 50 ms after a rest of 0.25 s) and on a hot one (sustained: the second half of 4 s), "
                     "production and the library's kernels alone in turn. pJ: energy of an operation, a multiplication and an addition being two. "
                     "Of library: time of the library's kernels alone over that of the whole, turn by turn"
                     + ("; in the rows of the own kernel, its time over that of the whole" if any(map(own_subjects, regimes.values())) else "")
                     + ".\n\n" + markdown(header, regime_rows(regimes), 4))
    if steps:
        header = ["training step", "groups", "rows", "N", "K", "eager us", "replayed us", "eager alone", "replayed alone", "TFLOP/s",
                  "quantize", "products", "vendor quantize", "vendor products", "vendor us", "of vendor"]
        parts.append("Training steps: forward, dgrad and wgrad with all quantization, us of a step in a row of steps, and of one alone. "
                     "Quantize, products: a replay of these alone. Vendor: TransformerEngine's quantization and cuBLASLt's kernels alone, "
                     "replayed, without what sets up their groups. Of vendor: its time over that of the replayed step, round by round. "
                     "A * is not faster than eager." + vendor_remark({vendor for vendor, _ in steps.values()}) + "\n\n"
                     + markdown(header, step_rows(steps), 1))
    if pairs:
        header = ["quantization", "input", "direction", "groups", "rows", "columns", "us", "of copy", "vendor us", "vendor of copy", "of vendor", "called"]
        parts.append("Quantization beside the vendor's, TransformerEngine by its fastest call: groups by one call (ragged: sizes on the "
                     "device; alike: equal sizes), by a call each, or all rows as a whole. Of vendor: its time over ours, pair by pair."
                     + vendor_remark({vendor for vendor, _ in pairs.values()}) + "\n\n" + markdown(header, beside_rows(pairs), 3))
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--merge", metavar="FILE", help="write the figures of all files to this one")
    parser.add_argument("--commit", help="that was measured (otherwise: that git names here)")
    parser.add_argument("--driver", help="of the device (otherwise: that nvidia-smi names here)")
    parser.add_argument("--command", help="that measured (otherwise: the programs that the files name)")
    arguments = parser.parse_args()
    figures, contexts, unread = read(arguments.files)
    readable_figures = []
    for figure in figures:  # each by itself first, so that one that cannot be read does not hide the others
        try:
            tables([figure])
        except BadFile as error:
            unread.append(str(error))
        else:
            readable_figures.append(figure)
    parts = [part for part in (tables(readable_figures), plain_table(readable_figures)) if part]
    if parts:
        print("\n\n".join(parts))
    untimed = sorted({figure["name"] for figure in readable_figures if not figure["label"] and "ns" not in figure})
    if untimed:
        print("\nWithout a label or a time, so in no table: " + "; ".join(untimed))
    for line in unread:
        print(f"table.py: {line}", file=sys.stderr)
    if arguments.merge and not unread:
        with open(arguments.merge, "w", encoding="utf-8") as file:
            file.write(readable(merge([figure for figure in figures if figure["label"] or "ns" not in figure], contexts, arguments)))
    return 2 if unread else 0


if __name__ == "__main__":
    sys.exit(main())
