"""Selected case lines: a sequence, and a decorator that makes a pytest item of each."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Sequence, overload

from . import _assay
from .checking import lines_of


class Cases(Sequence[str]):
    """Case lines of a profile that words select.

    As a decorator it makes an item a case of a pytest test, which receives the line as its argument `case`:

        @assay.cases("grouped_gemm kind=fp8_block", profile="smoke")
        def test_mine(case):
            assay.check(fn, case, bind=...).raise_on_failure()
    """

    def __init__(self, selection: str, profile: str | None, where: str | None):
        self.selection, self.profile, self.where = selection, profile, where
        self._lines: list[str] | None = None

    def of_profile(self, profile: str | None) -> list[str]:
        """The lines in another profile, or in their own where it is None."""
        return lines_of(self.selection, profile or self.profile or "standard", self.where)[0]

    @property
    def lines(self) -> list[str]:
        if self._lines is None:
            self._lines = self.of_profile(None)
        return self._lines

    def shard(self, index: int, total: int) -> list[str]:
        """The lines of one of `total` parts of equal work."""
        return _assay.shard(self.lines, index, total)

    def __call__(self, test: Callable[..., Any]) -> Callable[..., Any]:
        import pytest

        return pytest.mark.assay_cases(self)(test)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.lines[index]

    def __len__(self) -> int:
        return len(self.lines)

    def __iter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __repr__(self) -> str:
        return f"assay.cases({self.selection!r}, profile={self.profile!r}, where={self.where!r})"


def cases(selection: str = "", *, profile: str | None = None, where: str | None = None) -> Cases:
    """Case lines of the catalogue that every word matches, without those that only a backend can be asked for (contract=, fault=, scenario).

    Args:
        selection: words with blanks between them, such as "grouped_gemm kind=fp8_block"; "": all.
        profile: "smoke", "standard" (without one) or "full".
        where: further words.

    Returns:
        A sequence of lines that is also a pytest decorator.

    Raises:
        ValueError, when the lines are read: a word that no case matches.
    """
    return Cases(selection, profile, where)
