"""`assay run --backend python:MODULE:NAME`: the program judges a function in a worker process."""

import os
import pathlib
import subprocess
import sys

import pytest

MINE = """
import os, time
import assay
import formulas

def right(t):
    formulas.grouped_block_1x128(t.x, t.splits, t.out.codes, t.out.scale_inv)

def shifted(t):
    right(t)
    scales = formulas.group_scales(t.out.scale_inv, t.splits, t.x.shape[1], 1)
    scales[:] = scales[[*range(1, len(scales)), 0]]

def ends(t):
    os.abort()

def exits(t):
    raise SystemExit(3)

def hangs(t):
    time.sleep(1000)

def raises(t):
    raise IndexError("no group 3")

def absent(t):
    raise NotImplementedError("no ragged groups yet")

def integers(x, w, splits, d):
    row = 0
    for group, rows in enumerate(map(int, splits)):
        d[row : row + rows] = x[row : row + rows].astype("f8") @ w[group * 32 : (group + 1) * 32].astype("f8").T
        row += rows

def offsets(t):
    if not isinstance(t.stride, int) or t.stride < 1:
        raise ValueError(f"stride is {t.stride}: expected an integer of 1 or more")
    t.out.offsets[0] = 0
    t.out.offsets[1:] = t.splits.cumsum() * t.stride

def careless(t):
    t.out.offsets[0] = 0
    t.out.offsets[1:] = t.splits.cumsum() * t.stride

product = assay.Kernel(integers, bind=lambda t: (t.x, t.w, t.splits, t.out.d))
number = 7
"""
LINE = "quantize recipe=block_1x128 x_type=f32 direction=rowwise splits=8,12,20 K=512 seed=5"


@pytest.fixture
def repro(tmp_path):
    program = os.environ.get("ASSAY_PROGRAM")
    if not program:
        pytest.skip("ASSAY_PROGRAM does not name the program assay")
    (tmp_path / "mine.py").write_text(MINE)
    folders = [str(pathlib.Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folders)}

    def run(name, line=LINE, *options, python=sys.executable):
        made = subprocess.run([program, "repro", line, "--backend", f"python:{name}", *options], cwd=tmp_path, text=True, timeout=300,
                              env=environment | {"ASSAY_PYTHON": python}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return made.returncode, made.stdout

    return run


def test_a_right_function_passes(repro):
    code, said = repro("mine:right")
    assert code == 0 and "passed by bits: 20640 elements compared" in said, said
    code, said = repro("mine:product", "grouped_gemm kind=bf16 d_type=f32 splits=16,3 N=32 K=64 data=integers seed=3")
    assert code == 0 and "passed by order-free bits" in said, said


def test_a_wrong_function_fails_with_the_command_that_shows_it_again(repro):
    code, said = repro("mine:shifted")
    assert code == 1 and "where   group 1;" in said and "hint    k-blocks are rotated by 1" in said, said
    assert f"repro '{LINE}' --backend python:mine:shifted" in said


def test_wrong_calls_do_not_reach_a_function(repro):
    """Tensors are checked before; values of parameters are the function's affair."""
    line = "splits_to_offsets splits=3,0,5 stride=24 contract=1"
    code, said = repro("mine:offsets", line)
    assert code == 0 and "1 passed, 0 failed" in said, said
    code, said = repro("mine:careless", line)
    assert code == 1 and "with parameter stride=-3: returned 'ok': expected a refusal" in said, said


def test_what_a_function_does_to_its_process_is_a_verdict(repro):
    code, said = repro("mine:ends")
    assert code == 1 and "signal 6 (SIGABRT)" in said, said
    code, said = repro("mine:exits")
    assert code == 1 and "ended with exit code 3" in said, said
    code, said = repro("mine:hangs", LINE, "--timeout", "2")
    assert code == 5 and "did not return within 2 s" in said, said
    code, said = repro("mine:raises")
    assert code == 1 and "IndexError: no group 3 (line 24 of " in said, said
    code, said = repro("mine:absent")
    assert code == 4 and "not run, 1 case: no ragged groups yet" in said, said


def test_what_does_not_load_is_named(repro):
    for name, why in (("mine:no_such", "module mine has no 'no_such'"), ("no_such:mine", "No module named 'no_such'"),
                      ("mine:number", "mine:number is int: expected a function, or an assay.Kernel"), ("mine", "expected python:MODULE:NAME")):
        code, said = repro(name)
        assert code == 2 and why in said, said
    code, said = repro("mine:right", LINE, "--backend-options", "memory=torch")
    assert code == 2 and "a function in Python has no options" in said, said
    code, said = repro("mine:right", python="no_such_python")
    assert code != 0 and "no_such_python" in said and "ASSAY_PYTHON names another" in said, said
