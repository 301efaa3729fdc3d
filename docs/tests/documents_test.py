#!/usr/bin/env python3
"""The pages of the repository, checked against one another and against the code.

Clauses are headings "### PAGE-N.N Title" of reference/spec/PAGE.md and docs/measured.md. Code cites them as "spec PAGE-N.N".
"""

import functools
import glob
import json
import os
import re
import unittest

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))

SELF = "docs/tests/documents_test.py"
FAULTS = "conformance/cases/faults.md"
SCHEMA = "golden/schema.md"
UNITS, PLANS = "reference/arithmetic/units.txt", "reference/gemm/plan.cc"
TEXT = (".md", ".h", ".cc", ".c", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".in", ".picture")
CLAUSE = r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*-\d+\.\d+"
BETWEEN = r"(?:,? and |, ?|,?\n\W*)"


def commas(number):
    return f"{number:,}"


def recorded_cases(manifest, file):
    return sum(sum(each["cases"].values()) for each in manifest["fixtures"] if each["file"] == file)


def found_at_all(kills):
    """Of faults with numbers of failed cases by profile."""
    return sum(max(each.values()) > 0 for each in kills["faults"].values())


# Figures that pages quote from these files: the file, the text made from it, the pages.
README, MEASURED, RESULTS = "README.md", "docs/measured.md", "docs/results.md"
EXPLAINED = "docs/explained_faults.md"
FIGURES = [
    ("bench/results/h200_random_products.json",
     lambda f: commas(f["shapes"]["passed"] + f["shapes"]["failed"]) + " random shapes", [MEASURED, RESULTS]),
    ("bench/results/h200_random_products.json", lambda f: commas(f["runs_of_candidates"]), [MEASURED, RESULTS]),
    ("bench/results/h200_random_products.json", lambda f: f"{f['words'] / 1e9:.1f} billion elements", [MEASURED, RESULTS]),
    ("bench/results/h200_suite_crossed.json", lambda f: commas(f["suite"]["counts"]["passed"]) + " cases", [RESULTS]),
    ("bench/results/h200_suite_crossed.json", lambda f: f"{f['suite']['counts']['words'] / 1e6:.0f} million elements", [RESULTS]),
    ("golden/manifest.json", lambda f: f"{recorded_cases(f, 'transformer_engine_quantize.h5')} recorded cases", [MEASURED]),
    ("golden/manifest.json", lambda f: f"{recorded_cases(f, 'cublaslt_grouped_gemm.h5')} recorded cases", [MEASURED]),
    ("bench/results/unseen_faults_kills.json", lambda f: f"finds all {found_at_all(f)}", [EXPLAINED]),
    ("bench/results/unseen_faults_kills.json", lambda f: f"{sum(each['smoke'] > 0 for each in f['faults'].values())} fail in the profile smoke",
     [EXPLAINED]),
    ("bench/results/h200_memory_states.json", lambda f: f"{min(us for _, us in f['in_order'])} us", [MEASURED]),
]


def repository():
    """Path -> text of every source and page."""
    files = {}
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(f for f in folders if not f.startswith((".", "build")) and f != "__pycache__")
        for name in names:
            path = os.path.relpath(os.path.join(folder, name), ROOT).replace(os.sep, "/")
            if name.endswith(TEXT) or path == "assay":
                with open(os.path.join(ROOT, path), encoding="utf-8") as file:
                    files[path] = file.read()
    return files


