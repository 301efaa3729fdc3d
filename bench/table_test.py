"""table.py on JSON as Google Benchmark writes it: the tables, the merge, and what is refused."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import figures  # noqa: E402

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "table.py")
CONTEXT = {"date": "2026-01-02", "executable": "device_x_bench", "device": "NVIDIA H200", "cuda_runtime": "13000", "copy_TB/s": "4.3"}


def run_of(label, elements_bytes, us, of_copy, **more):
    return {"name": f"{label}/iterations:31/manual_time", "run_type": "iteration", "label": label, "bytes": elements_bytes,
            "median_us": us, "of_copy": of_copy, **more}


def shape(text, groups=0):
    return f"{text} input=bf16 groups={groups} rows=1000 columns=1000"


def product(us, library_us, of_library, kind="bf16", route="direct", splits="even", output="bf16"):
    label = f"gemm={kind} layout=TN output={output} route={route} splits={splits} groups=4 rows=1000 N=100 K=10"
    return {"name": f"{label}/iterations:21/manual_time", "run_type": "iteration", "label": label, "flops": 2e11, "median_us": us,
            "library_us": library_us, "of_library": of_library, "set_up_us": 1.5}


def regimes(ragged=False, own=False, any_scales=False):
    label = f"regimes=block layout=TN output=bf16 route=direct splits={'ragged' if ragged else 'even'} groups=4 rows=1000 N=100 K=10"
    values = {"short_us": 160.0, "short_MHz": 1755, "short_W": 600.25, "short_pJ": 0.4802, "sustained_us": 200.0, "sustained_MHz": 1410.4,
              "sustained_W": 699.5, "sustained_pJ": 0.7}
    return {"name": f"{label}/iterations:1/manual_time", "run_type": "iteration", "label": label, "flops": 2e11, **values,
            **{f"library_{key}": 0.98 * value for key, value in values.items()}, "short_of_library": 0.9901, "sustained_of_library": 1.0004,
            **({f"own_{key}": 0.9 * value for key, value in values.items()} if own else {}),
            **({"short_of_own": 0.9102, "sustained_of_own": 0.8996} if own else {}),
            **({f"any_scales_{key}": 0.8 * value for key, value in values.items()} if any_scales else {}),
            **({"short_of_any_scales": 0.9602, "sustained_of_any_scales": 0.9496} if any_scales else {})}


def step(replayed_us, eager_us, options="", splits="even", vendor="none", **more):
    label = f"step=block {options}splits={splits} groups=8 rows=1000 N=100 K=10 vendor={vendor}"
    return {"name": f"{label}/iterations:11/manual_time", "run_type": "iteration", "label": label, "flops": 6e11, "median_us": replayed_us,
            "alone_us": replayed_us + 1, "eager_us": eager_us, "eager_alone_us": eager_us + 20, "host_us": 80.0, "products_us": 500.0, **more}


def beside(groups, vendor, **more):
    return run_of(f"beside=1x128 direction=both input=bf16 groups={groups} rows=1000 columns=1000 vendor={vendor}", 4_060_000, 14.0, 0.95, **more)


VENDOR_STEP = {"vendor_us": 606.0, "vendor_quantize_us": 100.04, "vendor_products_us": 505.0, "of_vendor": 1.01}
RUNS = [
    run_of(shape("kernel=1x128 direction=rowwise"), 3_030_000, 10.0, 0.98),
    run_of(shape("kernel=1x128 direction=both"), 4_060_000, 14.0, 0.89),
    run_of(shape("kernel=1x128 direction=both", 8), 4_060_000, 14.2, 0.88),
    run_of(shape("kernel=1x128 direction=both", 256), 4_060_000, 20.0, 0.62),
    run_of(shape("kernel=1x128 options=dbias direction=both"), 4_060_000, 14.5, 0.86),
    run_of(shape("kernel=1x128 options=rows_of_16 direction=both", 64), 4_060_000, 14.1, 0.885),
    run_of(shape("kernel=1x128 options=rows_of_16+dbias direction=both", 64), 4_060_000, 16.0, 0.80),
    run_of(shape("kernel=1x128 options=rows_of_16 direction=columnwise", 8), 3_030_000, 10.0, 0.90),
    run_of(shape("kernel=1x128 options=groups_of_32 direction=both", 32), 4_060_000, 15.0, 0.80),
    run_of(shape("kernel=nvfp4 direction=both"), 5_100_000, 20.0, 0.60, of_bound=0.95),
    run_of(shape("kernel=amax"), 2_000_000, 5.0, 1.0),
    run_of("node=one_store", 4, 0.86, 0.0),
    run_of("node=offsets input=int64 n=8", 136, 1.21, 0.0),
    run_of("node=offsets input=int64 n=256", 4104, 1.34, 0.0),
    product(200.0, 199.0, 0.9951),
    product(210.0, 200.0, 0.9523, splits="ragged"),
    product(400.0, 380.0, 0.95, "block", "expanded", output="f32"),
    product(381.0, 380.0, 0.9801, "block", "faulty", output="f32"),
    regimes(),
    regimes(ragged=True),
    step(600.0, 600.5, quantize_us=90.0, vendor="ragged+alike+each", **VENDOR_STEP),
    step(600.0, 599.0, "options=bias ", quantize_us=90.0),
    step(610.0, 612.0, splits="ragged", vendor="absent"),
    beside(0, "whole", vendor_us=15.4, vendor_of_copy=0.864, of_vendor=1.1),
    beside(8, "failed"),
    run_of("", 1, 1.0, 1.0, name="other/iterations:31"),
]

WANT = """\
1000 x 1000. Of copy: share of the rate of a copy in the same run, one tensor. N groups: rate of N ragged groups over that of \
one tensor, goal 0.97; in parentheses of copy. A * is short of its goal.

