#!/usr/bin/env python3
"""Contenders on a CPU: the adapters with operators of the same names in place of the libraries, and a device library that computes in
float64. What is tested is who is called with what, and that other bits are seen; nothing is timed here. Needs PyTorch."""

import contextlib
import io
import pathlib
import sys
import types
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

try:
    import torch
except ImportError:
    print("not run: PyTorch is not installed")
    sys.exit(77)

from bench.peers import calls, contenders, measure, problems, timing
from bench.peers.contenders import Absent, Products, Quantizers

E4M3 = torch.float8_e4m3fn
PRODUCT = problems.Product("mixed", (5, 0, 128, 3, 70), 256, 384)


def by_blocks(x, w, x_scales, w_scales):
    """x [M, K], w [N, K] of e4m3, scales [M, K/128], [N/128, K/128] -> bf16 [M, N]."""
    x = x.view(E4M3).to(torch.float64) * x_scales.to(torch.float64).repeat_interleave(128, 1)
    w = w.view(E4M3).to(torch.float64) * w_scales.to(torch.float64).repeat_interleave(128, 0).repeat_interleave(128, 1)
    return (x @ w.t()).to(torch.bfloat16)


def scales_of(stored, rows, blocks):
    """[M, K/128] of a matrix of its own, read by the addresses of spec fp8-block-2.1."""
    held = (rows + 3) // 4 * 4
    return torch.stack([stored[block * held : block * held + rows] for block in range(blocks)], 1)


