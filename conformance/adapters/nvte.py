"""The C interface of TransformerEngine: how a function of libtransformer_engine.so is called, and what its tensors are.

Neither a header nor the Python package of TransformerEngine is needed, and nothing of Assay: the adapter and the recorder of
reference/tests/presets/device_recorder/ both stand on this file. Struct sizes and numbers are those of its headers of version 2.20.

The functions throw C++ exceptions, which must not reach ctypes: nvte_guard.cc catches them. It is compiled when the library is loaded.
"""

from __future__ import annotations

import ctypes as c
import functools
import glob
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Iterable, NamedTuple, Sequence

import torch

TYPES = {torch.uint8: 0, torch.int16: 1, torch.int32: 2, torch.int64: 3, torch.float32: 4, torch.float16: 5, torch.bfloat16: 6,
         torch.float8_e4m3fn: 7, torch.float8_e5m2: 8, torch.float8_e8m0fnu: 9}
NUMBERS = {"i32": 2, "i64": 3, "f32": 4, "f16": 5, "bf16": 6, "e4m3": 7, "e5m2": 8, "e8m0": 9, "e2m1": 10}
TENSOR, MXFP8, BLOCK_1D, BLOCK_2D, NVFP4 = range(5)  # scaling modes
# Declared without extern "C": these have the names of C++.
MANGLED = {"nvte_permute": "_Z12nvte_permutePvS_S_S_S_S_S_iiiiP11CUstream_st", "nvte_unpermute": "_Z14nvte_unpermutePvS_S_S_iiiP11CUstream_st"}
_DEPENDENCIES = ("libcudart.so.13", "libcublasLt.so.13", "libcublas.so.13", "libnccl.so.2", "libnvrtc.so.13", "libcudnn_graph.so.9",
                 "libcudnn_ops.so.9", "libcudnn_cnn.so.9", "libcudnn_adv.so.9", "libcudnn_engines_runtime_compiled.so.9",
                 "libcudnn_engines_precompiled.so.9", "libcudnn_heuristic.so.9", "libcudnn.so.9")


class Refused(RuntimeError):
    """A check of the library's own did not hold: it says that it does not have the call."""


class Shape(c.Structure):
    _fields_ = [("data", c.c_size_t * 15), ("ndim", c.c_size_t)]


class Basic(c.Structure):
    _fields_ = [("data_ptr", c.c_void_p), ("dtype", c.c_int), ("shape", Shape)]


class Vector(c.Structure):
    """A std::vector of handles."""

    _fields_ = [("begin", c.c_void_p), ("end", c.c_void_p), ("capacity", c.c_void_p)]


assert c.sizeof(Shape) == 128 and c.sizeof(Basic) == 144 and Basic.shape.offset == 16 and c.sizeof(Vector) == 24


class Array(NamedTuple):
    """An address with the type and shape that the library gets. `owner` keeps the memory."""

    address: int
    dtype: int
    shape: tuple[int, ...]
    owner: Any = None


def array(tensor: torch.Tensor, dtype: int | str | None = None, shape: Iterable[int] | None = None, first: int = 0) -> Array:
    """`tensor` from its element `first` on, under another type or shape where these are given.

    Codes of E2M1 lie two in a byte: `first` counts bytes, the shape elements."""
    number = TYPES[tensor.dtype] if dtype is None else NUMBERS[dtype] if isinstance(dtype, str) else dtype
    return Array(tensor.data_ptr() + first * tensor.element_size(), number, tuple(tensor.shape if shape is None else shape), tensor)


def round_up(count: int, unit: int) -> int:
    return (count + unit - 1) // unit * unit


def shape_of(extents: Sequence[int]) -> Shape:
    made = Shape(ndim=len(extents))
    for i, extent in enumerate(extents):
        made.data[i] = extent
    return made


def _load_dependencies() -> None:
    """Loads what the library needs from where PyTorch and NVIDIA's wheels have it."""
    folder = pathlib.Path(torch.__file__).parent
    roots = [folder.parent / "nvidia", folder / "lib", pathlib.Path("/usr/local/cuda/lib64")]
    for name in _DEPENDENCIES:
        for path in [path for root in roots for path in glob.glob(f"{root}/**/{name}", recursive=True)][:1]:
            c.CDLL(path, mode=os.RTLD_GLOBAL | os.RTLD_LAZY)


