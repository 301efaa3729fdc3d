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
MD = ".md"  # of pages that there are not: the test of documents looks for names of pages


def run(*arguments):
    return subprocess.run([sys.executable, str(PROGRAM), *map(str, arguments)], capture_output=True, text=True, check=False)


def figures_by(key, name):
    """The figures of a result file, by their name or their label."""
    text = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return {figure[key]: figure for figure in text.get("figures", text.get("benchmarks"))}


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
        named = figures_by("name", "h200_own_product")
        problem = "problem=product splits=64x1024 groups=64 rows=65536 N=2048 K=2048"
        us = [named[f"{peer} {problem}"]["sustained_us"] for peer in ("assay:fp8_block_gemm", "assay", "deepgemm:fp8_contiguous")]
        cells = cells_of(README, "own products", ["64 of 1024, 2048, 2048", "sustained"])
        self.assertEqual(cells[:3], [str(round(each)) for each in us])
        self.assertAlmostEqual(float(cells[3]), us[1] / us[0], delta=0.006)
        self.assertAlmostEqual(float(cells[4]), us[2] / us[0], delta=0.006)

    def test_the_faster_layout_of_deepgemm_is_shown(self):
        named = figures_by("name", "h200_own_product")
        problem = "problem=product splits=64x1 groups=64 rows=64 N=4096 K=7168"
        masked, psum = (named[f"deepgemm:fp8_{layout} {problem}"]["median_us"] for layout in ("masked", "psum"))
        self.assertEqual(cells_of(README, "own products", ["64 of 1, 4096, 7168", "short"])[2], str(round(min(masked, psum))))
        self.assertNotEqual(round(masked), round(psum))

    def test_rates_of_groups_are_bytes_over_time(self):
        named = figures_by("name", "h200_fp8_block_both_directions")
        groups, one = named["1x128 both 993 groups of 33 rows aligned 32768x7168"], named["1x128 both 32768x7168"]
        share = groups["bytes"] / groups["median_us"] * one["median_us"] / one["bytes"]
        self.assertAlmostEqual(float(cells_of(PAGE, "FP8 blocks of groups", ["NVIDIA H200", "1x128, aligned columns"])[-1]), share, delta=0.006)

    def test_steps_are_those_of_the_file(self):
        step = json.loads((RESULTS / "h100_training_step.json").read_text())["figures"][0]
        cells = cells_of(README, "training steps", ["NVIDIA H100", "8 of 4096"])
        self.assertEqual(cells[0], str(round(step["median_us"])))
        self.assertEqual(cells[1:3], [str(round(step["quantize_us"])), str(round(step["products_us"]))])
        self.assertEqual(cells[-2], str(round(step["vendor_us"])))
        self.assertAlmostEqual(float(cells[-1]), step["of_vendor"], delta=0.006)


    def test_weight_gradients_are_those_of_the_file(self):
        named = figures_by("label", "h200_weight_gradient_product")
        figure = named["regimes=block layout=NT output=f32 route=direct splits=even groups=4 rows=32768 N=4096 K=7168"]
        us = [figure["own_sustained_us"], figure["any_scales_sustained_us"], figure["sustained_us"]]
        cells = cells_of(README, "weight gradients", ["f32 D", "sustained"])
        self.assertEqual(cells[:3], [str(round(each)) for each in us])
        self.assertAlmostEqual(float(cells[3]), us[2] / us[0], delta=0.006)

    def test_aligned_columns_are_those_of_the_file(self):
        figures = json.loads((RESULTS / "h100_weight_gradient_any_rows.json").read_text())["figures"]
        even, copied, aligned = figures[:3]
        self.assertEqual([even["columns"], copied["columns"], aligned["columns"]], ["dense", "dense", "aligned"])
        for figure, how in ((copied, "copied"), (aligned, "aligned columns")):
            cells = cells_of(README, "aligned columns", ["8191, 8193, 8189, 8195, 4096, 7168", how])
            self.assertAlmostEqual(float(cells[2]), sum(figure["sustained_us"]) / 2, delta=0.51)
            self.assertAlmostEqual(float(cells[3]), sum(figure["sustained_us"]) / sum(even["sustained_us"]), delta=0.006)

    def test_starts_of_clusters_are_those_of_the_file(self):
        figures = [each for each in json.loads((RESULTS / "h200_even_products.json").read_text())["figures"]
                   if each["run"] == "2, 1.5 s" and each["groups"].startswith("8 of 4096")]
        together, later = figures
        self.assertEqual([together["cycles_of_delay_a_block"], later["cycles_of_delay_a_block"]], [0, 1000])
        cells = cells_of(README, "starts of clusters", ["2, 1.5 s", "8 of 4096, 4096, 7168"])
        self.assertAlmostEqual(float(cells[3]), sum(together["sustained_us"]) / 2, delta=0.51)
        self.assertAlmostEqual(float(cells[5]), sum(later["sustained_us"]) / sum(together["sustained_us"]), delta=0.0006)
        self.assertAlmostEqual(float(cells[6]), (together["MHz"][0][1] + together["MHz"][1][1]) / 2, delta=0.51)

    def test_one_tensor_is_that_of_the_file(self):
        cells = cells_of(PAGE, "quantization of one tensor", ["current scaling (reads twice)"])
        label = "kernel=current options=dbias direction=both input=bf16 groups=0 rows=32768 columns=7168"
        self.assertAlmostEqual(float(cells[2]), figures_by("label", "h200_quantization_speed")[label]["of_copy"], delta=0.006)

    def test_ragged_groups_are_those_of_the_file(self):
        named = figures_by("label", "h200_quantization_speed")
        one, groups = (named[f"kernel=delayed direction=both input=bf16 groups={each} rows=32768 columns=7168"] for each in (0, 256))
        share = groups["bytes"] / groups["median_us"] * one["median_us"] / one["bytes"]
        self.assertAlmostEqual(float(cells_of(PAGE, "quantization of ragged groups", ["delayed scaling"])[-1]), share, delta=0.006)

    def test_groups_with_dbias_are_compared_with_one_tensor_with_dbias(self):
        named = figures_by("name", "h100_fp8_block_both_directions")
        groups, one = named["1x128 both dbias 256 groups 32768x7168"], named["1x128 both dbias 32768x7168"]
        share = groups["bytes"] / groups["median_us"] * one["median_us"] / one["bytes"]
        self.assertAlmostEqual(float(cells_of(PAGE, "FP8 blocks of groups", ["NVIDIA H100", "1x128, with dbias"])[2]), share, delta=0.006)


