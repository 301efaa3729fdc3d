"""The adapter of TransformerEngine gives the C functions the right addresses, shapes and order of arguments: judged on a CPU, with functions
that compute from what they are given. What the real ones give is in docs/matrix."""

import pathlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

import assay

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import fake_transformer_engine
from adapters import libraries, nvte

CASES = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def te():
    patch = pytest.MonkeyPatch()
    patch.setattr(nvte, "_library", fake_transformer_engine.Library())
    from adapters import transformer_engine

    yield transformer_engine
    patch.undo()


def judged(kernel, lines, plan=None):
    """Without a plan D is judged by bounds: the sums here are in float64."""
    return assay.check(lambda t: kernel(t), lines, memory="torch:cpu", plan=plan, deterministic=True, explain=False)


PASSING = {
    "quantize": ["recipe=block_1x128 splits=5,0,130,1 K=272 extra_rows=3", "recipe=block_1x128 pow2=1 otype=e5m2 direction=columnwise R=33 K=144",
                 "recipe=block_128x128 x_type=f32 splits=130,7 K=300", "recipe=block_128x128 outputs=scale_inv direction=rowwise R=200 K=130",
                 "recipe=tensor_current x_type=f16 splits=5,17,1 K=48", "recipe=tensor_current otype=e5m2 direction=columnwise outputs=all R=9 K=64",
                 "recipe=tensor_delayed splits=16,34 K=80 outputs=all extra_rows=2", "recipe=tensor_delayed direction=rowwise R=7 K=33 scales=pow2"],
    "dequantize": ["recipe=tensor_current splits=5,0,9 K=48 d_type=f32", "recipe=tensor_delayed otype=e5m2 R=7 K=16 d_type=f16"],
    "swizzle": ["recipe=mxfp8 splits=33,0,128 K=96", "recipe=nvfp4 direction=columnwise splits=16,48 K=80", "recipe=mxfp8 direction=columnwise R=64 K=96"],
    "unswizzle": ["recipe=mxfp8 splits=33,0,128 K=96", "recipe=nvfp4 direction=columnwise splits=16,48 K=80", "recipe=nvfp4 R=130 K=256"],
    "delayed_update": ["tensors=5 length=4 margin=2", "bulk=0 algorithm=most_recent otype=e5m2 tensors=9 length=3", "reduced=1 tensors=3 length=1",
                       "bulk=0 tensors=3 length=2 outputs=scale"],
    "splits_to_offsets": ["splits=3,0,4 stride=7"],
    "splits_to_offsets_multi": ["splits=5,0,7 outputs=1:i64:absent,3:i32,5:i64:inclusive x_type=i32"],
    "splits_to_offsets_2d": ["first=3,0,5 last=8,7,2"],
    "permute": ["R=9 topk=3 K=16", "R=9 topk=2 dropped=3 K=8 x_type=f32", "x_type=e4m3 R=5 topk=1 K=32"],
    "unpermute": ["sums=fma_in_type R=9 topk=3 K=16", "weights=1 sums=fma_in_type x_type=f32 R=9 topk=2 dropped=3 K=8 data=integers"],
}
OPERATOR = {"unswizzle": "swizzle", "splits_to_offsets_multi": "splits_to_offsets", "splits_to_offsets_2d": "splits_to_offsets"}


@pytest.mark.parametrize("op", PASSING)
def test_calls_are_bound(te, op):
    result = judged(getattr(te, OPERATOR.get(op, op)), [f"{op} {words} seed=3" if not op.startswith("splits") else f"{op} {words}" for words in PASSING[op]])
    assert result.passed and not result.absent, result


def test_rows_left_free_between_experts(te):
    line = "permute R=9 topk=2 alignment=8 K=16 seed=1"
    assert judged(te.permute_backward, [line, "permute R=9 topk=2 dropped=5 K=16 seed=1"]).passed
    assert "rows are left free" in judged(te.permute, line).absent[0].text


SPLITS = {"bf16": "5,0,13 extra_rows=4", "f16": "7,1", "fp8_per_tensor": "16,0,48", "fp8_block": "16,0,144 extra_rows=8"}


@pytest.mark.parametrize("kind", SPLITS)
@pytest.mark.parametrize("layout", ("TN", "NN", "NT"))
def test_products(te, kind, layout):
    lines = [f"grouped_gemm kind={kind} layout={layout} splits={SPLITS[kind]} N=48 K=144 d_type=f32 {words} seed=4"
             for words in ("", "beta=1", *(["bias=1"] if layout == "TN" else []), *(["weight_block=1x128"] if kind == "fp8_block" and layout != "NT" else []))]
    for kernel in (te.multi_tensor_gemm, te.gemm, te.grouped_gemm):
        result = judged(kernel, lines)
        assert result.passed and not result.absent, result
        exact = judged(kernel, f"grouped_gemm kind={kind} layout={layout} splits={SPLITS[kind]} N=32 K=64 d_type=f32 data=integers seed=1",
                       kernel.plan)
        assert exact.passed and "bits" in exact.verdicts[0].ground, exact
    for kernel in (te.gemm, te.grouped_gemm):
        assert judged(kernel, lines[0] + " alpha=0.5").passed


