"""pages.py: the project's pages are what its files give; what else it says of other pages, and what it refuses.

The figures that a page is checked against are read here by their keys, not by page_tables.py.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM, RESULTS = ROOT / "bench/pages.py", ROOT / "bench/results"
README, PAGE = "device/fp8_block_gemm/README.md", "docs/results.md"


def run(*arguments):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, check=False)


def cells_of(page, table, first):
    """Cells of the row of a table that begins with the cells `first`."""
    lines = (ROOT / page).read_text(encoding="utf-8").split(f"<!-- table of bench/pages.py: {table} -->")[1].split("<!-- end of table -->")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line]
    return next(row[len(first):] for row in rows if row[: len(first)] == list(first))


class OfTheProject(unittest.TestCase):
    def test_pages_are_what_the_files_give(self):
        done = run()
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_every_table_is_listed_with_its_page(self):
        done = run("--list")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"own products: {README}\n", done.stdout)
        self.assertIn(f"FP8 blocks of groups: {PAGE}\n", done.stdout)

    def test_products_are_those_of_the_file(self):
        named = {figure["name"]: figure for figure in json.loads((RESULTS / "h200_own_product.json").read_text())["benchmarks"]}
        problem = "problem=product splits=64x1024 groups=64 rows=65536 N=2048 K=2048"
        us = [named[f"{peer} {problem}"]["sustained_us"] for peer in ("assay:fp8_block_gemm", "assay", "deepgemm:fp8_contiguous")]
        cells = cells_of(README, "own products", ["64 of 1024, 2048, 2048", "sustained"])
        self.assertEqual(cells[:3], [str(round(each)) for each in us])
        self.assertAlmostEqual(float(cells[3]), us[1] / us[0], delta=0.006)
        self.assertAlmostEqual(float(cells[4]), us[2] / us[0], delta=0.006)

    def test_the_faster_layout_of_deepgemm_is_shown(self):
        named = {figure["name"]: figure for figure in json.loads((RESULTS / "h200_own_product.json").read_text())["benchmarks"]}
        problem = "problem=product splits=64x1 groups=64 rows=64 N=4096 K=7168"
        masked, psum = (named[f"deepgemm:fp8_{layout} {problem}"]["median_us"] for layout in ("masked", "psum"))
        self.assertEqual(cells_of(README, "own products", ["64 of 1, 4096, 7168", "short"])[2], str(round(min(masked, psum))))
        self.assertNotEqual(round(masked), round(psum))

    def test_rates_of_groups_are_bytes_over_time(self):
        named = {figure["name"]: figure for figure in json.loads((RESULTS / "h200_fp8_block_both_directions.json").read_text())["figures"]}
        groups, one = named["1x128 both 993 groups of 33 rows aligned 32768x7168"], named["1x128 both 32768x7168"]
        share = groups["bytes"] / groups["median_us"] * one["median_us"] / one["bytes"]
        self.assertAlmostEqual(float(cells_of(PAGE, "FP8 blocks of groups", ["NVIDIA H200", "aligned columns"])[-1]), share, delta=0.006)

    def test_steps_are_those_of_the_file(self):
        step = json.loads((RESULTS / "h100_training_step.json").read_text())["figures"][0]
        cells = cells_of(README, "training steps", ["NVIDIA H100", "8 of 4096"])
        self.assertEqual(cells[0], str(round(step["median_us"])))
        self.assertEqual(cells[-2], str(round(step["vendor_us"])))


class OfACopy(unittest.TestCase):
    """The pages with tables and bench/results in a folder of their own, changed."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        shutil.copytree(RESULTS, self.root / "bench/results")
        for page in (README, PAGE):
            (self.root / page).parent.mkdir(parents=True)
            shutil.copy(ROOT / page, self.root / page)

    def run_here(self, *arguments):
        return run("--root", self.root, *arguments)

    def change(self, path, before, after):
        text = (self.root / path).read_text(encoding="utf-8")
        self.assertIn(before, text)
        (self.root / path).write_text(text.replace(before, after, 1), encoding="utf-8")

    def refused(self, because):
        before = [(self.root / page).read_text(encoding="utf-8") for page in (README, PAGE)]
        for arguments in ((), ("--write",)):
            done = self.run_here(*arguments)
            self.assertEqual((done.returncode, done.stdout), (2, ""), because)
            self.assertIn(because, done.stderr)
        self.assertEqual(before, [(self.root / page).read_text(encoding="utf-8") for page in (README, PAGE)])

    def test_a_copy_is_as_the_project(self):
        self.assertEqual(self.run_here().returncode, 0)

    def test_a_new_figure_is_reported_and_written(self):
        self.change("bench/results/h200_own_product.json", '"sustained_us": 1635.4', '"sustained_us": 1500.4')
        done = self.run_here()
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        self.assertEqual(done.stdout, f"{README}: the table own products is not what bench/results gives\nbench/pages.py --write makes them anew\n")
        self.assertEqual(self.run_here("--write").returncode, 0)
        self.assertEqual(self.run_here().returncode, 0)
        page = (self.root / README).read_text(encoding="utf-8")
        self.assertIn("|            1500 |", page)
        self.assertNotIn("|            1635 |", page)

    def test_a_figure_changed_by_hand_is_reported(self):
        self.change(PAGE, "| 0.99 / 0.93 |", "| 1.00 / 0.93 |")
        self.assertEqual(self.run_here().returncode, 1)
        self.run_here("--write")
        self.assertEqual((self.root / PAGE).read_text(encoding="utf-8"), (ROOT / PAGE).read_text(encoding="utf-8"))

    def test_text_around_tables_stays(self):
        self.change(PAGE, "# ", "# A | b\n\n| a |\n|---|\n\n# ")
        before = (self.root / PAGE).read_text(encoding="utf-8")
        self.assertEqual(self.run_here("--write").returncode, 0)
        self.assertEqual((self.root / PAGE).read_text(encoding="utf-8"), before)

    def test_a_place_without_a_table_is_filled(self):
        text = (self.root / PAGE).read_text(encoding="utf-8")
        begin = text.index("-->\n", text.index("bench/pages.py: quantization of one tensor")) + 4
        end = text.index("<!-- end of table -->", begin)
        (self.root / PAGE).write_text(text[:begin] + text[end:], encoding="utf-8")
        self.assertEqual(self.run_here().returncode, 1)
        self.run_here("--write")
        self.assertEqual((self.root / PAGE).read_text(encoding="utf-8"), text)

    def test_a_figure_that_is_absent(self):
        self.change("bench/results/h100_training_step.json", "step=block splits=even", "step=block splits=uneven")
        self.refused("bench/results/h100_training_step.json: no figure with {'step': 'block', 'splits': 'even', 'options': None}")

    def test_a_figure_twice(self):
        self.change("bench/results/h100_training_step.json", "step=block splits=ragged", "step=block splits=even")
        self.refused("bench/results/h100_training_step.json: 2 figures with")

    def test_a_field_that_is_absent(self):
        self.change("bench/results/h100_training_step.json", '"quantize_us"', '"quantise_us"')
        self.refused("no quantize_us")

    def test_a_file_that_is_absent(self):
        (self.root / "bench/results/h200_even_products.json").unlink()
        self.refused("bench/results/h200_even_products.json: ")

    def test_a_file_that_is_no_json(self):
        (self.root / "bench/results/h200_own_product.json").write_text("{", encoding="utf-8")
        self.refused("bench/results/h200_own_product.json: ")

    def test_a_table_that_there_is_not(self):
        self.change(PAGE, "bench/pages.py: quantization of one tensor", "bench/pages.py: quantisation")
        self.refused(f"{PAGE}: there is no table quantisation; there are own products, ")

    def test_a_table_that_no_page_has(self):
        self.change(PAGE, "<!-- table of bench/pages.py: quantization of one tensor -->", "")
        self.refused("no page has the table quantization of one tensor")

    def test_a_table_in_two_places(self):
        self.change(PAGE, "bench/pages.py: quantization of one tensor", "bench/pages.py: own products")
        self.refused(f"{PAGE}: the table own products stands in {README} as well")

    def test_a_table_without_an_end(self):
        self.change(PAGE, "<!-- end of table -->", "")
        self.refused(f"{PAGE}: the table quantization of one tensor has no line <!-- end of table -->")

    def test_the_last_table_without_an_end(self):
        text = (self.root / PAGE).read_text(encoding="utf-8")
        head, _, tail = text.rpartition("<!-- end of table -->")
        (self.root / PAGE).write_text(head + tail, encoding="utf-8")
        self.refused(f"{PAGE}: the table FP8 blocks of groups has no line <!-- end of table -->")

    def test_wrong_usage(self):
        for arguments in (("--write", "--list"), ("results",)):
            done = self.run_here(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn("usage: pages.py", done.stderr)


if __name__ == "__main__":
    unittest.main()
