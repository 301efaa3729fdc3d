"""What runs of MXFP8 and NVFP4 on SM90: MXFP8 of the functions that cast a part of a tensor, and NVFP4 with stochastic rounding.

The whole quantizations do not: nvte_quantize_v2 writes nothing for MXFP8, and for NVFP4 of f32 with rounding to nearest it writes codes of
0; of BF16 it fails to make a tensor map (measured-1.4).
"""

from __future__ import annotations

import ctypes as c
from typing import Any

import torch

from .. import nvte
from ..nvte import NVFP4, Config, List, Tensor, array, call, round_up
from ..operands import require
from .calls import noop_of, operator, output, require_op, rows_of_groups, scratch

_FLAGS = 2048 * 32  # elements of a block of multi_tensor_apply


def _require(t: Any, recipe: str) -> None:
    require_op(t, "quantize")
    require(t.recipe == recipe, f"recipe is {t.recipe}: expected {recipe}")
    require("dbias" not in t.out, "dbias is asked for: expected none")
    require(t.get("zero_sign", "kept") in ("kept", "free"), "zero_sign is positive: codes keep the sign of 0")
    require(t.get("scale_layout", "compact") == "compact", "scale_layout is swizzled: expected compact")
    require(not t.get("two_dimensional", 0), "two_dimensional is 1: expected 0")
    require(t.x.numel() > 0, "x is empty")


def _e8m0(amax: torch.Tensor, scales: torch.Tensor) -> None:
    """Scales of BF16 amaxes, by the function that an optimizer calls."""
    lists = [List([Tensor(data=amax)]), List([Tensor(data=scales)])]
    both = (c.c_void_p * 2)(*[c.addressof(each.handles) for each in lists])
    call("nvte_multi_tensor_compute_scale_inv_e8m0_cuda", _FLAGS, both, 2, 1, nvte.stream())


def _mxfp8_parts(t: Any) -> None:
    _require(t, "mxfp8")
    require(t.formats["x"] == "bf16" and t.otype == "e4m3", "expected x in bf16 and codes of e4m3")
    require("noop" not in t.inputs, "a skip flag is given: the functions have none")
    rows, columns = t.x.shape
    splits = rows_of_groups(t, rows)
    require(columns % 32 == 0 and all(own % 32 == 0 for own in splits), f"rows {splits} and columns {columns}: expected multiples of 32")
    stream, first, places = nvte.stream(), 0, {"rowwise": 0, "columnwise": 0}
    codes = {each: output(t, f"{each}_data", rows * columns) for each in places}
    for own in splits:
        if own == 0:
            continue
        shapes = {"rowwise": (round_up(own, 128), round_up(columns // 32, 4)), "columnwise": (round_up(own // 32, 4), round_up(columns, 128))}
        amax = {each: torch.zeros(shape, dtype=torch.bfloat16, device=t.x.device) for each, shape in shapes.items()}
        made = {each: scratch(t, shape[0] * shape[1]).view(shape) for each, shape in shapes.items()}
        x = Tensor(data=array(t.x, shape=(own * columns,), first=first * columns))
        call("nvte_mxfp8_scaling_compute_partial_amax", x, Tensor(data=amax["rowwise"]), Tensor(data=amax["columnwise"]), own, columns, 0,
             stream)
        for each in shapes:
            _e8m0(amax[each], made[each])
        call("nvte_mxfp8_scaling_partial_cast", x, *(Tensor(data=array(codes[each], shape=(own * columns,), first=first * columns)) for each in shapes),
             *(Tensor(data=made[each]) for each in shapes), own, columns, 0, stream)
        for each, used in (("rowwise", (own, columns // 32)), ("columnwise", (own // 32, columns))):
            count = made[each].numel()
            if f"{each}_scale_inv" in t.out:
                to = t.out[f"{each}_scale_inv"].view(-1)[places[each] : places[each] + count].view(shapes[each])
                to[: used[0], : used[1]].copy_(made[each][: used[0], : used[1]])
            places[each] += count
        first += own


def _nvfp4_stochastic(t: Any) -> None:
    _require(t, "nvfp4")
    require(bool(t.get("stochastic", 0)) and t.get("draws") == "te_vector_blockwise", "expected stochastic=1 draws=te_vector_blockwise")
    require(not t.get("hadamard", 0) and t.get("four_over_six", "off") == "off" and int(t.get("e4m3_max", 448)) == 448,
            "expected neither hadamard nor four_over_six, and e4m3_max=448")
    rows, columns = t.x.shape
    asked = [each for each in ("rowwise", "columnwise") if f"{each}_data" in t.out or f"{each}_scale_inv" in t.out]
    require("rowwise" in asked, "the columnwise direction alone is asked for: its draws are those of both")
    require("amax" in t.inputs and "columnwise_amax" not in t.inputs, "expected one amax, which is given")
    require("amax" not in t.out and "columnwise_amax" not in t.out, "amax is asked for")
    splits = rows_of_groups(t, rows)
    require(columns % 16 == 0 and all(own % 16 == 0 for own in splits), f"rows {splits} and columns {columns}: expected multiples of 16")
    # With BF16 in multiples of 32 another kernel runs, which makes a tensor map that SM90 has not.
    require(t.formats["x"] != "bf16" or columns % 32 != 0 or all(own % 32 != 0 or own == 0 for own in splits),
            "x is bf16 with rows and columns in multiples of 32: that kernel needs SM100")
    stream, first = nvte.stream(), 0
    places = dict.fromkeys(asked, 0)
    memory = {each: output(t, f"{each}_data", rows * columns // 2) for each in asked}
    for group, own in enumerate(splits):
        if own == 0:
            continue
        amax = array(t.amax, shape=(1,), first=group if t.amax.shape[0] > 1 else 0)
        fields, made = {"amax": amax}, {}
        for each in asked:
            tall, wide = (own, columns) if each == "rowwise" else (columns, own)
            made[each] = scratch(t, round_up(tall, 128) * round_up(wide // 16, 4)).view(round_up(tall, 128), -1)
            data, scale_inv = ("data", "scale_inv") if each == "rowwise" else ("columnwise_data", "columnwise_scale_inv")
            fields[data] = array(memory[each], "e2m1", (tall, wide), first * columns // 2)
            fields[scale_inv] = array(made[each], "e4m3")
        if "columnwise" in asked:
            fields["columnwise_amax"] = amax
        state = Tensor(data=array(t.rng_state, shape=(2,), first=2 * group))
        config = Config(eps=0.0, stochastic_rounding=1, rng_state=state, noop=noop_of(t))
        call("nvte_quantize_v2", Tensor(data=array(t.x, shape=(own, columns), first=first * columns)), Tensor(NVFP4, **fields), config, stream)
        for each, scales in made.items():
            tall, wide = (own, columns // 16) if each == "rowwise" else (columns, own // 16)
            if f"{each}_scale_inv" in t.out:
                to = t.out[f"{each}_scale_inv"].view(-1)[places[each] : places[each] + scales.numel()].view(scales.shape)[:tall, :wide]
                found = scales[:tall, :wide]
                to.copy_(found if "noop" not in t.inputs else torch.where(t.noop == 1, to, found))
            places[each] += scales.numel()
        first += own


# 171 thousand codes and scales of the recording are the specification's, but for amaxes in (2^-119 * 1.75, 2^-118 * 1.75), whose scale this
# function makes 0 in place of 1: its file is compiled to flush subnormals.
mxfp8_parts = operator(_mxfp8_parts)
# 215 thousand of the recording, on an H200 and an H100: golden/transformer_engine_stochastic.h5.
nvfp4_stochastic = operator(_nvfp4_stochastic)
