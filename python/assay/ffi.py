"""Kernels that a shared library exports through apache-tvm-ffi: packed functions whose tensors travel by DLPack."""

from __future__ import annotations

import os
from typing import Any, Callable

import numpy as np

from .kernel import Kernel
from .tensors import Tensors


def arguments(t: Tensors) -> tuple[Any, ...]:
    """All input tensors in the order of their names, then the outputs in that of the op (`assay list --schema`)."""
    return (*(t.inputs[name] for name in sorted(t.inputs)), *t.out.values())


def kernel(library: str, symbol: str, *, bind: Callable[[Tensors], Any] | None = None, memory: Any = None) -> Kernel:
    """The function `symbol` of a library as a Kernel.

    Args:
        library: path of the shared library.
        symbol: the name under which it was exported (TVM_FFI_DLL_EXPORT_TYPED_FUNC).
        bind: its arguments; without it `arguments`.
        memory: "torch" where PyTorch has a CUDA device, else "numpy", without it.

    Raises:
        ImportError: apache-tvm-ffi is not installed. FileNotFoundError: there is no such library. AttributeError: it has no such symbol.
    """
    try:
        import tvm_ffi
    except ImportError as error:
        raise ImportError(f"'{library}' needs apache-tvm-ffi: pip install apache-tvm-ffi") from error
    if not os.path.exists(library):
        raise FileNotFoundError(f"there is no library '{library}'")
    module = tvm_ffi.load_module(os.path.abspath(library))
    function = module.get_function(symbol) if module.implements_function(symbol) else None
    if function is None:
        raise AttributeError(f"library '{library}' exports no '{symbol}' through apache-tvm-ffi")
    bound = bind or arguments

    def given(t: Tensors) -> tuple[Any, ...]:
        made = bound(t)
        return tuple(tvm_ffi.from_dlpack(each) if isinstance(each, np.ndarray) else each
                     for each in (made if isinstance(made, (tuple, list)) else (made,)))

    def call(*tensors: Any) -> None:
        function(*tensors)

    call.__qualname__ = symbol
    return Kernel(call, bind=given, memory=memory or _memory())


def _memory() -> str:
    try:
        import torch
    except ImportError:
        return "numpy"
    return "torch" if torch.cuda.is_available() else "numpy"
