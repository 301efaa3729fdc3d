"""Reads the JSON of the benchmarks, and makes result files of it."""

import json
import statistics
import subprocess

def regime_fields(*subjects):
    """Counters of a product in two regimes, by those that take turns."""
    return tuple(f"{whose}{regime}_{unit}" for regime in ("short", "sustained") for whose in subjects for unit in ("us", "MHz", "W", "pJ"))


# Of the production path and the library's kernels alone; and of our own kernel, where it takes the call, in NT also without the promise that
# scales are powers of two.
REGIME_FIELDS = regime_fields("", "library_") + ("short_of_library", "sustained_of_library")
OWN_FIELDS, ANY_SCALES_FIELDS = (regime_fields(f"{whose}_") + (f"short_of_{whose}", f"sustained_of_{whose}") for whose in ("own", "any_scales"))
# What a result file keeps of a run; DERIVED follows from it.
DERIVED = ("TB/s", "TFLOP/s", "GMAC/s", "bytes_an_element")
FIELDS = ("bytes", "median_us", "of_copy", "of_bound", "flops", "library_us", "of_library", "set_up_us", "alone_us", "eager_us",
          "eager_alone_us", "host_us", "quantize_us", "products_us", "vendor_us", "vendor_quantize_us", "vendor_products_us",
          "vendor_of_copy", "of_vendor", "memory_us", "issue_us") + REGIME_FIELDS + OWN_FIELDS + ANY_SCALES_FIELDS


class BadFile(Exception):
    pass


def words(label):
    """{'kernel': '1x128', ...} of 'kernel=1x128 ...'."""
    pairs = [word.partition("=") for word in label.split()]
    if any(not equals or not key for key, equals, _ in pairs):
        raise BadFile(f"label {label!r}: expected KEY=VALUE words")
    return {key: value for key, _, value in pairs}


NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
RATES = (("bytes_per_second", 1e-9, "GB/s"), ("items_per_second", 1e-6, "Mitems/s"), ("elements", 1e-6, "Melements/s"), ("MAC/s", 1e-9, "GMAC/s"))


def plain_name(run):
    """The name without what the runner appends to it."""
    return run.get("run_name", run["name"]).split("/iterations:")[0].split("/repeats:")[0]


def figure_of(repetitions):
    """One figure of the runs of one benchmark in one file: that with the median time."""
    def time(run):
        return run["median_us"] if "median_us" in run else run.get("real_time", 0)

    run = sorted(repetitions, key=time)[len(repetitions) // 2]
    figure = {"name": plain_name(run), "label": run.get("label", "")}
    figure.update({field: run[field] for field in FIELDS if field in run})
    if not figure["label"] and "real_time" in run:
        times = [each["real_time"] for each in repetitions]
        figure["ns"] = statistics.median(times) * NANOSECONDS[run["time_unit"]]
        if len(times) > 1:
            figure["cv"] = statistics.stdev(times) / statistics.mean(times)
        figure["rates"] = [f"{run[key] * scale:.4g} {unit}" for key, scale, unit in RATES if key in run]
    return figure


def figures_of(text, path, unread):
    """Figures of one file's JSON."""
    if "figures" in text:
        return [{"name": figure["name"], "label": figure["label"], **figure} for figure in text["figures"]]
    by_name = {}
    for run in text["benchmarks"]:
        if run.get("run_type") == "aggregate":
            continue
        if run.get("error_occurred"):
            unread.append(f"{path}: {run['name']}: {run.get('error_message', 'failed')}")
            continue
        by_name.setdefault((plain_name(run), run.get("label", "")), []).append(run)
    return [figure_of(repetitions) for repetitions in by_name.values()]


def read(paths):
    """Figures (dicts of 'name', 'label' and FIELDS) and contexts of all files, in their order; lines about what is unreadable."""
    figures, contexts, unread = [], [], []
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                text = json.load(file)
            context, of_file = text["context"], figures_of(text, path, unread)
        except OSError as error:
            unread.append(f"{path}: {error.strerror}")
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            unread.append(f"{path}: no JSON of a benchmark: {type(error).__name__}: {error}")
        else:
            figures += of_file
            contexts.append(context)
    return figures, contexts, unread


def latest(figures):
    """The last figure of each label, where the first one stood."""
    by_label = {}
    for figure in figures:
        if figure["label"]:
            by_label[figure["label"]] = figure
    return list(by_label.values())


def command_output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip().splitlines()[0]
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "unknown"


def one_value(contexts, key):
    values = sorted({str(context[key]) for context in contexts if key in context})
    return ", ".join(values) if values else "unknown"


def cuda_version(text):
    """'13.0' of '13000'."""
    return f"{int(text) // 1000}.{int(text) % 1000 // 10}" if text.isdigit() and int(text) >= 1000 else text


def short(value):
    """Four digits, and no fraction on bytes."""
    return value if isinstance(value, str) else int(value) if value >= 1e6 or value == int(value) else float(f"{value:.4g}")


def merge(figures, contexts, arguments):
    kept = {figure["label"] or figure["name"]: figure for figure in figures}
    return {
        "context": {
            "device": one_value(contexts, "device"),
            "driver": arguments.driver or command_output("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
            "cuda": ", ".join(sorted({cuda_version(str(c[k])) for c in contexts for k in ("cuda_runtime", "cuda") if k in c})) or "unknown",
            "commit": arguments.commit or command_output("git", "rev-parse", "--short", "HEAD"),
            "command": arguments.command or one_value(contexts, "executable" if any("executable" in c for c in contexts) else "command"),
            "copy_TB/s": one_value(contexts, "copy_TB/s"),
            "date": one_value(contexts, "date"),
        },
        "figures": [{key: short(figure[key]) for key in ("name", "label") + FIELDS if key in figure} for figure in kept.values()],
    }


def readable(result):
    """JSON with one line a figure."""
    head = json.dumps({"context": result["context"]}, indent=1, ensure_ascii=False)[:-2]
    lines = ",\n".join("  " + json.dumps(figure, ensure_ascii=False) for figure in result["figures"])
    return head + ",\n \"figures\": [\n" + lines + "\n ]\n}\n"
