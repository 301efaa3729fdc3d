"""What the operators of TransformerEngine share: an operator as a Kernel, groups as lists of tensors, outputs that are not asked for."""

from __future__ import annotations

from typing import Any, Callable

import torch

from assay import Kernel

from .. import libraries, nvte
from ..operands import require


def operator(fn: Callable[[Any], None], **promises: Any) -> Kernel:
    """`fn` as a Kernel. What a check of the library refuses is a case that it does not have, in the library's own words."""

    def called(t: Any) -> None:
        try:
            fn(t)
        except nvte.Refused as refused:
            raise NotImplementedError(str(refused)) from refused

    called.__name__ = called.__qualname__ = fn.__name__.strip("_")
    return Kernel(called, memory="torch", deterministic=True, version=lambda: libraries.version("transformer_engine"), **promises)


def require_op(t: Any, *ops: str) -> None:
    require(t.op in ops, f"the op is {t.op}: expected {' or '.join(ops)}")


def is_captured() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def rows_of_groups(t: Any, rows: int) -> list[int]:
    """Rows of each group, on the host: the function takes a list of tensors. Without splits there is one group."""
    if "splits" not in t.inputs:
        return [rows]
    require(not is_captured(), "the call is captured, and the function wants the rows of groups on the host: expected an eager call")
    splits = t.splits.tolist()
    require(all(each >= 0 for each in splits) and sum(splits) <= rows, f"splits are {splits} of {rows} rows: expected none negative, and room")
    return splits


def require_aligned_groups(t: Any, unit: int) -> None:
    """The library reads the rows of groups on the device and checks nothing: an eager call looks at them. A captured one follows an eager
    call of the same tensors."""
    if "splits" not in t.inputs or is_captured():
        return
    require_multiples_of(t.splits.tolist(), unit)


def require_multiples_of(splits: list[int], unit: int, why: str = "") -> None:
    for group, rows in enumerate(splits):
        require(rows >= 0 and rows % unit == 0, f"group {group} has {rows} rows: expected multiples of {unit}{why}")


def groups_on_device(t: Any, rows: int, columns: int) -> dict[str, Any]:
    """How a grouped tensor names its groups: in number, and, where there are splits, their rows and first elements on the device."""
    if "splits" not in t.inputs:
        return {"groups": 1, "logical": (rows, columns)}
    groups = t.splits.shape[0]
    require(groups > 0, "there are no groups")
    first_dims = t.splits.to(torch.int64)
    return placed_by(first_dims, row_offsets(first_dims, columns), rows, columns)


def row_offsets(first_dims: torch.Tensor, columns: int) -> torch.Tensor:
    """The first element of each group's rows, and the end of the last group."""
    groups = first_dims.shape[0]
    offsets = torch.empty(groups + 1, dtype=torch.int64, device=first_dims.device)
    nvte.call("nvte_splits_to_offsets", first_dims, offsets, groups, columns, nvte.stream())
    return offsets


def placed_by(first_dims: torch.Tensor, offsets: torch.Tensor, rows: int, columns: int) -> dict[str, Any]:
    """How a grouped tensor of `rows` rows names groups of these rows."""
    return {"groups": first_dims.shape[0], "logical": (rows, columns), "first_dims": first_dims, "offsets": offsets}


def scratch(t: Any, count: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """Memory for what the function writes and the call does not ask for."""
    device = next(iter(t.inputs.values())).device
    return torch.empty(max(count, 1), dtype=dtype, device=device)


def output(t: Any, name: str, count: int, dtype: torch.dtype = torch.uint8) -> torch.Tensor:
    """The output `name`, flat, or scratch memory of `count` elements."""
    return t.out[name].view(-1) if name in t.out else scratch(t, count, dtype)


def store(t: Any, to: torch.Tensor, value: torch.Tensor) -> None:
    """Puts `value` into `to`, except where the skip flag says that nothing is written."""
    if "noop" in t.inputs:
        value = torch.where(t.noop == 1, to, value)
    to.copy_(value)


def noop_of(t: Any) -> nvte.Tensor | None:
    return nvte.Tensor(data=t.noop) if "noop" in t.inputs else None