| kernel                  | input | direction  | B/element |   us |                   of copy |          goal | 8 groups | 64 groups | 256 groups |
|-------------------------|-------|------------|----------:|-----:|--------------------------:|--------------:|---------:|----------:|-----------:|
| 1x128                   | bf16  | rowwise    |      3.03 | 10.0 |                      0.98 |          0.97 |          |           |            |
| 1x128                   | bf16  | both       |      4.06 | 14.0 |                    0.89 * |          0.92 |     0.99 |           |     0.70 * |
| 1x128 dbias             | bf16  | both       |      4.06 | 14.5 |             0.86 (1.04 x) |   1.05 x time |          |           |            |
| 1x128 rows_of_16        | bf16  | both       |           |      |                           |               |          |      0.99 |            |
| 1x128 rows_of_16, dbias | bf16  | both       |           |      |                           |               |          |    0.91 * |            |
| 1x128 rows_of_16        | bf16  | columnwise |           |      |                           |               |   (0.90) |           |            |
| 1x128 groups_of_32      | bf16  | both       |      4.06 | 15.0 | 0.80 (0.93 of one tensor) |               |          |           |            |
| nvfp4                   | bf16  | both       |      5.10 | 20.0 |      0.60 (0.95 of bound) | 0.90 of bound |          |           |            |
| amax                    | bf16  |            |      2.00 |  5.0 |                      1.00 |               |          |           |            |

Offsets as nodes of a graph (goal 1.3 us)

| node of a graph, us | n = 8 | n = 256 |
|---------------------|------:|--------:|
| one_store           |  0.86 |         |
| offsets of int64    |  1.21 |  1.34 * |

Grouped GEMM from a graph. Of library: time of the library's kernels alone over that of the whole, goal 0.99. \
Expanded: scales are written out first, to go around a fault; faulty: the library as it is there; copied: groups of any rows \
are copied first. These have no goal. A * is short of it.

| grouped GEMM     | output | layout | groups | rows |   N |  K |    us | TFLOP/s | set-up us |              of library | ragged us | TFLOP/s | set-up us | of library |
|------------------|--------|--------|-------:|-----:|----:|---:|------:|--------:|----------:|------------------------:|----------:|--------:|----------:|-----------:|
| bf16             | bf16   | TN     |      4 | 1000 | 100 | 10 | 200.0 |    1000 |      1.50 |                   0.995 |     210.0 |     952 |      1.50 |    0.952 * |
| block (expanded) | f32    | TN     |      4 | 1000 | 100 | 10 | 400.0 |     500 |      1.50 | 0.950 (0.950 of faulty) |           |         |           |            |
| block (faulty)   | f32    | TN     |      4 | 1000 | 100 | 10 | 381.0 |     525 |      1.50 |                   0.980 |           |         |           |            |

