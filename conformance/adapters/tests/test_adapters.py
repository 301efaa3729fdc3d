"""The adapters bind the tensors of a call to operators as these expect them, on a CPU, with operators of the same names."""

import importlib
import pathlib
import sys

import pytest

torch = pytest.importorskip("torch")

import assay
from torch.overrides import TorchFunctionMode

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

import fake_libraries
from adapters import libraries

SPLITS = ("128,0,333", "1", "5,0,0,70", "0,0,3", "1,1,1,1", "zipf(16,300,7)", "3,0,6 extra_rows=40", "2,61", "64,1")
ONE = ("1", "13 extra_rows=9", "128", "66")
BLOCKS = "grouped_gemm kind=fp8_block splits={} N={} K={} seed=1"
ROW_COLUMN = "grouped_gemm kind=fp8_per_tensor scaling=per_row_column splits={} N={} K={} seed=1"
BF16 = "grouped_gemm kind=bf16 splits={} N={} K={} seed=1"
SIZES = ((128, 128), (256, 640))
GROUPED = {"sglang:blockwise_grouped": BLOCKS, "sglang:es_blockwise_grouped": BLOCKS, "fbgemm:groupwise_grouped": BLOCKS,
           "fbgemm:rowwise_grouped": ROW_COLUMN, "vllm:moe_mm": ROW_COLUMN, "fbgemm:bf16_grouped": BF16}
DENSE = {"sglang:scaled_mm": ROW_COLUMN, "vllm:scaled_mm_blocks": BLOCKS, "vllm:scaled_mm": ROW_COLUMN, "fbgemm:rowwise": ROW_COLUMN}
QUANTIZERS = {"sglang:group_v1": "sglang.group_v1", "sglang:group_v2": "sglang.group_v2", "sglang:per_token": "sglang.per_token",
              "vllm:per_token_group": "vllm.group", "vllm:per_token": "vllm.per_token", "fbgemm:per_row": "fbgemm.per_row"}
FIND, LOAD = libraries.find, libraries.load
KEPT = []  # operators are there as long as what defines them


@pytest.fixture(scope="module")
def adapter():
    patch = pytest.MonkeyPatch()
    patch.setattr(libraries, "find", lambda name: name)
    patch.setattr(libraries, "load", lambda name: KEPT.append(getattr(fake_libraries, name)()))

    def module(name):
        return importlib.import_module(f"adapters.{name}")

    yield module
    patch.undo()


def kernel(adapter, name):
    module, attribute = name.split(":")
    return getattr(adapter(module), attribute)


class NoHostReads(TorchFunctionMode):
    """Refuses what reads a tensor's values on the host, or makes a tensor of what the host has: on a GPU that waits, and no graph can
    hold it. What an operator does itself is its own affair."""

    READS = ("tolist", "item", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__", "__len__", "nonzero", "masked_select",
             "unique", "tensor", "as_tensor", "from_numpy")

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        assert name not in self.READS, f"{name} in an adapter"
        return function(*args, **kwargs or {})


def judged(kernel, lines, plan=None):
    """Operators that sum in float64 follow no plan: D is judged by bounds, which a wrong scale leaves at once."""
    def call(t):
        with NoHostReads():
            return kernel(t)

    return assay.check(call, lines, memory="torch:cpu", plan=plan, deterministic=kernel.deterministic, explain=False)


@pytest.mark.parametrize("name", GROUPED)
def test_products_of_groups(adapter, name):
    lines = [GROUPED[name].format(splits, n, k) for splits in SPLITS for n, k in SIZES]
    result = judged(kernel(adapter, name), lines)
    assert result.passed and not result.absent, result
    exact = judged(kernel(adapter, name), GROUPED[name].format("3,0,6", 128, 256) + " data=integers", kernel(adapter, name).plan)
    assert exact.verdicts[0].passed and "bits" in exact.verdicts[0].ground, exact


@pytest.mark.parametrize("name", DENSE)
def test_products_of_one_group(adapter, name):
    lines = [DENSE[name].format(splits, n, k) for splits in ONE for n, k in SIZES]
    result = judged(kernel(adapter, name), lines)
    assert result.passed and not result.absent, result
    for n in (128, 256):
        exact = judged(kernel(adapter, name), DENSE[name].format("9", n, 128) + " data=integers", kernel(adapter, name).plan)
        assert exact.verdicts[0].passed and "bits" in exact.verdicts[0].ground, exact


def test_rows_that_are_no_multiple_of_four_are_refused_where_the_kernel_would_fail(adapter):
    result = judged(adapter("fbgemm").groupwise, [BLOCKS.format(splits, 256, 384) for splits in ("128", "4", "12 extra_rows=8", "66", "1")])
    assert [each.verdict for each in result.verdicts] == ["passed"] * 3 + ["not run"] * 2, result
    assert "66 rows: expected a multiple of 4" in result.absent[0].text


@pytest.mark.parametrize("name", QUANTIZERS)
def test_quantizers(adapter, name):
    grouped = not name.endswith(("per_token", "per_row"))
    lines = [f"quantize_by_rule preset={QUANTIZERS[name]} {keys} seed=1" for keys in
             ("R=36 K=256", "x_type=f16 R=1 K=384", "storage=mn_major R=20 K=512", "splits=5,0,3 K=128 extra_rows=7",
              "outputs=data R=9 K=256", "outputs=scale_inv splits=4,0,1 K=256 extra_rows=3", "storage=k_major_per_group splits=3,2 K=256")]
    if name != "sglang:group_v2":
        lines += [f"quantize_by_rule preset={QUANTIZERS[name]} x_type=f32 R=3 K=384 seed=5"]
    if grouped:
        lines += [f"quantize_by_rule preset={QUANTIZERS[name]} block=1x{size} R=5 K=192 seed=2" for size in (64, 32)]
    if name.startswith("sglang:group"):
        lines += [f"quantize_by_rule preset={QUANTIZERS[name]} storage=tma_aligned R=7 K=384 seed=3"]
    if name == "fbgemm:per_row":
        lines += ["quantize_by_rule preset=fbgemm.per_row otype=e5m2 R=7 K=100 seed=4"]
    result = judged(kernel(adapter, name), lines)
    assert result.passed and not result.absent, result