def _guard() -> Any:
    source = pathlib.Path(__file__).with_name("nvte_guard.cc")
    compiler = os.environ.get("CXX", "c++")
    with tempfile.TemporaryDirectory(prefix="assay_nvte.") as folder:
        made = pathlib.Path(folder) / "guard.so"
        try:
            subprocess.run([compiler, "-O2", "-shared", "-fPIC", str(source), "-o", str(made)], check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ImportError(f"{source} does not compile with {compiler}: {getattr(error, 'stderr', None) or error}") from error
        guard = c.CDLL(str(made)).guard_call
    guard.argtypes = [c.c_void_p, c.POINTER(c.c_long), c.c_float, c.c_char_p, c.c_size_t]
    return guard


class Library:
    """libtransformer_engine.so, loaded.

    Raises:
        ImportError: it does not load, or nvte_guard.cc does not compile.
    """

    def __init__(self, path: str | os.PathLike[str]):
        _load_dependencies()
        if torch.cuda.is_available():
            torch.zeros(1, device="cuda")
        try:
            self.functions = c.CDLL(str(path), mode=os.RTLD_LAZY)
        except OSError as error:
            raise ImportError(f"{path} does not load: {error} (LD_LIBRARY_PATH has to hold torch/lib and every nvidia/*/lib of the "
                              f"installed packages)") from error
        self.guard = _guard()
        kinds = ("tensor", "grouped_tensor", "quantization_config", "matmul_config", "grouped_matmul_config")
        for kind in kinds:
            getattr(self.functions, f"nvte_create_{kind}").restype = c.c_void_p
            getattr(self.functions, f"nvte_destroy_{kind}").argtypes = [c.c_void_p]
        self.functions.nvte_create_tensor.argtypes = [c.c_int]
        self.functions.nvte_create_grouped_tensor.argtypes = [c.c_int, c.c_size_t, Shape]
        setup_size = self.functions.nvte_get_grouped_gemm_setup_workspace_size
        setup_size.argtypes, setup_size.restype = [c.c_size_t], c.c_size_t
        self.functions.nvte_get_num_compute_streams.restype = c.c_int

    def call(self, name: str, *arguments: Any, real: float = 0.0) -> None:
        """name(arguments...): integers, handles, tensors, structs and texts in their order, the one float apart.

        Raises:
            Refused: a check of the library did not hold. RuntimeError: what else it throws, such as an error of CUDA.
        """
        words, kept = (c.c_long * 16)(), []
        for i, argument in enumerate(arguments):
            words[i] = _word(argument, kept)
        error = c.create_string_buffer(4096)
        if self.guard(c.cast(getattr(self.functions, MANGLED.get(name, name)), c.c_void_p), words, real, error, len(error)):
            text = " ".join(error.value.decode(errors="replace").split())
            broken = any(each in text for each in ("CUDA Error", "cuBLAS Error", "NVRTC Error", "cuDNN Error"))
            raise (RuntimeError if broken else Refused)(f"{name}: {text}")


def _word(argument: Any, kept: list[Any]) -> int:
    if argument is None:
        return 0
    if isinstance(argument, Handle):
        return int(argument.handle)
    if isinstance(argument, Stream):
        return argument.handle()
    if isinstance(argument, List):
        return c.addressof(argument.handles)
    if isinstance(argument, torch.Tensor):
        return argument.data_ptr()
    if isinstance(argument, Array):
        return argument.address
    if isinstance(argument, bytes):
        argument = c.create_string_buffer(argument)
    if isinstance(argument, (c.Structure, c.Array)):
        kept.append(argument)
        return c.addressof(argument)
    return int(argument)


_library: Library | None = None


def use(path: str | os.PathLike[str]) -> None:
    """Loads the library, from then on that of all calls."""
    global _library
    _library = Library(path)


@functools.cache
def _installed() -> Library:
    from . import libraries

    return Library(libraries.find("transformer_engine"))


def library() -> Any:
    """The library: that of `use`, else the one that adapters/libraries.py finds."""
    return _library or _installed()


def call(name: str, *arguments: Any, real: float = 0.0) -> None:
    """Calls a function, as Library.call says."""
    library().call(name, *arguments, real=real)


class Stream:
    """The stream that PyTorch uses when a function is called."""

    def handle(self) -> int:
        return torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0


def stream() -> Stream:
    return Stream()


class Handle:
    """Something that the library makes and destroys."""

    handle: int = 0
    kind: str = ""

    def _create(self, *arguments: Any) -> None:
        self._library = library()
        self.handle = getattr(self._library.functions, f"nvte_create_{self.kind}")(*arguments)

    def __del__(self) -> None:
        if self.handle:
            getattr(self._library.functions, f"nvte_destroy_{self.kind}")(self.handle)


class Tensor(Handle):
    """An NVTETensor. Fields: tensors or Arrays, by name."""

    NUMBERS = {"data": 0, "columnwise_data": 1, "scale": 2, "amax": 3, "scale_inv": 4, "columnwise_scale_inv": 5, "columnwise_amax": 6,
               "swizzled": 7, "row_scaled": 8, "e4m3_max": 9}
    kind, setter = "tensor", "nvte_set_tensor_param_v2"

    def __init__(self, mode: int = TENSOR, **fields: Any):
        self._create(mode)
        self._set(mode, fields)

    def _set(self, mode: int, fields: dict[str, Any]) -> None:
        self.mode, self.fields = mode, {}
        for name, value in fields.items():
            if value is not None:
                self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        held: Any
        if name in ("swizzled", "row_scaled"):
            held = c.c_uint8(int(value))
        elif name == "e4m3_max":
            held = c.c_int(int(value))
        else:
            value = value if isinstance(value, Array) else array(value)
            held = Basic(value.address, value.dtype, shape_of(value.shape))
        self.fields[name] = value  # keeps the memory
        call(self.setter, self, self.NUMBERS[name], _pointer(held), c.sizeof(held))

    def wanted(self) -> Array:
        """Of an empty tensor that a function was given as workspace: the type and shape that it asks for."""
        held, written = Basic(), c.c_size_t()
        call("nvte_get_tensor_param_v2", self, 0, held, c.sizeof(held), _pointer(written))
        return Array(0, held.dtype, tuple(held.shape.data[: held.shape.ndim]))


class GroupedTensor(Tensor):
    """An NVTEGroupedTensor of `groups` matrices, which together have the shape `logical`."""

    NUMBERS = {"data": 0, "columnwise_data": 1, "scale": 2, "amax": 3, "scale_inv": 4, "columnwise_scale_inv": 5, "columnwise_amax": 6,
               "first_dims": 7, "last_dims": 8, "offsets": 9, "swizzled": 10}
    kind, setter = "grouped_tensor", "nvte_set_grouped_tensor_param"

    def __init__(self, mode: int, groups: int, logical: Sequence[int], **fields: Any):
        self.groups, self.logical = groups, tuple(logical)
        self._create(mode, groups, shape_of(logical))
        self._set(mode, fields)


class Config(Handle):
    """An NVTEQuantizationConfig."""

    NUMBERS = {"pow2": (0, c.c_uint8), "eps": (1, c.c_float), "noop": (2, c.c_void_p), "rng_state": (4, c.c_void_p),
               "two_dimensional": (5, c.c_uint8), "stochastic_rounding": (6, c.c_uint8), "four_over_six": (8, c.c_uint8)}
    kind = "quantization_config"

    def __init__(self, **fields: Any):
        self._create()
        self.fields = {name: value for name, value in fields.items() if value is not None}  # keeps the tensors
        for name, value in self.fields.items():
            number, kind = self.NUMBERS[name]
            held = kind(value.handle if isinstance(value, Handle) else value)
            call("nvte_set_quantization_config_attribute", self, number, _pointer(held), c.sizeof(held))


def _pointer(held: Any) -> Any:
    """What is passed for the address of a number or struct."""
    return held if isinstance(held, c.Structure) else (type(held) * 1)(held)


class List:
    """A list of tensors, as a C array of their handles."""

    def __init__(self, tensors: Sequence[Tensor]):
        self.tensors = list(tensors)
        self.handles = (c.c_void_p * max(len(self.tensors), 1))(*[each.handle for each in self.tensors])

    def vector(self) -> Vector:
        """The list as a std::vector, as long as the list lives."""
        first = c.addressof(self.handles)
        return Vector(first, first + 8 * len(self.tensors), first + 8 * len(self.tensors))


def workspace(wanted: Array, device: torch.device) -> tuple[Tensor, torch.Tensor]:
    """A workspace of the type and shape that a function asked for, and its memory."""
    count = 8
    for extent in wanted.shape:
        count *= extent
    buffer = torch.empty(max(count, 8), dtype=torch.uint8, device=device)
    return Tensor(data=Array(buffer.data_ptr(), wanted.dtype, wanted.shape, buffer)), buffer