Grouped GEMM on a rested card (short: 50 ms after a rest of 0.25 s) and on a hot one (sustained: the second half of 4 s), \
production and the library's kernels alone in turn. pJ: energy of an operation, a multiplication and an addition being two. \
Of library: time of the library's kernels alone over that of the whole, turn by turn.

| grouped GEMM        | splits | output | layout | groups | rows |   N |  K | short us | TFLOP/s |  MHz |   W |    pJ | of library | sustained us | TFLOP/s |  MHz |   W |    pJ | of library |
|---------------------|--------|--------|--------|-------:|-----:|----:|---:|---------:|--------:|-----:|----:|------:|-----------:|-------------:|--------:|-----:|----:|------:|-----------:|
| block               | even   | bf16   | TN     |      4 | 1000 | 100 | 10 |    160.0 |    1250 | 1755 | 600 | 0.480 |      0.990 |        200.0 |    1000 | 1410 | 700 | 0.700 |      1.000 |
| (the library alone) |        |        |        |        |      |     |    |    156.8 |    1276 | 1720 | 588 | 0.471 |            |        196.0 |    1020 | 1382 | 686 | 0.686 |            |
| block               | ragged | bf16   | TN     |      4 | 1000 | 100 | 10 |    160.0 |    1250 | 1755 | 600 | 0.480 |      0.990 |        200.0 |    1000 | 1410 | 700 | 0.700 |      1.000 |
| (the library alone) |        |        |        |        |      |     |    |    156.8 |    1276 | 1720 | 588 | 0.471 |            |        196.0 |    1020 | 1382 | 686 | 0.686 |            |

Training steps: forward, dgrad and wgrad with all quantization, us of a step in a row of steps, and of one alone. \
Quantize, products: a replay of these alone. Vendor: TransformerEngine's quantization and cuBLASLt's kernels alone, replayed, \
without what sets up their groups. Of vendor: its time over that of the replayed step, round by round. \
A * is not faster than eager. Vendor: not measured, ASSAY_TRANSFORMER_ENGINE names no library.

| training step | groups | rows |   N |  K | eager us | replayed us | eager alone | replayed alone | TFLOP/s | quantize | products | vendor quantize | vendor products | vendor us | of vendor |
|---------------|-------:|-----:|----:|---:|---------:|------------:|------------:|---------------:|--------:|---------:|---------:|----------------:|----------------:|----------:|----------:|
| block         |      8 | 1000 | 100 | 10 |    600.5 |       600.0 |       620.5 |          601.0 |    1000 |     90.0 |    500.0 |           100.0 |           505.0 |     606.0 |     1.010 |
| block, bias   |      8 | 1000 | 100 | 10 |    599.0 |     600.0 * |       619.0 |          601.0 |    1000 |     90.0 |    500.0 |                 |                 |           |           |
| block, ragged |      8 | 1000 | 100 | 10 |    612.0 |       610.0 |       632.0 |          611.0 |     984 |          |    500.0 |    not measured |                 |           |           |

Quantization beside the vendor's, TransformerEngine by its fastest call: groups by one call (ragged: sizes \
on the device; alike: equal sizes), by a call each, or all rows as a whole. Of vendor: its time over ours, pair \
by pair. Vendor: failed, the benchmark wrote why.

| quantization | input | direction | groups | rows | columns |   us | of copy | vendor us | vendor of copy | of vendor | called |
|--------------|-------|-----------|-------:|-----:|--------:|-----:|--------:|----------:|---------------:|----------:|-------:|
| 1x128        | bf16  | both      |        | 1000 |    1000 | 14.0 |    0.95 |      15.4 |           0.86 |     1.100 |  whole |
| 1x128        | bf16  | both      |      8 | 1000 |    1000 | 14.0 |    0.95 |    failed |                |           |        |

