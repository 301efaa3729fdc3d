#!/usr/bin/env python3
"""The logic of the timings beside other projects' kernels, with fakes in place of a device: nothing is timed here."""

import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import types
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from bench.peers import calls, page, problems, timing


class ProblemsTest(unittest.TestCase):
    def test_splits_have_the_rows_and_never_change(self):
        self.assertEqual(problems.zipf(4, 100, 0), problems.zipf(4, 100, 0))
        for groups, rows in ((1, 5), (8, 32768), (64, 32768)):
            counts = problems.zipf(groups, rows, 7)
            self.assertEqual((len(counts), sum(counts)), (groups, rows))
            self.assertGreater(max(counts), rows / groups - 1)
        counts = problems.few(64, 64, 3)
        self.assertEqual((len(counts), min(counts), max(counts)), (64, 1, 64))

    def test_zipf_is_in_proportion(self):
        self.assertEqual(sorted(problems.zipf(4, 2500, 1), reverse=True), [1200, 600, 400, 300])

    def test_what_has_to_be_moved(self):
        # 2 x 256 values: 1024 B in, 512 B of codes, 4 scales of 4 B; or 2 scales of 4 B.
        self.assertEqual(problems.Quantization(2, 256).bytes, 1024 + 512 + 16)
        self.assertEqual(problems.Quantization(2, 256, block="1xall").bytes, 1024 + 512 + 8)
        # 3 rows in two of three groups, N = 256, K = 384: w 2 x (98304 + 6 scales), x 1152 + 9 scales, D 3 x 512.
        product = problems.Product("a", (1, 0, 2), 256, 384)
        self.assertEqual(product.bytes, 2 * (98304 + 24) + 1152 + 36 + 1536)
        self.assertEqual(product.flops, 2 * 3 * 256 * 384)

    def test_every_problem_has_a_label_of_its_own_and_whole_blocks(self):
        every = [*problems.quantizations(), *problems.products()]
        self.assertEqual(len({each.label for each in every}), len(every))
        for each in problems.products():
            self.assertEqual((each.N % 128, each.K % 128), (0, 0), each.label)
        named = {each.name: each for each in problems.products()}
        self.assertEqual((named["8x4096"].rows, named["8x4096"].N, named["8x4096"].K), (32768, 4096, 7168))
        self.assertTrue(named["8x4096"].aligned and named["32x256"].aligned)
        self.assertFalse(named["zipf(8,32768)"].aligned)


class TimingTest(unittest.TestCase):
    def test_turns_go_forth_and_back(self):
        asked = []
        times = timing.interleaved(["assay", "b", "c"], 3, lambda name: asked.append(name) or len(asked))
        self.assertEqual(asked, ["assay", "b", "c", "c", "b", "assay", "assay", "b", "c"])
        self.assertEqual(times, {"assay": [1, 6, 7], "b": [2, 5, 8], "c": [3, 4, 9]})

    def test_a_ratio_is_taken_turn_by_turn(self):
        # Both are twice as slow in the second turn: the ratio of medians would be 3 / 4.
        times = {"assay": [1.0, 2.0, 4.0], "b": [2.0, 3.0, 3.0]}
        self.assertEqual(timing.of_theirs(times, "b"), 1.5)
        self.assertEqual(timing.of_theirs(times, "assay"), 1)
        with self.assertRaises(ValueError):
            timing.of_theirs({"assay": [1.0], "b": [1.0, 2.0]}, "b")

    def test_the_second_half_counts(self):
        self.assertEqual(timing.second_half([(0, 9), (1, 9), (1.9, 9), (2.5, 1), (3, 2), (4, 3)]), 2)
        self.assertEqual(timing.second_half([(4, 3), (0, 9)]), 3)

    def test_calls_for_a_time(self):
        self.assertEqual(timing.calls_for(0.05, 0.001), 50)
        self.assertEqual(timing.calls_for(0.001, 0.05), 1)


class Library:
    """Adds to the list what it is called with, as an operator writes its output."""

    def get_alignment(self):
        return 128

    def product(self, out, value, twice=False):
        out.append(value * (2 if twice else 1))
        return out