def test_a_read_on_the_host_is_found(adapter):
    product, line = adapter("fbgemm").bf16_grouped, BF16.format("3", 128, 128)
    for read in (lambda t: t.splits.tolist(), lambda t: int(t.splits[0]), lambda t: t.splits.nonzero()):
        result = judged(assay.Kernel(lambda t: (read(t), product(t))[1], deterministic=True), line)
        assert "in an adapter" in str(result), result
    assert judged(product, line).passed


def test_a_wrong_order_of_scales_is_found(adapter, monkeypatch):
    """The cases above tell one binding from another."""
    fbgemm, sglang, vllm = (adapter(name) for name in ("fbgemm", "sglang", "vllm"))
    line = BLOCKS.format("5,0,9", 256, 384)
    assert judged(fbgemm.groupwise_grouped, line).passed
    monkeypatch.setattr(fbgemm, "scales_by_groups", lambda t: fbgemm.row_scales_of_groups(t).t().contiguous())
    assert len(judged(fbgemm.groupwise_grouped, line).failures) == 1
    for axis in (1, 2):
        monkeypatch.setattr(sglang, "weight_scales", lambda t: fbgemm.weight_scales(t).flip(axis))
        assert len(judged(sglang.blockwise_grouped, line).failures) == 1
    monkeypatch.setattr(vllm, "_SWAPPED_TO", 63)
    with pytest.raises(AssertionError):
        judged(vllm.moe_mm, ROW_COLUMN.format("64", 128, 256)).raise_on_failure()


@pytest.mark.parametrize("name, line, why", [
    ("sglang:blockwise_grouped", BLOCKS.format("5", 24, 128), "N is 24: expected a positive multiple of 128"),
    ("sglang:blockwise_grouped", BLOCKS.format("5", 128, 272), "K is 272: expected a positive multiple of 128"),
    ("sglang:es_blockwise_grouped", BLOCKS.format("5", 128, 128) + " d_type=f32", "d_type is f32: expected bf16 or f16"),
    ("fbgemm:groupwise_grouped", BLOCKS.format("5", 128, 128) + " weight_block=1x128", "weight_block is 1x128: expected 128x128"),
    ("fbgemm:bf16_grouped", BF16.format("5", 12, 128), "N is 12: expected a positive multiple of 8"),
    ("vllm:scaled_mm", ROW_COLUMN.format("5,3", 128, 128), "2 groups: expected one"),
    ("vllm:moe_mm", ROW_COLUMN.format("5,3", 128, 128) + " split_accumulator=1", "split_accumulator is 1: expected 0"),
    ("sglang:group_v1", "quantize_by_rule preset=sglang.group_v1 R=4 K=272", "K is 272: expected a multiple of 128"),
    ("sglang:group_v2", "quantize_by_rule preset=vllm.group R=4 K=256", "preset is vllm.group: expected sglang.group_v2"),
    ("sglang:group_v2", "quantize_by_rule preset=sglang.group_v2 x_type=f32 R=4 K=256", "x is f32: expected bf16 or f16"),
    ("vllm:scaled_mm_blocks", BLOCKS.format("5", 0, 128), "N is 0: expected a positive multiple of 128"),
    ("vllm:per_token_group", "quantize_by_rule preset=vllm.group storage=mn_major splits=4 K=256",
     "storage is mn_major with splits: expected k_major"),
])
def test_what_is_absent_is_said(adapter, name, line, why):
    result = judged(kernel(adapter, name), line)
    assert [each.verdict for each in result.verdicts] == ["not run"] and why in result.absent[0].text, result


def test_a_plan_that_depends_on_the_rows_of_groups(adapter):
    def plan(splits):
        return adapter("sglang")._es_plan(type("Call", (), {"splits": torch.tensor(splits)}))

    assert plan([64, 0, 1]).endswith("association=cols_first,subnormals=flushed") and plan([65, 0]).endswith("association=scales_first,subnormals=flushed")
    assert plan([64, 65]) is None and plan([0]).endswith("scales_first,subnormals=flushed")


def test_every_adapter_states_what_is_known(adapter):
    for name in ("sglang", "vllm", "fbgemm"):
        kernels = [each for each in vars(adapter(name)).values() if isinstance(each, assay.Kernel)]
        assert len(kernels) >= 5
        for each in kernels:
            assert each.memory == "torch" and each.deterministic is True


def test_a_library_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(libraries.VARIABLE, str(tmp_path))
    with pytest.raises(ImportError, match=r"vllm\.so: no such file .*_C_stable_libtorch\.abi3\.so of the wheel vllm"):
        FIND("vllm")
    (tmp_path / "vllm.so").write_bytes(b"no library")
    assert FIND("vllm") == tmp_path / "vllm.so"
    with pytest.raises(ImportError, match="does not load beside PyTorch"):
        LOAD(tmp_path / "vllm.so")
    monkeypatch.delenv(libraries.VARIABLE)
    monkeypatch.setattr(libraries, "LIBRARIES", {"vllm": libraries.Library("no-such-wheel", "no_such_package", "lib.so", "x")})
    with pytest.raises(ImportError, match="no-such-wheel is not installed: install it, or name a folder with vllm.so in ASSAY_ADA"):
        FIND("vllm")
