"""Kernels in Triton, written here after what DeepSeek-V3 and torchao do. Judged with Triton 3.6 on an H200: README.md."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from assay import Kernel

from .operands import codes, groups_of, require, require_multiples, require_plain_product, row_scales_of_groups, weight_scales

_ROWS, _COLUMNS = 64, 128  # of a tile; K goes by its blocks of scales, 128


@triton.jit
def _block_products(x, w, x_scales, w_scales, d, splits, groups, n, k, rows: tl.constexpr, columns: tl.constexpr):
    """One tile of D: rows of one group, found by walking the splits, times 128 columns of its w.

        tile 0    1    2    3    4      splits = 100, 0, 150 and tiles of 64 rows: tiles 0, 1 are of group 0,
             |group 0 |  group 2   |   2 to 4 of group 2; tiles beyond the last group have nothing to do
    """
    tile, column_tile = tl.program_id(0), tl.program_id(1)
    group, first, end, before = 0, 0, 0, 0
    found = False
    row_end = 0
    for g in range(groups):
        count = tl.load(splits + g).to(tl.int32)
        tiles = (count + rows - 1) // rows
        here = (tile >= before) & (tile < before + tiles)
        group = tl.where(here, g, group)
        first = tl.where(here, row_end + (tile - before) * rows, first)
        end = tl.where(here, row_end + count, end)
        found = found | here
        before += tiles
        row_end += count
    if found:
        row = first + tl.arange(0, rows)
        column = column_tile * columns + tl.arange(0, columns)
        inside = row < end
        row64 = row.to(tl.int64)
        w_row = (group * n + column).to(tl.int64)
        blocks = k // 128
        total = tl.zeros((rows, columns), tl.float32)
        for block in range(blocks):
            depth = block * 128 + tl.arange(0, 128)
            a = tl.load(x + row64[:, None] * k + depth[None, :], mask=inside[:, None], other=0.0)
            b = tl.load(w + w_row[None, :] * k + depth[:, None])
            of_rows = tl.load(x_scales + row64 * blocks + block, mask=inside, other=0.0)
            of_columns = tl.load(w_scales + (group * (n // columns) + column_tile) * blocks + block)
            total += tl.dot(a, b) * of_rows[:, None] * of_columns
        tl.store(d + row64[:, None] * n + column[None, :], total.to(d.dtype.element_ty), mask=inside[:, None])


def _fp8_block(t: Any) -> None:
    require(t.op == "grouped_gemm" and t.kind == "fp8_block" and t.layout == "TN", "not a product of FP8 blocks in layout TN")
    require(t.get("grouped_layout", "splits") == "splits", "groups do not follow one another")
    require_plain_product(t)
    require(t.weight_block == "128x128", f"weight_block is {t.weight_block}: expected 128x128")
    require(t.d_type in ("bf16", "f16", "f32"), f"d_type is {t.d_type}: expected bf16, f16 or f32")
    require_multiples(t, N=128, K=128)
    rows, groups = t.x_rowwise_data.shape[0], groups_of(t)
    tiles = rows // _ROWS + groups  # at most so many, whatever the splits are
    _block_products[(tiles, t.N // _COLUMNS)](codes(t, "x_rowwise_data"), codes(t, "w_rowwise_data"), row_scales_of_groups(t).contiguous(),
                                              weight_scales(t).contiguous(), t.out.d, t.splits, groups, t.N, t.K, _ROWS, _COLUMNS)


# DeepSeek-V3's fp8_gemm: a fresh product for each block of K, times the scale of the row, times that of the columns.
fp8_block = Kernel(_fp8_block, plan="triton.sm90.fp8_block.rows_first", memory="torch", version=f"Triton {triton.__version__}", deterministic=True, batch_invariant=True)


@triton.jit
def _quantize_row_blocks(x, values, scales, columns, scale_stride):
    """Codes and scale of 128 elements of a row."""
    row, block = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = block * 128 + tl.arange(0, 128)
    inside = column < columns
    given = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(given)), 1e-4) / 448.0
    tl.store(values + row * columns + column, (given / scale).to(values.dtype.element_ty), mask=inside)
    tl.store(scales + row * scale_stride + block, scale)


def _row_blocks(t: Any) -> None:
    require(t.op == "quantize_by_rule" and t.get("preset") == "deepseek_v3.cuda", "not a quantization with preset=deepseek_v3.cuda")
    require("splits" not in t.inputs, "x has groups: expected one tensor")
    require(t.storage == "k_major" and t.transposed == 0 and t.otype == "e4m3" and t.block == "1x128",
            "expected storage=k_major transposed=0 otype=e4m3 block=1x128")
    rows, columns = t.x.shape
    require(rows > 0 and columns > 0, "x is empty")
    blocks = triton.cdiv(columns, 128)
    _quantize_row_blocks[(rows, blocks)](t.x, t.out.data.view(torch.float8_e4m3fn), t.out.scale_inv, columns, blocks)


# DeepSeek-V3's act_quant: Triton divides by 448 as a product with its reciprocal, and x by the scale approximately.
act_quant = Kernel(_row_blocks, memory="torch", version=f"Triton {triton.__version__}", deterministic=True)
