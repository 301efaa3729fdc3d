"""The C interface of libtransformer_engine.so: how a function is called, and what its tensors are."""

import ctypes as c
import glob
import os
from pathlib import Path

import numpy as np
import torch

import calls
import inputs
from calls import tensor

FP8 = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}
NVTE = {torch.uint8: 0, torch.int16: 1, torch.int32: 2, torch.int64: 3, torch.float32: 4, torch.float16: 5, torch.bfloat16: 6,
        torch.float8_e4m3fn: 7, torch.float8_e5m2: 8, torch.float8_e8m0fnu: 9}
E2M1 = 10
TENSOR, MXFP8, BLOCK_1D, BLOCK_2D, NVFP4 = range(5)


class Shape(c.Structure):
    _fields_ = [("data", c.c_size_t * 15), ("ndim", c.c_size_t)]


class Basic(c.Structure):
    _fields_ = [("data_ptr", c.c_void_p), ("dtype", c.c_int), ("shape", Shape)]


class Vector(c.Structure):
    _fields_ = [("begin", c.c_void_p), ("end", c.c_void_p), ("capacity", c.c_void_p)]


assert c.sizeof(Shape) == 128 and c.sizeof(Basic) == 144 and Basic.shape.offset == 16 and c.sizeof(Vector) == 24


def shape_of(dims):
    made = Shape()
    made.ndim = len(dims)
    for i, d in enumerate(dims):
        made.data[i] = d
    return made


def round_up(n, to):
    return (n + to - 1) // to * to


LIBRARY = None
GUARD = None
KEPT = []  # what the library points to


def load():
    global LIBRARY, GUARD
    folder = Path(torch.__file__).parent
    names = ["libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libnccl.so.2", "libnvrtc.so.13", "libcudnn_graph.so.9", "libcudnn_ops.so.9",
             "libcudnn_cnn.so.9", "libcudnn_adv.so.9", "libcudnn_engines_runtime_compiled.so.9",
             "libcudnn_engines_precompiled.so.9", "libcudnn_heuristic.so.9", "libcudnn.so.9"]
    roots = [folder.parent / "nvidia", folder / "lib", Path("/usr/local/cuda/lib64")]
    for name in names:
        found = [p for root in roots for p in glob.glob(f"{root}/**/{name}", recursive=True)]
        for path in found[:1]:
            c.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_LAZY)
    torch.zeros(1, device="cuda")
    LIBRARY = c.CDLL(str(calls.PEERS / "libtransformer_engine.so"), mode=os.RTLD_LAZY)
    GUARD = c.CDLL(str(calls.WORK / "guard.so"))
    GUARD.guard_call.argtypes = [c.c_void_p, c.POINTER(c.c_long), c.c_float, c.c_char_p, c.c_size_t]
    for name in ("nvte_create_tensor", "nvte_create_grouped_tensor", "nvte_create_quantization_config"):
        getattr(LIBRARY, name).restype = c.c_void_p
    LIBRARY.nvte_create_tensor.argtypes = [c.c_int]
    LIBRARY.nvte_create_grouped_tensor.argtypes = [c.c_int, c.c_size_t, Shape]


def call(name, *arguments, real=0.0):
    """name(arguments...), integers and pointers in their order, the one float apart; what it throws becomes an error."""
    words = (c.c_long * 12)()
    for i, a in enumerate(arguments):
        if isinstance(a, Wrapped):
            a = a.handle
        elif isinstance(a, torch.Tensor):
            a = a.data_ptr()
        elif isinstance(a, (c.Structure, c.Array)):
            KEPT.append(a)
            a = c.addressof(a)
        elif isinstance(a, bytes):
            held = c.create_string_buffer(a)
            KEPT.append(held)
            a = c.addressof(held)
        words[i] = int(a or 0)
    error = c.create_string_buffer(4096)
    code = GUARD.guard_call(c.cast(getattr(LIBRARY, name), c.c_void_p), words, real, error, 4096)
    if code:
        raise RuntimeError(f"{name}: {error.value.decode(errors='replace')}")


class Wrapped:
    """An NVTETensor, or with `groups` an NVTEGroupedTensor. Fields: tensors, or (tensor, dtype number, shape)."""

    PLAIN = {"data": 0, "columnwise_data": 1, "scale": 2, "amax": 3, "scale_inv": 4, "columnwise_scale_inv": 5, "columnwise_amax": 6,
             "swizzled": 7, "row_scaled": 8, "e4m3_max": 9}
    GROUPED = {"data": 0, "columnwise_data": 1, "scale": 2, "amax": 3, "scale_inv": 4, "columnwise_scale_inv": 5,
               "columnwise_amax": 6, "first_dims": 7, "last_dims": 8, "offsets": 9, "swizzled": 10}

    def __init__(self, mode=TENSOR, groups=None, logical=None, **fields):
        self.grouped = groups is not None
        if self.grouped:
            self.handle = LIBRARY.nvte_create_grouped_tensor(mode, groups, shape_of(logical))
        else:
            self.handle = LIBRARY.nvte_create_tensor(mode)
        for name, value in fields.items():
            if value is not None:
                self.set(name, value)

    def set(self, name, value):
        setter, number = (("nvte_set_grouped_tensor_param", self.GROUPED[name]) if self.grouped else
                          ("nvte_set_tensor_param_v2", self.PLAIN[name]))
        if name in ("swizzled", "row_scaled"):
            held = (c.c_uint8 * 1)(int(value))
        elif name == "e4m3_max":
            held = (c.c_int * 1)(int(value))
        else:
            dtype, dims = None, None
            if isinstance(value, tuple):
                value, dtype, dims = value
            KEPT.append(value)
            held = Basic(value.data_ptr(), NVTE[value.dtype] if dtype is None else dtype,
                         shape_of(list(value.shape) if dims is None else dims))
        call(setter, self.handle, number, held, c.sizeof(held))

    def basic(self, number=0):
        held = Basic()
        written = (c.c_size_t * 1)()
        call("nvte_get_tensor_param_v2", self.handle, number, held, c.sizeof(held), written)
        return held


class Config:
    def __init__(self, **fields):
        self.handle = LIBRARY.nvte_create_quantization_config()
        numbers = {"pow2": (0, c.c_uint8), "eps": (1, c.c_float), "noop": (2, c.c_void_p), "rng_state": (4, c.c_void_p), "two_dimensional": (5, c.c_uint8),
                   "stochastic_rounding": (6, c.c_uint8),
                   "four_over_six": (8, c.c_uint8)}
        for name, value in fields.items():
            number, kind = numbers[name]
            held = (kind * 1)(value)
            call("nvte_set_quantization_config_attribute", self.handle, number, held, c.sizeof(held))


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
