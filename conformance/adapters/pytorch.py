"""PyTorch's own operators. Judged with torch 2.11.0 on an H200: README.md."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from assay import Kernel

from .operands import (codes, groups_of, offsets, require, require_multiples, require_plain_product, row_scales_of_groups,
                       store_rows)


def _bf16_products(t: Any) -> None:
    """torch._grouped_mm: groups of rows (TN, NN), or of the contraction (NT)."""
    require(t.op == "grouped_gemm" and t.kind == "bf16" and t.get("grouped_layout", "splits") == "splits", "not a product of BF16 groups")
    require_plain_product(t)
    require(t.d_type == "bf16", f"d_type is {t.d_type}: expected bf16")
    require_multiples(t, N=8, K=8)
    if t.layout == "TN":
        store_rows(t, torch._grouped_mm(t.x, t.w.view(-1, t.N, t.K).transpose(1, 2), offs=offsets(t)))
    elif t.layout == "NN":
        store_rows(t, torch._grouped_mm(t.dy, t.w.view(-1, t.N, t.K), offs=offsets(t)))
    else:
        t.out.d.copy_(torch._grouped_mm(t.dy.t(), t.x, offs=offsets(t)).view(-1, t.K))


# One chain of the unit's steps over K: third-party kernels of CUTLASS and cuBLASLt agree in it.
grouped_mm = Kernel(_bf16_products, plan="cublaslt.sm90.bf16", memory="torch", deterministic=True)


def _tensor_plan(t: Any) -> str:
    return "unit=sm90.wgmma.fp8" + (",promote=128" if t.split_accumulator else "")


def _row_column_products(t: Any) -> None:
    """torch._scaled_grouped_mm: a scale for each row of x and of w."""
    require(t.op == "grouped_gemm" and t.kind == "fp8_per_tensor" and t.layout == "TN", "not a product of FP8 in layout TN")
    require(t.get("grouped_layout", "splits") == "splits", "groups do not follow one another")
    require(t.get("scaling") == "per_row_column", "scales are those of groups: expected scales of rows and columns")
    require_plain_product(t)
    require(t.d_type == "bf16", f"d_type is {t.d_type}: expected bf16")
    require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
    require_multiples(t, N=16, K=16)
    w = codes(t, "w_rowwise_data").view(-1, t.N, t.K)
    store_rows(t, torch._scaled_grouped_mm(codes(t, "x_rowwise_data"), w.transpose(1, 2), t.x_rowwise_scale_inv,
                                           t.w_rowwise_scale_inv.view(-1, t.N), offs=offsets(t), out_dtype=torch.bfloat16,
                                           use_fast_accum=not t.split_accumulator))


# CUTLASS, whose epilogue multiplies the sum by the scale of the row and then by that of the column: the other order than _scaled_mm.
scaled_grouped_mm = Kernel(_row_column_products, plan=lambda t: _tensor_plan(t) + ",scale_vectors=rows_first", memory="torch",
                           deterministic=True)


def _one_group(t: Any, arch: str = "sm90", **multiples: int) -> None:
    require(t.op == "grouped_gemm" and t.layout == "TN" and t.get("grouped_layout", "splits") == "splits", "not a product in layout TN")
    require_plain_product(t, arch)
    require_multiples(t, **multiples)
    require(groups_of(t) == 1, f"{groups_of(t)} groups: expected one")
    require(t.x_rowwise_data.shape[0] > 0, "there are no rows")


_D_TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


def _dense_tensorwise(t: Any) -> None:
    require(t.kind == "fp8_per_tensor" and t.get("scaling", "per_group") == "per_group", "not a product with a scale for each operand")
    _one_group(t, N=16, K=16)
    require(t.d_type in _D_TYPES, f"d_type is {t.d_type}: expected f32, bf16 or f16")
    require("e4m3" in (t.formats["x_rowwise_data"], t.formats["w_rowwise_data"]), "both operands are E5M2")
    store_rows(t, torch._scaled_mm(codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").t(), t.x_rowwise_scale_inv[0], t.w_rowwise_scale_inv[0],
                                   out_dtype=_D_TYPES[t.d_type], use_fast_accum=not t.split_accumulator))


# cuBLASLt, through torch._scaled_mm.
scaled_mm_tensorwise = Kernel(_dense_tensorwise, plan=_tensor_plan, memory="torch", deterministic=True)


def _dense_row_column(t: Any) -> None:
    require(t.kind == "fp8_per_tensor" and t.get("scaling") == "per_row_column", "not a product with scales of rows and columns")
    _one_group(t, N=16, K=16)
    require(t.d_type == "bf16", f"d_type is {t.d_type}: expected bf16")
    require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
    rows = t.x_rowwise_data.shape[0]
    store_rows(t, torch._scaled_mm(codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").t(), t.x_rowwise_scale_inv[:rows].view(-1, 1),
                                   t.w_rowwise_scale_inv.view(1, -1), out_dtype=torch.bfloat16, use_fast_accum=not t.split_accumulator))


scaled_mm_rowwise = Kernel(_dense_row_column, plan=lambda t: _tensor_plan(t) + ",scale_vectors=cols_first", memory="torch",
                           deterministic=True)


def _dense_blocks(t: Any) -> None:
    require(t.kind == "fp8_block", "not a product of FP8 blocks")
    _one_group(t, N=128, K=128)
    require(t.x_rowwise_data.shape[0] % 4 == 0, f"{t.x_rowwise_data.shape[0]} rows: expected a multiple of 4")
    require(t.d_type in ("bf16", "f32"), f"d_type is {t.d_type}: expected bf16 or f32")
    require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is E5M2: expected E4M3")
    rows, blocks = t.x_rowwise_data.shape[0], t.K // 128
    x_scales = torch.empty_strided((rows, blocks), (1, rows), device=t.x_rowwise_data.device)  # the strides also of one row
    x_scales.copy_(row_scales_of_groups(t))
    if t.weight_block == "128x128":
        w_scales, recipe = t.w_rowwise_scale_inv.view(t.N // 128, -1).t(), F.ScalingType.BlockWise128x128  # [K/128 up to 4, N/128]
    else:
        w_scales, recipe = t.w_rowwise_scale_inv.view(blocks, t.N).t(), F.ScalingType.BlockWise1x128
    store_rows(t, F.scaled_mm(codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").t(), x_scales, F.ScalingType.BlockWise1x128, w_scales,
                              recipe, output_dtype=_D_TYPES[t.d_type]))


def _block_plan(t: Any) -> str:
    return f"torch.sm90.fp8_block.{'rows_first' if t.weight_block == '1x128' else 'scales_first'}"


scaled_mm_blockwise = Kernel(_dense_blocks, plan=_block_plan, memory="torch", deterministic=True)


def _require_swizzled(t: Any, kind: str, block: int) -> None:
    """Block scales in tiles of 128 x 4 for all rows of x: there are none for rows beyond the splits."""
    require(t.kind == kind, f"not a product of kind {kind}")
    _one_group(t, arch="sm100", N=16, K=32)
    require(t.scale_layout == "swizzled", f"scale_layout is {t.scale_layout}: expected swizzled")
    require(t.d_type in ("bf16", "f32"), f"d_type is {t.d_type}: expected bf16 or f32")
    rows, blocks = t.x_rowwise_data.shape[0], -(-t.K // block)
    require(t.x_rowwise_scale_inv.numel() == -(-rows // 128) * 128 * -(-blocks // 4) * 4, "there are rows beyond the splits")


_SWIZZLE = F.SwizzleType.SWIZZLE_32_4_4


def _dense_mx(t: Any) -> None:
    _require_swizzled(t, "mxfp8", 32)
    require(t.formats["x_rowwise_data"] == "e4m3" and t.formats["w_rowwise_data"] == "e4m3", "an operand is not E4M3: expected E4M3")
    scales = [each.view(torch.float8_e8m0fnu) for each in (t.x_rowwise_scale_inv, t.w_rowwise_scale_inv)]
    recipe = F.ScalingType.BlockWise1x32
    store_rows(t, F.scaled_mm(codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data").t(), scales[0], recipe, scales[1], recipe, _SWIZZLE,
                              _SWIZZLE, output_dtype=_D_TYPES[t.d_type]))


def _dense_nvfp4(t: Any) -> None:
    """Two levels of scales: those of 16 elements, and one of the tensor, amax / (6 * 448)."""
    _require_swizzled(t, "nvfp4", 16)
    x, w = (each.view(torch.float4_e2m1fn_x2) for each in (t.x_rowwise_data, t.w_rowwise_data))
    scales = [[each.view(torch.float8_e4m3fn), amax / (6 * 448)] for each, amax in
              ((t.x_rowwise_scale_inv, t.x_rowwise_amax), (t.w_rowwise_scale_inv, t.w_rowwise_amax))]
    recipe = [F.ScalingType.BlockWise1x16, F.ScalingType.TensorWise]
    swizzles = [_SWIZZLE, F.SwizzleType.NO_SWIZZLE]
    store_rows(t, F.scaled_mm(x, w.t(), scales[0], recipe, scales[1], recipe, swizzles, swizzles, output_dtype=_D_TYPES[t.d_type]))


# For SM100, on which nothing was measured: without a plan, D is judged by exact sums and bounds. On SM90 PyTorch has neither.
scaled_mm_mx = Kernel(_dense_mx, memory="torch", deterministic=True)
scaled_mm_nvfp4 = Kernel(_dense_nvfp4, memory="torch", deterministic=True)
