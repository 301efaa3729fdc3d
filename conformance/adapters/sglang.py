"""Operators of sglang-kernel, as its wheel 0.4.6 has them for SM90. README.md has what they gave on an H200."""

from __future__ import annotations

from typing import Any

import torch

from assay import Kernel

from .libraries import operators
from .libraries import version as library_version
from .operands import (FP8, codes, groups_of, offsets, require, require_groups_in_turn, require_multiples, row_scales_of_groups,
                       store_rows, weight_scales)
from .quantizers import quantize, require_rule

_ops = operators("sglang")


def _version() -> str:
    return library_version("sglang")


_D_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
_MAX = torch.finfo(FP8["e4m3"]).max
_EPSILON = 1e-10  # SGLang's callers pass it


def _block_operands(t: Any) -> list[torch.Tensor] | None:
    """What both grouped products take, or None where there is no row: x [R, K], w [G, K, N] with adjacent k, scales of x [R, K/128] and
    of w [G, K/128, N/128] with adjacent k; then i64 [G] of K, K, N (strides), i32 [G, 3] of (rows, N, K), i32 [G] first rows."""
    require_groups_in_turn(t, "fp8_block", *_D_TYPES)
    require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
    require_multiples(t, N=128, K=128)
    groups = groups_of(t)
    require(groups <= 1024, f"{groups} groups: expected at most 1024, the threads of a block")
    if t.x_rowwise_data.shape[0] == 0 or t.x_rowwise_scale_inv.numel() == 0:
        return None
    where = t.x_rowwise_data.device
    problems = torch.empty((groups, 3), dtype=torch.int32, device=where)
    problems[:, 0], problems[:, 1], problems[:, 2] = t.splits, t.N, t.K
    by_k, by_n = (torch.full((groups,), each, dtype=torch.int64, device=where) for each in (t.K, t.N))
    return [codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").view(groups, t.N, t.K).transpose(1, 2),
            row_scales_of_groups(t).contiguous(), weight_scales(t).contiguous().transpose(1, 2), by_k, by_k, by_n, problems,
            offsets(t) - t.splits.to(torch.int32)]


def _fp8_blockwise_scaled_grouped_mm(t: Any) -> None:
    operands = _block_operands(t)
    if operands is None:
        return
    x, w, x_scales, w_scales, x_strides, w_strides, d_strides, problems, first = operands
    where, groups = x.device, groups_of(t)
    pointers = torch.zeros((5, groups), dtype=torch.int64, device=where)  # which the call fills, as it does the layouts of the scales
    layouts = torch.zeros((2, groups, 5), dtype=torch.int32, device=where)
    workspace = torch.empty(1 << 22, dtype=torch.uint8, device=where)
    _ops.fp8_blockwise_scaled_grouped_mm(t.out.d, *pointers.unbind(), x, w, x_scales, w_scales, x_strides, w_strides, d_strides,
                                         *layouts.unbind(), problems, first, workspace)


def _es_fp8_blockwise_scaled_grouped_mm(t: Any) -> None:
    operands = _block_operands(t)
    if operands is None:
        return
    workspace = torch.empty(1 << 24, dtype=torch.uint8, device=operands[0].device)
    _ops.es_fp8_blockwise_scaled_grouped_mm(t.out.d, *operands, workspace)


_FEW_ROWS = 64


def _es_plan(t: Any) -> str | None:
    """By the rows of each group: groups of up to 64 go to a kernel of the transposed product, which multiplies the sum by the scale of the
    block of w and then by that of the row of x. A call with groups of both kinds has no one plan, and is judged by exact sums and bounds.
    The splits are those of the first call, also where a replay changes them."""
    few = [int(rows) <= _FEW_ROWS for rows in t.splits.tolist() if rows > 0]
    if any(few) and not all(few):
        return None
    return f"unit=sm90.wgmma.fp8,promote=128,association={'cols_first' if any(few) else 'scales_first'},subnormals=flushed"