@pytest.mark.parametrize("kind", SPLITS)
def test_rows_of_groups_stay_on_the_device(te, kind, monkeypatch):
    """What a capture allows: no call reads them on the host."""
    from adapters.transformer_engine import calls, grouped_products

    for module in (calls, grouped_products):
        monkeypatch.setattr(module, "is_captured", lambda: True)
    seen = []
    with monkeypatch.context() as patched:
        patched.setattr(torch.Tensor, "tolist", lambda self: seen.append("read"))
        patched.setitem(fake_transformer_engine.CALLS, "nvte_grouped_gemm", lambda *_: seen.append("called"))
        judged(te.grouped_gemm, f"grouped_gemm kind={kind} d_type=f32 splits={SPLITS[kind]} N=32 K=128 seed=1")
    assert seen and set(seen) == {"called"}


def test_a_wrong_place_is_found(te, monkeypatch):
    from adapters.transformer_engine import products, scaling

    line = "grouped_gemm kind=fp8_block splits=16,48 N=48 K=144 d_type=f32 seed=1"
    right = products._operand
    monkeypatch.setattr(products, "_operand", lambda t, name, along, shape, group, first, place: right(t, name, along, shape, group, first, 0))
    assert not judged(te.multi_tensor_gemm, line).passed
    monkeypatch.undo()
    assert judged(te.multi_tensor_gemm, line).passed
    monkeypatch.setattr(scaling, "_blocks_of", lambda t, direction, rows: (2, 8))
    assert not judged(te.quantize, "quantize recipe=block_1x128 direction=rowwise splits=9,5 K=256 seed=1").passed


@pytest.mark.parametrize("name, line, why", [
    ("quantize", "quantize recipe=mxfp8 R=32 K=32", "recipe is mxfp8"),
    ("quantize", "quantize recipe=tensor_current splits=5,0 K=32", "a group is empty"),
    ("quantize", "quantize recipe=block_1x128 zero_sign=positive R=5 K=32", "zero_sign is positive"),
    ("quantize_dbias", "quantize recipe=tensor_delayed x_type=f32 dbias=1 R=16 K=32", "in another order than dbias-1.1"),
    ("group_quantize", "quantize recipe=block_1x128 splits=128,5 K=128", "group 1 has 5 rows: expected multiples of 128"),
    ("dequantize", "dequantize recipe=mxfp8 R=32 K=32", "not supported by architectures below 10.0"),
    ("group_dequantize", "dequantize recipe=block_1x128 splits=5 K=128", "expected multiples of 128"),
    ("swizzle", "swizzle recipe=mxfp8 R=32 K=40", "K is 40: expected a multiple of 32"),
    ("mxfp8_parts", "quantize recipe=mxfp8 x_type=f16 R=32 K=32", "expected x in bf16"),
    ("nvfp4_stochastic", "quantize recipe=nvfp4 R=32 K=32", "expected stochastic=1"),
    ("unpermute", "unpermute R=4 K=16", "sums is fma_f32: expected fma_in_type"),
    ("permute", "permute R=4 K=12", "K is 12: expected a multiple of 8"),
    ("permute", "permute token_scales=f32 R=4 K=128", "the function moves rows only"),
    ("multi_tensor_gemm", "grouped_gemm kind=bf16 splits=5 N=12 K=16", "expected multiples of 8"),
    ("grouped_gemm", "grouped_gemm kind=fp8_block layout=NT splits=16,5 N=16 K=16", "group 1 has 5 rows: expected multiples of 16"),
    ("multi_tensor_gemm", "grouped_gemm kind=fp8_block splits=5 N=16 K=16", "expected multiples of 8, which the library checks"),
    ("multi_tensor_gemm", "grouped_gemm kind=mxfp8 splits=32 N=32 K=32", "kind is mxfp8"),
    ("multi_tensor_gemm", "grouped_gemm kind=bf16 alpha=0.5 splits=5 N=16 K=16", "alpha is not 1"),
])
def test_what_is_absent_is_said(te, name, line, why):
    result = judged(getattr(te, name), line)
    assert [each.verdict for each in result.verdicts] == ["not run"] and why in result.absent[0].text, result


def test_what_the_library_refuses_is_an_absence_in_its_words(te, monkeypatch):
    def refuse(*arguments):
        raise nvte.Refused("nvte_dequantize: Assertion failed: that is not here")

    monkeypatch.setitem(fake_transformer_engine.CALLS, "nvte_dequantize", refuse)
    assert "that is not here" in judged(te.dequantize, "dequantize recipe=tensor_current R=4 K=16").absent[0].text


