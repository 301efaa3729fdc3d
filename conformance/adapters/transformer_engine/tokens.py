"""Tokens and their groups: offsets, and rows to experts and back."""

from __future__ import annotations

import ctypes as c
from typing import Any

import torch

from .. import nvte
from ..nvte import List, Tensor, array, call
from ..operands import require
from .calls import is_captured, operator, require_op, scratch

_BYTES = 16  # of an access


def _require_groups(splits: torch.Tensor) -> None:
    require(splits.shape[0] > 0, "there are no groups")


def _offsets(t: Any) -> None:
    require_op(t, *_OFFSETS)
    _OFFSETS[t.op](t)


def _splits_to_offsets(t: Any) -> None:
    _require_groups(t.splits)
    require(t.splits.dtype == torch.int64, "splits are i32: expected i64")
    call("nvte_splits_to_offsets", t.splits, t.out.offsets, t.splits.shape[0], t.stride, nvte.stream())


def _splits_to_offsets_multi(t: Any) -> None:
    _require_groups(t.splits)
    words = [each.split(":") for each in str(t.outputs).split(",")]
    asked = [i for i in range(len(words)) if f"offsets_{i}" in t.out]
    require(bool(asked), "no output is asked for")
    made = List([Tensor(data=t.out[f"offsets_{i}"]) for i in asked])
    strides = (c.c_int64 * len(asked))(*[int(words[i][0]) for i in asked])
    leads = (c.c_int * len(asked))(*[int("inclusive" not in words[i]) for i in asked])
    call("nvte_splits_to_offsets_multi", Tensor(data=t.splits), made.handles, strides, leads, len(asked), nvte.stream())


def _splits_to_offsets_2d(t: Any) -> None:
    _require_groups(t.first)
    call("nvte_splits_to_offsets_2d", Tensor(data=t.first), Tensor(data=t.last), Tensor(data=t.out.offsets), nvte.stream())


_OFFSETS = {"splits_to_offsets": _splits_to_offsets, "splits_to_offsets_multi": _splits_to_offsets_multi,
            "splits_to_offsets_2d": _splits_to_offsets_2d}


def _require_accesses(t: Any, rows: torch.Tensor) -> None:
    unit = _BYTES // rows.element_size()
    require(rows.shape[0] > 0 and t.row_map.numel() > 0, "there are no tokens")
    require(rows.shape[1] > 0 and rows.shape[1] % unit == 0, f"K is {rows.shape[1]}: expected a multiple of {unit}, {_BYTES} bytes")
    require(t.row_map.shape[1] <= 128, f"topk is {t.row_map.shape[1]}: expected at most 128")


def _require_permutation(t: Any) -> None:
    require_op(t, "permute")
    require("scale_inv" not in t.inputs, "scales come with the tokens: the function moves rows only")
    _require_accesses(t, t.x)


def _map_by_choice(t: Any) -> torch.Tensor:
    """row_map as the library has it: i32 [topk, R]."""
    return t.row_map.t().contiguous()


def _permute(t: Any) -> None:
    """Forward: from the choices in the order of their rows, of which the library makes its map. Rows follow one another without gaps."""
    _require_permutation(t)
    require(not is_captured(), "the call is captured, and rows are looked at on the host: expected an eager call")
    tokens, topk = t.row_map.shape
    rows = t.out.permuted.shape[0]
    require(int((t.row_map >= 0).sum()) == rows, "rows are left free between experts: this function leaves none")
    place = t.row_map.view(-1).to(torch.int64)
    order = torch.argsort(torch.where(place < 0, tokens * topk, place), stable=True).to(torch.int32)
    made, none = scratch(t, tokens * topk, torch.int32), Tensor()
    call("nvte_permute", Tensor(data=array(t.x, t.formats["x"])), Tensor(data=array(t.out.permuted, t.formats["x"])), Tensor(data=order),
         Tensor(data=made), none, none, none, tokens, topk, t.x.shape[1], rows, nvte.stream())


def _permute_backward(t: Any) -> None:
    """Backward of the weighted sum, with all weights 1: rows go where the map says."""
    _require_permutation(t)
    tokens, topk = t.row_map.shape
    ones, gradients = torch.ones((tokens, topk), device=t.x.device), scratch(t, tokens * topk, torch.float32)
    forward = torch.zeros_like(t.out.permuted)
    call("nvte_permute", Tensor(data=array(t.x, t.formats["x"])), Tensor(data=array(t.out.permuted, t.formats["x"])), Tensor(),
         Tensor(data=_map_by_choice(t)), Tensor(data=ones), Tensor(data=gradients), Tensor(data=array(forward, t.formats["x"])), tokens, topk,
         t.x.shape[1], 0, nvte.stream())


def _unpermute(t: Any) -> None:
    require_op(t, "unpermute")
    same = t.formats["permuted"] == "f32" and t.sums == "fma_f32"  # f32 is the type
    require(t.sums == "fma_in_type" or same, f"sums is {t.sums}: expected fma_in_type")
    _require_accesses(t, t.permuted)
    tokens, topk = t.row_map.shape
    weights = Tensor(data=t.weights) if "weights" in t.inputs else Tensor()
    call("nvte_unpermute", Tensor(data=t.permuted), Tensor(data=t.out.x), Tensor(data=_map_by_choice(t)), weights, tokens, topk,
         t.permuted.shape[1], nvte.stream())


# Valid contents: the library finds no negative split, and lets i32 wrap around (spec offsets, note).
splits_to_offsets = operator(_offsets)
permute = operator(_permute)
permute_backward = operator(_permute_backward)
# Products with weights rounded to the type, and sums, are rounded together in the type of the rows: 24 recorded cases (measured-1.4).
unpermute = operator(_unpermute)
