"""Quantization to FP8: per tensor with current or delayed scaling, by blocks of 1x128 and 128x128.

Scales and codes are those of the specification (per-tensor, fp8-block), which was written after this library and compared with it.
"""

from __future__ import annotations

from typing import Any

import torch

from .. import nvte
from ..nvte import BLOCK_1D, BLOCK_2D, TENSOR, Config, GroupedTensor, Tensor, array, call, round_up
from ..operands import require
from .calls import (groups_on_device, noop_of, operator, output, require_aligned_groups, require_op, rows_of_groups, store)

_BLOCKS = {"block_1x128": BLOCK_1D, "block_128x128": BLOCK_2D}


def _require_quantization(t: Any, *recipes: str, dbias: bool = False) -> None:
    require_op(t, "quantize")
    require(t.recipe in recipes, f"recipe is {t.recipe}: expected {' or '.join(recipes)}")
    require(t.get("zero_sign", "kept") in ("kept", "free"), "zero_sign is positive: codes keep the sign of 0")
    require(("dbias" in t.out) == dbias, f"dbias is{' not' if dbias else ''} asked for: expected {'a call with it' if dbias else 'none'}")
    require(t.x.numel() > 0, "x is empty")


def _config(t: Any) -> Config:
    return Config(pow2=int(t.get("pow2", 0)), eps=float(t.get("eps", 0.0)), noop=noop_of(t))


def _directions(t: Any) -> list[str]:
    return [each for each in ("rowwise", "columnwise") if f"{each}_data" in t.out or f"{each}_scale_inv" in t.out]


def _x_of_group(t: Any, first: int, rows: int) -> Tensor:
    columns = t.x.shape[1]
    return Tensor(data=array(t.x, shape=(rows, columns), first=first * columns))


class _PerTensor:
    """Memory of a call per tensor: f32 for each group, codes of both directions. One scale_inv serves both."""

    def __init__(self, t: Any, transposed: bool):
        groups = t.splits.shape[0] if "splits" in t.inputs else 1
        self.t, self.columns = t, t.x.shape[1]
        self.rowwise = output(t, "rowwise_data", t.x.numel())
        self.columnwise = output(t, "columnwise_data", t.x.numel()) if transposed or "columnwise_data" in t.out else None
        named = "rowwise_scale_inv" if "rowwise_scale_inv" in t.out else "columnwise_scale_inv"
        self.scale_inv = output(t, named, groups, torch.float32)
        self.amax = output(t, "amax", groups, torch.float32)
        self.scale = output(t, "scale", groups, torch.float32)
        if t.recipe == "tensor_delayed":
            store(t, self.scale, t.scale)  # the library reads it where it would write that of current scaling

    def codes(self, group: int, first: int, rows: int, amax: bool) -> Tensor:
        """The output of one group."""
        one = {"shape": (1,), "first": group}
        fields = {"data": array(self.rowwise, self.t.otype, (rows, self.columns), first * self.columns), "scale": array(self.scale, **one),
                  "scale_inv": array(self.scale_inv, **one), "amax": array(self.amax, **one) if amax else None}
        if self.columnwise is not None:
            fields["columnwise_data"] = array(self.columnwise, self.t.otype, (self.columns, rows), first * self.columns)
            fields["columnwise_scale_inv"] = fields["scale_inv"]
        return Tensor(TENSOR, **fields)

    def finish(self) -> None:
        """The other direction's scale_inv, where both are asked for."""
        if "rowwise_scale_inv" in self.t.out and "columnwise_scale_inv" in self.t.out:
            store(self.t, self.t.out.columnwise_scale_inv, self.scale_inv)


def _rows_of_full_groups(t: Any) -> list[int]:
    splits = rows_of_groups(t, t.x.shape[0])
    require(all(rows > 0 for rows in splits), "a group is empty: the library writes no scale of it")
    return splits


