"""TransformerEngine's C functions, as conformance/adapters/nvte.py calls them. What a call is given stays until the process ends."""

import sys
from pathlib import Path

import numpy as np
import torch

import calls
import inputs
from calls import tensor

sys.path.insert(0, str(Path(__file__).resolve().parents[4] / "conformance"))
from adapters import nvte  # noqa: E402
from adapters.nvte import BLOCK_1D, BLOCK_2D, MXFP8, NVFP4, TENSOR, Vector, call, round_up  # noqa: E402, F401

FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
NVTE = nvte.TYPES
E2M1 = nvte.NUMBERS["e2m1"]
KEPT = []  # what the library points to


def load():
    nvte.use(calls.PEERS / "libtransformer_engine.so")


def kept(made):
    KEPT.append(made)
    return made


def Wrapped(mode=TENSOR, groups=None, logical=None, **fields):
    """An NVTETensor, or with `groups` an NVTEGroupedTensor. Fields: tensors, or (tensor, dtype number, shape)."""
    fields = {name: nvte.array(*value) if isinstance(value, tuple) else value for name, value in fields.items()}
    return kept(nvte.Tensor(mode, **fields) if groups is None else nvte.GroupedTensor(mode, groups, logical, **fields))


def Config(**fields):
    return kept(nvte.Config(**fields))


def noted(text, **attributes):
    return {"peer": "TransformerEngine 2.20.2, libtransformer_engine.so", "call": text, **attributes}


def x_of(seed, rows, columns, x_type, edges=True, span=6):
    """[rows, columns]; with edges a row of zeros, some -0 and a row of small values."""
    x = inputs.random_rows(seed, rows, columns, span)
    if x_type == "f16":
        x = np.clip(x, -60000, 60000)
    if edges:
        x[0, :] = 0
        x[1, ::5] = -0.0
        x[2, :] *= 2.0 ** -9
    return tensor(x, x_type)
