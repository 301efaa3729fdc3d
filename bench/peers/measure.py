#!/usr/bin/env python3
"""Times our device library and other projects' kernels on the same problems, in turn, after a pass by bits.

  cmake --build build --target assay_device_calls
  ASSAY_ADAPTER_LIBRARIES=FOLDER bench/peers/measure.py --library build/lib/libassay_device_calls.so --out speed.json
  bench/peers/page.py speed.json                              prints the tables

Every implementation gives its bits first, on the timed operands: codes, scales and D are compared, word by word, with what the suite
expects of its rule or plan (the interpreter of rules, the emulated tensor core). One that differs is named and not timed. After the
timing the outputs are compared again. Products are timed from graphs of one call, in the first 50 ms after a rest of 250 ms, each
implementation in turn and in the other order in every other turn; some also for seconds on end, where the second half counts.
Quantizers are timed from graphs in slices of 3 ms, in turn, over operands that no cache holds.

Needs a GPU, PyTorch with CUDA, and the libraries that are to be timed (conformance/adapters/README.md); one that is not there is named as
absent. The output is Google Benchmark's JSON: a label of KEY=VALUE words and counters for each figure.

Exit codes: 0; 1 an implementation gave other bits than expected; 2 wrong usage; 4 nothing was selected; 9 there is no device.
"""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import statistics
import sys
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from bench.peers import problems, timing  # noqa: E402

QUANTIZE_TURNS, SHORT_TURNS, SUSTAINED_TURNS = 21, 4, 2


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def made(makers: dict[str, Any], selected: list[str], label: str, failures: list[str]) -> tuple[list[Any], list[dict[str, str]]]:
    """The contenders whose bits are right, and a record of each of the others."""
    from bench.peers.contenders import Absent

    ready, others = [], []
    for name, make in makers.items():
        if selected and not any(name.startswith(each) for each in selected) and name != timing.OURS:
            continue
        try:
            contender = make()
            contender.clear()
            for launch in contender.launches:
                launch()
            wrong = contender.wrong()
        except Absent as reason:
            message = f"absent: {reason}"
        except RuntimeError as error:  # of a library's call: the other implementations are still timed
            message = f"not timed: {error}"
            failures.append(f"{name}: {label}: {error}")
        else:
            if not wrong:
                ready.append(contender)
                continue
            message = f"not timed: {wrong}"
            failures.append(f"{name}: {label}: {wrong}")
        others.append({"name": f"{name} {label}", "label": f"peer={name} {label}", "error_occurred": True, "error_message": message})
        say(f"{others[-1]['name']}: {message}")
    return ready, others


def figure(contender: Any, label: str, **counters: float) -> dict[str, Any]:
    return {"name": f"{contender.name} {label}", "run_type": "iteration", "label": f"peer={contender.name} {label}", **contender.said, **counters}


def checked_after(ready: list[Any], graphs: dict[str, Any], label: str, failures: list[str]) -> None:
    """The graphs that were timed still give the bits."""
    for contender in ready:
        contender.clear()
        graphs[contender.name].graph.replay()
        wrong = contender.wrong()
        if wrong:
            failures.append(f"{contender.name}: {label}: after the timing: {wrong}")


def time_quantizers(problem: problems.Quantization, ready: list[Any], failures: list[str]) -> list[dict[str, Any]]:
    from bench.peers.clock import Graph

    graphs = {each.name: Graph(each.launches, at_least=4) for each in ready}
    times = timing.interleaved(list(graphs), QUANTIZE_TURNS, lambda name: graphs[name].slice())
    checked_after(ready, graphs, problem.label, failures)
    results = []
    for contender in ready:
        taken = times[contender.name]
        counters = {"bytes": problem.bytes, "median_us": statistics.median(taken) * 1e6, "cv": statistics.stdev(taken) / statistics.mean(taken),
                    "ours_of_theirs": timing.of_theirs(times, contender.name)}
        results.append(figure(contender, problem.label, **counters))
    return results


