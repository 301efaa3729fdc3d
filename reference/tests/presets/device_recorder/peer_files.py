"""Functions taken out of the files of wheels and checkouts, and which inputs they get."""

import ast
import types
import typing
from pathlib import Path

import torch

import calls
import libraries

CODES, WIDE = ([n for n in names if not n.endswith("_long")] for names in (libraries.CODES, libraries.WIDE))


def functions(path, names, given_names):
    """The functions `names` of a file without the rest of it, with given_names as their globals."""
    tree = ast.parse(Path(path).read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in names]
    missing = set(names) - {node.name for node in found}
    if missing:
        raise KeyError(f"{path} has no {sorted(missing)}")
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    import triton
    import triton.language as tl
    scope = {"__name__": "peer_" + Path(path).stem, "torch": torch, "triton": triton, "tl": tl, "Tensor": torch.Tensor,
             **{n: getattr(typing, n) for n in ("Optional", "Tuple", "List", "Union", "Any", "Callable", "Dict")}, **given_names}
    exec(compile(tree, str(path), "exec"), scope)
    return types.SimpleNamespace(**{n: scope[n] for n in names})


def one_config(module):
    """No search for the fastest configuration: the first one. What is computed does not depend on it."""
    for value in vars(module).values():
        if type(value).__name__ == "Autotuner":
            value.configs = value.configs[:1]


def source(name):
    return calls.PEERS / "sources" / name
