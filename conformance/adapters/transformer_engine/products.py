"""Products: BF16, FP16, FP8 per tensor and by blocks, a cuBLASLt product for each group.

On SM90 the library takes FP8 operands as rows of the contraction only: for NN and NT it reads the transposed, columnwise codes.
"""

from __future__ import annotations

import ctypes as c
from typing import Any

import torch

from .. import nvte
from ..nvte import BLOCK_1D, BLOCK_2D, TENSOR, Array, List, Tensor, array, call, round_up
from ..operands import require, require_arch
from .calls import operator, placed_by, require_multiples_of, require_op, row_offsets, rows_of_groups, scratch

# Rowwise or columnwise codes of the two operands, the second one first, which is A of the library.
OPERANDS = {"TN": (("w", "rowwise"), ("x", "rowwise")), "NN": (("w", "columnwise"), ("dy", "rowwise")),
             "NT": (("x", "columnwise"), ("dy", "columnwise"))}
TRANSPOSED = {"TN": (1, 0), "NN": (0, 0), "NT": (0, 1)}
_KINDS = ("bf16", "f16", "fp8_per_tensor", "fp8_block")
WORKSPACE = 32 << 20  # bytes, as TransformerEngine's modules have it on Hopper


def require_product(t: Any) -> None:
    require_op(t, "grouped_gemm")
    require(t.kind in _KINDS, f"kind is {t.kind}: on SM90 expected {' or '.join(_KINDS)}")
    require(t.get("grouped_layout", "splits") == "splits", f"grouped_layout is {t.get('grouped_layout')}: expected splits")
    require(t.get("scaling", "per_group") == "per_group", "scaling is per_row_column: expected a scale for each operand")
    require_arch(t)
    require(t.d_type in ("f32", "bf16", "f16"), f"d_type is {t.d_type}: expected f32, bf16 or f16")
    require(isinstance(t.alpha, float) and isinstance(t.beta, float), "each group has its alpha or beta: expected one for the call")
    require(t.N > 0 and t.K > 0, "N or K is 0")
    if t.kind in ("bf16", "f16"):
        require(t.d_type in (t.kind, "f32"), f"d_type is {t.d_type}: expected {t.kind} or f32")
        require(t.N % 8 == 0 and t.K % 8 == 0, f"N {t.N} and K {t.K}: expected multiples of 8, rows of 16 bytes")
        return
    names = [f"{name}_{along}_data" for name, along in OPERANDS[t.layout]]
    for name in names:
        require(name in t.inputs, f"{name} is not given: SM90 has no other storage for layout {t.layout}")
    require("e4m3" in [t.formats[name] for name in names], "both operands are E5M2: cuBLASLt has no such product")
    require(t.N % 16 == 0 and t.K % 16 == 0, f"N {t.N} and K {t.K}: expected multiples of 16")


def _require_rows(t: Any, splits: list[int]) -> None:
    """The library checks a group after it has computed those before it."""
    require(t.layout != "NT" or t.beta in (0.0, 1.0) or all(rows > 0 for rows in splits),
            "a group is empty and beta neither 0 nor 1: the library has no product over no rows")
    if t.kind in ("bf16", "f16"):
        return
    unit = 16 if t.layout == "NT" else 8 if t.kind == "fp8_block" else 1
    require_multiples_of(splits, unit, ", which the library checks")


def _shapes(t: Any, rows: int) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Shapes of A, B and D of one group, as their rows lie: not those of transposed codes."""
    return {"TN": ((t.N, t.K), (rows, t.K), (rows, t.N)), "NN": ((t.N, t.K), (rows, t.N), (rows, t.K)),
            "NT": ((rows, t.K), (rows, t.N), (t.N, t.K))}[t.layout]


def _operand(t: Any, name: str, along: str, shape: tuple[int, int], group: int, first: int, place: int) -> tuple[Tensor, int]:
    """The operand of a group, and where the scales of the next group begin. `first`: its first row."""
    rows, columns = shape
    at = first * columns
    if t.kind in ("bf16", "f16"):
        return Tensor(data=array(t.inputs[name], shape=shape, first=at)), 0
    codes, scales, kind = t.inputs[f"{name}_{along}_data"], t.inputs[f"{name}_{along}_scale_inv"], t.formats[f"{name}_{along}_data"]
    data, scale_inv = ("data", "scale_inv") if along == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
    stored = shape if along == "rowwise" else (columns, rows)
    fields: dict[str, Any] = {data: array(codes, kind, stored, at)}
    if t.kind == "fp8_per_tensor":
        return Tensor(TENSOR, **fields, **{scale_inv: _aligned(scales[group])}), 0
    tall, wide = stored
    square = name == "w" and t.weight_block == "128x128"
    extents = ((tall + 127) // 128, round_up((wide + 127) // 128, 4)) if square else ((wide + 127) // 128, round_up(tall, 4))
    fields[scale_inv] = array(scales, shape=extents, first=place)
    return Tensor(BLOCK_2D if square else BLOCK_1D, **fields), place + extents[0] * extents[1]


def _aligned(scale: torch.Tensor) -> Array:
    """A scale where cuBLASLt takes one, at a multiple of 16 bytes; TransformerEngine has each in a tensor of its own."""
    return array(scale.clone() if scale.data_ptr() % 16 else scale, shape=(1,))


def _groups(t: Any) -> list[tuple[Tensor, Tensor, Tensor, int]]:
    """(A, B, D, rows) of each group. D holds what is added to."""
    (a, a_along), (b, b_along) = OPERANDS[t.layout]
    d = t.out.d
    total = next(t.inputs[name] for name in ("dy" if t.layout != "TN" else "x", f"{b}_{b_along}_data") if name in t.inputs).numel() // (
        t.K if t.layout == "TN" else t.N)
    splits = rows_of_groups(t, total)
    _require_rows(t, splits)
    if t.beta != 0:
        inside = sum(splits) if t.layout != "NT" else d.shape[0]
        d[:inside].copy_(t.c[:inside])
    made, first, places = [], 0, [0, 0]
    for group, rows in enumerate(splits):
        shape_a, shape_b, shape_d = _shapes(t, rows)
        # w has the rows of all groups one after the other, like D of NT; x and dy have those of the splits.
        first_a, first_d = (group * t.N if a == "w" else first), (group * t.N if t.layout == "NT" else first)
        tensor_a, places[0] = _operand(t, a, a_along, shape_a, group, first_a, places[0])
        tensor_b, places[1] = _operand(t, b, b_along, shape_b, group, first, places[1])
        made.append((tensor_a, tensor_b, Tensor(data=array(d, shape=shape_d, first=first_d * shape_d[1])), rows))
        first += rows
    return made


def _without_products(t: Any, group: int) -> None:
    """What TransformerEngine's modules do for a group without rows where D has elements: zeros, unless it is added to."""
    if t.layout == "NT" and t.beta == 0:
        t.out.d[group * t.N : (group + 1) * t.N].zero_()


