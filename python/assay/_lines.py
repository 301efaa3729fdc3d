"""Case lines: a selection in words, what own arrays add to a line, and `preset=` beside `recipe=`."""

from __future__ import annotations

from typing import Any, Iterable

from . import _assay

# Blocks of the recipes, for op quantize_by_rule.
_BLOCKS = {"block_1x128": "1x128", "block_128x128": "128x128", "mxfp8": "1x32", "nvfp4": "1x16", "tensor_current": "allxall"}
_KEPT = ("x_type", "otype", "amax", "splits", "R", "K", "extra_rows", "beyond", "data", "seed", "replay", "contract", "fault", "block",
         "storage", "transposed", "outputs", "preset")


def words_of(line: str) -> tuple[str, dict[str, str]]:
    """The op of a case line and its keys as they stand there."""
    if not isinstance(line, str):
        raise TypeError(f"a case line is {type(line).__name__}: expected text such as 'quantize recipe=mxfp8 R=33 K=64'")
    op, *words = line.split() or [""]
    keys: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"'{word}' in '{line}': expected KEY=VALUE")
        if key in keys:
            raise ValueError(f"'{key}' is given twice in '{line}'")
        keys[key] = value
    return op, keys


def line_of(op: str, keys: dict[str, str]) -> str:
    """The text of a case line."""
    return " ".join([op, *(f"{key}={value}" for key, value in keys.items())])


def by_rule(op: str, keys: dict[str, str]) -> tuple[str, dict[str, str]]:
    """`quantize recipe=block_1x128 preset=deepgemm` as op quantize_by_rule: the recipe gives the block, the preset the rule.

    Raises:
        ValueError: an option of `quantize` that a scale rule has no counterpart of, or a recipe without blocks.
    """
    if op != "quantize" or "preset" not in keys:
        return op, keys
    made = {key: value for key, value in keys.items() if key not in ("recipe", "direction")}
    recipe, direction = keys.get("recipe"), keys.get("direction", "rowwise")
    for key in made:
        if key not in _KEPT:
            raise ValueError(f"{key}={made[key]} beside preset={keys['preset']}: a scale rule decides this itself; expected none of "
                             f"pow2, eps, scale_layout, two_dimensional, hadamard, stochastic, four_over_six, e4m3_max, scales, noop, "
                             f"zero_sign, dbias")
    if direction != "rowwise":
        raise ValueError(f"direction={direction} beside preset={keys['preset']}: expected rowwise. Blocks along the rows are "
                         f"`quantize_by_rule preset={keys['preset']} block=128x1`, codes [K, rows] are transposed=1")
    if recipe is not None:
        if recipe not in _BLOCKS:
            raise ValueError(f"recipe={recipe} beside preset={keys['preset']}: expected one of {', '.join(_BLOCKS)}")
        made.setdefault("block", _BLOCKS[recipe])
    return "quantize_by_rule", made


def canonical(line: str) -> str:
    """The canonical text of a case line, in which `preset=` may stand beside `recipe=` of op quantize.

    Raises:
        ValueError: an unknown op, key or value, keys that do not go together, a key that is missing.
    """
    return _assay.line_parts(line_of(*by_rule(*words_of(line))))["line"]


def selected(selection: str | Iterable[str], profile: str, where: str | None) -> list[str]:
    """Case lines of a profile which every word of `selection` and of `where` matches."""
    words = selection.split() if isinstance(selection, str) else [word for each in selection for word in each.split()]
    return _assay.cases(profile, words + (where.split() if where else []))


def splits_text(splits: Any) -> str:
    """Rows of groups as a case line has them: [128, 0, 333] is "128,0,333"."""
    if isinstance(splits, str):
        return splits
    rows = [int(each) for each in splits]
    return ",".join(map(str, rows)) if rows else "0x0"
