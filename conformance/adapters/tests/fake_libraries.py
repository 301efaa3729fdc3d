"""Operators with the names of other projects' libraries that compute on the CPU: what each takes, and where, is what is tested.

Each reads its operands from memory as the real one does: by pointers and strides that it assumes, and not by the shapes of tensors.
Products are summed in float64. Codes and scales of quantizers are those of the CPU reference, since their arithmetic is not in question.
"""

import assay
import torch

FP8 = torch.float8_e4m3fn


def memory(tensor, *shape):
    """The elements in the order of addresses, which have no gaps, with another shape."""
    flat = torch.as_strided(tensor, (tensor.numel(),), (1,))
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride()))
    assert tensor.numel() == 0 or last + 1 == tensor.numel(), tensor.stride()
    return flat.view(*shape)


def by_blocks(x, w, x_scales, w_scales):
    """x [M, K], w [N, K], scales of x [M, K/128], of w [N/128, K/128] -> f64 [M, N]."""
    x = x.to(torch.float64) * x_scales.to(torch.float64).repeat_interleave(128, 1)
    w = w.to(torch.float64) * w_scales.to(torch.float64).repeat_interleave(128, 0).repeat_interleave(128, 1)
    return x @ w.t()


def is_like(tensor, dtype, *shape):
    assert tensor.dtype == dtype and tuple(tensor.shape) == shape, (tensor.dtype, tuple(tensor.shape), "expected", dtype, shape)


