"""The pytest plug-in: an item a case line.

    @assay.cases("grouped_gemm kind=fp8_block", profile="standard")
    def test_mine(case):
        assay.check(fn, case, bind=...).raise_on_failure()

    --assay-profile NAME       smoke, standard or full for every such test
    --assay-shard I/N          one of N parts of equal work, counted from 0
    --assay-expected FILE      failures that are expected: a line each,

        UNTIL LINK WORDS       2027-03-31 https://example.org/issues/12 grouped_gemm kind=mxfp8

A case which every word matches is then expected to fail until that day, its last: it is an error where it passes. After the day the
failure counts, and says that the entry has run out. "#" begins a comment.
"""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
from typing import Any, Iterator

import pytest

from . import _assay


@dataclasses.dataclass
class Expected:
    """An expected failure."""

    place: str
    until: datetime.date
    link: str
    words: list[str]
    matched: bool = False

    def covers(self, line: str) -> bool:
        """True where every word is part of the line, as words of a selection are."""
        return all(word in line for word in self.words)

    @property
    def has_run_out(self) -> bool:
        return datetime.date.today() > self.until


def read_expected(path: str) -> list[Expected]:
    """The entries of a file. Raises pytest.UsageError, with file and line, for a line that is none."""
    entries = []
    try:
        text = pathlib.Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise pytest.UsageError(f"--assay-expected {path}: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split() if not line.strip().startswith("#") else []
        if not words:
            continue
        place = f"{path}:{number}"
        if len(words) < 3 or "://" not in words[1]:
            raise pytest.UsageError(f"{place}: '{line.strip()}': expected UNTIL LINK WORDS, such as "
                                    f"2027-03-31 https://example.org/issues/12 grouped_gemm kind=mxfp8")
        try:
            until = datetime.date.fromisoformat(words[0])
        except ValueError:
            raise pytest.UsageError(f"{place}: UNTIL is '{words[0]}': expected a day as YYYY-MM-DD") from None
        entries.append(Expected(place, until, words[1], words[2:]))
    return entries


def shard_of(text: str) -> tuple[int, int]:
    """Index and total of "I/N". Raises pytest.UsageError."""
    index, slash, total = text.partition("/")
    if not (slash and index.isdecimal() and total.isdecimal() and int(index) < int(total)):
        raise pytest.UsageError(f"--assay-shard {text}: expected I/N with I from 0 to N-1")
    return int(index), int(total)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("assay", "cases of the conformance suite Assay")
    group.addoption("--assay-profile", choices=["smoke", "standard", "full"], help="the cases of this profile, in every test with "
                    "@assay.cases")
    group.addoption("--assay-shard", metavar="I/N", help="one of N parts of equal work of each such test, counted from 0")
    group.addoption("--assay-expected", metavar="FILE", action="append", default=[],
                    help="failures that are expected, a line each: UNTIL LINK WORDS")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "assay_cases(cases): an item for each case line; @assay.cases(...) sets it")
    config.addinivalue_line("markers", "assay_run_out(entry): an expected failure whose last day is over")
    shard = config.getoption("--assay-shard")
    config.stash[_SHARD] = shard_of(shard) if shard else (0, 1)
    config.stash[_EXPECTED] = [entry for path in config.getoption("--assay-expected") for entry in read_expected(path)]


_SHARD = pytest.StashKey[tuple[int, int]]()
_EXPECTED = pytest.StashKey[list[Expected]]()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    mark = metafunc.definition.get_closest_marker("assay_cases")
    if mark is None:
        return
    if "case" not in metafunc.fixturenames:
        raise pytest.UsageError(f"{metafunc.definition.nodeid} has @assay.cases, but no argument 'case'")
    config = metafunc.config
    try:
        lines = mark.args[0].of_profile(config.getoption("--assay-profile"))
    except ValueError as error:
        raise pytest.UsageError(f"{metafunc.definition.nodeid}: {error}") from error
    index, total = config.stash[_SHARD]
    if total > 1:
        lines = _assay.shard(lines, index, total)
    expected = config.stash[_EXPECTED]
    metafunc.parametrize("case", [pytest.param(line, id=line, marks=list(_marks(expected, line))) for line in lines])


def _marks(expected: list[Expected], line: str) -> Iterator[Any]:
    for entry in expected:
        if not entry.covers(line):
            continue
        entry.matched = True
        if entry.has_run_out:
            yield pytest.mark.assay_run_out(entry)
        else:
            yield pytest.mark.xfail(reason=f"expected until {entry.until}: {entry.link}", strict=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    mark = item.get_closest_marker("assay_run_out")
    if mark is not None and report.when == "call" and report.failed:
        entry = mark.args[0]
        report.sections.append(("assay", f"{entry.place}: this failure was expected until {entry.until}: {entry.link}"))
    return report


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if hasattr(config, "workerinput"):
        return
    for entry in config.stash.get(_EXPECTED, []):
        if not entry.matched and config.getoption("numprocesses", None) in (None, 0):
            terminalreporter.write_line(f"{entry.place}: no case matches '{' '.join(entry.words)}'", yellow=True)