Without a label or a time, so in no table: other
"""


class TableTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text if isinstance(text, str) else json.dumps(text))
        return path

    def table(self, *arguments):
        return subprocess.run([sys.executable, TABLE, *arguments], capture_output=True, text=True, check=False)

    def test_tables(self):
        done = self.table(self.file("a.json", {"context": CONTEXT, "benchmarks": RUNS}))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, WANT)

    def test_the_own_kernel_has_a_row_where_it_took_turns(self):
        run = self.file("own.json", {"context": CONTEXT, "benchmarks": [regimes(), regimes(ragged=True, own=True, any_scales=True)]})
        merged = os.path.join(self.folder.name, "merged.json")
        done = self.table(run, "--merge", merged, "--commit", "1a2b3c4", "--driver", "580.1")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("turn by turn; in the rows of the own kernel, its time over that of the whole.\n", done.stdout)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if line.startswith("| ")]
        self.assertEqual([row[0] for row in rows], ["grouped GEMM", "block", "(the library alone)", "block", "(the library alone)", "(the own kernel)",
                                                   "(of any scales)"])
        self.assertEqual(rows[-1][8:], ["128.0", "1562", "1404", "480", "0.384", "0.960", "160.0", "1250", "1128", "560", "0.560", "0.950"])
        self.assertEqual(rows[-2][8:], ["144.0", "1389", "1580", "540", "0.432", "0.910", "180.0", "1111", "1269", "630", "0.630", "0.900"])
        self.assertEqual(self.table(merged).stdout, done.stdout)

    def test_the_own_kernel_lacks_a_counter(self):
        for counter in ("own_sustained_pJ", "any_scales_short_us", "sustained_of_any_scales"):
            broken = regimes(own=True, any_scales=True)
            del broken[counter]
            done = self.table(self.file("own.json", {"context": CONTEXT, "benchmarks": [broken]}))
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"no counter {counter}", done.stderr)

    def test_result_files_keep_every_counter_of_the_device_benchmarks(self):
        folder = os.path.join(os.path.dirname(TABLE), "device")
        named = set()
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read()
            named.update(re.findall(r'counters\["([^"]+)"\]', text))
            named.update(re.findall(r'"(\w+_us)"', text))  # of the parts of a step
        self.assertGreater(len(named), 20)
        self.assertEqual(named - set(figures.FIELDS) - set(figures.DERIVED), set())

    def test_the_later_figure_counts_and_merged_files_read_alike(self):
        old = self.file("old.json", {"context": CONTEXT, "benchmarks": [run_of(RUNS[0]["label"], 3_030_000, 99.0, 0.1)]})
        new = self.file("new.json", {"context": CONTEXT, "benchmarks": RUNS})
        merged = os.path.join(self.folder.name, "merged.json")
        done = self.table(old, new, "--merge", merged, "--commit", "1a2b3c4", "--driver", "580.1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, WANT)
        with open(merged, encoding="utf-8") as file:
            result = json.load(file)
        self.assertEqual(result["context"], {"device": "NVIDIA H200", "driver": "580.1", "cuda": "13.0", "commit": "1a2b3c4",
                                             "command": "device_x_bench", "copy_TB/s": "4.3", "date": "2026-01-02"})
        self.assertEqual(len(result["figures"]), len(RUNS))
        self.assertEqual(result["figures"][0]["median_us"], 10)
        self.assertEqual(self.table(merged).stdout, WANT)

    def test_the_benchmarks_of_the_cpu(self):
        def run(name, time, unit, **more):
            return {"name": name + "/real_time", "run_name": name + "/real_time", "run_type": "iteration", "real_time": time, "cpu_time": 1.0,
                    "time_unit": unit, **more}

        mean = run("quantize/a", 7.0, "ms") | {"run_type": "aggregate", "aggregate_name": "mean"}
        runs = [run("quantize/a", 9.0, "ms", bytes_per_second=2.5e9, elements=1.25e8), run("quantize/a", 7.0, "ms", bytes_per_second=3e9, elements=2e8),
                run("quantize/a", 8.0, "ms", bytes_per_second=2.75e9, elements=1.5e8), mean, run("once", 12345.0, "ns", **{"MAC/s": 4e9})]
        done = self.table(self.file("cpu.json", {"context": CONTEXT, "benchmarks": runs}))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(done.stdout, """\