def sglang():
    library = torch.library.Library("sgl_kernel", "DEF")
    quantizers = "Tensor input, Tensor(a!) q, Tensor(b!) s, int size, float eps, float lo, float hi, bool ue8m0"
    library.define("fp8_blockwise_scaled_grouped_mm(Tensor(a!) d, Tensor p0, Tensor p1, Tensor p2, Tensor p3, Tensor p4, Tensor a, "
                   "Tensor b, Tensor sa, Tensor sb, Tensor stride_a, Tensor stride_b, Tensor stride_d, Tensor l0, Tensor l1, "
                   "Tensor problems, Tensor offsets, Tensor workspace) -> ()")
    library.define("es_fp8_blockwise_scaled_grouped_mm(Tensor(a!) d, Tensor a, Tensor b, Tensor sa, Tensor sb, Tensor stride_a, "
                   "Tensor stride_b, Tensor stride_d, Tensor problems, Tensor offsets, Tensor workspace) -> ()")
    library.define("fp8_scaled_mm(Tensor a, Tensor b, Tensor sa, Tensor sb, ScalarType dtype, Tensor? bias) -> Tensor")
    library.define(f"sgl_per_token_group_quant_8bit({quantizers}) -> ()")
    library.define(f"sgl_per_token_group_quant_8bit_v2({quantizers}, bool fuse, Tensor? masked) -> ()")
    library.define("sgl_per_token_quant_fp8(Tensor input, Tensor(a!) q, Tensor(b!) s) -> ()")

    def grouped(d, a, b, sa, sb, stride_a, stride_b, stride_d, problems, offsets, workspace):
        groups, rows, k, n = offsets.numel(), a.shape[0], a.shape[1], d.shape[1]
        is_like(problems, torch.int32, groups, 3)
        is_like(offsets, torch.int32, groups)
        is_like(b, FP8, groups, k, n)
        is_like(sa, torch.float32, rows, k // 128)
        is_like(sb, torch.float32, groups, k // 128, n // 128)
        for each, want in ((stride_a, k), (stride_b, k), (stride_d, n)):
            is_like(each, torch.int64, groups)
            assert each.tolist() == [want] * groups
        w, x_scales, w_scales = memory(b, groups, n, k), memory(sa, rows, k // 128), memory(sb, groups, n // 128, k // 128)
        for g, (m, n_g, k_g) in enumerate(problems.tolist()):
            assert (n_g, k_g) == (n, k)
            at = int(offsets[g])
            d[at : at + m] = by_blocks(a[at : at + m], w[g], x_scales[at : at + m], w_scales[g]).to(d.dtype)

    def first(d, p0, p1, p2, p3, p4, a, b, sa, sb, stride_a, stride_b, stride_d, l0, l1, problems, offsets, workspace):
        for each in (p0, p1, p2, p3, p4):
            is_like(each, torch.int64, offsets.numel())
        for each in (l0, l1):
            is_like(each, torch.int32, offsets.numel(), 5)
        grouped(d, a, b, sa, sb, stride_a, stride_b, stride_d, problems, offsets, workspace)

    def scaled(a, b, sa, sb, dtype, bias):
        assert bias is None and sa.numel() == a.shape[0] and sb.numel() == b.shape[1] and b.stride(0) == 1
        return rows_and_columns(a, b, sa, sb).to(dtype)

    def group(version):
        def call(x, q, s, size, eps, lo, hi, ue8m0, *rest):
            assert (eps, lo, hi, ue8m0) == (1e-10, -448.0, 448.0, False) and rest == ((), (False, None))[version - 1]
            store_blocks(x, q, s, size, f"sglang.group_v{version}")
        return call

    for name, function in (("fp8_blockwise_scaled_grouped_mm", first), ("es_fp8_blockwise_scaled_grouped_mm", grouped),
                           ("fp8_scaled_mm", scaled), ("sgl_per_token_group_quant_8bit", group(1)),
                           ("sgl_per_token_group_quant_8bit_v2", group(2)),
                           ("sgl_per_token_quant_fp8", lambda x, q, s: store_blocks(x, q, s, x.shape[1], "sglang.per_token"))):
        library.impl(name, function, "CPU")
    return library


def rows_and_columns(a, b, sa, sb):
    return (a.to(torch.float64) @ b.to(torch.float64)) * sa.to(torch.float64).view(-1, 1) * sb.to(torch.float64).view(1, -1)


def store_blocks(x, q, s, size, preset):
    """Codes and scales of blocks of 1 x size, by a rule."""
    is_like(s, torch.float32, x.shape[0], x.shape[1] // size)
    is_like(q, FP8, *x.shape)
    block = "1xall" if size == x.shape[1] and preset in PER_ROW else f"1x{size}"
    want = assay.expect(f"quantize_by_rule preset={preset} block={block} R={x.shape[0]} K={x.shape[1]}", x=x)
    q.view(torch.uint8).copy_(want.data)
    s.copy_(want.scale_inv.view(s.shape))


PER_ROW = ("sglang.per_token", "vllm.per_token", "fbgemm.per_row")


def vllm():
    library = torch.library.Library("_C", "DEF")
    library.define("cutlass_scaled_mm(Tensor(a!) out, Tensor a, Tensor b, Tensor sa, Tensor sb, Tensor? bias) -> ()")
    library.define("cutlass_moe_mm(Tensor(a!) d, Tensor a, Tensor b, Tensor sa, Tensor sb, Tensor offsets, Tensor problems, "
                   "Tensor stride_a, Tensor stride_b, Tensor stride_d, bool per_row, bool per_column) -> ()")
    library.define("per_token_group_fp8_quant(Tensor input, Tensor(a!) q, Tensor(b!) s, int size, float eps, float lo, float hi, "
                   "bool ue8m0, bool transposed, bool aligned) -> ()")
    library.define("dynamic_per_token_scaled_fp8_quant(Tensor(a!) q, Tensor input, Tensor(b!) s, Tensor? bound) -> ()")

    def scaled(out, a, b, sa, sb, bias):
        m, k, n = *a.shape, b.shape[1]
        assert bias is None and b.stride(0) == 1 and n % 16 == 0 and k % 16 == 0
        if sa.numel() in (1, m) and sb.numel() in (1, n):
            assert sa.is_contiguous() and sb.is_contiguous()
            out.copy_(rows_and_columns(a, b, sa.expand(m, 1) if sa.numel() == 1 else sa, sb.expand(1, n) if sb.numel() == 1 else sb))
            return
        is_like(sa, torch.float32, m, k // 128)
        is_like(sb, torch.float32, k // 128, n // 128)
        assert m % 4 == 0
        out.copy_(by_blocks(a, memory(b, n, k), memory(sa, k // 128, m).t(), memory(sb, n // 128, k // 128)))

    def moe(d, a, b, sa, sb, offsets, problems, stride_a, stride_b, stride_d, per_row, per_column):
        groups, k, n = offsets.numel(), a.shape[1], d.shape[1]
        is_like(problems, torch.int32, groups, 3)
        is_like(offsets, torch.int64, groups)
        assert per_row and per_column and sa.numel() == a.shape[0] and sb.numel() == groups * n
        assert stride_a.tolist() == stride_b.tolist() == [k] * groups and stride_d.tolist() == [n] * groups
        w = memory(b, groups, n, k)
        for g, sizes in enumerate(problems.tolist()):
            m, columns = reversed(sizes[:2]) if a.shape[0] <= 64 else sizes[:2]
            assert (columns, sizes[2]) == (n, k)
            at = int(offsets[g])
            d[at : at + m] = rows_and_columns(a[at : at + m], w[g].t(), sa.view(-1)[at : at + m], sb.view(groups, n)[g]).to(d.dtype)

    def group(x, q, s, size, eps, lo, hi, ue8m0, transposed, aligned):
        assert (eps, lo, hi) == (1e-10, -448.0, 448.0)
        store_blocks(x, q, s, size, "vllm.group.ue8m0.log2" if ue8m0 else "vllm.group")

    def token(q, x, s, bound):
        assert bound is None
        store_blocks(x, q, s, x.shape[1], "vllm.per_token")

    for name, function in (("cutlass_scaled_mm", scaled), ("cutlass_moe_mm", moe), ("per_token_group_fp8_quant", group),
                           ("dynamic_per_token_scaled_fp8_quant", token)):
        library.impl(name, function, "CPU")
    return library


def fbgemm():
    library = torch.library.Library("fbgemm", "FRAGMENT")
    library.define("f8f8bf16_groupwise_grouped(Tensor x, Tensor w, Tensor sx, Tensor sw, Tensor rows) -> Tensor")
    library.define("f8f8bf16_groupwise(Tensor x, Tensor w, Tensor sx, Tensor sw) -> Tensor")
    library.define("f8f8bf16_rowwise(Tensor x, Tensor w, Tensor sx, Tensor sw, Tensor? bias=None, bool use_fast_accum=True) -> Tensor")
    library.define("f8f8bf16_rowwise_grouped_stacked(Tensor x, Tensor w, Tensor sx, Tensor sw, Tensor rows) -> Tensor")
    library.define("bf16bf16bf16_grouped_stacked(Tensor x, Tensor w, Tensor rows, Tensor? out=None, int? num_sms=None) -> Tensor")
    library.define("quantize_fp8_per_row(Tensor input, Tensor? bs=None, Tensor? scale_ub=None, ScalarType? output_dtype=None, "
                   "bool stochastic_rounding=False) -> Tensor[]")

    def made(x, n):
        return torch.full((x.shape[0], n), float("nan"), dtype=torch.bfloat16)

    def groupwise_grouped(x, w, sx, sw, rows):
        groups, n, k = w.shape
        blocks = k // 128
        is_like(rows, torch.int64, groups)
        is_like(sw, torch.float32, groups, blocks, n // 128)
        is_like(sx, torch.float32, blocks, x.shape[0])
        d, at, scales = made(x, n), 0, memory(sx, -1)
        for g, m in enumerate(rows.tolist()):
            of_rows = scales[at * blocks : (at + m) * blocks].view(blocks, m).t()
            d[at : at + m] = by_blocks(x[at : at + m], w[g], of_rows, memory(sw, groups, blocks, n // 128)[g].t()).to(d.dtype)
            at += m
        return d

    def groupwise(x, w, sx, sw):
        blocks = x.shape[1] // 128
        assert x.shape[0] % 4 == 0
        return by_blocks(x, w, memory(sx, blocks, x.shape[0]).t(), memory(sw, blocks, w.shape[0] // 128).t()).to(torch.bfloat16)

    def rowwise(x, w, sx, sw, bias=None, use_fast_accum=True):
        is_like(sx, torch.float32, x.shape[0])
        is_like(sw, torch.float32, w.shape[0])
        return rows_and_columns(x, w.t(), sx, sw).to(torch.bfloat16)

    def rowwise_grouped(x, w, sx, sw, rows):
        is_like(rows, torch.int64, w.shape[0])
        is_like(sx, torch.float32, x.shape[0])
        is_like(sw, torch.float32, *w.shape[:2])
        d, at = made(x, w.shape[1]), 0
        for g, m in enumerate(rows.tolist()):
            d[at : at + m] = rows_and_columns(x[at : at + m], w[g].t(), sx[at : at + m], sw[g]).to(d.dtype)
            at += m
        return d

    def bf16_grouped(x, w, rows, out=None, num_sms=None):
        is_like(rows, torch.int64, w.shape[0])
        at = 0
        for g, m in enumerate(rows.tolist()):
            out[at : at + m] = (x[at : at + m].to(torch.float64) @ w[g].to(torch.float64).t()).to(out.dtype)
            at += m
        return out

    def per_row(x, bs=None, scale_ub=None, output_dtype=None, stochastic_rounding=False):
        otype = "e5m2" if output_dtype == torch.float8_e5m2 else "e4m3"
        want = assay.expect(f"quantize_by_rule preset=fbgemm.per_row otype={otype} R={x.shape[0]} K={x.shape[1]}", x=x)
        return [want.data.view(output_dtype), want.scale_inv]

    for name, function in (("f8f8bf16_groupwise_grouped", groupwise_grouped), ("f8f8bf16_groupwise", groupwise),
                           ("f8f8bf16_rowwise", rowwise), ("f8f8bf16_rowwise_grouped_stacked", rowwise_grouped),
                           ("bf16bf16bf16_grouped_stacked", bf16_grouped), ("quantize_fp8_per_row", per_row)):
        library.impl(name, function, "CPU")
    return library
