"""A call as its author sees it: tensors by the names of the specification."""

from __future__ import annotations

from typing import Any

from .oracle import Arrays, resolve


class Missing(AttributeError, KeyError):
    """A tensor or parameter that a call has not."""

    __str__ = AttributeError.__str__


class Tensors:
    """The tensors and parameters of one call, for `bind`.

    `t.x`, `t.splits`, ... are input tensors, `t.out.rowwise_data`, ... outputs, `t.recipe`, `t.N`, ... parameters, under the names that
    `assay list --schema` prints. Where only one tensor ends in `_data` it is also `codes`, and likewise `scale_inv`. FP8, FP4 and
    E8M0 tensors are codes in bytes (uint8); two FP4 codes share one. `print(t)` lists everything.

    Attributes:
        op: name of the op.
        inputs, parameters: dicts. out: the outputs, a dict whose names are attributes too.
        formats: format of each tensor, such as "e4m3".
    """

    def __init__(self, op: str, parameters: dict[str, Any], inputs: dict[str, Any], out: dict[str, Any], formats: dict[str, str],
                 out_formats: dict[str, str]):
        self.op = op
        self.parameters = parameters
        self.inputs = inputs
        self.out = Arrays(out)
        self.formats = formats
        self.out_formats = out_formats

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = resolve(self.inputs, name)
        if found is not None:
            return self.inputs[found]
        if name in self.parameters:
            return self.parameters[name]
        raise Missing(f"the call has no '{name}'. It has\n{self}")

    def __getitem__(self, name: str) -> Any:
        return getattr(self, name)

    def get(self, name: str, default: Any = None) -> Any:
        """The tensor or parameter with this name, or `default` where the call has none."""
        return getattr(self, name, default)

    def __str__(self) -> str:
        def rows(arrays: dict[str, Any], formats: dict[str, str]) -> list[str]:
            return [f"  {name}: {formats[name]} {list(array.shape)}" for name, array in arrays.items()]

        parameters = " ".join(f"{name}={value}" for name, value in self.parameters.items())
        return "\n".join([f"{self.op} {parameters}", "inputs", *rows(self.inputs, self.formats), "outputs (t.out)",
                          *rows(self.out, self.out_formats)])

    __repr__ = __str__