| benchmark            |     time |     cv |                 per second |
|----------------------|---------:|-------:|---------------------------:|
| quantize/a/real_time |     8 ms | 12.5 % | 2.75 GB/s, 150 Melements/s |
| once/real_time       | 12.35 us |        |                   4 GMAC/s |
""")

    def test_of_repetitions_in_one_run_the_median_counts(self):
        label = RUNS[0]["label"]
        runs = [run_of(label, 3_030_000, us, share, run_name=label) for us, share in ((30.0, 0.3), (10.0, 0.98), (9.0, 1.2))]
        done = self.table(self.file("a.json", {"context": CONTEXT, "benchmarks": runs}))
        self.assertIn("| 10.0 |    0.98 |", done.stdout)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_cannot_be_read_hides_nothing_else(self):
        good = self.file("good.json", {"context": CONTEXT, "benchmarks": RUNS + [{"name": "broken", "error_occurred": True, "error_message": "no memory"},
                                                                                   {"name": "odd", "label": "node=a"}]})
        bad = self.file("bad.json", '{"context": {')
        absent = os.path.join(self.folder.name, "absent.json")
        merged = os.path.join(self.folder.name, "merged.json")
        done = self.table(bad, good, absent, "--merge", merged)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stdout, WANT)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 4, done.stderr)
        for line, start in zip(lines, (f"table.py: {bad}: no JSON", f"table.py: {good}: broken: no memory",
                                       f"table.py: {absent}: No such file or directory", "table.py: odd: no counter bytes")):
            self.assertTrue(line.startswith(start), line)
        self.assertFalse(os.path.exists(merged))

    def test_refusals(self):
        cases = {
            "not json": ("{", "no JSON of a benchmark"),
            "no context": ({"benchmarks": []}, "'context'"),
            "no counters": ({"context": {}, "benchmarks": [{"name": "x", "label": "node=a"}]}, "no counter bytes"),
            "beside others": ({"context": {}, "benchmarks": [run_of("peer=a problem=product", 1, 1, 1)]}, "bench/peers/page.py prints it"),
            "no words": ({"context": {}, "benchmarks": [run_of("node", 1, 1, 1)]}, "expected KEY=VALUE"),
            "no flops": ({"context": {}, "benchmarks": [run_of("gemm=a", 1, 1, 1)]}, "no counter flops"),
            "no layout": ({"context": {}, "benchmarks": [product(1, 1, 1) | {"label": "gemm=a output=b route=c"}]}, "lacks 'layout'"),
            "no splits": ({"context": {}, "benchmarks": [product(1, 1, 1)
                                                         | {"label": product(1, 1, 1)["label"].replace("splits=even ", "")}]}, "lacks 'splits'"),
            "no vendor": ({"context": {}, "benchmarks": [step(1, 1) | {"label": step(1, 1)["label"].replace(" vendor=none", "")}]}, "lacks 'vendor'"),
            "no time of the vendor": ({"context": {}, "benchmarks": [step(1, 1, vendor="each")]}, "no counter vendor_quantize_us"),
            "no direction": ({"context": {}, "benchmarks": [run_of("beside=a input=bf16 vendor=none", 1, 1, 1)]}, "lacks 'direction'"),
            "no eager time": ({"context": {}, "benchmarks": [run_of("step=a", 1, 1, 1, flops=1)]}, "no counter alone_us"),
            "no groups": ({"context": {}, "benchmarks": [run_of("kernel=a rows=1 columns=1", 1, 1, 1)]}, "lacks 'groups'"),
        }
        for name, (text, complaint) in cases.items():
            with self.subTest(name):
                done = self.table(self.file("bad.json", text))
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn(complaint, done.stderr)
        self.assertEqual(self.table(os.path.join(self.folder.name, "absent.json")).returncode, 2)
        self.assertEqual(self.table().returncode, 2)
        self.assertEqual(self.table("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