class RecorderTest(unittest.TestCase):
    def adapter(self, fn):
        module = types.ModuleType("some_adapter")
        module._ops = Library()
        module.kernel = types.SimpleNamespace(fn=lambda t: fn(module, t))
        return module

    def test_the_operator_is_repeated_and_nothing_else(self):
        prepared, out = [], []

        def function(module, t):
            prepared.append(t)
            self.assertEqual(module._ops.get_alignment(), 128)
            module._ops.product(out, t, twice=True)

        module = self.adapter(function)
        ops = module._ops
        launch = calls.operator_of(module, "kernel", 21)
        self.assertIs(module._ops, ops)
        self.assertEqual((prepared, out), ([21], [42]))
        self.assertIs(launch(), out)
        self.assertEqual((prepared, out), ([21], [42, 42]))

    def test_a_library_that_is_loaded_when_it_is_called(self):
        out = []
        module = types.ModuleType("late")
        module._library = Library
        module.kernel = types.SimpleNamespace(fn=lambda t: module._library().product(out, t))
        calls.operator_of(module, "kernel", 3)()
        self.assertEqual((out, module._library), ([3, 3], Library))

    def test_a_kernel_with_a_grid(self):
        out = []

        class Kernel:
            def __getitem__(self, grid):
                return lambda value: out.append((grid, value))

        module = types.ModuleType("triton")
        module._block_products = Kernel()
        module.kernel = types.SimpleNamespace(fn=lambda t: module._block_products[(2, 3)](t))
        calls.operator_of(module, "kernel", 5)()
        self.assertEqual(out, [((2, 3), 5)] * 2)

    def test_refusals(self):
        def refuse(module, t):
            raise NotImplementedError("N is 5")

        module = self.adapter(refuse)
        ops = module._ops
        with self.assertRaisesRegex(NotImplementedError, "N is 5"):
            calls.operator_of(module, "kernel", 0)
        self.assertIs(module._ops, ops)
        for count in (0, 2):
            with self.assertRaisesRegex(RuntimeError, f"made {count} calls"):
                calls.operator_of(self.adapter(lambda module, t: [module._ops.product([], t) for _ in range(count)]), "kernel", 1)
        with self.assertRaisesRegex(RuntimeError, "no place"):
            calls.operator_of(types.ModuleType("empty"), "kernel", 0)


CONTEXT = {"date": "2026-01-02", "device": "Some GPU", "driver": "1.2", "cuda": "13.0", "torch": "2.0", "cublaslt": "13.10.0", "commit": "1a2b3c4",
           "sustained_s": 3.0}
QUANTIZE = "problem=quantize block=1x128 groups=0 rows=1000 columns=2000"
PRODUCT = "problem=product splits=8x100 groups=8 rows=800 N=100 K=300"


def timed(peer, label, us, ratio, **more):
    return {"name": f"{peer} {label}", "run_type": "iteration", "label": f"peer={peer} {label}", "version": f"{peer} 1.0", "checked": "a plan",
            "bytes": 6_000_000, "median_us": us, "ours_of_theirs": ratio, **more}


def product(peer, us, ratio, long_us=None, long_ratio=None, **more):
    if long_us is not None:
        more |= {"sustained_us": long_us, "sustained_ours_of_theirs": long_ratio, "sustained_MHz": 1400.4, "sustained_W": 699.6}
    return timed(peer, PRODUCT, us, ratio, flops=2e9, MHz=1965.0, **more)


FIGURES = [
    product("assay", 2.0, 1.0, 4.0, 1.0), product("cublaslt", 2.0, 0.99, 4.0, 1.004), product("deepgemm:a", 1.0, 0.5, groups="psum", W=500.0),
    {"name": "vllm:a", "label": f"peer=vllm:a {PRODUCT}", "error_occurred": True, "error_message": "absent: it is not installed"},
    timed("assay", QUANTIZE, 3.0, 1.0), timed("copy", QUANTIZE, 2.4, 0.8),
]
PRODUCTS_WANTED = """\
| implementation | groups | short us | TFLOP/s | GB/s |  MHz |   W |    pJ | ours / theirs | sustained us | TFLOP/s |  MHz |   W |    pJ | ours / theirs |
|----------------|--------|---------:|--------:|-----:|-----:|----:|------:|--------------:|-------------:|--------:|-----:|----:|------:|--------------:|
| assay          | plain  |      2.0 |    1000 | 3000 | 1965 |     |       |         1.000 |          4.0 |     500 | 1400 | 700 | 1.399 |         1.000 |
| cublaslt       | plain  |      2.0 |    1000 | 3000 | 1965 |     |       |         0.990 |          4.0 |     500 | 1400 | 700 | 1.399 |         1.004 |
| deepgemm:a     | psum   |      1.0 |    2000 | 6000 | 1965 | 500 | 0.250 |         0.500 |              |         |      |     |       |               |

vllm:a: absent: it is not installed
"""
QUANTIZE_WANTED = """\
| implementation |  us | GB/s | of copy | ours / theirs |
|----------------|----:|-----:|--------:|--------------:|
| assay          | 3.0 | 2000 |    0.80 |         1.000 |
| copy           | 2.4 | 2500 |    1.00 |         0.800 |
"""


class PageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, figures, **context):
        path = self.folder / name
        path.write_text(json.dumps({"context": CONTEXT | context, "benchmarks": figures}), encoding="utf-8")
        return path

    def run_page(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "page.py", *arguments], capture_output=True, text=True, check=False)

    def test_the_page_in_the_tree_is_what_its_files_give(self):
        done = self.run_page("--check")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_another_page_is_found(self):
        self.addCleanup(setattr, page, "PAGE", page.PAGE)
        self.addCleanup(setattr, page, "ROOT", page.ROOT)
        self.addCleanup(setattr, sys, "argv", sys.argv)
        page.ROOT, page.PAGE = self.folder, self.folder / "page"
        results = self.folder / "bench" / "results"
        results.mkdir(parents=True)
        self.file("bench/results/a_beside_others.json", FIGURES)
        vendor = {"name": "q", "label": "beside=1x128 direction=both input=bf16 groups=0 rows=10 columns=20 vendor=whole", "bytes": 600,
                  "median_us": 14.0, "of_copy": 0.95, "vendor_us": 15.4, "vendor_of_copy": 0.864, "of_vendor": 1.1}
        training = results / "h200_training_step.json"
        training.write_text(json.dumps({"context": CONTEXT, "figures": [vendor]}), encoding="utf-8")

        def run(option):
            sys.argv = ["page.py", option]
            with contextlib.redirect_stderr(io.StringIO()):
                return page.main()

        self.assertEqual([run("--check"), run("--write"), run("--check")], [1, 0, 0])
        self.assertIn("| 1x128        | bf16  | both      |        |   10 |      20 | 14.0 |    0.95 |      15.4 |", page.PAGE.read_text(encoding="utf-8"))
        training.write_text(json.dumps({"context": CONTEXT, "figures": [vendor | {"of_vendor": 1.2}]}), encoding="utf-8")
        self.assertEqual(run("--check"), 1)
        training.write_text(json.dumps({"context": CONTEXT, "figures": [vendor]}), encoding="utf-8")
        self.assertEqual(run("--check"), 0)
        self.file("bench/results/a_beside_others.json", FIGURES[:-1])
        self.assertEqual(run("--check"), 1)
        training.unlink()
        self.assertEqual(run("--check"), 2)

    def test_tables(self):
        done = self.run_page(self.file("a.json", FIGURES))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("**8 groups, 8x100, 800 rows, N 100, K 300**\n\n" + PRODUCTS_WANTED, done.stdout)
        self.assertIn("**1x128, 1000 x 2000**\n\n" + QUANTIZE_WANTED, done.stdout)
        self.assertIn("they lie up to 1.0 % apart", done.stdout)
        self.assertIn("commit 1a2b3c4. Sustained: 3 s.", done.stdout)

    def test_files_of_one_run_become_one(self):
        both = self.folder / "both.json"
        done = self.run_page(self.file("a.json", FIGURES[:4]), self.file("b.json", FIGURES[4:]), "--merge", both)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(self.run_page(both).stdout, self.run_page(self.file("all.json", FIGURES)).stdout)
        other = self.folder / "other.json"
        done = self.run_page(self.file("a.json", FIGURES[:4]), self.file("b.json", FIGURES[4:], device="Another"), "--merge", other)
        self.assertEqual(done.returncode, 2)
        self.assertIn("device is 'Another': expected 'Some GPU'", done.stderr)
        self.assertFalse(other.exists())

    def test_refusals(self):
        for text, complaint in (("{", "no file of measure.py"), ('{"context": {}, "benchmarks": []}', "'device'"),
                                (json.dumps({"context": CONTEXT, "benchmarks": [{"label": "peer=a problem=product rows=1"}]}), "'bytes'"),
                                (json.dumps({"context": CONTEXT, "benchmarks": [{"label": "kernel=a"}]}), "'peer'")):
            path = self.folder / "bad.json"
            path.write_text(text, encoding="utf-8")
            done = self.run_page(path)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn(complaint, done.stderr)
        self.assertEqual(self.run_page(self.folder / "absent.json").returncode, 2)
        self.assertEqual(self.run_page().returncode, 2)
        self.assertEqual(self.run_page(self.folder / "absent.json", "--check").returncode, 2)


class CommandLineTest(unittest.TestCase):
    def run_measure(self, *arguments):
        return subprocess.run([sys.executable, "-B", HERE / "measure.py", *arguments], capture_output=True, text=True, check=False)

    def test_lists_and_refuses(self):
        done = self.run_measure("--list", "problem=product", "groups=8 ")
        self.assertEqual((done.returncode, len(done.stdout.splitlines())), (0, 2), done.stderr)
        self.assertEqual(self.run_measure("--list", "none").returncode, 4)
        done = self.run_measure()
        self.assertEqual(done.returncode, 2)
        self.assertIn("--library FILE is needed", done.stderr)
        self.assertEqual(self.run_measure("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
