"""PyTorch and JAX arrays, where they are installed; and memory that is not the host's."""

import assay
import numpy as np
import pytest

import formulas

LINE = "quantize recipe=block_1x128 x_type=f32 direction=rowwise splits=8,12,20 K=512 seed=5"
X = np.random.default_rng(1).normal(size=(33, 272)).astype(np.float32)


def test_pytorch_in_and_out():
    torch = pytest.importorskip("torch")
    made = assay.quantize(torch.from_numpy(X), recipe="mxfp8")
    assert isinstance(made.codes, torch.Tensor) and made.codes.dtype == torch.uint8
    np.testing.assert_array_equal(made.codes.numpy(), formulas.mxfp8(X)[0])
    half = torch.from_numpy(X).to(torch.bfloat16)
    again = assay.quantize(half, recipe="mxfp8")
    np.testing.assert_array_equal(again.codes.numpy(), formulas.mxfp8(half.float().numpy())[0])
    values = assay.dequantize(again, d_type="bf16")
    assert values.dtype == torch.bfloat16
    fp8 = assay.Quantized(again.codes.view(torch.float8_e4m3fn), again.scale_inv, "mxfp8", "e4m3", *X.shape)
    assert torch.equal(assay.dequantize(fp8, d_type="bf16").view(torch.int16), values.view(torch.int16))


def test_a_function_of_pytorch():
    torch = pytest.importorskip("torch")

    def quantize(t, shift=0):
        assert t.x.dtype == torch.float32 and t.out.codes.dtype == torch.uint8
        formulas.grouped_block_1x128(t.x.numpy(), t.splits.tolist(), t.out.codes.numpy(), t.out.scale_inv.numpy())
        scales = formulas.group_scales(t.out.scale_inv.numpy(), t.splits.tolist(), 512, 1)
        scales[:] = np.roll(scales, shift, axis=0)

    assert assay.check(quantize, LINE, memory="torch:cpu").passed
    verdict = assay.check(lambda t: quantize(t, 1), LINE, memory="torch:cpu").verdicts[0]
    assert "group 1" in verdict.findings[0]["where"]
    bf16 = "quantize recipe=mxfp8 direction=rowwise R=33 K=272"
    result = assay.check(lambda x: formulas.mxfp8(x.float().numpy()), bf16, memory="torch:cpu", bind=lambda t: t.x)
    assert result.passed, result


def test_a_device_that_is_not_there():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no such device here: expected torch:cpu"):
            assay.check(lambda t: None, LINE, memory="torch:cuda")


def test_jax_in_and_out_and_a_function_of_jax():
    jnp = pytest.importorskip("jax.numpy")
    made = assay.quantize(jnp.asarray(X), recipe="mxfp8")
    assert type(made.codes).__module__.startswith("jax")
    np.testing.assert_array_equal(np.asarray(made.codes), formulas.mxfp8(X)[0])

    def quantize(x):
        codes, scales = formulas.block_1x128(np.asarray(x))
        return jnp.asarray(codes), jnp.asarray(scales)

    line = "quantize recipe=block_1x128 x_type=f32 direction=rowwise R=33 K=272"
    assert assay.check(quantize, line, memory="jax", bind=lambda t: t.x).passed
    assert not assay.check(lambda x: (quantize(x)[0], quantize(x)[1][:, ::-1]), line, memory="jax", bind=lambda t: t.x).passed


class Device(assay.memory.Memory):
    """Host memory that the harness may not touch: every copy, fill and graph goes through the methods that a device needs."""

    name, is_host, can_capture = "test device", False, True

    def __init__(self):
        self.calls = []
        self.recording = None

    def device(self):
        return "test device", "x86-64", "none"

    def allocate(self, count):
        block = np.empty(count + 256, np.uint8)
        start = -block.ctypes.data % 256
        return block[start : start + count]

    def address(self, block):
        return block.ctypes.data

    def view(self, block, offset, count, format, shape):
        dtype = {"f32": np.float32, "i64": np.int64}.get(format, np.uint8)
        return block[offset : offset + count].view(dtype).reshape(shape)

    def copy_in(self, to, source, stream):
        self.calls.append("copy_in")
        to[...] = source

    def copy_out(self, to, source, stream):
        self.calls.append("copy_out")
        to[...] = source

    def fill(self, to, value, stream):
        self.calls.append("fill")
        to[...] = value

    def stream(self):
        self.calls.append("stream")
        return object()

    def capture_begin(self, stream):
        self.recording = []
        return self.recording

    def capture_end(self, graph, stream):
        self.recording = None

    def launch(self, graph, stream):
        self.calls.append("launch")
        for function in graph:
            function()

    def do(self, function):
        """What a kernel launch is: recorded while a call is captured, else carried out."""
        self.recording.append(function) if self.recording is not None else function()


def test_memory_of_a_device_with_graphs():
    device = Device()

    def quantize(t, late=False):
        splits = t.splits.copy() if late else t.splits  # read as the call is made, or when it is carried out
        device.do(lambda: formulas.grouped_block_1x128(t.x, splits, t.out.codes, t.out.scale_inv))

    replayed = LINE + " replay=4:data,splits"
    assert assay.check(quantize, [LINE, replayed], memory=device).passed
    assert {"copy_in", "copy_out", "fill", "stream", "launch"} <= set(device.calls)
    verdict = assay.check(lambda t: quantize(t, True), replayed, memory=device).verdicts[0]
    assert verdict.verdict == "failed" and "replay" in verdict.text
    device.calls.clear()
    assert assay.check(quantize, replayed, memory=device, graphs=False).passed and "launch" not in device.calls


def test_returned_results_on_a_device():
    line = "quantize recipe=block_1x128 x_type=f32 direction=rowwise R=33 K=272"
    assert assay.check(formulas.block_1x128, line, memory=Device(), bind=lambda t: t.x).passed
    captured = assay.check(formulas.block_1x128, line + " replay=2:data", memory=Device(), bind=lambda t: t.x).verdicts[0]
    assert "write them to t.out, or say graphs=False" in captured.text
    assert assay.check(formulas.block_1x128, line + " replay=2:data", memory=Device(), bind=lambda t: t.x, graphs=False).passed


def test_work_that_never_ends_is_unfinished_and_the_next_case_is_judged():
    device = Device()
    device.wait = lambda stream, timeout_ms: not device.stuck
    device.stuck = False

    def stream():
        device.stuck = False  # what hangs is work on the streams before
        return object()

    device.stream = stream
    lines = [f"quantize recipe=block_1x128 x_type=f32 direction=rowwise R={rows} K=272" for rows in (33, 34)]

    def quantize(x, codes, scale_inv):
        device.stuck = x.shape[0] == 33
        made = formulas.block_1x128(x)
        codes[:], scale_inv[:, : x.shape[0]] = made

    result = assay.check(quantize, lines, memory=device, bind=lambda t: (t.x, t.out.codes, t.out.scale_inv))
    assert [each.verdict for each in result.verdicts] == ["unfinished", "passed"], result
