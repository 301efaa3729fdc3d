"""The guide, as a reader runs it: its blocks of Python in one program, and what they print."""

import contextlib
import io
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs/judge_a_python_kernel.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.S | re.M)
PYTHON = [body for kind, body in BLOCKS if kind == "python"]
SHOWN = next(body for kind, body in BLOCKS if kind == "text")


def test_the_function_without_a_gpu_and_its_fault():
    printed = io.StringIO()
    names = {}
    with contextlib.redirect_stdout(printed):
        for body in PYTHON:
            if "triton" not in body and "memory=\"torch\"" not in body:
                exec(compile(body, PAGE.name, "exec"), names)
    pattern = re.escape(SHOWN.strip()).replace("…", ".*")
    assert re.search(pattern, printed.getvalue()), printed.getvalue()
    assert names["result"].passed, names["result"]
    assert names["codes"].shape == (33, 272) and names["want"].codes.shape == (33, 272)


def test_the_triton_kernel_on_a_gpu(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    (tmp_path / "guide_kernel.py").write_text(PYTHON[0])
    monkeypatch.syspath_prepend(tmp_path)
    names = {"quantize": __import__("guide_kernel").quantize}
    exec(compile(PYTHON[1], PAGE.name, "exec"), names)
    assert names["result"].passed, names["result"]
