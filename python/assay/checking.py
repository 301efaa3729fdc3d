"""`assay.check`: a function judged by the conformance suite."""

from __future__ import annotations

import collections
import dataclasses
import json
from typing import Any, Callable, Iterable

from . import _assay, _lines
from ._backend import FunctionBackend
from .kernel import Kernel
from .memory import Memory, memory_named
from .tensors import Tensors


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the suite says about one case.

    Attributes:
        line: the case.
        verdict: "passed", "failed", "not run" (the function raised NotImplementedError and changed no memory), "skip without proof" (it
            raised it, but changed memory), "unfinished", "machine failed".
        ground: of a pass, "bits", "order-free bits" (any order of summation gives them) or "bound" (each element lies within its
            computed interval); never more than was checked.
        text: why it failed or was not run, several lines.
        elements: compared elements.
        findings: the failure as data: output, place, got, want, hints.
        way: how the case was judged, if not as the line says.
        trace: the traceback of an exception of the function.
    """

    line: str
    verdict: str
    ground: str
    text: str
    elements: int
    findings: tuple[dict[str, Any], ...]
    way: str
    trace: str
    seconds: float

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"

    @property
    def hints(self) -> list[str]:
        """What the wrong elements look like."""
        return [hint for finding in self.findings for hint in finding.get("hints", [])]

    def __str__(self) -> str:
        if self.passed:
            return f"passed by {self.ground}: {self.line}: {self.elements} elements" + (f"; {self.way}" if self.way else "")
        if self.verdict == "not run":
            return f"not run: {self.line}: {self.text}"
        return self.text + ("\n  raised  " + self.trace.strip().replace("\n", "\n          ") if self.trace else "")


class CheckFailed(AssertionError):
    """A function did not pass: the text of each failure as `assay run` prints it."""


class Result:
    """The verdicts on a function. `print(result)` shows the failures, or what the pass rests on."""

    def __init__(self, title: str, verdicts: list[Verdict], left_out: int = 0):
        self.title = title
        self.verdicts = verdicts
        self.left_out = left_out

    @property
    def failures(self) -> list[Verdict]:
        """Verdicts other than passed and not run."""
        return [each for each in self.verdicts if each.verdict not in ("passed", "not run")]

    @property
    def passed(self) -> bool:
        """True where a case passed and none failed. That the function lacks cases is no failure; `absent` has them."""
        return not self.failures and any(each.passed for each in self.verdicts)

    @property
    def absent(self) -> list[Verdict]:
        """Verdicts "not run"."""
        return [each for each in self.verdicts if each.verdict == "not run"]

    def raise_on_failure(self) -> None:
        """Raises CheckFailed unless `passed`."""
        if not self.passed:
            raise CheckFailed(str(self))

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        shown = self.failures[:5]
        lines = [str(each) for each in shown]
        if len(self.failures) > len(shown):
            lines.append(f"and {len(self.failures) - len(shown)} more failures")
        grounds = collections.Counter(each.ground for each in self.verdicts if each.passed)
        elements = sum(each.elements for each in self.verdicts if each.passed)
        if grounds:
            by = ", ".join(f"{ground} {count}" if len(grounds) > 1 else ground for ground, count in grounds.items())
            count = sum(grounds.values())
            ways = {each.way for each in self.verdicts if each.passed and each.way}
            lines.append(f"{'PASS' if self.passed else 'passed'}, by {by}: {self.title}, {_cases(count)}, {elements} elements compared over "
                         f"two poisons" + "".join(f"; {way}" for way in sorted(ways)))
        for why, count in collections.Counter(each.text for each in self.absent).items():
            lines.append(f"not run, {_cases(count)}: {why}")
        if self.left_out:
            lines.append(f"left out, {_cases(self.left_out)}: calls that are made wrong on purpose, and scenarios of several calls, which "
                         f"are for backends")
        if self.failures:
            lines.append(f"FAIL: {self.title}, {len(self.failures)} of {_cases(len(self.verdicts))} failed")
        elif not grounds:
            lines.append(f"FAIL: {self.title}, no case was judged")
        return "\n".join(lines)

    __repr__ = __str__


def _cases(count: int) -> str:
    return f"{count} case{'' if count == 1 else 's'}"


def _is_for_backends(line: str) -> bool:
    op, keys = _lines.words_of(line)
    return op == "scenario" or keys.get("contract") == "1" or "fault" in keys


def lines_of(selection: str | Iterable[str] | None, profile: str | None, where: str | None) -> tuple[list[str], int]:
    """The case lines of a selection, and how many were left out since only a backend can be asked for them."""
    if profile is None and where is None:
        if selection is None:
            raise ValueError("no case is selected: expected a case line, or profile= with words")
        lines = [selection] if isinstance(selection, str) else list(selection)
        return [_lines.canonical(each) for each in lines], 0
    selected = _lines.selected(selection or [], profile or "standard", where)
    kept = [each for each in selected if not _is_for_backends(each)]
    return kept, len(selected) - len(kept)


def check(fn: Callable[..., Any] | Kernel, selection: str | Iterable[str] | None = None, *, profile: str | None = None,
          where: str | None = None, bind: Callable[[Tensors], Any] | None = None, memory: str | Memory | None = None,
          plan: str | Callable[[Tensors], str | None] | None = None, unit: str | None = None, deterministic: bool | None = None,
          batch_invariant: bool | None = None, keeps_zero_sign: bool | None = None, runs: int = 1, graphs: bool = True,
          timeout_s: int = 60, explain: bool = True) -> Result:
    """Judges a function, bit by bit.

    Each case is called twice at least, over outputs of NaN and of 0xA5 bytes, in memory of `memory` with guard bytes around every
    tensor; inputs, padding and guards must stay as they are. Cases with replay= are captured into a CUDA graph and replayed with
    changed contents where the memory can capture, else called again with changed contents. Some cases are repeated on two streams.
    Before all that the function is called once on copies of the tensors, unless `Kernel.supports` says what it has.

    Args:
        fn: the function, or a `Kernel`, which holds fn, bind, plan, unit and what is promised.
        selection: a case line, several, or with `profile` words that select cases.
        profile: "smoke", "standard" or "full": the cases of the catalogue which every word of selection and `where` matches.
        where: further words.
        bind, plan, unit, deterministic, batch_invariant, keeps_zero_sign: see `Kernel`.
        memory: "numpy" (without one), "torch", "torch:DEVICE", "cupy", "jax", or a `Memory`: the arrays that the function gets.
        runs: how often each case is judged.
        graphs: False: nothing is captured.
        timeout_s: of a wait for the device. The function itself runs in this process and is not interrupted.
        explain: search for the cause of a difference.

    Returns:
        A Result: `.passed`, `.verdicts`, `.raise_on_failure()`.

    Raises:
        ValueError: a line, a word or an option that makes no sense. The function's own exceptions are verdicts.
    """
    lines, left_out = lines_of(selection, profile, where)
    if runs < 1:
        raise ValueError(f"runs is {runs}: expected at least 1")
    kernel = fn if isinstance(fn, Kernel) else Kernel(fn)
    given: dict[str, Any] = {"bind": bind, "plan": plan, "unit": unit, "deterministic": deterministic, "batch_invariant": batch_invariant,
             "keeps_zero_sign": keeps_zero_sign}
    given["memory"] = memory
    kernel = dataclasses.replace(kernel, **{name: value for name, value in given.items() if value is not None})
    memory = memory_named(kernel.memory)
    session, verdicts = None, []
    for line in lines:
        if session is None:
            backend = FunctionBackend(kernel, memory)
            backend.can_capture = backend.can_capture and graphs
            session = _assay.Session(backend, timeout_s, explain, f"assay.check({kernel.title}, '{{line}}', ...)")
        verdicts.append(_judged(session, backend, line, runs))
        if verdicts[-1].verdict in ("unfinished", "machine failed"):
            session = None  # its context waits for work that may never end
    return Result(kernel.title, verdicts, left_out)


def _judged(session: Any, backend: FunctionBackend, line: str, runs: int) -> Verdict:
    for run in range(runs):
        backend.trace, backend.returns = "", False
        said = json.loads(session.judge(line))
        if said["verdict"] != "passed":
            break
    text, way = said.get("text", ""), said.get("way", "")
    if run > 0 and said["verdict"] == "failed":
        text = text.replace("\n", f"\n  when    judged for the {run + 1}th time, having passed before\n", 1)
    if backend.returns:
        way = "; ".join(filter(None, [way, "results were returned: padding was not judged"]))
    failed = said["verdict"] not in ("passed", "not run")
    return Verdict(line, said["verdict"], said.get("ground", ""), text, said["elements"], tuple(said.get("findings", [])), way,
                   backend.trace if failed else "", said["seconds"])
