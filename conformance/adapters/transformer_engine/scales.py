"""Scales: block scales swizzled and back, and the update of delayed scaling."""

from __future__ import annotations

from typing import Any

import torch

from .. import nvte
from ..nvte import MXFP8, NVFP4, NUMBERS, GroupedTensor, List, Tensor, array, call, round_up
from ..operands import require
from .calls import groups_on_device, operator, output, require_aligned_groups, require_op, rows_of_groups, scratch

_UNIT = {"mxfp8": 32, "nvfp4": 16}
_ORDERS = {"swizzle": ("compact", "swizzled"), "unswizzle": ("swizzled", "compact")}


def _direction(t: Any) -> str:
    return str(t.get("direction", "rowwise"))


def _shape(t: Any, rows: int) -> tuple[int, int]:
    """Shape of the scales of a group: spec layouts-2.1."""
    unit = _UNIT[t.recipe]
    if _direction(t) == "rowwise":
        return round_up(rows, 128), round_up(t.K // unit, 4)
    if t.recipe == "mxfp8":
        return round_up(rows // unit, 4), round_up(t.K, 128)
    return round_up(t.K, 128), round_up(rows // unit, 4)


def _require_whole_blocks(t: Any, splits: list[int]) -> None:
    """The library counts the blocks of a row as K divided by their length, rounded down."""
    unit = _UNIT[t.recipe]
    require(t.K > 0 and t.K % unit == 0, f"K is {t.K}: expected a multiple of {unit}")
    if _direction(t) == "columnwise":
        require(all(rows % unit == 0 for rows in splits), f"rows are {splits}: expected multiples of {unit}")


def _scales(t: Any, scales: torch.Tensor, place: int, rows: int, codes: torch.Tensor, swizzled: bool) -> Tensor:
    mode, code, kind = (MXFP8, "e4m3", "e8m0") if t.recipe == "mxfp8" else (NVFP4, "e2m1", "e4m3")
    data, scale_inv = ("data", "scale_inv") if _direction(t) == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
    extents = (t.K, rows) if _direction(t) == "columnwise" and t.recipe == "nvfp4" else (rows, t.K)
    return Tensor(mode, swizzled=swizzled, **{data: array(codes, code, extents), scale_inv: array(scales, kind, _shape(t, rows), place)})


def _swizzle(t: Any) -> None:
    """Ops swizzle and unswizzle: a tensor, or a list of the tensors of groups."""
    require_op(t, *_ORDERS)
    word = t.op
    splits = rows_of_groups(t, t.R)
    _require_whole_blocks(t, splits)
    names = _ORDERS[word]
    source, result, place = t.inputs[names[0]].view(-1), t.out[names[1]].view(-1), 0
    codes = scratch(t, t.R * t.K)  # which the functions do not read
    if word == "unswizzle":
        result = torch.empty_like(result)
    pairs, placed = [], []
    for rows in splits:
        if rows > 0:
            pairs.append((_scales(t, source, place, rows, codes, names[0] == "swizzled"),
                          _scales(t, result, place, rows, codes, names[1] == "swizzled")))
            placed.append((place, rows))
            a, b = _shape(t, rows)
            place += a * b
    if "splits" in t.inputs and pairs:
        lists = [List(side) for side in zip(*pairs)]
        call(f"nvte_multi_tensor_{word}_scaling_factors", *(each.handles for each in lists), len(pairs), nvte.stream())
    elif pairs:
        call(f"nvte_{word}_scaling_factors", *pairs[0], nvte.stream())
    if word == "unswizzle":
        _store_used(t, result, placed)


def _store_used(t: Any, scales: torch.Tensor, placed: list[tuple[int, int]]) -> None:
    """The scales without their padding, over which the library writes zeros, and the specification nothing (layouts-3.3)."""
    unit, to = _UNIT[t.recipe], t.out.compact.view(-1)
    for place, rows in placed:
        a, b = _shape(t, rows)
        used = (rows, t.K // unit) if _direction(t) == "rowwise" else (rows // unit, t.K) if t.recipe == "mxfp8" else (t.K, rows // unit)
        part = (slice(used[0]), slice(used[1]))
        to[place : place + a * b].view(a, b)[part] = scales[place : place + a * b].view(a, b)[part]


def _group_swizzle(t: Any) -> None:
    """The same for groups whose rows are read on the device."""
    require_op(t, *_ORDERS)
    word = t.op
    require(t.recipe == "mxfp8", f"recipe is {t.recipe}: expected mxfp8")
    require("splits" in t.inputs and t.R > 0, "there are no groups of rows")
    require_aligned_groups(t, 128)
    require(t.K > 0 and t.K % 128 == 0, f"K is {t.K}: expected a multiple of 128")
    placed = groups_on_device(t, t.R, t.K)
    data, scale_inv = ("data", "scale_inv") if _direction(t) == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
    codes = scratch(t, t.R * t.K)
    names = _ORDERS[word]

    def side(scales: torch.Tensor, name: str) -> GroupedTensor:
        return GroupedTensor(MXFP8, **placed, swizzled=name == "swizzled",
                             **{data: array(codes, "e4m3", (t.R * t.K,)), scale_inv: array(scales.view(-1), "e8m0")})

    call(f"nvte_{word}_grouped_scaling_factors", side(t.inputs[names[0]], names[0]), side(t.out[names[1]], names[1]), nvte.stream())


def _delayed_update(t: Any) -> None:
    require_op(t, "delayed_update")
    length, count = t.amax_history.shape
    require(length > 0 and count > 0, "the history is empty")
    history = output(t, "amax_history", length * count, torch.float32).view(length, count)
    scale = output(t, "scale", count, torch.float32)
    algorithm, kind, margin = str(t.algorithm).encode(), NUMBERS[t.otype], float(t.margin)
    if not t.bulk:
        call("nvte_delayed_scaling_recipe_amax_and_scale_update", Tensor(data=t.amax_history), Tensor(data=t.scale), Tensor(data=history),
             Tensor(data=scale[:count]), algorithm, kind, nvte.stream(), real=margin)
        return
    history.copy_(t.amax_history)  # this function works in place
    scale[:count].copy_(t.scale)
    reduced = Tensor(data=t.reduced) if "reduced" in t.inputs else Tensor()
    histories, scales = List([Tensor(data=history)]), List([Tensor(data=scale[:count])])
    call("nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction", reduced, histories.vector(), scales.vector(), algorithm, kind,
         nvte.stream(), real=margin)


# Every scale of 128 recorded cases, and every history and scale of 60, is the specification's (measured-1.4).
swizzle = operator(_swizzle)
group_swizzle = operator(_group_swizzle)
delayed_update = operator(_delayed_update)
