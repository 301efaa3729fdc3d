"""The pytest plug-in, run as a user runs it."""

import pathlib
import re
import subprocess
import sys

import pytest

TEST = """
import assay

@assay.cases("splits_to_offsets splits", profile="smoke")
def test_offsets(case):
    def offsets(t):
        row = 0
        t.out.offsets[0] = 0
        for i, rows in enumerate(t.splits):
            row += int(rows) * int(t.get("stride", 1))
            t.out.offsets[i + 1] = row
        if WRONG in case:
            t.out.offsets[-1] += 1
    if case.startswith("splits_to_offsets splits"):
        assay.check(offsets, case).raise_on_failure()
"""


@pytest.fixture
def run(tmp_path):
    def run_pytest(*arguments, wrong="no such word"):
        (tmp_path / "test_mine.py").write_text(TEST.replace("WRONG", repr(wrong)))
        made = subprocess.run([sys.executable, "-m", "pytest", "-q", "-rA", *arguments], cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return made.returncode, made.stdout

    run_pytest.folder = tmp_path
    return run_pytest


def items(output):
    return re.findall(r"^(?:PASSED|FAILED|XFAIL) (\S+\[[^\]]+\])", output, re.M)


def test_an_item_a_line(run):
    code, said = run()
    assert code == 0, said
    found = items(said)
    assert len(found) >= 2 and all("[splits_to_offsets" in each for each in found)
    one = re.search(r"\[(.*)\]", found[0])[1]
    code, said = run("test_mine.py::test_offsets[" + one + "]")
    assert code == 0 and len(items(said)) == 1


def test_a_failure_has_its_text_and_lf_finds_it_again(run):
    first = re.search(r"\[(.*)\]", items(run()[1])[0])[1]
    code, said = run(wrong=first)
    assert code == 1 and "CheckFailed: FAILED  splits_to_offsets" in said and "first   index" in said, said
    code, said = run("--lf", wrong=first)
    assert code == 1 and len(items(said)) == 1


def test_shards_and_profiles(run):
    whole = set(items(run()[1]))
    parts = [set(items(run("--assay-shard", f"{i}/2")[1])) for i in range(2)]
    assert parts[0] | parts[1] == whole and not parts[0] & parts[1]
    assert len(items(run("--assay-profile", "standard")[1])) > len(whole)
    code, said = run("--assay-shard", "2/2")
    assert code == 4 and "--assay-shard 2/2: expected I/N" in said


def test_xdist(run):
    pytest.importorskip("xdist")
    code, said = run("-n", "2")
    assert code == 0, said


def test_expected_failures(run):
    line = re.search(r"\[(.*)\]", items(run()[1])[0])[1]
    expected = run.folder / "expected.txt"
    link = "https://example.org/issues/12"
    expected.write_text(f"# known\n2999-12-31 {link} {line}\n")
    code, said = run("--assay-expected", "expected.txt", wrong=line)
    assert code == 0 and link in said and "1 xfailed" in said, said
    code, said = run("--assay-expected", "expected.txt")
    assert code == 1 and "XPASS(strict)" in said, said
    expected.write_text(f"2020-01-31 {link} {line}\n")
    code, said = run("--assay-expected", "expected.txt", wrong=line)
    assert code == 1 and "expected.txt:1: this failure was expected until 2020-01-31" in said, said
    expected.write_text(f"2999-12-31 {link} no_such_case\n")
    assert "expected.txt:1: no case matches 'no_such_case'" in run("--assay-expected", "expected.txt")[1]
    for bad, why in (("soon https://example.org x", "UNTIL is 'soon'"), ("2999-12-31 x", "expected UNTIL LINK WORDS")):
        expected.write_text(bad)
        code, said = run("--assay-expected", "expected.txt")
        assert code == 4 and f"expected.txt:1: {why}" in said or why in said


def test_a_word_that_no_case_has(run):
    path = pathlib.Path(run.folder) / "test_other.py"
    path.write_text("import assay\n@assay.cases('no_such_word')\ndef test_it(case):\n    pass\n")
    code, said = run("test_other.py")
    assert code != 0 and "no_such_word" in said
