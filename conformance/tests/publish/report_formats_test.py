#!/usr/bin/env python3
"""What `assay report` writes: valid by the schemas of its readers, complete by counts of the result files, escaped, the same each time."""

import argparse
import collections
import hashlib
import html.parser
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
import xml.etree.ElementTree as tree

import report_runs
import schemas

HERE = os.path.dirname(os.path.realpath(__file__))
FILES = ("report.html", "summary" + ".md", "junit.xml", "ctrf.json", "kcidb.json")
program = None

HOSTILE = "<script>alert(1)</script> ]]> & \" ' | ` **x** \u202e \u0001 \\ &amp; 中"


def text_of(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Page(html.parser.HTMLParser):
    """The structure of a page: whether its elements nest, and what it refers to."""
    VOID = {"meta", "br", "wbr", "link", "img", "hr", "input"}

    def __init__(self, text):
        super().__init__()
        self.open, self.faults, self.ids, self.links, self.outside = [], [], [], [], []
        self.count, self.text = collections.Counter(), []
        self.feed(text)
        self.close()
        self.faults += [f"<{each}> is not closed" for each in self.open]

    def handle_starttag(self, tag, attributes):
        self.count[tag] += 1
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            elif name == "href" and value.startswith("#"):
                self.links.append(value[1:])
            elif name in ("href", "src", "srcset", "data", "action", "poster") or name.startswith("on"):
                self.outside.append(f"{tag} {name}={value}")
        if tag == "th" and "scope" not in dict(attributes):
            self.faults.append("a heading of a table has no scope")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.count[tag] += 1

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> at {self.getpos()} closes nothing")

    def handle_data(self, data):
        self.text.append(data)


class Report:
    """One call of `assay report`, with all that it wrote."""

    def __init__(self, out, *words):
        self.out = program.path(out)
        self.code, self.printed, self.error = program.assay("report", *words, "--out", self.out)
        self.files = {name: text_of(os.path.join(self.out, name)) for name in FILES} if os.path.isdir(self.out) else {}
        if self.files:
            self.junit = tree.fromstring(self.files["junit.xml"].encode())
            self.ctrf, self.kcidb = json.loads(self.files["ctrf.json"]), json.loads(self.files["kcidb.json"])
            self.page = Page(self.files["report.html"])


class Reports(unittest.TestCase):
    maxDiff = 2000

    def expect_valid(self, report):
        self.assertEqual(schemas.faults(report.ctrf, schemas.CTRF)[:5], [])
        self.assertEqual(schemas.faults(report.kcidb, schemas.KCIDB)[:5], [])
        page = report.page
        self.assertEqual(page.faults[:5], [])
        self.assertEqual(page.outside, [], "the page refers to something outside")
        self.assertEqual(page.count["script"], 0)
        self.assertEqual(sorted(page.ids), sorted(set(page.ids)), "an id is there twice")
        self.assertEqual(set(page.links) - set(page.ids), set(), "a link leads nowhere")
        if shutil.which("xmllint") is None:
            print("note: no xmllint here, JUnit is not checked by its schemas", file=sys.stderr)
            return
        for schema in ("junit_ant.xsd", "junit_jenkins.xsd"):
            done = subprocess.run(["xmllint", "--noout", "--schema", os.path.join(HERE, schema), os.path.join(report.out, "junit.xml")],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[:2000])

    def expect_counts(self, report, cases):
        """Each case in each format, with the state that the result file says."""
        states = collections.Counter(report_runs.state_of(each) for each in cases.values())
        of_junit = collections.Counter()
        names = []
        for suite in report.junit.iter("testsuite"):
            children = collections.Counter(child.tag for case in suite.iter("testcase") for child in case)
            self.assertEqual(int(suite.get("tests")), len(suite.findall("testcase")))
            for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
                self.assertEqual(int(suite.get(attribute)), children[tag], suite.get("name"))
            if suite.get("package") == "assay.run":
                continue
            for case in suite.iter("testcase"):
                names.append((case.get("classname"), case.get("name")))
                of_junit[case[0].tag if len(case) else "passed"] += 1
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), len(cases))
        failing = ("failed", "flaky", "skip without proof", "waiver expired", "waiver passes")
        self.assertEqual(of_junit["passed"], states["passed"])
        self.assertEqual(of_junit["failure"], sum(states[each] for each in failing))
        self.assertEqual(of_junit["skipped"], states["not run"] + states["waived"])
        self.assertEqual(of_junit["error"], sum(states[each] for each in ("unfinished", "not tried", "machine failed")))

        summary, tests = report.ctrf["results"]["summary"], report.ctrf["results"]["tests"]
        of_ctrf = collections.Counter(each["status"] for each in tests)
        for status in ("passed", "failed", "skipped", "pending", "other"):
            self.assertEqual(summary[status], of_ctrf[status], status)
        self.assertEqual(summary["passed"], states["passed"])
        self.assertEqual(summary["skipped"], states["not run"])
        self.assertEqual(summary["other"], states["waived"])
        self.assertEqual(summary["flaky"], states["flaky"])
        self.assertEqual(collections.Counter(each["name"] for each in tests if each["suite"] != ["run"]),
                         collections.Counter(report_runs.title_of(each) for each in cases.values()))

        verdicts = collections.Counter(each["verdict"] for each in cases.values())
        of_kcidb = collections.Counter(each["status"] for each in report.kcidb["tests"])
        self.assertEqual(of_kcidb["PASS"], verdicts["passed"])
        self.assertEqual(of_kcidb["SKIP"], verdicts["not run"])
        self.assertEqual(of_kcidb["FAIL"], verdicts["failed"] + verdicts["flaky"] + verdicts["skip without proof"])
        builds = {each["id"] for each in report.kcidb["builds"]}
        self.assertTrue(all(each["build_id"] in builds for each in report.kcidb["tests"]))
        self.assertEqual(len({each["id"] for each in report.kcidb["tests"]}), len(cases))

        shown = [each for each in cases.values() if each["verdict"] not in ("passed", "not run") and
                 report_runs.state_of(each) not in ("waived", "waiver expired")]
        self.assertEqual(report.files["report.html"].count('<details class="failure"'), len(shown))
        self.assertEqual(report.files["summary" + ".md"].count("<details><summary>"), len(shown))
        findings = [finding for each in shown for finding in each.get("findings", [])]
        self.assertEqual(report.files["report.html"].count('<figure class="map">'), sum(len(each.get("maps", [])) for each in findings))
        self.assertEqual(report.files["report.html"].count('<figure class="ulp">'), sum("ulp" in each for each in findings))
        whole = "".join(report.page.text)
        for each in shown:
            self.assertIn(report_runs.title_of(each), whole)

    def test_of_failures(self):
        results = program.path("turned.jsonl")
        self.assertEqual(program.run("turned.jsonl", "turned=rowwise_scale_inv"), 1)
        report = Report("turned", results)
        self.assertEqual((report.code, report.printed), (1, "FAIL: exit 1 (failed)\n"))
        self.expect_valid(report)
        cases = report_runs.cases_of(results)
        self.expect_counts(report, cases)
        texts = [child.text for case in report.junit.iter("testcase") for child in case if child.tag == "failure"]
        failed = [each for each in cases.values() if each["verdict"] == "failed"]
        self.assertGreater(len(failed), 100)
        for each in failed:
            self.assertIn(each["text"] + "\n\nfingerprint " + each["fingerprint"], texts)
            for finding in each["findings"]:  # a map and a histogram count every wrong element
                if "ulp" in finding:
                    ulp = finding["ulp"]
                    self.assertEqual(sum(ulp["buckets"]) + ulp["zero_sign"] + ulp["special"], finding["wrong"])
                for a_map in finding["maps"]:
                    self.assertTrue(any(letter != "." for line in a_map["wrong"] for letter in line))

    def test_of_one_wrong_byte(self):
        """The map of a changed first byte has one cell, with the share that its one wrong element is."""
        program.run("wrong.jsonl", "wrong", "quantize")
        seen = 0
        for each in report_runs.cases_of(program.path("wrong.jsonl")).values():
            for finding in each.get("findings", []):
                if finding["kind"] != "bits" or finding["wrong"] != 1 or finding["first"]["element"] != 0:
                    continue
                if finding["where"] == "beyond the splits":  # no group has this byte, and maps are of groups
                    self.assertNotIn("maps", finding)
                    continue
                seen += 1
                self.assertEqual(len(finding["maps"]), 1)
                a_map = finding["maps"][0]
                cells = [(r, c, letter) for r, line in enumerate(a_map["wrong"]) for c, letter in enumerate(line) if letter != "."]
                elements = min(a_map["cell"][0], a_map["shape"][0]) * min(a_map["cell"][1], a_map["shape"][1])
                self.assertEqual(cells, [(0, 0, str(-(-9 // elements)))], each["name"])
        self.assertGreater(seen, 50)

    def test_of_absences_which_are_skipped_with_their_proof(self):
        self.assertEqual(program.run("absent.jsonl", "absent=swizzle"), 0)
        report = Report("absent", program.path("absent.jsonl"))
        self.assertEqual(report.code, 0)
        self.assertTrue(report.printed.startswith("PASS (partial: "))
        self.expect_valid(report)
        self.expect_counts(report, report_runs.cases_of(program.path("absent.jsonl")))
        skipped = [child for case in report.junit.iter("testcase") for child in case if child.tag == "skipped"]
        self.assertGreater(len(skipped), 30)
        for each in skipped:
            self.assertEqual(each.get("message"), "absent: absent; proof: the call was made, returned NOT_SUPPORTED and changed no "
                                                  "memory, over two different contents of it")

    def test_of_flaky_cases_which_are_failures(self):
        code = program.run("flaky.jsonl", "once=" + program.path("flaky_seen"), "splits_to_offsets", "--retries", "1")
        self.assertEqual(code, 1)
        report = Report("flaky", program.path("flaky.jsonl"))
        self.assertEqual(report.code, 1)
        self.expect_valid(report)
        self.expect_counts(report, report_runs.cases_of(program.path("flaky.jsonl")))
        flaky = [each for each in report.ctrf["results"]["tests"] if each.get("flaky")]
        self.assertEqual([(each["status"], each["retries"]) for each in flaky], [("failed", 1)])
        types = [child.get("type") for case in report.junit.iter("testcase") for child in case]
        self.assertEqual(types, ["flaky"])
        # A case of a fixture is judged again too.
        self.assertEqual(program.run("recorded.jsonl", "once=" + program.path("recorded_seen"), "offsets.h5", "--retries", "1"), 1)
        flaky = [each for each in report_runs.cases_of(program.path("recorded.jsonl")).values() if each["verdict"] == "flaky"]
        self.assertEqual([(each["suite"], len(each["tries"])) for each in flaky], [("offsets.h5", 2)])

    def test_of_waivers(self):
        if "built without toml++" in program.assay("run", "--backend", "reference", "--profile", "smoke", "--waivers", "none.toml")[2]:
            self.skipTest("this program was built without toml++, which reads waivers")
        results, drafts = program.path("some.jsonl"), program.path("drafts.toml")
        self.assertEqual(program.run("some.jsonl", "turned=rowwise_scale_inv", "quantize", "recipe=block_1x128"), 1)
        self.assertEqual(program.assay("report", results, "--write-waivers", drafts)[0], 1)
        self.assertEqual(program.assay("report", results, "--write-waivers", drafts)[0], 2, "it is there")
        draft = text_of(drafts)
        filled = draft.replace('reason = ""', 'reason = "rows < columns"').replace('link = ""', 'link = "https://example.com/1?a&b"')
        filled = filled.replace('owner = ""', 'owner = "kernels"')
        for name, day, code in (("held", "2999-12-31", 0), ("over", "2020-01-01", 7)):
            path = program.path(name + ".toml")
            with open(path, "w", encoding="utf-8") as file:
                file.write(filled.replace('expires = ""', "expires = " + day))
            report = Report(name, results, "--waivers", path)
            self.assertEqual(report.code, code, report.printed + report.error)
            self.expect_valid(report)
            # The same verdicts by a run with these waivers.
            self.assertEqual(program.run(name + ".jsonl", "turned=rowwise_scale_inv", "quantize", "recipe=block_1x128", "--waivers",
                                         path), code)
            cases = report_runs.cases_of(program.path(name + ".jsonl"))
            self.expect_counts(report, cases)
            self.expect_counts(Report(name + "_recorded", program.path(name + ".jsonl")), cases)
            incidents = report.kcidb["incidents"]
            self.assertEqual(len(incidents), sum(each["verdict"] == "failed" for each in cases.values()))
            self.assertEqual({each["issue_id"] for each in incidents}, {each["id"] for each in report.kcidb["issues"]})
            self.assertEqual(report.kcidb["issues"][0]["report_url"], "https://example.com/1?a&b")
        self.assertEqual(program.run("sound.jsonl", "none", "quantize", "recipe=block_1x128"), 0)
        passing = Report("passing", program.path("sound.jsonl"), "--waivers", program.path("held.toml"))
        self.assertEqual(passing.code, 7)
        self.expect_valid(passing)
        types = {child.get("type") for case in passing.junit.iter("testcase") for child in case}
        self.assertEqual(types, {"waiver out of date"})

    def test_of_shards_is_that_of_the_whole_run(self):
        words = ("quantize", "recipe=block_1x128")
        self.assertEqual(program.run("whole.jsonl", "turned=rowwise_scale_inv", *words), 1)
        parts = [f"part{i}.jsonl" for i in range(3)]
        for i, part in enumerate(parts):
            program.run(part, "turned=rowwise_scale_inv", *words, "--shard", f"{i}/3")
        whole = Report("whole", program.path("whole.jsonl"))
        joined = Report("joined", *map(program.path, parts))
        for report in (whole, joined):
            self.expect_counts(report, report_runs.cases_of(program.path("whole.jsonl")))
        # In any order, and given twice: the same bytes.
        for number, order in enumerate(itertools.permutations(parts)):
            again = Report(f"again{number}", *map(program.path, order))
            self.assertEqual({k: v for k, v in again.files.items()}, joined.files)
        twice = Report("twice", *map(program.path, parts + parts))
        self.assertEqual(twice.files["junit.xml"], joined.files["junit.xml"])
        # Of two implementations the names stay apart.
        self.assertEqual(program.run("other.jsonl", "none", *words), 0)
        both = Report("both", program.path("whole.jsonl"), program.path("other.jsonl"))
        self.expect_valid(both)
        self.assertEqual(len(both.kcidb["builds"]), 2)
        names = [(case.get("classname"), case.get("name")) for case in both.junit.iter("testcase")]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), 2 * len(report_runs.cases_of(program.path("other.jsonl"))))

    def test_of_two_runs_the_newer_verdict_counts(self):
        fault = "once=" + program.path("twice_seen")
        self.assertEqual(program.run("older.jsonl", fault, "splits_to_offsets"), 1)
        time.sleep(1.1)  # dates have seconds
        self.assertEqual(program.run("newer.jsonl", fault, "splits_to_offsets"), 0)
        paths = [program.path("newer.jsonl"), program.path("older.jsonl")]
        report = Report("two", *paths)
        self.assertEqual(report.code, 0, report.printed)
        self.expect_counts(report, report_runs.cases_of(paths[1], paths[0]))
        self.assertIn("replaces: ", "".join(report.page.text))

    def test_of_a_run_that_did_not_end(self):
        program.run("whole2.jsonl", "none", "splits_to_offsets")
        lines = text_of(program.path("whole2.jsonl")).splitlines(keepends=True)
        with open(program.path("cut.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines[:-1])
        report = Report("cut", program.path("cut.jsonl"))
        self.assertEqual(report.code, 5)
        self.expect_valid(report)
        self.expect_counts(report, report_runs.cases_of(program.path("cut.jsonl")))
        faults = [case.get("name") for case in report.junit.iter("testcase") if case.get("classname") == "assay.run"]
        self.assertEqual(faults, ["cut.jsonl"])
        os.mkdir(program.path("other"))
        with open(program.path("other/cut.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines[:-2])
        two = Report("two_cut", program.path("cut.jsonl"), program.path("other/cut.jsonl"))
        self.expect_valid(two)
        faults = [case.get("name") for case in two.junit.iter("testcase") if case.get("classname") == "assay.run"]
        self.assertEqual(faults, ["cut.jsonl", "cut.jsonl (2)"])
        with open(program.path("damaged.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(lines[:-2] + ["no JSON\n"] + lines[-2:])
        damaged = Report("damaged", program.path("damaged.jsonl"))
        self.assertEqual((damaged.code, damaged.printed, damaged.files), (3, "", {}))
        self.assertEqual(program.assay("report", program.path("whole2.jsonl"))[0], 2, "nothing to write")

    def test_of_hostile_texts(self):
        program.run("plain.jsonl", "wrong", "splits_to_offsets")
        entries = [json.loads(line) for line in text_of(program.path("plain.jsonl")).splitlines()]
        for entry in entries:
            entry.pop("chain", None)
            if entry["record"] == "header":
                entry["backend"].update(software=HOSTILE, device=HOSTILE, options=HOSTILE)
                entry["host"]["name"] = HOSTILE
            elif entry["record"] == "case":
                entry["name"] += HOSTILE
                if entry["verdict"] == "failed":
                    entry["text"] += "\n" + HOSTILE
                    entry["recipe"] = HOSTILE
                    entry["findings"][0].update(output=HOSTILE, where=HOSTILE, hints=[HOSTILE])
                    entry["findings"][0]["first"]["place"] = HOSTILE
        with open(program.path("hostile.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        report = Report("hostile", program.path("hostile.jsonl"))
        self.assertEqual(report.code, 1, report.error)
        self.expect_valid(report)
        outside_of_blocks = re.sub(r"^(```+)text$.*?^\1$", "", report.files["summary" + ".md"], flags=re.S | re.M)
        for text in (report.files["report.html"], outside_of_blocks):
            self.assertFalse("<script" in text)
        for text in report.files.values():
            self.assertFalse("\u202e" in text and "ctrf" not in text[:200].lower())
        shown = HOSTILE.replace("\u202e", "\ufffd").replace("\u0001", "\ufffd")
        self.assertIn(shown, "".join(report.page.text))

    def test_of_earlier_versions(self):
        """A file without fingerprints, maps and digests is still read."""
        program.run("new.jsonl", "wrong", "splits_to_offsets")
        entries = [json.loads(line) for line in text_of(program.path("new.jsonl")).splitlines()]
        for entry in entries:
            for name in ("fingerprint", "chain"):
                entry.pop(name, None)
            for finding in entry.get("findings", []):
                for name in ("digest", "maps", "ulp"):
                    finding.pop(name, None)
            for name in ("flaky", "waived"):
                entry.get("counts", {}).pop(name, None)
        with open(program.path("old.jsonl"), "w", encoding="utf-8") as file:
            file.writelines(json.dumps(entry) + "\n" for entry in entries)
        report = Report("old", program.path("old.jsonl"))
        self.assertEqual(report.code, 1, report.error)
        self.expect_valid(report)
        self.expect_counts(report, report_runs.cases_of(program.path("old.jsonl")))

    def test_of_the_badge(self):
        program.run("badge.jsonl", "wrong", "splits_to_offsets")
        badge = program.path("badge.svg")
        self.assertEqual(program.assay("report", program.path("badge.jsonl"), "--badge", badge)[0], 1)
        states = collections.Counter(each["verdict"] for each in report_runs.cases_of(program.path("badge.jsonl")).values())
        drawn = tree.fromstring(text_of(badge))
        self.assertEqual(drawn.get("aria-label"), f"assay: FAIL: {states['passed']} passed, {states['failed']} failed")


class Digests(unittest.TestCase):
    """--check, against digests that Python computes."""

    def expect(self, lines, code, text):
        path = program.path("checked.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(lines)
        found = program.assay("report", "--check", path)
        self.assertEqual(found[0], code, found)
        self.assertIn(text, found[1] + found[2])

    def test_every_change_of_a_file_is_found(self):
        program.run("chain.jsonl", "wrong", "splits_to_offsets")
        lines = text_of(program.path("chain.jsonl")).splitlines(keepends=True)
        chain = ""
        for line in lines:
            body, said = re.fullmatch(r'(.*),"chain":"([0-9a-f]{64})"\}\n', line).groups()
            chain = hashlib.sha256((chain + body + "}").encode()).hexdigest()
            self.assertEqual(said, chain)
        self.assertGreater(len(lines), 5)
        self.expect(lines, 0, f"sound: {len(lines) - 2} verdicts, digest {chain}")
        self.expect([line.replace('"verdict":"failed"', '"verdict":"passed"') if i == 3 else line for i, line in enumerate(lines)], 3,
                    "checked.jsonl: line 4: was changed")
        self.expect(lines[:2] + lines[3:], 3, "line 3: was changed, or lines before it were removed")
        self.expect(lines[:2] + [lines[3], lines[2]] + lines[4:], 3, "line 3: ")
        self.expect(lines[:3] + lines[2:], 3, "line 4: ")
        self.expect(lines[1:], 3, "line 1: was changed")
        self.expect(lines[:3] + [lines[3][:-80] + "}\n"] + lines[4:], 3, "line 4: was changed or added: it has no digest")
        self.expect(lines[:-1], 5, "is the last, and no summary")
        self.expect(lines[:-1] + [lines[-1][:-10]], 5, "was cut off")
        self.expect([re.sub(',"chain":"[0-9a-f]*"', "", line) for line in lines], 3, "has no digests: it is of an earlier version")
        self.expect(["{}\n"], 3, "")
        self.expect(["no JSON\n"], 3, "line 1: is not a header")
        # A run that goes on continues the chain, also behind a line that was cut off.
        resumed = program.path("resumed.jsonl")
        with open(resumed, "w", encoding="utf-8") as file:
            file.writelines(lines[:4] + [lines[4][:20]])
        program.run("resumed.jsonl", "wrong", "splits_to_offsets", "--resume", resumed)
        self.assertEqual(program.assay("report", "--check", resumed)[0], 0)
        self.assertEqual(text_of(resumed).splitlines(keepends=True)[:4], lines[:4])

    def test_of_a_report(self):
        path = program.path("report.json")
        program.run("any.jsonl", "wrong", "splits_to_offsets", "--json", path)
        self.assertEqual(program.assay("report", "--check", path)[0], 0)
        report = json.loads(text_of(path))
        said = report.pop("sha256")
        line = json.dumps(report, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
        self.assertIn("sound: ", program.assay("report", "--check", path)[1])
        self.assertEqual(len(said), 64)
        self.assertEqual(report["counts"], json.loads(line)["counts"])
        for number in range(3):
            changed = json.loads(text_of(path))
            changed["cases"][number]["verdict"] = "not run"
            with open(program.path("changed.json"), "w", encoding="utf-8") as file:
                json.dump(changed, file)
            code, out, _ = program.assay("report", "--check", path, program.path("changed.json"))
            self.assertEqual(code, 3)
            self.assertIn("changed.json: was changed: ", out)
        self.assertEqual(program.assay("report", "--check", path, "--out", program.path("x"))[0], 2)


class TheChecks(unittest.TestCase):
    """A check that finds nothing in what is wrong would prove nothing."""

    def test_find_what_is_wrong(self):
        good = {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": {
            "tool": {"name": "a"}, "summary": dict.fromkeys(
                ("tests", "passed", "failed", "skipped", "pending", "other", "start", "stop"), 0),
            "tests": [{"name": "a", "status": "passed", "duration": 1}]}}
        self.assertEqual(schemas.faults(good, schemas.CTRF), [])
        for change in ({"status": "good"}, {"duration": 1.5}, {"more": 1}, {"suite": []}, {"name": ""}):
            bad = json.loads(json.dumps(good))
            bad["results"]["tests"][0].update(change)
            self.assertEqual(len(schemas.faults(bad, schemas.CTRF)), 1, change)
        self.assertEqual(len(schemas.faults({"version": {"major": 4, "minor": 3}}, schemas.KCIDB)), 1)
        self.assertNotEqual(Page("<p><b></p>").faults, [])
        self.assertNotEqual(Page('<img src="https://a/b.png">').outside, [])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True)
    parser.add_argument("--faulty", required=True)
    known, rest = parser.parse_known_args()
    program = report_runs.Program(known.program, known.faulty)
    unittest.main(argv=[sys.argv[0], *rest])
