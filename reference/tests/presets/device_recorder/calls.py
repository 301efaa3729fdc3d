"""The calls of each group: name -> a function that makes the call and returns (attributes, {path: tensor or array})."""

import sys
from pathlib import Path

import numpy as np
import torch

import inputs

PEERS = None  # the folder with the libraries and sources
WORK = None   # a temporary one
SETS = {}
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
LABELS = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float8_e4m3fn: "e4m3",
          torch.float8_e5m2: "e5m2", torch.uint8: "e8m0", torch.int32: "i32", torch.int64: "i64",
          torch.float8_e8m0fnu: "e8m0", torch.int8: "e8m0"}


def prepare(peers, work):
    global PEERS, WORK
    PEERS, WORK = Path(peers), Path(work)
    if torch.cuda.is_available():
        torch.zeros(1, device="cuda")
    SETS.update(inputs.all_sets(Path(__file__).parent.parent))
    sys.path.insert(0, str(PEERS / "sources"))
    sys.path.insert(0, str(PEERS / "sources/torchao_wheel"))


def tensor(x, x_type="f32"):
    return torch.from_numpy(np.array(x, copy=True, order="C")).cuda().to(TYPES[x_type])


def given(name):
    """The input `name` on the GPU."""
    x_type, x = SETS[name]
    return tensor(x, x_type)


def poisoned(shape, dtype):
    """A tensor whose bytes are all 0xA5: what a kernel leaves alone shows."""
    size = torch.empty(0, dtype=dtype).element_size()
    count = int(np.prod(shape))
    return torch.full((count * size,), 0xA5, dtype=torch.uint8, device="cuda").view(dtype).reshape(shape)


def stored(value):
    """(dtype label, array of the bits) of a tensor, or of a pair of a label and a tensor."""
    label = None
    if isinstance(value, tuple):
        label, value = value
    if isinstance(value, np.ndarray):
        kinds = {"float32": "f32", "int32": "i32", "int64": "i64", "uint8": "e8m0"}
        return label or kinds[value.dtype.name], np.ascontiguousarray(value)
    value = value.detach()
    label = label or LABELS[value.dtype]
    if value.element_size() == 1:
        # view and contiguous before the copy: float8 tensors lack many operators
        return label, value.view(torch.uint8).contiguous().cpu().numpy()
    if value.dtype in (torch.bfloat16, torch.float16):
        return label, value.contiguous().view(torch.int16).cpu().numpy().view(np.uint16)
    return label, value.contiguous().cpu().numpy()


def finish(record):
    attributes, arrays = record
    out = {path: stored(value) for path, value in arrays.items() if value is not None}
    for path, (label, array) in out.items():
        if path.startswith("out/") and array.size and bool((array.reshape(-1).view(np.uint8) == 0xA5).all()):
            attributes["untouched"] = attributes.get("untouched", "") + path + " "
    return attributes, out


def group(name):
    if name.startswith("te_"):
        import te
        return te.group(name)
    if name.startswith(("sglang", "vllm", "fbgemm")):
        import libraries
        return libraries.group(name)
    import kernels
    return kernels.group(name)
