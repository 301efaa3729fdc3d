"""A module with DeepGEMM's dense and K-grouped functions that computes on the CPU, in float64: shapes, types and strides are those which
the library checks."""

import torch
from fake_libraries import FP8, is_like


def _f64(tensor):
    return tensor.to(torch.float64)


def _stored(d, c, product):
    if c is not None:
        assert d.dtype == torch.float32 and c.dtype == torch.float32 and c.shape == d.shape and c.data_ptr() != d.data_ptr()
        product = product + _f64(c)
    d.copy_(product)


def fp8_gemm_nt(a, b, d, c=None, recipe=None):
    (x, x_scales), (w, w_scales) = a, b
    (m, k), n = x.shape, w.shape[0]
    is_like(x, FP8, m, k)
    is_like(w, FP8, n, k)
    is_like(x_scales, torch.float32, m, k // 128)
    if recipe is None:
        is_like(w_scales, torch.float32, n // 128, k // 128)
        assert c is None and d.dtype == torch.bfloat16
        w_scales = w_scales.repeat_interleave(128, 0)
    else:
        assert recipe == (1, 1, 128) and c is not None and d.dtype == torch.float32
        is_like(w_scales, torch.float32, n, k // 128)
    wide = [_f64(codes) * _f64(scales).repeat_interleave(128, 1) for codes, scales in ((x, x_scales), (w, w_scales))]
    _stored(d, c, wide[0] @ wide[1].t())


def _bf16(a, b, d, c):
    assert a.dtype == b.dtype == torch.bfloat16
    _stored(d, c, _f64(a) @ _f64(b))


def bf16_gemm_nt(a, b, d, c=None):
    _bf16(a, b.t(), d, c)


def bf16_gemm_nn(a, b, d, c=None):
    _bf16(a, b, d, c)


def bf16_gemm_tn(a, b, d, c=None):
    _bf16(a.t(), b, d, c)


def get_mk_alignment_for_contiguous_layout():
    return 128


def m_grouped_bf16_gemm_nn_contiguous(a, b, d, group_of_rows):
    is_like(group_of_rows, torch.int32, a.shape[0])
    for row, group in enumerate(group_of_rows.tolist()):
        if group >= 0:
            d[row] = (_f64(a[row]) @ _f64(b[group])).to(d.dtype)


def k_grouped_bf16_gemm_tn_contiguous(a, b, d, ks, ks_tensor, c):
    assert ks_tensor.tolist() == ks and ks_tensor.dtype == torch.int32 and a.is_contiguous() and b.is_contiguous() and d.is_contiguous()
    at = 0
    for group, k in enumerate(ks):
        _stored(d[group], c[group], _f64(a[at : at + k]).t() @ _f64(b[at : at + k]))
        at += k


def k_grouped_fp8_gemm_nt_contiguous(a, b, d, ks, ks_tensor, c):
    assert ks_tensor.tolist() == ks and ks_tensor.dtype == torch.int32
    (dy, dy_scales), (x, x_scales) = a, b
    is_like(dy_scales, torch.float32, d.shape[1], sum(ks) // 128)
    is_like(x_scales, torch.float32, d.shape[2], sum(ks) // 128)
    at = 0
    for group, k in enumerate(ks):
        blocks = slice(at // 128, (at + k) // 128)
        wide = [_f64(codes[at * lines : (at + k) * lines].view(lines, k)) * _f64(scales[:, blocks]).repeat_interleave(128, 1)
                for codes, scales, lines in ((dy, dy_scales, d.shape[1]), (x, x_scales, d.shape[2]))]
        _stored(d[group], c[group], wide[0] @ wide[1].t())
        at += k
