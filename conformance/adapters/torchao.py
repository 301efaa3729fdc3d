"""Triton kernels of torchao, as its wheel 0.18.0 has them for FP8 training with blocks. README.md has what they gave.

Each is tuned when it meets a K, or an N and a K, for the first time: some seconds, in which it runs many times.
"""

from __future__ import annotations

from typing import Any

import torch
from torchao.prototype.blockwise_fp8_training import kernels as _ops

from assay import Kernel

from .libraries import distribution
from .operands import codes, groups_of, require, require_groups_in_turn, require_multiples, row_scales_of_groups, store_rows, weight_scales
from .quantizers import quantize, require_rule, scales_in_storage

_D_TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def _version() -> str:
    return distribution("torchao")


def _act_quant(t: Any) -> None:
    require_rule(t, "torchao.block.triton", blocks=("1x128",), storages=("k_major", "k_major_per_group", "mn_major"))
    require(t.x.shape[1] % 128 == 0, f"K is {t.x.shape[1]}: expected a multiple of 128")

    def call(x: torch.Tensor, made: torch.Tensor, scales: torch.Tensor) -> None:
        values, of_blocks = _ops.triton_fp8_blockwise_act_quant_lhs(x)
        made.copy_(values)
        scales.copy_(of_blocks)

    quantize(t, 128, call)


def _weight_quant(t: Any) -> None:
    """Codes come with adjacent rows, as the right operand of a product has them."""
    require_rule(t, "torchao.block.triton", blocks=("128x128",), storages=("k_major", "mn_major"))
    require("splits" not in t.inputs, "x has groups: expected one tensor")
    rows, columns = t.x.shape
    require(rows > 0 and rows % 128 == 0 and columns % 128 == 0, f"x is [{rows}, {columns}]: expected multiples of 128")
    values, of_blocks = _ops.triton_fp8_blockwise_weight_quant_rhs(t.x)
    if "data" in t.out:
        t.out.data.view(values.dtype).copy_(values)
    if "scale_inv" in t.out:
        scales_in_storage(t, rows // 128, columns // 128).copy_(of_blocks)


def _gemm(t: Any) -> None:
    require_groups_in_turn(t, "fp8_block", *_D_TYPES)
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")
    require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
    require_multiples(t, N=128, K=128)
    x = codes(t, "x_rowwise_data")
    if x.shape[0] == 0:
        return
    of_rows = row_scales_of_groups(t)
    scales = torch.empty_strided(of_rows.shape, (1, x.shape[0]), dtype=of_rows.dtype, device=of_rows.device).copy_(of_rows)  # adjacent rows
    of_blocks = weight_scales(t)[0].contiguous().t()
    store_rows(t, _ops.triton_fp8_gemm_1x128_128x128(x, codes(t, "w_rowwise_data").t(), scales, of_blocks, 128, _D_TYPES[t.d_type]))


# The preset's codes and scales are those of a recording on an H200 (device_peers.h5).
act_quant = Kernel(_act_quant, memory="torch", version=_version, deterministic=True)
weight_quant = Kernel(_weight_quant, memory="torch", version=_version, deterministic=True)
# A fresh product for each block of K, times the scale of the row, times that of the block: in one sum, whatever the tile is.
gemm = Kernel(_gemm, plan="triton.sm90.fp8_block.rows_first", memory="torch", version=_version, deterministic=True)
