"""Where the libraries of other projects are, and how their operators are loaded.

Each is one file of a wheel, loaded by torch.ops.load_library without the Python package around it: such a package would import
much more. Use one library a process: they define operators under names that are not all their own.

    adapter   file in ASSAY_ADAPTER_LIBRARIES   file of the installed package                              judged version
    sglang    sglang.so                         sgl_kernel/sm90/common_ops.abi3.so                         sglang-kernel 0.4.6
    fbgemm    fbgemm.so                         fbgemm_gpu/experimental/gen_ai/fbgemm_gpu_...gen_ai.so     fbgemm-gpu-genai 1.6.0
    vllm      vllm.so                           vllm/_C_stable_libtorch.abi3.so                            vllm 0.26.0

TransformerEngine's library has C functions in place of operators: nvte.py loads transformer_engine.so, or that of the installed package,
transformer_engine/wheel_lib/libtransformer_engine.so (transformer-engine-cu13 2.20.2).
"""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import os
import pathlib
from typing import Any

import torch

VARIABLE = "ASSAY_ADAPTER_LIBRARIES"
FAULTS = "ASSAY_ADAPTER_FAULTS"


def shows(fault: str) -> bool:
    """ASSAY_ADAPTER_FAULTS names this fault of the registry (docs/faults/), with commas between several: the adapter then makes the call
    that it would refuse, so that the fault shows."""
    return fault in os.environ.get(FAULTS, "").split(",")


@dataclasses.dataclass(frozen=True)
class Library:
    """One shared library.

    Attributes:
        distribution: its wheel on the package index. package, file: the Python package in it, and the library in that.
        namespace: torch.ops.NAMESPACE has its operators; "": it has C functions.
    """

    distribution: str
    package: str
    file: str
    namespace: str


LIBRARIES = {
    "sglang": Library("sglang-kernel", "sgl_kernel", "sm90/common_ops.abi3.so", "sgl_kernel"),
    "fbgemm": Library("fbgemm-gpu-genai", "fbgemm_gpu", "experimental/gen_ai/fbgemm_gpu_experimental_gen_ai.so", "fbgemm"),
    "vllm": Library("vllm", "vllm", "_C_stable_libtorch.abi3.so", "_C"),
    "transformer_engine": Library("transformer-engine-cu13", "transformer_engine", "wheel_lib/libtransformer_engine.so", ""),
}


def find(name: str) -> pathlib.Path:
    """The file of a library of LIBRARIES.

    Raises:
        ImportError: it is not in the folder that ASSAY_ADAPTER_LIBRARIES names, or, where that is not set, in no installed package.
    """
    library = LIBRARIES[name]
    folder = os.environ.get(VARIABLE)
    if folder:
        path = pathlib.Path(folder) / f"{name}.so"
        if not path.is_file():
            raise ImportError(f"{path}: no such file ({VARIABLE} is {folder}: expected a folder with {name}.so, which is "
                              f"{library.package}/{library.file} of the wheel {library.distribution})")
        return path
    spec = importlib.util.find_spec(library.package)  # of a package at the top: nothing of it is imported
    for place in (spec.submodule_search_locations or []) if spec else []:
        path = pathlib.Path(place) / library.file
        if path.is_file():
            return path
    try:
        version = f"{library.distribution} {importlib.metadata.version(library.distribution)} is installed, without {library.file}"
    except importlib.metadata.PackageNotFoundError:
        version = f"{library.distribution} is not installed"
    raise ImportError(f"{version}: install it, or name a folder with {name}.so in {VARIABLE}")


def version(name: str) -> str:
    """Name and version of a library of LIBRARIES: those of the installed package, or what NAME.version says beside NAME.so."""
    library = LIBRARIES[name]
    folder = os.environ.get(VARIABLE)
    if folder:
        said = pathlib.Path(folder) / f"{name}.version"
        return f"{library.distribution} {said.read_text().strip() if said.is_file() else 'of an unknown version'}"
    return distribution(library.distribution)


def installed(name: str) -> str:
    """Name and version of an installed package. Raises LookupError: there is none of this name."""
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError as error:
        raise LookupError(f"{name} is not installed") from error


def distribution(name: str) -> str:
    """Name and version of an installed package."""
    try:
        return installed(name)
    except LookupError:
        return f"{name} of an unknown version"


def load(path: pathlib.Path) -> None:
    """Loads a library.

    Raises:
        ImportError: what it needs is missing, or it was built for another version of PyTorch.
    """
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        raise ImportError(f"{path} does not load beside PyTorch {torch.__version__}: {error.__cause__ or error} (LD_LIBRARY_PATH has "
                          f"to hold torch/lib and every nvidia/*/lib of the installed packages)") from error


def operators(name: str) -> Any:
    """The operators of a library of LIBRARIES, as torch.ops has them. Raises what `find` and `load` raise."""
    load(find(name))
    return getattr(torch.ops, LIBRARIES[name].namespace)
