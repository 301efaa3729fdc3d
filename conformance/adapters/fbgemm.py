"""Operators of FBGEMM GenAI, as its wheel 1.6.0 has them for SM90. README.md has what they gave on an H200."""

from __future__ import annotations

from typing import Any

import torch

from assay import Kernel

from .libraries import operators, shows
from .libraries import version as library_version
from .operands import (FP8, codes, groups_of, require, require_groups_in_turn, require_multiples, row_scales_of_groups,
                       store_rows, weight_scales)
from .quantizers import quantize, require_rule

_ops = operators("fbgemm")


def _version() -> str:
    return library_version("fbgemm")


def _require_one_group(t: Any) -> None:
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")


def _has_rows(t: Any, x: torch.Tensor) -> bool:
    return x.shape[0] > 0 and groups_of(t) > 0


def scales_by_groups(t: Any) -> torch.Tensor:
    """Scales of 1x128 blocks of x: f32 [K/128, R], of which each group of M rows has the next M K/128 elements, as [K/128, M]. Rows
    beyond the splits have 1."""
    scales = row_scales_of_groups(t)
    rows, blocks = scales.shape
    where = scales.device
    splits = t.splits.to(torch.int64)
    ends = torch.cumsum(splits, 0)
    row = torch.arange(rows, device=where)
    group = torch.searchsorted(ends, row, right=True).clamp(max=splits.shape[0] - 1)
    first, inside = (ends - splits)[group], row < ends[-1]
    block = torch.arange(blocks, device=where)[None, :]
    place = torch.where(inside[:, None], (first * blocks + row - first)[:, None] + block * splits[group][:, None],
                        (row * blocks)[:, None] + block)
    return torch.empty_like(scales).view(-1).scatter_(0, place.view(-1), scales.contiguous().view(-1)).view(blocks, rows)


def _block_scales(t: Any) -> torch.Tensor:
    """Scales of 128x128 blocks of w: f32 [G, K/128, N/128]."""
    return weight_scales(t).transpose(1, 2).contiguous()


def _require_blocks(t: Any) -> None:
    require_groups_in_turn(t, "fp8_block", "bf16")
    require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
    require_multiples(t, N=128, K=128)


def _groupwise_grouped(t: Any) -> None:
    _require_blocks(t)
    x = codes(t, "x_rowwise_data")
    if not _has_rows(t, x) or t.x_rowwise_scale_inv.numel() == 0:
        return
    store_rows(t, _ops.f8f8bf16_groupwise_grouped(x, codes(t, "w_rowwise_data").view(-1, t.N, t.K), scales_by_groups(t), _block_scales(t),
                                                  t.splits.to(torch.int64)))


def _groupwise(t: Any) -> None:
    _require_blocks(t)
    _require_one_group(t)
    x = codes(t, "x_rowwise_data")
    # Where it is not, the kernel's descriptor of the scales is not initialised, and the call ends with an illegal instruction.
    require(x.shape[0] % 4 == 0 or shows("ASSAY-0005"), f"{x.shape[0]} rows: expected a multiple of 4")
    if not _has_rows(t, x) or t.x_rowwise_scale_inv.numel() == 0:
        return
    store_rows(t, _ops.f8f8bf16_groupwise(x, codes(t, "w_rowwise_data"), row_scales_of_groups(t).t().contiguous(), _block_scales(t)[0]))


# CUTLASS, a fresh sum for each 128 of K: added times RN(scale of the row * scale of the block), in 4.3 and 0.6 million elements.
groupwise_grouped = Kernel(_groupwise_grouped, plan="fbgemm.sm90.fp8_block.scales_first", memory="torch", version=_version, deterministic=True,
                           batch_invariant=True)
groupwise = Kernel(_groupwise, plan="fbgemm.sm90.fp8_block.scales_first", memory="torch", version=_version, deterministic=True)


def _require_row_column(t: Any) -> None:
    require_groups_in_turn(t, "fp8_per_tensor", "bf16")
    require(t.get("scaling") == "per_row_column", "scales are those of groups: expected scales of rows and columns")
    require_multiples(t, N=16, K=16)


def _rowwise(t: Any) -> None:
    _require_row_column(t)
    _require_one_group(t)
    x = codes(t, "x_rowwise_data")
    if not _has_rows(t, x):
        return
    store_rows(t, _ops.f8f8bf16_rowwise(x, codes(t, "w_rowwise_data"), t.x_rowwise_scale_inv, t.w_rowwise_scale_inv, None,
                                        not t.split_accumulator))


def _rowwise_grouped(t: Any) -> None:
    _require_row_column(t)
    require(not t.split_accumulator, "split_accumulator is 1: expected 0")
    x = codes(t, "x_rowwise_data")
    if not _has_rows(t, x):
        return
    store_rows(t, _ops.f8f8bf16_rowwise_grouped_stacked(x, codes(t, "w_rowwise_data").view(-1, t.N, t.K), t.x_rowwise_scale_inv,
                                                        t.w_rowwise_scale_inv.view(-1, t.N), t.splits.to(torch.int64)))


# One sum over K (promoted every 128 where that is asked for), times the scale of the row and then that of the column, in 1.5 and
# 3.6 million elements: the other order than SGLang and vLLM have.
rowwise = Kernel(_rowwise, plan=lambda t: f"fbgemm.sm90.fp8_rowwise.{'split' if t.get('split_accumulator') else 'fast'}", memory="torch", version=_version,
                 deterministic=True)
rowwise_grouped = Kernel(_rowwise_grouped, plan="fbgemm.sm90.fp8_rowwise.fast", memory="torch", version=_version, deterministic=True, batch_invariant=True)


def _bf16_grouped(t: Any) -> None:
    require_groups_in_turn(t, "bf16", "bf16")
    require_multiples(t, N=8, K=8)
    if not _has_rows(t, t.x):
        return
    _ops.bf16bf16bf16_grouped_stacked(t.x, t.w.view(-1, t.N, t.K), t.splits.to(torch.int64), t.out.d)


# One sum over K, in 2.8 million elements.
bf16_grouped = Kernel(_bf16_grouped, plan="fbgemm.sm90.bf16", memory="torch", version=_version, deterministic=True, batch_invariant=True)


def _quantize_per_row(t: Any) -> None:
    require_rule(t, "fbgemm.per_row", storages=("k_major", "k_major_per_group", "mn_major"), otypes=("e4m3", "e5m2"))

    def call(x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> None:
        made, of_rows = _ops.quantize_fp8_per_row(x, None, None, FP8[t.otype])
        codes.view(torch.uint8).copy_(made.view(torch.uint8))
        scales.copy_(of_rows.view(-1, 1))

    quantize(t, t.x.shape[1], call)


# The rule is that of the preset, every code and scale of which a recording on an H200 had (device_peers.h5), where x is bf16. The operator
# takes x of f16 and f32 too, and reads its bytes as bf16: these cases fail, with exactly the codes and scales of such a reading.
per_row = Kernel(_quantize_per_row, memory="torch", version=_version, deterministic=True)
