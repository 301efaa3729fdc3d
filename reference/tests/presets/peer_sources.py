"""The peers' own quantizers, made to run on a CPU: each Record runs one of them and returns its codes, scales, tensor scale.

A package whose __init__ wants a GPU or much else is entered by a bare module in its place, so that only the one file is run.
"""

import ast
import dataclasses
import importlib
import importlib.util
import subprocess
import sys
import types
from pathlib import Path
from typing import Callable

import torch

from small_floats import FORMATS

GENERAL = ["bf16", "bf16_middle", "bf16_special", "f32", "f32_middle"]


@dataclasses.dataclass
class Record:
    preset: str
    options: dict
    fmt: str  # of the codes
    sets: list
    source: str
    run: Callable


def bare_package(name, path=None):
    """A module in the place of a package, with its directory but without what its __init__ would import."""
    module = types.ModuleType(name)
    module.__path__ = [str(path)] if path else []
    sys.modules[name] = module
    return module


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def functions(path, names, given):
    """The functions `names` of a file without the rest of it, with `given` as their globals."""
    tree = ast.parse(Path(path).read_text())
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in names]
    exec(compile(tree, str(path), "exec"), given)
    return types.SimpleNamespace(**{name: given[name] for name in names})


def unpack4(packed):
    """One code to a byte of E2M1 codes packed low first."""
    packed = packed.view(torch.uint8)
    return torch.stack([packed & 15, packed >> 4], dim=-1).reshape(packed.shape[0], -1)


def deepseek(root, cite):
    kernel = load("deepseek_v3_kernel", root / "DeepSeek-V3/inference/kernel.py")
    source = cite("DeepSeek-V3", "inference/kernel.py: act_quant_kernel under Triton's interpreter; the cast is torch's")

    def runner(scale_fmt):
        def run(x):
            # Into float32, because the interpreter's own cast to FP8 does not round to nearest.
            y, s = torch.empty(x.shape), torch.empty(x.shape[0], x.shape[1] // 128)
            kernel.act_quant_kernel[lambda meta: (s.numel(),)](x, y, s, BLOCK_SIZE=128, scale_fmt=scale_fmt)
            return y.clamp(-448, 448).to(torch.float8_e4m3fn), s, None
        return run

    return [Record("deepseek_v3", {}, "e4m3", [*GENERAL, "f16"], source, runner(None)),
            Record("deepseek_v3.ue8m0", {}, "e4m3", ["bf16", "bf16_special"], source, runner("ue8m0"))]


def deepgemm(root, cite):
    m = load("deepgemm_math", root / "DeepGEMM/deep_gemm/utils/math.py")
    source = cite("DeepGEMM", "deep_gemm/utils/math.py")
    records = []
    for name, up in (("deepgemm", False), ("deepgemm.ue8m0", True)):
        records += [
            Record(name, {}, "e4m3", [*GENERAL, "f16"], source, lambda x, up=up: (*m.per_token_cast_to_fp8(x, up), None)),
            Record(name, {"block": [128, 1]}, "e4m3", ["bf16_tall"], source,
                   lambda x, up=up: (*m.per_channel_cast_to_fp8(x, up), None)),
            Record(name, {"block": [128, 128]}, "e4m3", ["bf16_tall", "bf16_square"], source,
                   lambda x, up=up: (*m.per_block_cast_to_fp8(x, up), None))]
    records.append(Record("deepgemm.ue8m0", {"block": [1, 32]}, "e4m3", ["bf16"], source,
                          lambda x: (*m.per_token_cast_to_fp8(x, True, 32), None)))
    for name, up in (("deepgemm.fp4", False), ("deepgemm.fp4.ue8m0", True)):
        def run(x, up=up):
            packed, s = m.per_token_cast_to_fp4(x, up)
            return unpack4(packed), s, None
        records.append(Record(name, {}, "e2m1", ["bf16", "bf16_special", "f32", "f32_middle_fp4"], source, run))
    return records


def fbgemm(root, cite):
    given = {"torch": torch, "Tensor": torch.Tensor, "triton": importlib.import_module("triton"),
             "logger": types.SimpleNamespace(info=lambda *_: None),
             "get_fp8_constants": lambda: (torch.float8_e4m3fn, None, torch.finfo(torch.float8_e4m3fn).max, 1e-12)}
    q = functions(root / "FBGEMM/fbgemm_gpu/experimental/gemm/triton_gemm/fp8_gemm.py",
                  ["quantize_fp8_row", "quantize_fp8_block", "quantize_fp8_group"], given)
    source = cite("FBGEMM", "fbgemm_gpu/experimental/gemm/triton_gemm/fp8_gemm.py, its torch branch")

    def row(x):
        codes, s = q.quantize_fp8_row(x)
        return codes, s.reshape(-1, 1), None

    return [Record("fbgemm.row", {}, "e4m3", GENERAL, source, row),
            Record("fbgemm.group", {}, "e4m3", GENERAL, source, lambda x: (*q.quantize_fp8_group(x), None)),
            Record("fbgemm.block", {"block": [128, 128]}, "e4m3", ["bf16_tall", "bf16_square"], source,
                   lambda x: (*q.quantize_fp8_block(x, 128, 128), None))]


def torchao_fp8(cite):
    utils = importlib.import_module("torchao.float8.float8_utils")
    config = importlib.import_module("torchao.float8.config")
    blockwise = importlib.import_module("torchao.prototype.blockwise_fp8_training.kernels")
    source = cite("torchao", "float8/float8_utils.py: tensor_to_scale, to_fp8_saturated")
    types_of = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2}

    def rowwise(fmt, pow2):
        def run(x):
            s = utils.tensor_to_scale(x, types_of[fmt], scaling_granularity=config.ScalingGranularity.AXISWISE, axiswise_dim=-1,
                                      round_scales_to_power_of_2=pow2)
            return utils.to_fp8_saturated(x.float() * s, types_of[fmt]), s, None
        return run

    records = []
    for name, pow2 in (("torchao.rowwise", False), ("torchao.rowwise.pow2", True)):
        records += [Record(name, {}, "e4m3", [*GENERAL, "f16"], source, rowwise("e4m3", pow2)),
                    Record(name, {"fmt": "e5m2"}, "e5m2", ["bf16", "bf16_special"], source, rowwise("e5m2", pow2))]
    source = cite("torchao", "prototype/blockwise_fp8_training/kernels.py: torch_blockwise_scale_*")
    return records + [
        Record("torchao.block", {}, "e4m3", GENERAL, source, lambda x: (*blockwise.torch_blockwise_scale_act_quant_lhs(x), None)),
        Record("torchao.block", {"block": [128, 1]}, "e4m3", ["bf16_square"], source,
               lambda x: (*blockwise.torch_blockwise_scale_act_quant_rhs(x.contiguous()), None)),
        Record("torchao.block", {"block": [128, 128]}, "e4m3", ["bf16_square"], source,
               lambda x: (*blockwise.torch_blockwise_scale_weight_quant(x), None))]


