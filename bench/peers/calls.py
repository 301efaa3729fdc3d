"""A call as an adapter sees it, and the operator's own call in it, which is what is timed."""

from __future__ import annotations

import importlib
import importlib.util
import pathlib
import sys
import types
from typing import Any

ADAPTERS = pathlib.Path(__file__).resolve().parents[2] / "conformance"


class Outputs(dict):
    """Tensors by name, which are attributes too."""

    __getattr__ = dict.__getitem__


class Call:
    """What assay.Tensors is to a function: tensors and parameters of one call, by name."""

    def __init__(self, op: str, parameters: dict[str, Any], inputs: dict[str, Any], out: dict[str, Any], formats: dict[str, str]):
        self.op, self.parameters, self.inputs, self.out, self.formats = op, parameters, inputs, Outputs(out), formats

    def __getattr__(self, name: str) -> Any:
        for held in (self.inputs, self.parameters) if not name.startswith("__") else ():
            if name in held:
                return held[name]
        raise AttributeError(f"the call has no '{name}'")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        return getattr(self, name, default)


class _Kernel:
    """In place of assay.Kernel, where the package is not installed: timing calls the function alone."""

    def __init__(self, fn: Any, **said: Any):
        self.fn = fn
        self.__dict__.update(said)


def adapter(name: str) -> Any:
    """The module of conformance/adapters with this name.

    Raises:
        ImportError: what it needs is not installed.
    """
    if str(ADAPTERS) not in sys.path:
        sys.path.insert(0, str(ADAPTERS))
    if "assay" not in sys.modules and importlib.util.find_spec("assay") is None:
        stand_in = types.ModuleType("assay")
        stand_in.Kernel = _Kernel  # type: ignore[attr-defined]
        sys.modules["assay"] = stand_in
    return importlib.import_module(f"adapters.{name}")


class Recorder:
    """Stands for a library or a Triton kernel, calls it, and keeps the calls."""

    def __init__(self, of: Any, calls: list[tuple[Any, tuple, dict]]):
        self._of, self._calls = of, calls

    def _called(self, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            self._calls.append((function, arguments, named))
            return function(*arguments, **named)

        return call

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._of, name)
        return found if name.startswith("get_") or not callable(found) else self._called(found)

    def __getitem__(self, grid: Any) -> Any:
        return self._called(self._of[grid])


class NvteRecorder:
    """Stands for adapters.nvte.Library, calls it, and keeps the calls that do work: not those that describe tensors to it."""

    def __init__(self, of: Any, calls: list[tuple[Any, tuple, dict]]):
        self._of, self._calls, self.functions = of, calls, of.functions

    def call(self, name: str, *arguments: Any, **named: Any) -> None:
        self._of.call(name, *arguments, **named)
        if not name.startswith(("nvte_set_", "nvte_get_")):
            self._calls.append((self._of.call, (name, *arguments), named))


_TRANSFORMER_ENGINE = "adapters.transformer_engine"
_PLACES = ("_ops", "_library", "_block_products", "_quantize_row_blocks")  # where the adapters call what they serve


def _recorded(module: Any, calls: list[tuple[Any, tuple, dict]]) -> dict[tuple[Any, str], Any]:
    """What stands in for each place of the module while calls are kept."""
    nvte = sys.modules.get("adapters.nvte")
    if module.__name__ == _TRANSFORMER_ENGINE:
        return {(nvte, "library"): (lambda found: lambda: NvteRecorder(found(), calls))(nvte.library)}
    made: dict[tuple[Any, str], Any] = {}
    for name in _PLACES:
        if hasattr(module, name):
            real = getattr(module, name)
            made[module, name] = (lambda found: lambda: Recorder(found(), calls))(real) if name == "_library" else Recorder(real, calls)
    return made


def operator_of(module: Any, kernel: str, call: Call) -> Any:
    """Makes the adapter's call once, and returns a function that repeats the operator's call in it, with the same tensors.

    What the adapter does before, such as bringing scales into the operator's order, is not part of it. Of TransformerEngine all calls are,
    one for each group or one for the offsets of the groups: its own modules make them each time.

    Raises:
        NotImplementedError: the adapter does not serve the case. RuntimeError: it made no call, or more than one.
    """
    calls: list[tuple[Any, tuple, dict]] = []
    places = _recorded(module, calls)
    if not places:
        raise RuntimeError(f"{module.__name__}: no place where its operators are called is known")
    kept = {(holder, name): getattr(holder, name) for holder, name in places}
    try:
        for (holder, name), stand_in in places.items():
            setattr(holder, name, stand_in)
        getattr(module, kernel).fn(call)
    finally:
        for (holder, name), real in kept.items():
            setattr(holder, name, real)
    if len(calls) > 1 and module.__name__ == _TRANSFORMER_ENGINE:

        def every() -> None:
            for function, arguments, named in calls:
                function(*arguments, **named)

        return every
    if len(calls) != 1:
        raise RuntimeError(f"{module.__name__}.{kernel} made {len(calls)} calls of its library: expected one")
    function, arguments, named = calls[0]
    return lambda: function(*arguments, **named)