def time_products(problem: problems.Product, ready: list[Any], seconds: float, failures: list[str]) -> list[dict[str, Any]]:
    from bench.peers.clock import Board, Graph

    board = Board()
    graphs = {each.name: Graph(each.launches) for each in ready}
    bursts: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}

    def short(name: str) -> float:
        bursts[name].append(graphs[name].short(board))
        return bursts[name][-1]["seconds"]

    times = timing.interleaved(list(graphs), SHORT_TURNS, short)
    long: dict[str, list[dict[str, float]]] = {name: [] for name in graphs}

    def sustained(name: str) -> float:
        long[name].append(graphs[name].sustained(board, seconds))
        return long[name][-1]["seconds"]

    long_times = timing.interleaved(list(graphs), SUSTAINED_TURNS, sustained) if problem.sustained and seconds else {}
    checked_after(ready, graphs, problem.label, failures)
    results = []
    for contender in ready:
        name = contender.name
        counters = {"flops": problem.flops, "bytes": problem.bytes, "median_us": statistics.median(times[name]) * 1e6,
                    "MHz": statistics.median(each["MHz"] for each in bursts[name]), "W": statistics.median(each["W"] for each in bursts[name]),
                    "ours_of_theirs": timing.of_theirs(times, name)}
        if long_times:
            counters |= {"sustained_us": statistics.median(long_times[name]) * 1e6, "sustained_ours_of_theirs": timing.of_theirs(long_times, name),
                         "sustained_MHz": statistics.median(each["MHz"] for each in long[name]),
                         "sustained_W": statistics.median(each["W"] for each in long[name])}
        results.append(figure(contender, problem.label, **counters))
    return results


def measure(problem: Any, device: Any, arguments: argparse.Namespace, failures: list[str]) -> list[dict[str, Any]]:
    import torch

    from bench.peers.contenders import Products, Quantizers

    say(problem.label)
    quantizes = isinstance(problem, problems.Quantization)
    makers = (Quantizers if quantizes else Products)(problem, device).makers()
    ready, results = made(makers, arguments.peer, problem.label, failures)
    torch.cuda.synchronize()
    if not arguments.check and any(each.name == timing.OURS for each in ready):
        results += time_quantizers(problem, ready, failures) if quantizes else time_products(problem, ready, arguments.seconds, failures)
        for each in results:
            if "median_us" in each:
                say(f"  {each['label'].split()[0]:40} {each['median_us']:10.1f} us  ours of theirs {each['ours_of_theirs']:.3f}"
                    + (f"  sustained {each['sustained_us']:10.1f} us {each['sustained_ours_of_theirs']:.3f}  {each['sustained_MHz']:.0f} MHz "
                       f"{each['sustained_W']:.0f} W" if "sustained_us" in each else ""))
    elif arguments.check:
        say("  by bits: " + ", ".join(each.name for each in ready))
    torch.cuda.empty_cache()
    return results


def context(device: Any, arguments: argparse.Namespace) -> dict[str, Any]:
    import pynvml
    import torch

    pynvml.nvmlInit()
    return {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"), "device": torch.cuda.get_device_name(),
            "driver": str(pynvml.nvmlSystemGetDriverVersion()), "cuda": str(torch.version.cuda), "torch": torch.__version__,
            "cublaslt": device.cublaslt_version(), "commit": arguments.commit, "sustained_s": arguments.seconds,
            "command": "bench/peers/measure.py"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="*", metavar="WORD", help="problems whose label holds every word (default: all)")
    parser.add_argument("--library", metavar="FILE", help="that the build makes of device_calls.cc")
    parser.add_argument("--cublaslt", default="", metavar="FILE", help="the cuBLASLt to use (default: the loader's)")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME", help="only these beside ours, as sglang or sglang:group_v1")
    parser.add_argument("--check", action="store_true", help="compare bits, time nothing")
    parser.add_argument("--seconds", type=float, default=4.0, help="of one sustained run; 0: none (default: 4)")
    parser.add_argument("--commit", default="unknown", help="of what is measured, for the file")
    parser.add_argument("--out", metavar="FILE", help="figures as JSON")
    parser.add_argument("--list", action="store_true", help="the labels of the problems")
    arguments = parser.parse_args()
    selected = [each for each in (*problems.quantizations(), *problems.products()) if all(word in each.label for word in arguments.words)]
    if not selected:
        say(f"measure.py: no problem has {' '.join(arguments.words)!r} in its label (--list shows them)")
        return 4
    if arguments.list:
        print("\n".join(each.label for each in selected))
        return 0
    if not arguments.library:
        parser.error("--library FILE is needed: cmake --build build --target assay_device_calls")
    try:
        import torch
    except ImportError as error:
        say(f"measure.py: {error}")
        return 9
    if not torch.cuda.is_available():
        say("measure.py: PyTorch finds no device")
        return 9
    from bench.peers.device_calls import DeviceCalls

    device, failures, figures = DeviceCalls(arguments.library, arguments.cublaslt), [], []
    for problem in selected:
        figures += measure(problem, device, arguments, failures)
        if arguments.out:  # after each problem: what is measured stays
            text = {"context": context(device, arguments), "benchmarks": figures}
            pathlib.Path(arguments.out).write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    for line in failures:
        say(f"measure.py: {line}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