def torchao_mx(cite):
    mx = importlib.import_module("torchao.prototype.mx_formats.mx_tensor")
    constants = importlib.import_module("torchao.prototype.mx_formats.constants")
    source = cite("torchao", "prototype/mx_formats/mx_tensor.py: to_mx")
    formats = {"e4m3": torch.float8_e4m3fn, "e5m2": torch.float8_e5m2, "e3m2": constants.DTYPE_FP6_E3M2,
               "e2m3": constants.DTYPE_FP6_E2M3, "e2m1": torch.float4_e2m1fn_x2}

    def runner(mode, fmt):
        def run(x):
            scale, codes = mx.to_mx(x, formats[fmt], 32, mode)
            return (unpack4(codes) if fmt == "e2m1" else codes), scale, None
        return run

    records = []
    for mode in mx.ScaleCalculationMode:
        for fmt in formats:
            sets = ["bf16_infinite", "f32"] + (["bf16"] if fmt in ("e4m3", "e2m1") else ["bf16_plain"])
            sets += ["bf16_special"] if fmt in ("e4m3", "e5m2") else []
            records.append(Record(f"torchao.mx_{mode.value}", {"fmt": fmt}, fmt, sets, source, runner(mode, fmt)))
    return records


def microxcaling(root, cite):
    sys.path.insert(0, str(root / "microxcaling"))
    ops = importlib.import_module("mx.mx_ops")
    source = cite("microxcaling", "mx/mx_ops.py: _quantize_mx on float32")
    names = {"e4m3": "fp8_e4m3", "e5m2": "fp8_e5m2", "e3m2": "fp6_e3m2", "e2m3": "fp6_e2m3", "e2m1": "fp4_e2m1"}

    def runner(fmt, rounding, method, flush):
        def run(x):
            x = x.float()
            y = ops._quantize_mx(x, 8, names[fmt], method, axes=[-1], block_size=32, round=rounding, flush_fp32_subnorms=flush)
            grouped = x.reshape(x.shape[0], -1, 32)
            e = ops._shared_exponents(grouped, method, axes=[-1]) - ops._get_format_params(names[fmt])[2]
            e = e.expand_as(grouped) if method == "none" else e
            lost = torch.isnan(e) | (e > 127)
            e = torch.where(lost, torch.zeros_like(e), e.clamp(min=-127))
            # Its values are code * 2^e without error, or NaN: the codes follow.
            code = torch.zeros(grouped.shape, dtype=torch.uint8)
            value = y.reshape(grouped.shape).double() / torch.exp2(e.double())
            assert bool((torch.isnan(value) == lost.expand_as(value)).all())
            for number, magnitude in enumerate(FORMATS[fmt].values[:FORMATS[fmt].last + 1]):
                code[value.abs() == magnitude] = number
            found = torch.from_numpy(FORMATS[fmt].values)[code.long()]
            assert bool(((found == value.abs()) | torch.isnan(value)).all())
            code[torch.signbit(value) & ~torch.isnan(value)] |= FORMATS[fmt].sign
            byte = torch.where(lost, torch.full_like(e, 255), e + 127).to(torch.uint8)
            return code.reshape(x.shape), byte.reshape(x.shape[0], -1), None
        return run

    records = []
    for fmt in names:
        for rounding in ("nearest", "even", "floor"):
            sets = ["f32", "bf16_special"] + (["bf16"] if fmt in ("e4m3", "e2m1") and rounding != "floor" else ["bf16_plain"])
            records.append(Record("microxcaling", {"fmt": fmt, "rounding": rounding}, fmt, sets, source,
                                  runner(fmt, rounding, "max", False)))
    return records + [
        Record("microxcaling", {"fmt": "e4m3", "flush_fp32_subnorms": True}, "e4m3", ["bf16"], source,
               runner("e4m3", "nearest", "max", True)),
        Record("microxcaling", {"fmt": "e2m1", "method": "none"}, "e2m1", ["bf16_plain"], source,
               runner("e2m1", "nearest", "none", False))]


