"""A function with what has to be known to judge it."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable

from .memory import Memory
from .tensors import Tensors


@dataclasses.dataclass(frozen=True)
class Kernel:
    """A function that is judged.

    Args:
        fn: what is called. It writes to the tensors of `t.out` that `bind` gives it, or returns the results: a dict by name, or arrays in
            the order of the outputs. Of results that are returned the padding is not judged. Raising NotImplementedError says that
            it does not have the case.
        bind: from the tensors of a call to the arguments of `fn`: a tuple, a dict of keyword arguments, or one argument. Without it
            `fn` is called with the `Tensors` themselves.
        plan: name or line of the accumulation plan of its products, or a function from `Tensors` to it. With a plan D is judged by
            bits; without one by inputs whose sums are exact in any order, and by a bound for each element.
            The function is asked about calls that the kernel does not serve too: what it raises for a missing input, or
            NotImplementedError, states none.
        unit: row of the tensor-core table of its products, where no plan is stated.
        deterministic: True: the same call gives the same bits, which is then checked; False: it may not.
        batch_invariant: True: the bits of a group do not depend on the other groups, which is then checked.
        keeps_zero_sign: True: an exact -0 of a product keeps its sign; False: it becomes +0; None: either.
        memory: what its arrays are: "numpy", "torch", "torch:DEVICE", "cupy", "jax", or a `Memory`.
        version: the library and its version, such as "fbgemm-gpu-genai 1.6.0", or a function that says so: reports name it.
        supports: says whether the function has a case, in place of trying it.
    """

    fn: Callable[..., Any]
    bind: Callable[[Tensors], Any] | None = None
    plan: str | Callable[[Tensors], str | None] | None = None
    unit: str | None = None
    deterministic: bool | None = None
    batch_invariant: bool | None = None
    keeps_zero_sign: bool | None = None
    memory: str | Memory = "numpy"
    supports: Callable[[Tensors], bool] | None = None
    version: str | Callable[[], str] = ""

    @property
    def title(self) -> str:
        """The name of the function."""
        fn = getattr(self.fn, "fn", self.fn)  # a Triton kernel holds its function so
        return getattr(fn, "__qualname__", None) or getattr(fn, "__name__", None) or type(self.fn).__name__

    def __call__(self, t: Tensors) -> Any:
        if self.bind is None:
            return self.fn(t)
        arguments = self.bind(t)
        if isinstance(arguments, dict):
            return self.fn(**arguments)
        return self.fn(*arguments) if isinstance(arguments, (tuple, list)) else self.fn(arguments)