def product(t, d):
    """The plain layout, group by group."""
    blocks, row, scale = t.K // 128, 0, 0
    w, w_scales = t.w_rowwise_data.view(-1, t.N, t.K), t.w_rowwise_scale_inv.view(-1, t.N // 128, (blocks + 3) // 4 * 4)
    for group, rows in enumerate(t.splits.tolist()):
        d[row : row + rows] = by_blocks(t.x_rowwise_data[row : row + rows], w[group], scales_of(t.x_rowwise_scale_inv[scale:], rows, blocks),
                                        w_scales[group, :, :blocks])
        row, scale = row + rows, scale + blocks * ((rows + 3) // 4 * 4)


def rule(x, data, scale_inv, columns):
    """A scale for each block of a row, and codes that depend on it: no rule of a library, but the same for all fakes."""
    blocks = x.float().view(x.shape[0], -1, columns)
    scales = blocks.abs().amax(2) / 256 + 1e-3
    data.view(torch.uint8).copy_((blocks / scales[:, :, None]).to(E4M3).view(torch.uint8).view(x.shape))
    return scales


class Launch:
    def __init__(self, call):
        self.call = call

    def __call__(self):
        self.call()

    def require_ok(self):
        pass


class Device:
    """assay::device, on the CPU."""

    def __init__(self):
        self.predicted = []

    def cublaslt_version(self):
        return "13.10.0"

    def product(self, t, d):
        return Launch(lambda: product(t, d))

    product_alone = product

    def predict(self, t, plan):
        self.predicted.append(plan)
        d = torch.zeros_like(t.out.d)
        product(t, d)
        return d + 1 if plan == contenders.COLS_FIRST else d

    def quantize(self, x, data, scale_inv, splits=None, *, preset="", block="", storage=""):
        def call():
            scales = rule(x, data, scale_inv, x.shape[1] if block == "1xall" else 128)
            if storage == "k_major":
                scale_inv.copy_(scales.view(-1))
            else:
                parts = scales.split(splits.tolist() if splits is not None else [x.shape[0]])
                for part, at in zip(parts, torch.cumsum(torch.tensor([0] + [(len(p) + 3) // 4 * 4 * p.shape[1] for p in parts]), 0).tolist()):
                    for i, column in enumerate(part.t()):
                        start = at + i * ((len(column) + 3) // 4 * 4)
                        scale_inv[start : start + len(column)] = column

        return Launch(call)


class DeepGemm:
    """Reads its operands as deep_gemm does, by the places that each layout gives."""

    @staticmethod
    def get_mk_alignment_for_contiguous_layout():
        return 128

    @staticmethod
    def m_grouped_fp8_gemm_nt_contiguous(x, w, d, places, use_psum_layout=False):
        (codes, scales), (weights, weight_scales) = x, w
        start = 0
        for group in range(weights.shape[0]):
            if use_psum_layout:
                rows = torch.arange(start, int(places[group]))
                start = (int(places[group]) + 127) // 128 * 128
            else:
                rows = (places == group).nonzero().view(-1)
            d[rows] = by_blocks(codes.view(torch.uint8)[rows], weights[group].view(torch.uint8), scales[rows], weight_scales[group])

    @staticmethod
    def m_grouped_fp8_fp4_gemm_nt_masked(x, w, d, counts, expected):
        assert counts.dtype == torch.int32 and expected == 41, expected
        for group, rows in enumerate(counts.tolist()):
            d[group, :rows] = by_blocks(x[0].view(torch.uint8)[group, :rows], w[0][group].view(torch.uint8), x[1][group, :rows], w[1][group])


class Sglang:
    wrong = False

    def fp8_blockwise_scaled_grouped_mm(self, d, p0, p1, p2, p3, p4, x, w, sa, sb, *rest):
        problem_sizes, first = rest[5], rest[6]
        for group, (rows, n, k) in enumerate(problem_sizes.tolist()):
            at = int(first[group])
            d[at : at + rows] = by_blocks(x[at : at + rows].view(torch.uint8), w[group].t().contiguous().view(torch.uint8), sa[at : at + rows], sb[group].t())
        if self.wrong:
            d[0, 0] += 1

    def sgl_per_token_group_quant_8bit(self, x, q, s, size, *_):
        s.copy_(rule(x, q, s, size))
        if self.wrong:
            s[1, 0] *= 2


class Fbgemm:
    """Returns what it makes."""

    def quantize_fp8_per_row(self, x, *_):
        data = torch.empty(x.shape, dtype=E4M3)
        return data, rule(x, data, None, x.shape[1]).view(-1)


class FakeLibraries(unittest.TestCase):
    def setUp(self):
        sys.modules["deep_gemm"] = DeepGemm
        self.sglang = Sglang()
        libraries = calls.adapter("libraries")
        libraries.operators = lambda name: {"sglang": self.sglang, "fbgemm": Fbgemm()}[name]
        libraries.version = lambda name: f"{name} 1.2"
        for name in ("adapters.sglang", "adapters.fbgemm"):
            sys.modules.pop(name, None)
        self.device = Device()
        self.addCleanup(setattr, contenders, "L2_BYTES", contenders.L2_BYTES)
        contenders.L2_BYTES = 1  # one set of operands

    def ready(self, makers, name):
        contender = makers[name]()
        contender.clear()
        for launch in contender.launches:
            launch()
        return contender


class ProductsTest(FakeLibraries):
    def test_each_layout_holds_the_same_problem(self):
        tensors = Products(PRODUCT, self.device, "cpu")
        for layout, name in (("contiguous", "fp8_contiguous"), ("psum", "fp8_psum")):
            contender = tensors.theirs("deepgemm", name, layout)
            self.assertEqual(contender.wrong(), "", layout)  # of the adapter's own call
            contender.clear()
            self.assertIn("words of d differ", contender.wrong())
            contender.launches[0]()
            self.assertEqual(contender.wrong(), "", layout)

    def test_the_hint_of_masked_rows_is_their_mean(self):
        self.assertEqual(Products(PRODUCT, self.device, "cpu").theirs("deepgemm", "fp8_masked", "masked").wrong(), "")

    def test_ours_and_a_library_by_bits(self):
        tensors = Products(PRODUCT, self.device, "cpu")
        makers = tensors.makers()
        self.assertEqual([name for name in makers if "deepgemm" in name], ["deepgemm:fp8_psum"])
        for name in (timing.OURS, contenders.ALONE, "sglang:blockwise_grouped"):
            self.assertEqual(self.ready(makers, name).wrong(), "")
        self.sglang.wrong = True
        self.assertEqual(self.ready(makers, "sglang:blockwise_grouped").wrong(), f"1 of {206 * 256} words of d differ")

    def test_a_plan_by_the_rows_of_a_group(self):
        tensors = Products(PRODUCT, self.device, "cpu")
        plain, few, mixed = tensors.expected(contenders.SCALES_FIRST, 0), tensors.expected(contenders.COLS_FIRST, 0), tensors.expected(None, 64)
        self.assertTrue(torch.equal(mixed[:5], few[:5]) and torch.equal(mixed[5:133], plain[5:133]))
        self.assertTrue(torch.equal(mixed[133:136], few[133:136]) and torch.equal(mixed[136:], plain[136:]))
        self.assertEqual(self.device.predicted, [contenders.SCALES_FIRST, contenders.COLS_FIRST])

    def test_who_is_asked(self):
        def names(splits):
            return [name for name in Products(problems.Product("a", splits, 128, 128), self.device, "cpu").makers() if "deepgemm" in name]

        self.assertEqual(names((128, 256)), ["deepgemm:fp8_contiguous"])
        self.assertEqual(names((64, 1)), ["deepgemm:fp8_psum", "deepgemm:fp8_masked"])


class QuantizersTest(FakeLibraries):
    def test_by_bits(self):
        for splits in ((), (5, 0, 27)):
            tensors = Quantizers(problems.Quantization(32, 256, name="few", splits=splits), self.device, "cpu")
            makers = tensors.makers()
            for name in (timing.OURS, "sglang:group_v1", contenders.COPY):
                contender = self.ready(makers, name)
                self.assertEqual(contender.wrong(), "", name)
                contender.clear()
                self.assertNotEqual(contender.wrong(), "", name)
        self.sglang.wrong = True
        self.assertEqual(self.ready(makers, "sglang:group_v1").wrong().split(";")[0], "1 of 64 words of scales differ")

    def test_what_is_returned_is_judged(self):
        makers = Quantizers(problems.Quantization(32, 256, block="1xall"), self.device, "cpu").makers()
        self.assertEqual(self.ready(makers, "fbgemm:per_row").wrong(), "")
        self.assertEqual(self.ready(makers, timing.OURS).wrong(), "")

    def test_so_many_operands_that_no_cache_holds_them(self):
        contenders.L2_BYTES = 50_000
        problem = problems.Quantization(128, 256)
        tensors = Quantizers(problem, self.device, "cpu")
        self.assertGreaterEqual(len(tensors.x) * problem.bytes, 200_000)
        self.assertEqual(len(self.ready(tensors.makers(), timing.OURS).launches), len(tensors.x))
        self.assertFalse(torch.equal(tensors.x[0], tensors.x[1]))


class TransformerEngineTest(FakeLibraries):
    """Its C functions, computed on the CPU by conformance/adapters/tests/fake_transformer_engine.py."""

    def setUp(self):
        super().setUp()
        self.nvte = calls.adapter("nvte")
        sys.path.insert(0, str(calls.ADAPTERS / "adapters" / "tests"))
        import fake_transformer_engine as fake

        self.fake = fake
        self.addCleanup(setattr, self.nvte, "_library", None)
        self.nvte._library = fake.Library()

    def test_products(self):
        tensors = Products(problems.Product("even", (16, 0, 144), 256, 384), self.device, "cpu")
        for name in ("transformer_engine:multi_tensor_gemm", "transformer_engine:grouped_gemm"):
            self.assertEqual(self.ready(tensors.makers(), name).wrong(), "", name)

    def test_quantizers_by_recipe(self):
        def by_rule(x, output, config, stream):
            Device().quantize(self.fake.of(x, "data"), self.fake.of(output, "data"), self.fake.of(output, "scale_inv").view(-1), block="1x128")()

        self.addCleanup(self.fake.CALLS.__setitem__, "nvte_quantize_v2", self.fake.CALLS["nvte_quantize_v2"])
        self.fake.CALLS["nvte_quantize_v2"] = by_rule
        for splits in ((), (5, 0, 27)):
            contender = self.ready(Quantizers(problems.Quantization(32, 256, name="few", splits=splits), self.device, "cpu").makers(),
                                   "transformer_engine:quantize")
            self.assertEqual(contender.wrong(), "", splits)
            contender.clear()
            self.assertNotEqual(contender.wrong(), "", splits)

    def test_groups_that_it_has_not(self):
        makers = Quantizers(problems.Quantization(32, 256, name="few", splits=(5, 0, 27)), self.device, "cpu").makers()
        with self.assertRaisesRegex(Absent, "expected multiples of 128"):
            makers["transformer_engine:group_quantize"]()


class MeasureTest(FakeLibraries):
    def test_wrong_bits_and_absent_libraries_are_not_timed(self):
        def absent():
            raise Absent("vllm is not installed")

        tensors = Products(PRODUCT, self.device, "cpu")
        self.sglang.wrong = True
        kept = tensors.makers()
        makers = {name: kept[name] for name in (timing.OURS, "sglang:blockwise_grouped")} | {"vllm:a": absent}
        failures = []
        with contextlib.redirect_stderr(io.StringIO()) as said:
            ready, others = measure.made(makers, [], "problem=a", failures)
        self.assertEqual([each.name for each in ready], [timing.OURS])
        self.assertEqual([each["error_message"].split(":")[0] for each in others], ["not timed", "absent"])
        self.assertEqual(len(failures), 1)
        self.assertIn("vllm is not installed", said.getvalue())

    def test_selected_peers(self):
        makers = {name: (lambda name=name: types.SimpleNamespace(name=name, clear=lambda: None, launches=[], wrong=lambda: "")) for name in
                  (timing.OURS, "sglang:a", "sglang:b", "vllm:a")}
        self.assertEqual([each.name for each in measure.made(makers, ["sglang"], "", [])[0]], [timing.OURS, "sglang:a", "sglang:b"])
        self.assertEqual([each.name for each in measure.made(makers, ["sglang:b"], "", [])[0]], [timing.OURS, "sglang:b"])


if __name__ == "__main__":
    unittest.main()
