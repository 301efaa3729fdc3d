"""Kernels that a library exports through apache-tvm-ffi."""

import os
import shutil
import subprocess
import sys

import assay
import pytest

tvm_ffi = pytest.importorskip("tvm_ffi")

SOURCE = """
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>

void offsets(tvm::ffi::TensorView splits, tvm::ffi::TensorView out) {
  const auto* rows = static_cast<const int64_t*>(splits.data_ptr());
  auto* to = static_cast<int64_t*>(out.data_ptr());
  to[0] = 0;
  for (int64_t i = 0; i < splits.size(0); ++i) to[i + 1] = to[i] + rows[i];
}
void late_offsets(tvm::ffi::TensorView splits, tvm::ffi::TensorView out) {
  offsets(splits, out);
  static_cast<int64_t*>(out.data_ptr())[splits.size(0)] += 1;
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(offsets, offsets);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(late_offsets, late_offsets);
"""
LINE = "splits_to_offsets splits=1,0,127,128,129"


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("no C++ compiler")
    folder = tmp_path_factory.mktemp("ffi")
    (folder / "mine.cc").write_text(SOURCE)
    include = [f"-I{each}" for each in (tvm_ffi.libinfo.find_include_path(), tvm_ffi.libinfo.find_dlpack_include_path())]
    subprocess.run([compiler, "-std=c++17", "-shared", "-fPIC", "-O1", *include, "mine.cc", "-o", "libmine.so",
                    tvm_ffi.libinfo.find_libtvm_ffi()], cwd=folder, check=True)
    return folder / "libmine.so"


def test_an_exported_function(library):
    assert assay.check(assay.ffi.kernel(str(library), "offsets"), LINE).passed
    verdict = assay.check(assay.ffi.kernel(str(library), "late_offsets"), LINE).verdicts[0]
    first = verdict.findings[0]["first"]
    assert first["place"] == "index 5" and first["got"]["value"] == "386"
    bound = assay.ffi.kernel(str(library), "offsets", bind=lambda t: (t.splits, t.out.offsets))
    assert assay.check(bound, LINE + " replay=3:splits").passed


def test_what_does_not_load_is_named(library):
    with pytest.raises(AttributeError, match="exports no 'no_such' through apache-tvm-ffi"):
        assay.ffi.kernel(str(library), "no_such")
    with pytest.raises(FileNotFoundError, match="there is no library './no_such.so'"):
        assay.ffi.kernel("./no_such.so", "offsets")


def test_the_program_judges_it(library):
    program = os.environ.get("ASSAY_PROGRAM")
    if not program:
        pytest.skip("ASSAY_PROGRAM does not name the program assay")

    def repro(symbol):
        made = subprocess.run([program, "repro", LINE, "--backend", f"ffi:./libmine.so:{symbol}"], cwd=library.parent, text=True,
                              env=os.environ | {"ASSAY_PYTHON": sys.executable}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return made.returncode, made.stdout

    code, said = repro("offsets")
    assert code == 0 and "passed by bits: 6 elements" in said, said
    code, said = repro("late_offsets")
    assert code == 1 and "first   index 5: got 386, want 385" in said, said
    code, said = repro("no_such")
    assert code == 2 and "exports no 'no_such'" in said, said