def modelopt(root, cite):
    base = root / "modelopt/modelopt"
    bare_package("modelopt", base)
    bare_package("modelopt.torch", base / "torch")
    bare_package("modelopt.torch.quantization", base / "torch/quantization")
    for part in ("qtensor", "backends", "utils"):
        bare_package(f"modelopt.torch.quantization.{part}", base / "torch/quantization" / part)
    core = functions(base / "torch/quantization/utils/core_utils.py",
                     ["reduce_amax", "reduce_block_amax", "reduce_block_padding", "convert_quantization_axis_to_reduce_axis"],
                     {"torch": torch, "F": torch.nn.functional, "_FP8_DTYPES": ()})
    for name in ("reduce_amax", "reduce_block_amax", "reduce_block_padding"):
        setattr(sys.modules["modelopt.torch.quantization.utils"], name, getattr(core, name))
    utils = types.ModuleType("modelopt.torch.quantization.backends.utils")
    utils.fp4_compatible = lambda: False
    sys.modules[utils.__name__] = utils
    base_tensor = types.ModuleType("modelopt.torch.quantization.qtensor.base_qtensor")

    class BaseQuantizedTensor:
        def __init__(self, shape, dtype, data):
            self.data = data

    base_tensor.BaseQuantizedTensor = BaseQuantizedTensor
    sys.modules[base_tensor.__name__] = base_tensor
    tensor = importlib.import_module("modelopt.torch.quantization.qtensor.nvfp4_tensor").NVFP4QTensor

    def run(x):
        q, sf, t = tensor.quantize(x, 16)
        return unpack4(q.data), sf, t

    sets = ["bf16", "bf16_plain", "bf16_special", "bf16_zero", "f16", "f32", "f32_nvfp4"]
    return [Record("nvfp4.modelopt", {}, "e2m1", sets,
                   cite("modelopt", "torch/quantization/qtensor/nvfp4_tensor.py: NVFP4QTensor.quantize"), run)]


def torchao_nvfp4(cite):
    n = importlib.import_module("torchao.prototype.mx_formats.nvfp4_tensor")
    source = cite("torchao", "prototype/mx_formats/nvfp4_tensor.py: nvfp4_quantize")

    def two(x):
        t = n.per_tensor_amax_to_scale(torch.max(torch.abs(x)))
        sf, codes = n.nvfp4_quantize(x, 16, t)
        return unpack4(codes), sf, t

    def one(x):
        sf, codes = n.nvfp4_quantize(x, 16)
        return unpack4(codes), sf, None

    return [Record("nvfp4.torchao", {}, "e2m1", ["bf16", "bf16_plain", "f32", "f32_nvfp4"], source, two),
            Record("nvfp4.torchao", {"two_level": False}, "e2m1", ["bf16", "bf16_infinite", "f32_middle_fp4"], source, one)]


def fouroversix(root, cite):
    base = root / "fouroversix/src/fouroversix"
    for name in ("", ".kernels", ".quantize", ".quantize.pytorch"):
        bare_package("fouroversix" + name, base / name.replace(".", "/").lstrip("/"))
    reference = importlib.import_module("fouroversix.quantize.pytorch.reference")
    utils = importlib.import_module("fouroversix.utils")
    source = cite("fouroversix", "src/fouroversix/quantize/pytorch/reference.py: quantize")

    def runner(rule):
        def run(x):
            packed, sf, total = reference.quantize(x, scale_rule=utils.ScaleRule(rule), use_blackwell_scale_layout=False)
            return unpack4(packed), sf.reshape(x.shape[0], -1), total
        return run

    sets = ["bf16", "bf16_plain", "bf16_close", "bf16_zero", "f16", "f32_nvfp4"]
    return [Record(f"fouroversix.{rule}", {}, "e2m1", sets, source, runner(rule))
            for rule in ("static_6", "static_4", "mse", "mae", "abs_max")]


