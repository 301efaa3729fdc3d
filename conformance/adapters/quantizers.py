"""Operands and results of op quantize_by_rule in the forms that quantizers of other libraries take."""

from __future__ import annotations

from typing import Any, Callable

import torch

from .operands import FP8, require


def require_rule(t: Any, *presets: str, blocks: tuple[str, ...] = ("1xall",), storages: tuple[str, ...] = ("k_major",),
                 otypes: tuple[str, ...] = ("e4m3",)) -> None:
    """The call asks for one of these rules, in a form that the quantizer has."""
    require(t.op == "quantize_by_rule", f"the op is {t.op}: expected quantize_by_rule")
    require(t.get("preset") in presets, f"preset is {t.get('preset')}: expected {' or '.join(presets)}")
    require(t.block in blocks, f"block is {t.block}: expected {' or '.join(blocks)}")
    require(t.otype in otypes, f"otype is {t.otype}: expected {' or '.join(otypes)}")
    require(t.transposed == 0, f"transposed is {t.transposed}: expected 0")
    require(t.storage in storages, f"storage is {t.storage}: expected {' or '.join(storages)}")
    if "splits" in t.inputs:
        require(t.storage.startswith("k_major"), f"storage is {t.storage} with splits: expected k_major")
    require(t.x.shape[1] > 0, "K is 0: expected columns")


def scales_in_storage(t: Any, rows: int, columns: int) -> torch.Tensor:
    """The scales of t.out as [rows, columns], where rows (storage k_major) or columns (mn_major, tma_aligned) are adjacent."""
    if t.storage.startswith("k_major"):
        return t.out.scale_inv.view(rows, columns)
    return t.out.scale_inv.view(columns, -1).t()[:rows]


def quantize(t: Any, columns: int, call: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], Any]) -> None:
    """Calls `call(x, codes, scales)` and leaves what it writes in t.out.

    Blocks are 1 x `columns`, which divide K. x: [R, K]; codes: FP8 [R, K]; scales: f32 [R, K/columns], of which rows (storage
    k_major) or columns (mn_major, tma_aligned) are adjacent. Where there are splits, the rows beyond them stay as they are.
    """
    x = t.x
    rows, blocks = x.shape[0], x.shape[1] // columns
    if rows == 0:
        return
    whole = "splits" not in t.inputs
    codes = (t.out.data.view(FP8[t.otype]) if whole and "data" in t.out
             else torch.empty(x.shape, dtype=FP8[t.otype], device=x.device))
    if whole and "scale_inv" in t.out:
        scales = scales_in_storage(t, rows, blocks)
    else:
        scales = torch.empty((rows, blocks), dtype=torch.float32, device=x.device)
    call(x, codes, scales)
    if not whole:
        inside = torch.arange(rows, device=x.device)[:, None] < t.splits.sum()
        if "data" in t.out:
            t.out.data.copy_(torch.where(inside, codes.view(torch.uint8), t.out.data))
        if "scale_inv" in t.out:
            stored = t.out.scale_inv.view(-1, blocks)
            held = stored.shape[0]
            stored.copy_(torch.where(inside[:held], scales[:held], stored))