def test_plans(te, monkeypatch):
    def plan(line):
        seen = []
        assay.check(assay.Kernel(lambda t: seen.append(te.gemm.plan(t)), memory="torch:cpu"), line, memory="torch:cpu", explain=False)
        return seen[0]

    head = "grouped_gemm splits=16 N=16 K=16"
    assert plan(f"{head} kind=bf16") == "unit=sm90.wgmma.f16"
    assert plan(f"{head} kind=fp8_per_tensor split_accumulator=1 d_type=f32 beta=1") == "unit=sm90.wgmma.fp8,promote=128,epilogue=reduce_add"
    assert plan(f"{head} kind=fp8_block layout=NT").endswith("promote=128,association=rows_first")
    assert plan(f"{head} kind=fp8_block").endswith("association=scales_first") and plan(f"{head} kind=bf16 beta=1") is None
    monkeypatch.setattr(te, "gemm", te.grouped_gemm)
    assert plan(f"{head} kind=bf16 beta=1") == "unit=sm90.wgmma.f16"
    assert plan(f"{head} kind=fp8_per_tensor split_accumulator=1 d_type=f32 beta=1") == "unit=sm90.wgmma.fp8,promote=128"
    assert plan(f"{head} kind=fp8_block weight_block=1x128").endswith("promote=128,association=rows_first")


def test_case_files_are_case_lines():
    for path in sorted(CASES.glob("transformer_engine_*.txt")):
        lines = [line for line in path.read_text().splitlines() if line and not line.startswith("#")]
        assert lines and len(lines) == len(set(lines)), path
        for line in lines:
            assert assay._lines.canonical(line) == line, path


LIBRARY = """
#include <cstddef>
#include <stdexcept>
#include <string>
extern "C" {
static int alive = 0;
void* nvte_create_tensor(int mode) { ++alive; return reinterpret_cast<void*>(static_cast<long>(100 + mode)); }
void nvte_destroy_tensor(void*) { --alive; }
void nvte_set_tensor_param_v2(void* t, int number, const void* value, std::size_t bytes) {
  const auto* words = static_cast<const std::size_t*>(value);  // address, type, extents, rank
  if (t != reinterpret_cast<void*>(102) || number != 4 || bytes != 144 || words[2] != 3 || words[3] != 5 || words[17] != 2) throw std::runtime_error("no");
}
void* nvte_create_grouped_tensor() { return nullptr; }
void* nvte_create_quantization_config() { return nullptr; }
void* nvte_create_matmul_config() { return nullptr; }
void* nvte_create_grouped_matmul_config() { return nullptr; }
void nvte_destroy_grouped_matmul_config(void*) {}
std::size_t nvte_get_grouped_gemm_setup_workspace_size(std::size_t groups) { return groups; }
void nvte_destroy_grouped_tensor(void*) {}
void nvte_destroy_quantization_config(void*) {}
void nvte_destroy_matmul_config(void*) {}
int nvte_get_num_compute_streams() { return 4; }
void say(const char* text, long a, long b, float real) { throw std::runtime_error(std::string(text) + std::to_string(a - b + static_cast<long>(real))); }
void count(long* to) { *to = alive; }
void many(long a, long, long, long, long, long, long, long, long, long, long, long, long, long* to) { *to = a; }
}
"""


def test_the_c_interface(tmp_path, monkeypatch):
    """A library compiled here: arguments arrive, exceptions come back, handles are destroyed."""
    (tmp_path / "fake.cc").write_text(LIBRARY)
    subprocess.run(["c++", "-shared", "-fPIC", str(tmp_path / "fake.cc"), "-o", str(tmp_path / "transformer_engine.so")], check=True)
    monkeypatch.setenv(libraries.VARIABLE, str(tmp_path))
    monkeypatch.setattr(nvte, "_library", nvte.Library(libraries.find("transformer_engine")))
    with pytest.raises(nvte.Refused, match="say: not here 12"):
        nvte.call("say", b"not here ", 7, -3, real=2.0)
    with pytest.raises(RuntimeError, match="CUDA Error: 7") as raised:
        nvte.call("say", b"CUDA Error: ", 7, 0)
    assert not isinstance(raised.value, nvte.Refused)
    place = torch.zeros(1, dtype=torch.int64)
    nvte.call("many", 9, *[0] * 12, place)
    assert place.item() == 9
    tensor = nvte.Tensor(nvte.BLOCK_1D, scale_inv=torch.zeros(3, 5))
    nvte.call("count", place)
    assert place.item() == 1
    del tensor
    nvte.call("count", place)
    assert place.item() == 0
    with pytest.raises(ImportError, match="does not load"):
        nvte.Library(tmp_path / "absent.so")