def transformer_engine(root, cite):
    base = root / "TransformerEngine/transformer_engine"
    bare_package("transformer_engine", base)
    bare_package("transformer_engine.pytorch", base / "pytorch")
    bare_package("transformer_engine.pytorch.custom_recipes", base / "pytorch/custom_recipes")
    quantized = types.ModuleType("transformer_engine.pytorch.quantized_tensor")
    quantized.QuantizedTensorStorage = type("QuantizedTensorStorage", (), {})

    class Quantizer:
        def __init__(self, rowwise=True, columnwise=True):
            self.rowwise_usage, self.columnwise_usage = rowwise, columnwise

    quantized.Quantizer = Quantizer
    sys.modules[quantized.__name__] = quantized
    bare_package("transformer_engine.pytorch.tensor")
    tensor_utils = types.ModuleType("transformer_engine.pytorch.tensor.utils")
    tensor_utils.is_custom = lambda *_: True
    sys.modules[tensor_utils.__name__] = tensor_utils
    reference = importlib.import_module("transformer_engine.pytorch.custom_recipes.reference_nvfp4")
    formats = importlib.import_module("transformer_engine.pytorch.custom_recipes.reference_utils").Fp4Formats
    quantizer = reference.NVFP4QuantizerRef(formats.E2M1, columnwise=False, row_scaled_nvfp4=True)

    def run(x):
        packed, sf, _, _, rows, _ = quantizer._quantize(x)
        return unpack4(packed), sf, rows

    return [Record("nvfp4.te_row_scaled", {}, "e2m1", ["bf16", "bf16_plain", "bf16_special", "bf16_zero", "f32", "f32_nvfp4"],
                   cite("TransformerEngine", "pytorch/custom_recipes/reference_nvfp4.py: NVFP4QuantizerRef"), run)]


def layouts(root, cite):
    """(layout, source, function of uint8 [rows, blocks of K]) of what peers make of E8M0 scales."""
    math = load("deepgemm_math", root / "DeepGEMM/deep_gemm/utils/math.py")
    given = {"torch": torch, "align": math.align, "get_tma_aligned_size": lambda count, size: math.align(count, 16 // size)}
    test = functions(root / "DeepGEMM/tests/test_layout.py", ["get_mn_major_tma_aligned_packed_ue8m0_tensor_torch_impl"], given)
    blocked = importlib.import_module("torchao.prototype.mx_formats.utils").to_blocked

    def as_float(scales):
        return (scales.int() << 23).view(torch.float32)

    def mn_major(scales):
        words = test.get_mn_major_tma_aligned_packed_ue8m0_tensor_torch_impl(as_float(scales))
        # All of its storage, the padding of rows included: as many words a column as its stride says.
        return torch.as_strided(words, (words.shape[1], words.stride(1)), (words.stride(1), 1))

    return [("deepgemm.packed", cite("DeepGEMM", "deep_gemm/utils/math.py: pack_ue8m0_to_int"),
             lambda scales: math.pack_ue8m0_to_int(as_float(scales))),
            ("deepgemm.packed_mn_major", cite("DeepGEMM", "tests/test_layout.py: the torch form"), mn_major),
            ("torchao.blocked", cite("torchao", "prototype/mx_formats/utils.py: to_blocked"), blocked)]


def citer(root, known):
    """A function of a peer's name and a place in it that says both with the revision; known: NAME -> REVISION."""

    def cite(name, place):
        found = subprocess.run(["git", "-C", str(root / name), "log", "-1", "--format=%h"], capture_output=True, text=True)
        version = known.get(name) or found.stdout.strip()
        for metadata in (root / name).glob("*.dist-info"):
            version = metadata.name.removesuffix(".dist-info").rsplit("-", 1)[1]
        if not version:
            raise SystemExit(f"{root / name}: no revision found, give --revisions {name}=...")
        return f"{name} {version}, {place}"

    return cite


def peers_of(root, cite):
    """Records of every peer below `root`."""
    sys.path.insert(0, str(root / "torchao"))
    return [*deepseek(root, cite), *deepgemm(root, cite), *fbgemm(root, cite), *torchao_fp8(cite), *torchao_mx(cite),
            *microxcaling(root, cite), *modelopt(root, cite), *torchao_nvfp4(cite), *fouroversix(root, cite),
            *transformer_engine(root, cite)]
