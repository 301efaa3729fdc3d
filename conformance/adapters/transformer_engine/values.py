"""Values of codes and scales: dequantization per tensor, of FP8 blocks of groups, and of NVFP4."""

from __future__ import annotations

from typing import Any

import torch

from .. import nvte
from ..nvte import BLOCK_1D, BLOCK_2D, NVFP4, TENSOR, GroupedTensor, Tensor, array, call, round_up
from ..operands import require
from .calls import groups_on_device, operator, require_aligned_groups, require_op, rows_of_groups

_BLOCKS = {"block_1x128": BLOCK_1D, "block_128x128": BLOCK_2D}
_PER_TENSOR = ("tensor_current", "tensor_delayed")


def _nvfp4(t: Any, group: int, first: int, rows: int, place: int) -> Tensor:
    columns = t.out.x.shape[1]
    shape = (round_up(rows, 128), round_up(columns // 16, 4))
    return Tensor(NVFP4, data=array(t.rowwise_data, "e2m1", (rows, columns), first * columns // 2),
                  scale_inv=array(t.rowwise_scale_inv, "e4m3", shape, place), amax=array(t.amax, shape=(1,), first=group),
                  swizzled=t.get("scale_layout", "compact") == "swizzled", e4m3_max=int(t.get("e4m3_max", 448)))


def _dequantize(t: Any) -> None:
    require_op(t, "dequantize")
    require(t.recipe != "mxfp8", "recipe is mxfp8: MXFP8 dequantization is not supported by architectures below 10.0")
    require(t.recipe in (*_PER_TENSOR, "nvfp4"), f"recipe is {t.recipe}: this function has no block scaling of FP8")
    require(t.get("direction", "rowwise") == "rowwise", "direction is columnwise: the function reads rows")
    rows, columns = t.out.x.shape
    require(t.out.x.numel() > 0, "x is empty")
    require(t.recipe != "nvfp4" or columns % 16 == 0, f"K is {columns}: expected a multiple of 16")
    stream, first, place = nvte.stream(), 0, 0
    for group, own in enumerate(rows_of_groups(t, rows)):
        if own > 0:
            if t.recipe == "nvfp4":
                source = _nvfp4(t, group, first, own, place)
                place += round_up(own, 128) * round_up(columns // 16, 4)
            else:
                source = Tensor(TENSOR, data=array(t.rowwise_data, t.otype, (own, columns), first * columns),
                                scale_inv=array(t.rowwise_scale_inv, shape=(1,), first=group))
            call("nvte_dequantize", source, Tensor(data=array(t.out.x, shape=(own, columns), first=first * columns)), stream)
        first += own


def _group_dequantize(t: Any) -> None:
    require_op(t, "dequantize")
    require(t.recipe in _BLOCKS, f"recipe is {t.recipe}: on SM90 this function has FP8 blocks only")
    require(t.out.x.numel() > 0, "x is empty")
    rows, columns = t.out.x.shape
    require_aligned_groups(t, 128)
    require("splits" in t.inputs or rows % 128 == 0, f"{rows} rows: expected a multiple of 128")
    placed = groups_on_device(t, rows, columns)
    direction = t.get("direction", "rowwise")
    data, scale_inv = ("data", "scale_inv") if direction == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
    codes, scales = t.inputs[f"{direction}_data"], t.inputs[f"{direction}_scale_inv"]
    source = GroupedTensor(_BLOCKS[t.recipe], **placed, **{data: array(codes.view(-1), t.otype), scale_inv: scales.view(-1)})
    call("nvte_group_dequantize", source, GroupedTensor(TENSOR, **placed, data=t.out.x.view(-1)), nvte.stream())


# Every value of 97 recorded cases is the specification's (measured-1.4).
dequantize = operator(_dequantize)
group_dequantize = operator(_group_dequantize)