def _each_group(t: Any, made: _PerTensor, splits: list[int], one_group: Any) -> None:
    first = 0
    for group, rows in enumerate(splits):
        one_group(_x_of_group(t, first, rows), group, first, rows)
        first += rows
    made.finish()


def _quantize_per_tensor(t: Any) -> None:
    splits = _rows_of_full_groups(t)
    made, config, stream = _PerTensor(t, False), _config(t), nvte.stream()
    current = t.recipe == "tensor_current"
    if not current and "amax" in t.out:
        store(t, t.out.amax, torch.zeros_like(t.out.amax))  # the kernel takes the largest of this and what it finds

    def one_group(x: Tensor, group: int, first: int, rows: int) -> None:
        if current:
            wanted = made.codes(group, first, rows, True)
            call("nvte_compute_amax_with_config", x, wanted, config, stream)
            call("nvte_compute_scale_from_amax", wanted, config, stream)
        call("nvte_quantize_v2", x, made.codes(group, first, rows, not current and "amax" in t.out), config, stream)

    _each_group(t, made, splits, one_group)


def _blocks_of(t: Any, direction: str, rows: int) -> tuple[int, int]:
    """Shape of the scales of a group of so many rows."""
    tall, wide = (rows, t.x.shape[1]) if direction == "rowwise" else (t.x.shape[1], rows)
    if t.recipe == "block_1x128":
        return (wide + 127) // 128, round_up(tall, 4)
    return (tall + 127) // 128, round_up((wide + 127) // 128, 4)


_FIELDS = {"rowwise": ("data", "scale_inv"), "columnwise": ("columnwise_data", "columnwise_scale_inv")}


def _quantize_blocks(t: Any) -> None:
    columns = t.x.shape[1]
    splits = rows_of_groups(t, t.x.shape[0])
    config, stream = _config(t), nvte.stream()
    shapes = {each: [_blocks_of(t, each, rows) for rows in splits] for each in _directions(t)}
    memory = {each: (output(t, f"{each}_data", t.x.numel()), output(t, f"{each}_scale_inv", sum(a * b for a, b in shapes[each]), torch.float32))
              for each in shapes}
    first, places = 0, dict.fromkeys(shapes, 0)
    for group, rows in enumerate(splits):
        fields: dict[str, Any] = {}
        for direction, (codes, scales) in memory.items():
            shape = shapes[direction][group]
            extents = (rows, columns) if direction == "rowwise" else (columns, rows)
            data, scale_inv = _FIELDS[direction]
            fields[data] = array(codes, t.otype, extents, first * columns)
            fields[scale_inv] = array(scales, shape=shape, first=places[direction])
            places[direction] += shape[0] * shape[1]
        if rows > 0:
            call("nvte_quantize_v2", _x_of_group(t, first, rows), Tensor(_BLOCKS[t.recipe], **fields), config, stream)
        first += rows


def _quantize(t: Any) -> None:
    _require_quantization(t, "tensor_current", "tensor_delayed", *_BLOCKS)
    (_quantize_blocks if t.recipe in _BLOCKS else _quantize_per_tensor)(t)


