"""Functions on a CUDA device: streams, graphs and memory of PyTorch and CuPy. Skipped where there is none."""

import assay
import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)

GROUPED = "quantize recipe=block_1x128 direction=rowwise splits=8,12,20 K=512 seed=5"
WHOLE = "quantize recipe=block_1x128 direction=rowwise R=40 K=512 seed=5"


def quantize(x, codes, scales, shift=0):
    """block_1x128 of one matrix in PyTorch: every step rounds as the specification says."""
    rows, columns = x.shape
    tiles = x.float().reshape(rows, columns // 128, 128)
    amax = tiles.abs().amax(dim=2)
    scale = torch.where(amax > 0, torch.full_like(amax, 448) / amax, 1.0)
    codes.copy_((tiles * scale[:, :, None]).to(torch.float8_e4m3fn).view(torch.uint8).reshape(rows, columns))
    scales[:, :rows].copy_(torch.roll((1.0 / scale).T, shift, 0))


def bind(t):
    return t.x, t.out.codes, t.out.scale_inv


def test_a_function_of_pytorch_on_the_device():
    result = assay.check(quantize, [WHOLE, WHOLE + " replay=6:data"], memory="torch:cuda", bind=bind)
    assert result.passed, result
    assert not any("without capture" in each.way or "eagerly" in each.way for each in result.verdicts), result
    verdict = assay.check(quantize, WHOLE, memory="torch:cuda", bind=lambda t: (*bind(t), -1)).verdicts[0]
    assert any("rotated by 1" in hint for hint in verdict.hints), verdict


def test_a_replay_sees_what_was_read_on_the_host():
    def keeps(t):
        scale = float(t.x.abs().amax()) if not torch.cuda.is_current_stream_capturing() else 1.0
        quantize(*bind(t))
        t.out.scale_inv[:, :40] += 0 * scale

    assert assay.check(keeps, WHOLE, memory="torch:cuda").passed
    kept = {}

    def stale(t):
        quantize(kept.setdefault(t.x.shape, t.x.clone()), t.out.codes, t.out.scale_inv)

    assert not assay.check(stale, WHOLE + " replay=4:data", memory="torch:cuda").passed


def test_work_on_another_stream_is_found():
    other = torch.cuda.Stream()

    def elsewhere(t):
        with torch.cuda.stream(other):  # without waiting for the inputs, or being waited for
            torch.cuda._sleep(2_000_000)
            quantize(*bind(t))

    assert not assay.check(elsewhere, WHOLE, memory="torch:cuda").passed
    torch.cuda.synchronize()


def test_results_may_be_returned_on_the_device():
    def returned(x):
        codes = torch.empty(x.shape, dtype=torch.uint8, device=x.device)
        scales = torch.empty((x.shape[1] // 128, x.shape[0]), device=x.device)
        quantize(x, codes, scales)
        return codes, scales

    assert assay.check(returned, WHOLE, memory="torch:cuda", bind=lambda t: t.x).passed


def test_a_grouped_product_by_its_plan():
    """torch._grouped_mm in bf16, if this PyTorch has it: its sums are exact on these inputs, whatever their order."""
    if not hasattr(torch, "_grouped_mm"):
        pytest.skip("no torch._grouped_mm")

    def product(t):
        ends = torch.cumsum(t.splits, 0).to(torch.int32)
        w = t.w.reshape(len(t.splits), t.N, t.K).transpose(1, 2)
        t.out.d.copy_(torch._grouped_mm(t.x, w, offs=ends))

    line = "grouped_gemm kind=bf16 d_type=bf16 splits=16,0,48 N=64 K=64 data=integers seed=3"
    result = assay.check(product, [line, line + " replay=4:data,splits"], memory="torch:cuda")
    assert result.passed, result
    random = "grouped_gemm kind=bf16 d_type=bf16 splits=16,0,48 N=64 K=128 seed=3"
    result = assay.check(product, random, memory="torch:cuda", plan="cublaslt.sm90.bf16")
    assert result.verdicts[0].verdict in ("passed", "failed") and result.verdicts[0].ground == "bits", result


def test_what_is_absent_changes_no_memory():
    def absent(t):
        raise NotImplementedError("no groups")

    assert assay.check(absent, GROUPED, memory="torch:cuda").verdicts[0].verdict == "not run"


def test_own_inputs_on_the_device():
    x = torch.randn(40, 512, device="cuda", dtype=torch.bfloat16)
    made = assay.quantize(x, recipe="block_1x128")
    codes, scales = torch.empty_like(made.codes), torch.zeros_like(made.scale_inv)
    assert made.codes.device == x.device
    quantize(x, codes, scales)
    assert torch.equal(codes, made.codes) and torch.equal(scales[:, :40], made.scale_inv[:, :40])


def test_a_function_of_cupy():
    cupy = pytest.importorskip("cupy")
    line = "quantize recipe=block_1x128 direction=rowwise outputs=scale_inv x_type=f32 R=40 K=512 seed=5"

    def scales(x, scale_inv):
        amax = cupy.abs(x.reshape(40, 4, 128)).max(axis=2)
        scale_inv[:, :40] = (cupy.float32(1) / (cupy.float32(448) / amax)).T

    result = assay.check(scales, [line, line + " replay=4:data"], memory="cupy", bind=lambda t: (t.x, t.out.scale_inv))
    assert result.passed, result