def add_bias(t: Any) -> None:
    """The library's own addition of a bias, onto rounded products."""
    if "bias" not in t.inputs:
        return
    splits = t.splits.to(torch.int64)
    d = nvte.GroupedTensor(TENSOR, **placed_by(splits, row_offsets(splits, t.N), *t.out.d.shape), data=t.out.d.view(-1))
    bias = nvte.GroupedTensor(TENSOR, groups=splits.shape[0], logical=(splits.shape[0], t.N), data=t.bias.view(-1))
    call("nvte_grouped_bias_add", d, bias, nvte.stream())


def _multi_tensor_gemm(t: Any) -> None:
    require_product(t)
    require(t.alpha == 1.0 and t.beta in (0.0, 1.0), "alpha is not 1, or beta neither 0 nor 1")
    made = []
    for group, (a, b, d, rows) in enumerate(_groups(t)):
        if rows > 0:
            made.append((a, b, d))
        else:
            _without_products(t, group)
    if made:
        count = nvte.library().functions.nvte_get_num_compute_streams()
        spaces = [scratch(t, WORKSPACE) for _ in range(min(count, len(made)))]
        spaces += [spaces[0]] * (count - len(spaces))
        lists = [List(side) for side in zip(*made)]
        empty = List([Tensor() for _ in made])
        work = List([Tensor(data=each) for each in spaces])
        call("nvte_multi_tensor_gemm", *lists, empty, empty, len(made), *TRANSPOSED[t.layout],
             t.layout == "NT", work, t.beta != 0, split_accumulator(t), 0, nvte.stream())
        # The products run on streams of the library's own, behind which the stream of the call waits; memory goes back behind it.
    add_bias(t)


def split_accumulator(t: Any) -> int:
    return int(t.kind == "fp8_block" or bool(t.get("split_accumulator", 0)))


def _gemm(t: Any) -> None:
    require_product(t)
    work = scratch(t, WORKSPACE)
    factors = [(c.c_float * 1)(each) for each in (t.alpha, t.beta)]  # on the host
    config = _MatmulConfig(split_accumulator(t))
    for group, (a, b, d, rows) in enumerate(_groups(t)):
        if rows == 0:
            _without_products(t, group)
            continue
        # D holds C.
        call("nvte_cublas_gemm_v2", *TRANSPOSED[t.layout], factors[0], a, b, factors[1], d, d, Tensor(data=work), config, nvte.stream())
    add_bias(t)


class _MatmulConfig(nvte.Handle):
    """An NVTEMatmulConfig."""

    kind = "matmul_config"

    def __init__(self, split_accumulator: int):
        self._create()
        held = (c.c_bool * 1)(bool(split_accumulator))
        call("nvte_set_matmul_config_attribute", self, 5, held, c.sizeof(held))


def grouped_plan(t: Any) -> str:
    """Plan of cuBLASLt's products, the grouped ones too: C is added before the one rounding."""
    terms = ["unit=sm90.wgmma.f16" if t.kind in ("bf16", "f16") else "unit=sm90.wgmma.fp8"]
    if split_accumulator(t):
        terms.append("promote=128")
    if t.kind == "fp8_block":
        terms.append(f"association={'rows_first' if t.layout == 'NT' or t.weight_block == '1x128' else 'scales_first'}")
    return ",".join(terms)


def _plan(t: Any) -> str | None:
    """With alpha = beta = 1 the rounded product is added onto C where it lies, as reduce_add has it for D in f32. Of 16 bits no plan says
    so: such calls state none, and are judged by bounds of one rounding."""
    onto = t.alpha == 1.0 and t.beta == 1.0
    if onto and (t.d_type != "f32" or "bias" in t.inputs):
        return None
    return grouped_plan(t) + (",epilogue=reduce_add" if onto else "")


# cuBLASLt's dense products have the plans of its grouped ones, in every word with the 13.1.0.3 of torch 2.11. Onto C they differ: of 16 calls
# with alpha = beta = 1 each has as many words that one rounding does not give as RN(RN(product) + C) changes.
multi_tensor_gemm = operator(_multi_tensor_gemm, plan=_plan)
gemm = operator(_gemm, plan=_plan)