# CUTLASS, a fresh sum for each 128 of K: added times RN(scale of the row * scale of the block), in 4.7 million elements. The library is
# built with -use_fast_math: values below 2^-126 count as 0, also products of scales (plan: subnormals=flushed).
blockwise_grouped = Kernel(_fp8_blockwise_scaled_grouped_mm, plan="sglang.sm90.fp8_block.scales_first", memory="torch", version=_version, deterministic=True,
                           batch_invariant=True)
# Found by 12 calls in which 1 to 5 words differed from scales_first: exactly those of cols_first in the groups of up to 64 rows. With this
# plan 3.2 million elements have its bits, groups of 64 and 65 rows among them; the calls of mixed groups agree with both, group by group.
es_blockwise_grouped = Kernel(_es_fp8_blockwise_scaled_grouped_mm, plan=_es_plan, memory="torch", version=_version, deterministic=True, batch_invariant=True)


def _fp8_scaled_mm(t: Any) -> None:
    require_groups_in_turn(t, "fp8_per_tensor", *_D_TYPES)
    require(t.get("scaling") == "per_row_column", "scales are those of groups: expected scales of rows and columns")
    require(not t.split_accumulator, "split_accumulator is 1: expected 0")
    require_multiples(t, N=8, K=16)
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")
    if t.x_rowwise_data.shape[0] == 0:
        return
    x, w = codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").t()
    store_rows(t, _ops.fp8_scaled_mm(x, w, t.x_rowwise_scale_inv, t.w_rowwise_scale_inv, _D_TYPES[t.d_type], None))


def _row_column_plan(t: Any) -> str:
    """Up to 64 rows the operands are swapped, and with them the order of the scales."""
    order = "rows_first" if t.x_rowwise_data.shape[0] <= 64 else "cols_first"
    return f"unit=sm90.wgmma.fp8,scale_vectors={order},subnormals=flushed"


# One sum over K, times the scale of the column and then that of the row, with fast math as above.
scaled_mm = Kernel(_fp8_scaled_mm, plan=_row_column_plan, memory="torch", version=_version, deterministic=True)

_GROUPS = ("1x128", "1x64", "1x32", "1x16")
_STORAGES = ("k_major", "k_major_per_group", "mn_major", "tma_aligned")


def _require_blocks(t: Any, preset: str) -> int:
    require_rule(t, preset, blocks=_GROUPS, storages=_STORAGES)
    columns = int(t.block[2:])
    require(t.x.shape[1] % columns == 0, f"K is {t.x.shape[1]}: expected a multiple of {columns}")
    return columns


def _group_v1(t: Any) -> None:
    columns = _require_blocks(t, "sglang.group_v1")
    quantize(t, columns, lambda x, q, s: _ops.sgl_per_token_group_quant_8bit(x, q, s, columns, _EPSILON, -_MAX, _MAX, False))


def _group_v2(t: Any) -> None:
    columns = _require_blocks(t, "sglang.group_v2")
    require(t.formats["x"] != "f32", "x is f32: expected bf16 or f16")
    call = _ops.sgl_per_token_group_quant_8bit_v2
    quantize(t, columns, lambda x, q, s: call(x, q, s, columns, _EPSILON, -_MAX, _MAX, False, False, None))


def _per_token(t: Any) -> None:
    require(t.op == "quantize_by_rule", f"the op is {t.op}: expected quantize_by_rule")
    rows, columns = t.x.shape
    # From 16 rows a multiprocessor on another kernel runs, with another rule for rows of zeros.
    many = t.x.is_cuda and rows >= 16 * torch.cuda.get_device_properties(t.x.device).multi_processor_count
    require_rule(t, "sglang.per_token.many" if many else "sglang.per_token", storages=("k_major", "k_major_per_group", "mn_major"))
    require(columns % 4 == 0, f"K is {columns}: expected a multiple of 4")
    quantize(t, columns, _ops.sgl_per_token_quant_fp8)


# The rules are those of the presets, every code and scale of which a recording on an H200 had (device_peers.h5).
group_v1 = Kernel(_group_v1, memory="torch", version=_version, deterministic=True)
group_v2 = Kernel(_group_v2, memory="torch", version=_version, deterministic=True)
per_token = Kernel(_per_token, memory="torch", version=_version, deterministic=True)
