"""The figures of result files that pages show, each checked as it is read."""

from __future__ import annotations

import json
import math
import pathlib
import statistics
from typing import Any

from figures import BadFile, words

Figure = dict[str, Any]


def labelled(name: str, figure: Figure) -> Figure:
    label = figure.get("label", "")
    if not isinstance(label, str):
        raise BadFile(f"bench/results/{name}.json: label {label!r}: expected text")
    try:
        return {**words(label), **figure}
    except BadFile as error:
        raise BadFile(f"bench/results/{name}.json: {error}") from error


class Results:
    """Files of figures, by their names without .json.

    Raises:
        BadFile: a file is no JSON of figures.
    """

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.read: dict[str, dict[str, Any]] = {}
        self.made: dict[str, list[Figure]] = {}

    def file(self, name: str) -> dict[str, Any]:
        if name not in self.read:
            path = self.folder / f"{name}.json"
            try:
                if not path.is_file():
                    raise BadFile(f"bench/results/{name}.json: no such file")
                read = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                raise BadFile(f"bench/results/{name}.json: {error}") from error
            if not isinstance(read, dict):
                raise BadFile(f"bench/results/{name}.json: expected an object")
            self.read[name] = read
        return self.read[name]

    def figures(self, name: str) -> list[Figure]:
        """Each with the words of its label, and the name of the file under "file"."""
        if name not in self.made:
            of = self.file(name)
            figures = of.get("figures", of.get("benchmarks"))
            if not isinstance(figures, list) or not figures or not all(isinstance(figure, dict) for figure in figures):
                raise BadFile(f"bench/results/{name}.json: expected a list of figures")
            self.made[name] = [{**labelled(name, figure), "file": f"bench/results/{name}.json"} for figure in figures]
        return self.made[name]

    def some(self, name: str, **wanted: object) -> list[Figure]:
        """The figures whose words and fields are those; one that is None is absent."""
        return [figure for figure in self.figures(name) if all(str(figure.get(key)) == str(value) for key, value in wanted.items())]

    def one(self, name: str, **wanted: object) -> Figure:
        found = self.some(name, **wanted)
        if len(found) != 1:
            raise BadFile(f"bench/results/{name}.json: {len(found) or 'no'} figure{'s' if len(found) > 1 else ''} with {wanted}")
        return found[0]

    def device(self, name: str) -> str:
        context = self.file(name).get("context")
        found = context.get("device") if isinstance(context, dict) else None
        if not isinstance(found, str):
            raise BadFile(f"bench/results/{name}.json: the context names no device")
        return found.removesuffix(" 80GB HBM3")


def positive(value: Any, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value <= 0:
        raise BadFile(f"{what} is {value!r}, expected a positive number")
    return float(value)


def word_of(figure: Figure, name: str) -> str:
    if name not in figure:
        raise BadFile(f"{figure['file']}: {figure.get('name', 'a figure')}: no {name}")
    return str(figure[name])


def number(figure: Figure, name: str) -> float:
    word_of(figure, name)
    return positive(figure[name], f"{figure['file']}: {figure.get('name', 'a figure')}: {name}")


def mean(figure: Figure, name: str) -> float:
    """Of a list."""
    word_of(figure, name)
    values = figure[name]
    if not isinstance(values, list) or not values:
        raise BadFile(f"{figure['file']}: {name} is {values!r}, expected a list of numbers")
    return statistics.mean(positive(value, f"{figure['file']}: {name}") for value in values)


def rate(figure: Figure) -> float:
    return number(figure, "bytes") / number(figure, "median_us")