STEP, OWN, BLOCKS = (f"bench/results/{name}.json" for name in ("h100_training_step", "h200_own_product", "h200_fp8_block_both_directions"))
WEIGHTS, STARTS = (f"bench/results/{name}.json" for name in ("h100_weight_gradient_any_rows", "h200_even_products"))

# Of a file: what becomes what, and why it is then refused.
CHANGES = [
    (STEP, "step=block splits=even", "step=block splits=uneven", f"{STEP}: no figure with {{'step': 'block', 'splits': 'even', 'options': None}}"),
    (STEP, "step=block splits=ragged", "step=block splits=even", f"{STEP}: 2 figures with"),
    (STEP, '"quantize_us"', '"quantise_us"', "no quantize_us"),
    (STEP, '"vendor_us"', '"seller_us"', "no vendor_us"),
    *((OWN, '"sustained_us": 1635.4', f'"sustained_us": {value}', "sustained_us is ")
      for value in ("NaN", "Infinity", "-1635.4", "0", "true", "null", '"1635.4"', "[1635.4]")),
    (OWN, '"sustained_us": 1740.9, ', "", "no sustained_us"),
    (OWN, "peer=deepgemm:fp8_contiguous problem=product splits=8x4096", "peer=assay problem=product splits=8x4096",
     "2 figures with {'peer': 'assay', 'splits': '8x4096'"),
    *((WEIGHTS, '"short_us": [1759.0, 1773.7]', f'"short_us": {value}', "short_us is ") for value in ("1759.0", "[]", '["a"]', "[null]")),
    (STARTS, '"MHz": [[1257, 1259, 1263], ', '"MHz": [1257, ', "MHz is "),
    *((BLOCKS, f"kernel=1x128 {words} rows=32768", f"kernel=1x128 {words}1 rows=32768", "no figure with {'kernel': '1x128', 'direction': 'both'")
      for words in ("options=columns_of_16 direction=both input=bf16 groups=64", "direction=both input=bf16 groups=64")),
    (PAGE, "bench/pages.py: quantization of one tensor", "bench/pages.py: quantisation", f"{PAGE}: there is no table quantisation; there are own products, "),
    (PAGE, "<!-- table of bench/pages.py: quantization of one tensor -->", "", "no page has the table quantization of one tensor"),
    (PAGE, "bench/pages.py: quantization of one tensor", "bench/pages.py: own products", f"{PAGE}: the table own products stands in {README} as well"),
    (PAGE, "<!-- end of table -->", "", f"{PAGE}: the table quantization of one tensor has no line <!-- end of table -->"),
]


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
        self.change(PAGE, "|    1.01 |            0.93 |", "|    1.00 |            0.93 |")
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

    def test_changes_of_a_file_that_are_refused(self):
        for path, before, after, because in CHANGES:
            with self.subTest(path=path, after=after):
                text = (self.root / path).read_text(encoding="utf-8")
                self.change(path, before, after)
                self.refused(because)
                (self.root / path).write_text(text, encoding="utf-8")
                self.assertEqual(self.run_here().returncode, 0)

    def test_files_of_another_shape(self):
        for text in ("[]", "3", '{"figures": 5}', '{"figures": {}}', '{"figures": []}', '{"figures": ["a"]}', '{"figures": [{"label": 5}]}',
                     '{"figures": [{"label": "a"}]}', "[" * 100000):
            with self.subTest(text=text[:40]):
                (self.root / "bench/results/h100_training_step.json").write_text(text, encoding="utf-8")
                self.refused("bench/results/h100_training_step.json: ")

    def test_a_file_that_names_no_device(self):
        path = self.root / "bench/results/h100_training_step.json"
        file = json.loads(path.read_text())
        for context in ([], {}, None, {"device": 5}):
            path.write_text(json.dumps({**file, "context": context}), encoding="utf-8")
            self.refused("bench/results/h100_training_step.json: the context names no device")

    def test_a_page_that_is_no_text(self):
        (self.root / "docs" / f"other{MD}").write_bytes(b"\xff\xfe")
        self.refused(f"docs/other{MD}: ")

    def test_links_are_no_pages(self):
        (self.root / "docs" / f"link{MD}").symlink_to(f"results{MD}")
        (self.root / "docs" / f"loop{MD}").symlink_to(f"loop{MD}")
        self.assertEqual(self.run_here().returncode, 0)

    def test_ends_of_lines_stay(self):
        text = (self.root / PAGE).read_bytes().replace(b"# What", b"# What\r\n# what", 1)
        (self.root / PAGE).write_bytes(text)
        self.change_bytes(README, b"|            1635 |", b"|            1636 |")
        self.assertEqual(self.run_here("--write").returncode, 0)
        self.assertEqual((self.root / PAGE).read_bytes(), text)
        self.assertEqual((self.root / README).read_bytes(), (ROOT / README).read_bytes())

    def change_bytes(self, path, before, after):
        text = (self.root / path).read_bytes()
        self.assertIn(before, text)
        (self.root / path).write_bytes(text.replace(before, after, 1))

    def test_a_folder_that_takes_no_page_leaves_all_as_they_are(self):
        for page, before, after in ((README, b"|            1635 |", b"|            1636 |"), (PAGE, b"|    1.01 |            0.93 |", b"|    0.98 |            0.93 |")):
            self.change_bytes(page, before, after)
        (self.root / "docs" / f".results{MD}.new").mkdir()  # in the way of the second page
        before = (self.root / README).read_bytes()
        done = run("--root", self.root, "--write")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn(f".results{MD}.new", done.stderr)
        self.assertEqual((self.root / README).read_bytes(), before)

    def test_a_root_that_there_is_not(self):
        done = run("--root", self.root / "nowhere")
        self.assertEqual(done.returncode, 2)
        self.assertIn("nowhere", done.stderr)

    def test_the_last_line_may_be_the_end(self):
        text = (self.root / PAGE).read_text(encoding="utf-8")
        end = text.rindex("<!-- end of table -->") + len("<!-- end of table -->")
        (self.root / PAGE).write_text(text[:end], encoding="utf-8")
        self.assertEqual(self.run_here().returncode, 0)

    def test_a_file_that_is_absent(self):
        (self.root / "bench/results/h200_even_products.json").unlink()
        self.refused("bench/results/h200_even_products.json: ")

    def test_a_file_that_is_no_json(self):
        (self.root / "bench/results/h200_own_product.json").write_text("{", encoding="utf-8")
        self.refused("bench/results/h200_own_product.json: ")

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
