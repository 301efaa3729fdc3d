"""Operators of vLLM, as its wheel 0.26.0 has them for SM90. README.md has what they gave on an H200."""

from __future__ import annotations

from typing import Any

import torch

from assay import Kernel

from .libraries import operators
from .libraries import version as library_version
from .operands import (FP8, codes, groups_of, require, require_groups_in_turn, require_multiples, row_scales_of_groups,
                       store_rows, weight_scales)
from .quantizers import quantize, require_rule

_ops = operators("vllm")


def _version() -> str:
    return library_version("vllm")


_D_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
_MAX = torch.finfo(FP8["e4m3"]).max
_SWAPPED_TO = 64  # rows in all up to which cutlass_moe_mm computes the transposed product, and wants the sizes so


def _require_row_column(t: Any) -> None:
    require_groups_in_turn(t, "fp8_per_tensor", *_D_TYPES)
    require(t.get("scaling") == "per_row_column", "scales are those of groups: expected scales of rows and columns")
    require(not t.split_accumulator, "split_accumulator is 1: expected 0")
    require_multiples(t, N=16, K=16)


def _require_one_group(t: Any) -> None:
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")


def _scaled_mm_blocks(t: Any) -> None:
    """Rows are padded to a multiple of 4, as vLLM does before it calls the operator: scales of 4 rows are loaded together."""
    require_groups_in_turn(t, "fp8_block", *_D_TYPES)
    require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
    require_multiples(t, N=128, K=128)
    _require_one_group(t)
    x = codes(t, "x_rowwise_data")
    rows = x.shape[0]
    if rows == 0 or t.x_rowwise_scale_inv.numel() == 0:
        return
    padded = (rows + 3) // 4 * 4
    x_scales = torch.ones((t.K // 128, padded), dtype=torch.float32, device=x.device).t()
    x_scales[:rows] = row_scales_of_groups(t)
    if padded > rows:
        x = torch.cat([x.view(torch.uint8), torch.zeros((padded - rows, t.K), dtype=torch.uint8, device=x.device)]).view(x.dtype)
    d = torch.empty((padded, t.N), dtype=_D_TYPES[t.d_type], device=x.device)
    w_scales = weight_scales(t)[0].contiguous().t()
    _ops.cutlass_scaled_mm(d, x, codes(t, "w_rowwise_data").t(), x_scales, w_scales, None)
    store_rows(t, d[:rows])


def _block_plan(t: Any) -> str:
    """With one block of K and of N there are as many scales as a product with scales of rows and of a tensor has: the operator takes the
    kernel for these, which multiplies by one scale after the other."""
    return f"vllm.sm90.fp8_block.{'cols_first' if t.N == 128 and t.K == 128 else 'scales_first'}"


# CUTLASS, a fresh sum for each 128 of K: added times RN(scale of the row * scale of the block), in 1.3 million elements.
scaled_mm_blocks = Kernel(_scaled_mm_blocks, plan=_block_plan, memory="torch", version=_version, deterministic=True)


def _scaled_mm(t: Any) -> None:
    _require_row_column(t)
    _require_one_group(t)
    x = codes(t, "x_rowwise_data")
    if x.shape[0] == 0:
        return
    d = torch.empty(t.out.d.shape, dtype=_D_TYPES[t.d_type], device=x.device)
    _ops.cutlass_scaled_mm(d, x, codes(t, "w_rowwise_data").t(), t.x_rowwise_scale_inv.view(-1, 1), t.w_rowwise_scale_inv.view(1, -1), None)
    store_rows(t, d)


def _moe_mm(t: Any) -> None:
    _require_row_column(t)
    x, groups = codes(t, "x_rowwise_data"), groups_of(t)
    require(groups <= 1024, f"{groups} groups: expected at most 1024, the threads of a block")
    rows = x.shape[0]
    if rows == 0 or groups == 0:
        return
    sizes = torch.empty((groups, 3), dtype=torch.int32, device=x.device)
    of_rows, of_columns = (1, 0) if rows <= _SWAPPED_TO else (0, 1)
    sizes[:, of_rows], sizes[:, of_columns], sizes[:, 2] = t.splits, t.N, t.K
    by_k, by_n = (torch.full((groups,), each, dtype=torch.int64, device=x.device) for each in (t.K, t.N))
    first = torch.cumsum(t.splits.to(torch.int64), 0) - t.splits
    _ops.cutlass_moe_mm(t.out.d, x, codes(t, "w_rowwise_data").view(groups, t.N, t.K).transpose(1, 2), t.x_rowwise_scale_inv.view(-1, 1),
                        t.w_rowwise_scale_inv.view(groups, t.N), first, sizes, by_k, by_k, by_n, True, True)


def _row_column_plan(t: Any) -> str:
    """Where operands are swapped, the order of the scales is too."""
    order = "rows_first" if t.x_rowwise_data.shape[0] <= _SWAPPED_TO else "cols_first"
    return f"unit=sm90.wgmma.fp8,scale_vectors={order}"


# One sum over K, times the scale of the column and then that of the row; up to 64 rows in all it is the other order.
scaled_mm = Kernel(_scaled_mm, plan=_row_column_plan, memory="torch", version=_version, deterministic=True)
moe_mm = Kernel(_moe_mm, plan=_row_column_plan, memory="torch", version=_version, deterministic=True, batch_invariant=True)

_PRESETS = {"vllm.group": False, "vllm.group.ue8m0.log2": True}  # this version finds the power of two by log2f


def _per_token_group(t: Any) -> None:
    require_rule(t, *_PRESETS, blocks=("1x128", "1x64", "1x32"), storages=("k_major", "k_major_per_group", "mn_major"))
    columns = int(t.block[2:])
    require(t.x.shape[1] % columns == 0, f"K is {t.x.shape[1]}: expected a multiple of {columns}")
    power = _PRESETS[t.preset]
    quantize(t, columns, lambda x, q, s: _ops.per_token_group_fp8_quant(x, q, s, columns, 1e-10, -_MAX, _MAX, power, False, False))


def _dynamic_per_token(t: Any) -> None:
    require_rule(t, "vllm.per_token", storages=("k_major", "k_major_per_group", "mn_major"))
    quantize(t, t.x.shape[1], lambda x, q, s: _ops.dynamic_per_token_scaled_fp8_quant(q, x, s, None))


# The rules are those of the presets, every code and scale of which a recording on an H200 had (device_peers.h5).
per_token_group = Kernel(_per_token_group, memory="torch", version=_version, deterministic=True)
per_token = Kernel(_dynamic_per_token, memory="torch", version=_version, deterministic=True)