def _grouped_blocks(t: Any, placed: dict[str, Any]) -> GroupedTensor:
    """Codes and scales of all groups, whose places the library works out from the rows of the groups."""
    columns, fields = t.x.shape[1], {}
    for direction in _directions(t):
        data, scale_inv = _FIELDS[direction]
        codes = output(t, f"{direction}_data", t.x.numel())
        # Each group has at most the scales of its rows and of a padding of three rows or blocks.
        scales = output(t, f"{direction}_scale_inv", (t.x.shape[0] + 4 * placed["groups"]) * ((columns + 127) // 128 + 4) + columns * 8, torch.float32)
        fields[data], fields[scale_inv] = array(codes, t.otype), scales
    return GroupedTensor(_BLOCKS[t.recipe], **placed, **fields)


def _require_blocks_of_groups(t: Any) -> None:
    require_aligned_groups(t, 128)
    require("splits" in t.inputs or t.x.shape[0] % 128 == 0, f"{t.x.shape[0]} rows: expected a multiple of 128")


def _group_quantize(t: Any) -> None:
    _require_quantization(t, "tensor_current", *_BLOCKS)
    config, stream = _config(t), nvte.stream()
    if t.recipe in _BLOCKS:
        _require_blocks_of_groups(t)
    placed = groups_on_device(t, *t.x.shape)
    x = GroupedTensor(TENSOR, **placed, data=t.x.view(-1))
    if t.recipe in _BLOCKS:
        call("nvte_group_quantize", x, _grouped_blocks(t, placed), config, stream)
        return
    made = _PerTensor(t, False)
    fields = {"scale": made.scale, "amax": made.amax, "scale_inv": made.scale_inv, "data": array(made.rowwise, t.otype)}
    if made.columnwise is not None:
        fields.update(columnwise_data=array(made.columnwise, t.otype), columnwise_scale_inv=made.scale_inv)
    codes = GroupedTensor(TENSOR, **placed, **fields)
    call("nvte_group_compute_amax_with_config", x, codes, config, stream)
    call("nvte_group_compute_scale_from_amax", codes, config, stream)
    call("nvte_group_quantize", x, codes, config, stream)
    made.finish()


def _with_workspace(name: str, *arguments: Any, device: torch.device) -> None:
    """A function that is called twice: with an empty workspace it says which it wants. The last argument is the stream."""
    *given, place, rest = arguments
    empty = Tensor()
    call(name, *given, empty, *place, rest)
    work, kept = nvte.workspace(empty.wanted(), device)
    call(name, *given, work, *place, rest)
    del kept


def _quantize_dbias(t: Any) -> None:
    _require_quantization(t, "tensor_delayed", dbias=True)
    require(t.formats["x"] != "f32", "x is f32: this kernel adds the rows in another order than dbias-1.1, which 16 bits hardly show")
    require("noop" not in t.inputs, "a skip flag is given: the function has none")
    splits = _rows_of_full_groups(t)
    require(t.x.shape[1] % 4 == 0 and all(rows % 8 == 0 for rows in splits),
            f"rows {splits} and columns {t.x.shape[1]}: expected multiples of 8 and 4, which the library checks when it has begun")
    made, stream, columns = _PerTensor(t, True), nvte.stream(), t.x.shape[1]
    if "amax" in t.out:
        t.out.amax.zero_()

    def one_group(x: Tensor, group: int, first: int, rows: int) -> None:
        dbias = Tensor(data=array(t.out.dbias, shape=(columns,), first=group * columns))
        _with_workspace("nvte_quantize_dbias", x, made.codes(group, first, rows, "amax" in t.out), dbias, (), stream, device=t.x.device)

    _each_group(t, made, splits, one_group)


def _group_quantize_dbias(t: Any) -> None:
    _require_quantization(t, *_BLOCKS, dbias=True)
    require(bool(_directions(t)), "no codes are asked for")
    _require_blocks_of_groups(t)
    placed = groups_on_device(t, *t.x.shape)
    dbias = GroupedTensor(TENSOR, placed["groups"], (placed["groups"], t.x.shape[1]), data=t.out.dbias.view(-1))
    _with_workspace("nvte_group_quantize_dbias", GroupedTensor(TENSOR, **placed, data=t.x.view(-1)), _grouped_blocks(t, placed), dbias,
                    (_config(t),), nvte.stream(), device=t.x.device)


# Every code, scale and amax of 188 recorded cases and of 464 that were compared is the specification's (measured-1.1), and of 69 cases of
# groups (measured-1.4).
quantize = operator(_quantize)
group_quantize = operator(_group_quantize)
# Sums of tiles of 32v rows, in each 8 warps of 4v rows: an order that predicts all 1,344 sums in f32 of the recording and is not dbias-1.1.
quantize_dbias = operator(_quantize_dbias)
# Sums in the order of dbias-1.1, which is this kernel's.
group_quantize_dbias = operator(_group_quantize_dbias)