def anchor(heading):
    """The anchor of a heading in a rendered page."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def outside_fences(text):
    return re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)


# Results for one text are cached: the tests change one text at a time.
@functools.lru_cache(maxsize=None)
def clauses_behind_spec(text):
    return {c for each in re.findall(rf"\bspec ({CLAUSE}(?:{BETWEEN}{CLAUSE})*)", text) for c in re.findall(CLAUSE, each)}


@functools.lru_cache(maxsize=None)
def all_like_clauses(text):
    return set(re.findall(rf"(?<![\w-]){CLAUSE}(?!\.?\d)", text))


@functools.lru_cache(maxsize=None)
def page_names(text):
    return set(re.findall(r"(?<![\w./-])(?:[\w-]+/)*[\w-]+\.md\b", text)) if ".md" in text else set()


@functools.lru_cache(maxsize=None)
def fault_items(code):
    named = set()
    for each in re.findall(r"\bfaults? ([A-D]\d+(?:(?:,? and |, | to )[A-D]\d+)*)", code):
        named.update(re.findall(r"[A-D]\d+", each))
    if FAULTS in code:  # lists of what the tests of a file find
        for comment in re.findall(r"^\s*//(.*)$", code, flags=re.M):
            named.update(re.findall(r"\b[A-DRS]\d{1,2}\b", comment))
    return named


class Pages:
    def __init__(self, files):
        self.files = files
        self.pages = {path: text for path, text in files.items() if path.endswith(".md")}
        self.code = {path: text for path, text in files.items() if not path.endswith(".md") and path != SELF}
        self.clauses, self.faults = {}, []
        for path, text in sorted(self.pages.items()):
            if path.startswith("reference/spec/") or path == "docs/measured.md":
                self.read_clauses(path, text)
        self.stems = {clause.rsplit("-", 1)[0] for clause in self.clauses}

    def read_clauses(self, path, text):
        stem = os.path.basename(path)[:-3]
        for heading in re.findall(r"^#+ (.*)$", outside_fences(text), flags=re.M):
            found = re.match(rf"({CLAUSE}) \S", heading)
            if found is None:
                continue
            clause = found.group(1)
            if clause.rsplit("-", 1)[0] != stem:
                self.faults.append(f"{path}: clause {clause} bears the name of another page")
            if clause in self.clauses:
                self.faults.append(f"{path}: clause {clause} is there twice")
            self.clauses[clause] = path

    def check_sources(self):
        """Each clause of the specification states its source, in its last line except for notes."""
        for path, text in self.pages.items():
            if not path.startswith("reference/spec/"):
                continue
            parts = re.split(r"^### (.*)$", outside_fences(text), flags=re.M)
            for heading, body in zip(parts[1::2], parts[2::2]):
                stated = re.search(r"^(Sources?: |Decision: |Follows from |Evidence: )\S", body, flags=re.M)
                if re.match(CLAUSE, heading) and not stated:
                    self.faults.append(f"{path}: {heading.split()[0]} has no source")

    def citations(self, text):
        """Clauses that a text names: those after the word spec, and those with the name of a page."""
        return clauses_behind_spec(text) | {c for c in all_like_clauses(text) if c.rsplit("-", 1)[0] in self.stems}

    def check_citations(self):
        cited = set()
        for path, text in self.files.items():
            if path == SELF:
                continue
            named = self.citations(text)
            for clause in sorted(named - set(self.clauses)):
                self.faults.append(f"{path} cites {clause}, which is no clause")
            if path in self.code:
                cited |= named
        for clause in sorted(set(self.clauses) - cited):
            self.faults.append(f"{self.clauses[clause]}: no code and no test cites {clause}")

    def check_links(self):
        for path, text in self.pages.items():
            for link in re.findall(r"\]\(([^)\s]+)\)", outside_fences(text)):
                if re.match(r"[a-z]+:", link):
                    continue
                file, _, place = link.partition("#")
                target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if target not in self.files and not os.path.exists(os.path.join(ROOT, target)):
                    self.faults.append(f"{path}: the link {link} leads nowhere")
                elif place and place not in {anchor(h) for h in re.findall(r"^#+ (.*)$", self.files.get(target, ""), flags=re.M)}:
                    self.faults.append(f"{path}: the link {link} leads to no heading")

    def check_figures(self):
        for file, words, pages in FIGURES:
            with open(os.path.join(ROOT, file), encoding="utf-8") as recorded:
                expected = words(json.load(recorded))
            for path in pages:
                page = " ".join(self.pages[path].split())
                if (path == MEASURED or os.path.basename(file) in page) and expected not in page:
                    self.faults.append(f"{path} lacks '{expected}', which {file} records")

    def check_file_names(self):
        """A path that a page or a picture names exists; * stands for anything, NAME for a name."""
        folders = "|".join(sorted({path.split("/")[0] for path in self.files if "/" in path}))
        pictures = {path: text for path, text in self.code.items() if path.endswith(".picture")}
        for path, text in {**self.pages, **pictures}.items():
            for name in sorted(set(re.findall(rf"`((?:{folders})/(?:[\w./*-]+\.\w+|(?:[\w-]+/)*))`", text))):
                if "NAME" in name or name in self.files or glob.glob(os.path.join(ROOT, name)):
                    continue
                self.faults.append(f"{path} names {name}, which is not there")

    def check_page_names(self):
        """A page that code names exists, seen from the root or from the folder of the file."""
        for path, text in self.code.items():
            for name in sorted(page_names(text)):
                beside = os.path.normpath(os.path.join(os.path.dirname(path), name))
                if name not in self.pages and beside not in self.pages:
                    self.faults.append(f"{path} names {name}, which is no page")

    def check_fault_items(self):
        text = self.pages[FAULTS]
        items = re.findall(r"^- \*\*([A-D]\d+)\*\* \S", text, flags=re.M)
        rows = {row for row in re.findall(r"^\| ([A-D]\d+) \|", text, flags=re.M)}
        for item in sorted(set(i for i in items if items.count(i) > 1)):
            self.faults.append(f"{FAULTS}: item {item} is defined twice")
        for item in sorted(set(items) ^ rows):
            self.faults.append(f"{FAULTS}: item {item} is " + ("in no row" if item in items else "not defined"))
        for path, code in self.code.items():
            for item in sorted(fault_items(code) - set(items)):
                self.faults.append(f"{path} names the fault {item}, which is not in {FAULTS}")

    def check_tables(self):
        """The specification has the rows of the code: units with their numbers, plans by name."""
        spelt = {"f32_truncated": "f32", "e8m13_truncated": "E8M13", "f16_nearest": "FP16"}
        rows = [dict(re.findall(r'(\w+)=("[^"]*"|\S+)', row)) for row in re.split(r"^(?=name=)", self.code[UNITS], flags=re.M)[1:]]
        units = {(row["name"], row["products"], row["fraction_bits"], spelt[row.get("accumulator", "f32_truncated")],
                  row["zero_floor"]) for row in rows if "sum" not in row}
        others = {(row["name"], row["sum"], row["products"]) for row in rows if "sum" in row}
        page = self.pages["reference/spec/tensor-core.md"]
        written = set(re.findall(r"^\| `(\S+)` \| (\d+) \| (\d+) \| (\w+) \| (-?\d+) \|$", page, flags=re.M))
        written |= set(re.findall(r"^\| `(\S+)` \| (joined|exact|tree|chains) \| (\d+) \| [^|]+ \|$", page, flags=re.M))
        units |= others
        if len(units) < 30 or not others:
            self.faults.append(f"{UNITS}: the table of units cannot be read here")
        for unit in sorted(units ^ written):
            self.faults.append("reference/spec/tensor-core.md and " + UNITS + " disagree on " + " ".join(unit))
        plans = set(re.findall(r'\{"(\S+?)",\s*"unit=', self.code[PLANS]))
        page = self.pages["reference/spec/plans.md"]
        if len(plans) < 40:
            self.faults.append(f"{PLANS}: the plans cannot be read here")
        for plan in sorted(plans):
            if f"`{plan}`" not in page:
                self.faults.append(f"reference/spec/plans.md lacks the plan {plan}")
        for plan in sorted(set(re.findall(r"`((?:cublaslt|torch|triton|sglang|vllm|deepgemm|fbgemm|sm\d+)\.\S+?\.\S+?)`", page)) - plans):
            if not any(plan == unit[0] for unit in units):
                self.faults.append(f"reference/spec/plans.md has {plan}, which is neither a plan nor a unit")

    def check_schema(self):
        """The schema of fixtures has every op, and every name that an op reads from a case."""
        page = set(re.findall(r"\w+", self.pages[SCHEMA]))
        asked = r'request\.(?:text|text_or|flag|integer|integer_or|real_or|format|format_or|input|find_input|output)\("(\w+)"'
        found = 0
        for path, text in self.code.items():
            if path.startswith("conformance/ops/"):
                names = set(re.findall(r'\bOp k\w+\{"(\w+)"', text)) | set(re.findall(asked, text))
                found += len(names)
                self.faults += [f"{SCHEMA} lacks {name}, which {path} knows" for name in sorted(names - page)]
        if found < 60:
            self.faults.append("conformance/ops: the names that ops ask for cannot be read here")

    def check(self):
        self.check_sources()
        self.check_citations()
        self.check_links()
        self.check_figures()
        self.check_file_names()
        self.check_page_names()
        self.check_fault_items()
        self.check_tables()
        self.check_schema()
        return self.faults


class Documents(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.files = repository()

    def faults_of(self, files):
        """Faults that the tree itself does not have."""
        present = Pages(self.files).check()
        return [fault for fault in Pages(files).check() if fault not in present]

    def faults_after(self, path, old, new):
        self.assertIn(old, self.files[path])
        return self.faults_of({**self.files, path: self.files[path].replace(old, new)})

    def test_hold_together(self):
        faults = Pages(self.files).check()
        self.assertEqual(faults, [], "\n" + "\n".join(faults))

    def test_have_clauses(self):
        self.assertGreater(len(Pages(self.files).clauses), 60)

    def test_a_clause_that_is_renamed_is_missed(self):
        for path in sorted(set(Pages(self.files).clauses.values())):  # one at a time of each page
            clause = [c for c, where in Pages(self.files).clauses.items() if where == path][-1]
            faults = self.faults_after(path, f"### {clause} ", f"### {clause}9 ")
            self.assertTrue(any(f"cites {clause}, which is no clause" in f for f in faults), clause)
            self.assertTrue(any(f"no code and no test cites {clause}9" in f for f in faults), clause)

    def test_a_page_that_is_renamed_is_missed(self):
        path = "reference/spec/mxfp8.md"
        files = {**self.files, "reference/spec/mx.md": self.files[path].replace("### mxfp8-", "### mx-")}
        del files[path]
        faults = self.faults_of(files)
        self.assertTrue(any("cites mxfp8-1.2, which is no clause" in f for f in faults), faults)

    def test_a_clause_of_another_page_or_there_twice_is_a_fault(self):
        faults = self.faults_after("reference/spec/mxfp8.md", "### mxfp8-1.2 ", "### mxfp8-1.1 ")
        self.assertIn("reference/spec/mxfp8.md: clause mxfp8-1.1 is there twice", faults)
        faults = self.faults_after("reference/spec/mxfp8.md", "### mxfp8-1.2 ", "### nvfp4-1.9 ")
        self.assertIn("reference/spec/mxfp8.md: clause nvfp4-1.9 bears the name of another page", faults)

    def test_a_clause_without_a_source_is_a_fault(self):
        faults = self.faults_after("reference/spec/mxfp8.md", "Source: OCP-MX; as mxfp8-1.2.", "")
        self.assertEqual(faults, ["reference/spec/mxfp8.md: mxfp8-1.1 has no source"])

    def test_a_link_that_leads_nowhere_is_a_fault(self):
        path = "reference/spec/README.md"
        self.assertIn(f"{path}: the link formatz.md leads nowhere", self.faults_after(path, "(formats.md)", "(formatz.md)"))
        faults = self.faults_after(path, "(formats.md)", "(formats.md#formats-99)")
        self.assertIn(f"{path}: the link formats.md#formats-99 leads to no heading", faults)

    def test_an_attribute_that_the_schema_lacks_is_missed(self):
        faults = self.faults_after(SCHEMA, "`weight_block`", "`weights`")
        self.assertEqual(faults, [f"{SCHEMA} lacks weight_block, which conformance/ops/grouped_gemm.cc knows"])

    def test_a_figure_is_the_recorded_one(self):
        faults = self.faults_after("docs/measured.md", "188 recorded cases", "187 recorded cases")
        self.assertEqual(faults, ["docs/measured.md lacks '188 recorded cases', which golden/manifest.json records"])

    def test_a_file_that_a_page_names_is_there(self):
        faults = self.faults_after("docs/architecture.md", "`conformance/judge/call_runner.cc`", "`conformance/judge/call_runners.cc`")
        self.assertEqual(faults, ["docs/architecture.md names conformance/judge/call_runners.cc, which is not there"])

        faults = self.faults_after("docs/pictures/verdict.picture", "`conformance/judge/judge.cc`", "`conformance/judge.cc`")
        self.assertEqual(faults, ["docs/pictures/verdict.picture names conformance/judge.cc, which is not there"])

    def test_a_page_that_code_names_is_there(self):
        faults = self.faults_of({**self.files, "device/new.h": "// see recipes.md 4.1 and docs/measured.md"})
        self.assertEqual(faults, ["device/new.h names recipes.md, which is no page"])

    def test_a_list_of_clauses_is_read_to_its_end(self):
        text = "// spec mxfp8-1.2, mxfp8-1.3 and nopage-7.1,\n// nopage-7.2"
        faults = self.faults_of({**self.files, "device/new.h": text})
        self.assertEqual(faults, [f"device/new.h cites nopage-7.{n}, which is no clause" for n in (1, 2)])

    def test_a_fault_that_is_no_item_is_missed(self):
        faults = self.faults_of({**self.files, "device/new.h": "// fault C99; faults A1, A77 and B2"})
        self.assertEqual(faults, [f"device/new.h names the fault {i}, which is not in {FAULTS}" for i in ("A77", "C99")])
        faults = self.faults_after(FAULTS, "- **C18** ", "- C18 ")
        self.assertTrue(any(f == f"{FAULTS}: item C18 is not defined" for f in faults), faults)

    def test_a_row_of_a_table_is_that_of_the_code(self):
        path = "reference/spec/tensor-core.md"
        faults = self.faults_after(path, "| `sm90.wgmma.fp8` | 32 | 13 |", "| `sm90.wgmma.fp8` | 32 | 14 |")
        self.assertEqual(len(faults), 2, faults)
        faults = self.faults_after("reference/spec/plans.md", "`sm89.f16.chain`", "`sm89.f16.chains`")
        self.assertEqual(len(faults), 2, faults)

    def clicks_to(self, page, place, most):
        """How many links lead from the README to a heading, the last of them to the heading itself."""
        reached, seen = {README}, {README}
        for click in range(1, most + 1):
            found = set()
            for path in reached:
                for file, anchor_of in re.findall(r"\]\(([^)\s#:]*\.md)?(?:#([^)\s]+))?\)", outside_fences(self.files[path])):
                    target = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                    if (target, anchor_of) == (page, place):
                        return click
                    found.add(target)
            reached = {each for each in found - seen if each in self.files}
            seen |= reached
        return None

    def test_what_newcomers_look_up_is_two_links_away(self):
        spec = "reference/spec/"
        for page, place, most in [
                (spec + "formats.md", "formats-16-f32-to-e8m0", 2),
                (spec + "fp8-block.md", "fp8-block-21-scales-shape-order-and-padding", 2),
                (spec + "mxfp8.md", "mxfp8-21-scales-shape-order-and-padding", 2),
                (spec + "plans.md", "plans-21-cublaslt-on-sm90", 2),
                ("docs/architecture.md", "from-a-line-to-a-verdict", 1),
                ("docs/architecture.md", "adding-a-recipe", 1)]:
            with self.subTest(place):
                self.assertIn(place, {anchor(h) for h in re.findall(r"^#+ (.*)$", self.files[page], flags=re.M)})
                self.assertIsNotNone(self.clicks_to(page, place, most))
        self.assertIsNone(self.clicks_to(spec + "formats.md", "formats-99", 3))

    def test_the_hosted_checks_build_what_the_presets_build(self):
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as file:
            presets = json.load(file)["configurePresets"]
        built = {(name, value) for preset in presets if preset["name"] != "fuzz" for name, value in preset["cacheVariables"].items()}
        with open(os.path.join(ROOT, ".github", "workflows", "ci.yml"), encoding="utf-8") as file:
            workflow = file.read()
        self.assertIn("run: .ci/run --fuzz", workflow)  # which has the preset by name
        hosted = set(re.findall(r"-D(\w+)=([^\s'}]+)", workflow)) - {("ASSAY_CUDA", "OFF")}
        self.assertEqual(hosted, built - {("CMAKE_BUILD_TYPE", "Release")})
        self.assertIn("run: .ci/run", workflow)


if __name__ == "__main__":
    unittest.main()
