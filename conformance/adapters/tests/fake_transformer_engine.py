"""The C functions of TransformerEngine on a CPU, as far as the adapter's use of them goes.

Each reads and writes at the addresses that it is given, so that a wrong address, shape or order of arguments shows. Quantization,
dequantization and scales are those of the reference for one tensor; products are sums in float64.
"""

import ctypes as c
import itertools
import types

import assay
import torch
from adapters import nvte

TYPES = {2: torch.int32, 3: torch.int64, 4: torch.float32, 5: torch.float16, 6: torch.bfloat16, 7: torch.float8_e4m3fn, 8: torch.float8_e5m2}
CODES = {7: "e4m3", 8: "e5m2"}
RECIPES = {nvte.TENSOR: "tensor_delayed", nvte.BLOCK_1D: "block_1x128", nvte.BLOCK_2D: "block_128x128"}
HANDLES = {}
NUMBERS = itertools.count(1)


def memory(value):
    """The memory that a field names, as a tensor of its shape. Codes are bytes."""
    field = value if isinstance(value, nvte.Array) else nvte.array(value)
    dtype = TYPES.get(field.dtype, torch.uint8)
    count = 1
    for extent in field.shape:
        count *= extent
    if field.dtype == nvte.NUMBERS["e2m1"]:
        raise AssertionError("codes of E2M1 are no bytes")
    size = torch.empty(0, dtype=dtype).element_size()
    if count == 0:
        return torch.empty(field.shape, dtype=dtype)
    return torch.frombuffer((c.c_uint8 * (count * size)).from_address(field.address), dtype=dtype).view(field.shape)


def of(tensor, name):
    return memory(tensor.fields[name])


def expected(op, **words_and_inputs):
    words = {key: value for key, value in words_and_inputs.items() if not isinstance(value, torch.Tensor)}
    inputs = {key: value for key, value in words_and_inputs.items() if isinstance(value, torch.Tensor)}
    return assay.expect(" ".join([op, *(f"{key}={value}" for key, value in words.items())]), **inputs)


def listed(handles):
    """The tensors of a list of handles."""
    return [HANDLES[each] for each in getattr(handles, "handles", handles)]


def compute_amax(x, output, config, stream):
    of(output, "amax")[0] = of(x, "data").float().abs().max()


def compute_scale(output, config, stream):
    amax, largest = of(output, "amax")[0], 448.0 if output.fields["data"].dtype == 7 else 57344.0
    of(output, "scale")[0] = torch.tensor(largest) / amax


def quantize(x, output, config, stream):
    values, mode, fields = of(x, "data"), output.mode, output.fields
    kind = CODES[(fields.get("data") or fields["columnwise_data"]).dtype]
    words = dict(R=values.shape[0], K=values.shape[1], otype=kind)
    if mode == nvte.TENSOR:
        made = expected("quantize", recipe=RECIPES[mode], outputs="all", x=values, scale=of(output, "scale"), **words)
        of(output, "scale_inv")[0] = torch.as_tensor(made.rowwise_scale_inv)[0]
        if "amax" in fields:
            of(output, "amax")[0] = max(float(of(output, "amax")[0]), float(values.float().abs().max()))
    else:
        made = expected("quantize", recipe=RECIPES[mode], pow2=config.fields["pow2"], eps=config.fields["eps"], x=values, **words)
        for scales, (tall, wide) in (("scale_inv", values.shape), ("columnwise_scale_inv", values.t().shape)):
            if scales in fields:
                blocks = (wide + 127) // 128
                used = (blocks, tall) if mode == nvte.BLOCK_1D else ((tall + 127) // 128, blocks)
                put(of(output, scales), made["rowwise_scale_inv" if scales == "scale_inv" else scales], used)
    for name, result in (("data", "rowwise_data"), ("columnwise_data", "columnwise_data")):
        if name in fields:
            of(output, name).view(torch.uint8).copy_(torch.as_tensor(made[result]).view(torch.uint8))


def put(to, values, used=None):
    """Scales, without their padding where the part in use is given."""
    values = torch.as_tensor(values)
    assert to.shape == values.shape, (to.shape, values.shape)
    part = tuple(slice(each) for each in used or to.shape)
    to[part] = values[part]


def dequantize(source, output, stream):
    codes, x = of(source, "data"), of(output, "data")
    x.copy_((codes.float() * of(source, "scale_inv")[0]).to(x.dtype))


def swizzle(source, output, stream, op="swizzle"):
    columnwise = "columnwise_data" in source.fields
    mxfp8 = source.mode == nvte.MXFP8
    rows, columns = source.fields["columnwise_data" if columnwise else "data"].shape
    if columnwise and not mxfp8:
        rows, columns = columns, rows
    name = "columnwise_scale_inv" if columnwise else "scale_inv"
    names = ("compact", "swizzled") if op == "swizzle" else ("swizzled", "compact")
    assert [bool(each.fields["swizzled"]) for each in (source, output)] == [each == "swizzled" for each in names]
    made = expected(op, recipe="mxfp8" if mxfp8 else "nvfp4", direction="columnwise" if columnwise else "rowwise", R=rows, K=columns,
                    **{names[0]: of(source, name).view(torch.uint8)})
    put(of(output, name).view(torch.uint8), torch.as_tensor(made[names[1]]).view(torch.uint8))


def update(history, scale, new_history, new_scale, algorithm, kind, stream, real=0.0):
    made = expected("delayed_update", bulk=0, algorithm=algorithm.decode(), otype=CODES[kind], margin=int(real), tensors=scale_length(scale),
                    length=of(history, "data").shape[0], amax_history=of(history, "data"), scale=of(scale, "data"))
    of(new_history, "data").copy_(torch.as_tensor(made.amax_history))
    of(new_scale, "data").copy_(torch.as_tensor(made.scale))


def scale_length(scale):
    return scale.fields["data"].shape[0]


def bulk_update(reduced, histories, scales, algorithm, kind, stream, real=0.0):
    first = lambda vector: HANDLES[(c.c_void_p * 1).from_address(vector.begin)[0]]  # noqa: E731
    history, scale = of(first(histories), "data"), of(first(scales), "data")
    given = {"reduced": of(reduced, "data")} if reduced.fields else {}
    line = (f"delayed_update bulk=1 algorithm={algorithm.decode()} otype={CODES[kind]} margin={int(real)} tensors={scale.shape[0]} "
            f"length={history.shape[0]} reduced={len(given)}")
    made = assay.expect(line, amax_history=history.clone(), scale=scale.clone(), **given)
    history.copy_(torch.as_tensor(made.amax_history))
    scale.copy_(torch.as_tensor(made.scale))


def offsets(splits, made, groups, stride, stream):
    assert splits.dtype == torch.int64 and splits.shape[0] == groups
    made[0], made[1:] = 0, torch.cumsum(splits, 0) * stride


def offsets_multi(splits, outputs, strides, leads, count, stream):
    sums = torch.cumsum(of(splits, "data").to(torch.int64), 0)
    for tensor, stride, lead in zip(listed(outputs), strides, leads):
        to = of(tensor, "data")
        values = sums * stride
        to.copy_(torch.cat([torch.zeros(1, dtype=torch.int64), values]) if lead else values)


def offsets_2d(first, last, output, stream):
    to = of(output, "data")
    to[0], to[1:] = 0, torch.cumsum(of(first, "data").to(torch.int64) * of(last, "data"), 0)


def permute(x, y, order, row_map, weights, gradients, forward, tokens, topk, columns, rows, stream):
    source, to = of(x, "data").view(torch.uint8).view(tokens, -1), of(y, "data").view(torch.uint8).view(of(y, "data").shape[0], -1)
    made = of(row_map, "data").view(topk, tokens)
    if order.fields:
        for place, choice in enumerate(of(order, "data").tolist()):
            made[choice % topk, choice // topk] = place if place < rows else -1
    else:
        assert torch.all(of(weights, "data") == 1)
    for token in range(tokens):
        for choice in range(topk):
            if made[choice, token] >= 0:
                to[made[choice, token]] = source[token]


def unpermute(permuted, x, row_map, weights, tokens, topk, columns, stream):
    rows, to = of(permuted, "data"), of(x, "data")
    made = of(row_map, "data").view(topk, tokens)
    for token in range(tokens):
        total = torch.zeros(columns, dtype=torch.float64)
        for choice in range(topk):
            if made[choice, token] >= 0:
                weight = of(weights, "data")[token, choice].to(rows.dtype).double() if weights.fields else 1.0
                total = (total + rows[made[choice, token]].double() * weight).to(rows.dtype).double()
        to[token] = total.to(to.dtype)


def operand(tensor, transposed):
    """Rows of A or B in float64, [rows, contraction]: FP8 is read as SM90 reads it, from the codes that lie along the contraction."""
    fields = tensor.fields
    if "scale_inv" not in fields and "columnwise_scale_inv" not in fields:
        values = of(tensor, "data").double()
        return values if transposed else values.t()
    names = ("data", "scale_inv") if transposed else ("columnwise_data", "columnwise_scale_inv")
    codes, scales = of(tensor, names[0]).double(), of(tensor, names[1]).double()
    if tensor.mode == nvte.TENSOR:
        assert fields[names[1]].address % 16 == 0
        return codes * scales[0]
    rows, columns = codes.shape
    wide = (columns + 127) // 128
    if tensor.mode == nvte.BLOCK_1D:
        return codes * scales[:wide, :rows].t().repeat_interleave(128, 1)[:, :columns]
    return codes * scales[:, :wide].repeat_interleave(128, 0)[:rows].repeat_interleave(128, 1)[:, :columns]


def product(a, b, d, transa, transb, alpha, beta):
    to = of(d, "data")
    value = operand(b, not transb) @ operand(a, bool(transa)).t()
    to.copy_((alpha * value + (beta * to.double() if beta else 0)).to(to.dtype))


def multi_tensor_gemm(a, b, d, bias, gelu, count, transa, transb, grad, work, accumulate, split, sms, stream):
    for one in zip(listed(a), listed(b), listed(d)):
        product(*one, transa, transb, 1.0, float(accumulate))


def gemm(transa, transb, alpha, a, b, beta, c_, d, work, config, stream):
    assert c_ is d
    product(a, b, d, transa, transb, alpha[0], beta[0])


def group_of(tensor, group):
    """One matrix of a grouped tensor, found as the library finds it: codes at the offsets, scales behind those of the groups before."""
    fields = tensor.fields
    last = tensor.logical[1]
    firsts = of(tensor, "first_dims").tolist() if "first_dims" in fields else [tensor.logical[0] // tensor.groups] * tensor.groups
    begin = int(of(tensor, "offsets")[group]) if "offsets" in fields else group * firsts[0] * last
    made = types.SimpleNamespace(mode=tensor.mode, fields={})
    up = lambda count, unit: (count + unit - 1) // unit  # noqa: E731
    for name, scale, turned in (("data", "scale_inv", False), ("columnwise_data", "columnwise_scale_inv", True)):
        if name not in fields:
            continue
        shapes = [(last, first) if turned else (first, last) for first in firsts]
        flat = fields[name] if isinstance(fields[name], nvte.Array) else nvte.array(fields[name])
        assert len(flat.shape) == 1
        size = torch.empty(0, dtype=TYPES[flat.dtype]).element_size()
        made.fields[name] = flat._replace(address=flat.address + begin * size, shape=shapes[group])
        if scale in fields:
            extents = {nvte.TENSOR: lambda r, k: (1, 1), nvte.BLOCK_1D: lambda r, k: (up(k, 128), 4 * up(r, 4)),
                       nvte.BLOCK_2D: lambda r, k: (up(r, 128), 4 * up(up(k, 128), 4))}[tensor.mode]
            sizes = [extents(*shape) for shape in shapes]
            at = sum(a * b for a, b in sizes[:group])
            held = of(tensor, scale)[at : at + sizes[group][0] * sizes[group][1]]
            made.fields[scale] = nvte.array(held[:1].clone() if tensor.mode == nvte.TENSOR else held.view(sizes[group]))
    return made


def grouped_gemm(a, transa, b, transb, added, d, alpha, beta, setup, work, config, stream):
    assert of(setup, "data").shape[0] == 1000 + a.groups and setup.fields["data"].address % 16 == 0
    assert of(work, "data").shape[0] >= 32 << 20 and config.handle in HANDLES
    by, onto = (float(of(each, "data")[0]) for each in (alpha, beta))
    for group in range(a.groups):
        one, own = group_of(d, group), group_of(added, group)
        value = operand(group_of(b, group), not transb) @ operand(group_of(a, group), bool(transa)).t()
        to = of(one, "data")
        to.copy_((by * value + (onto * of(own, "data").double() if onto else 0)).to(to.dtype))


def bias_add(d, bias, stream):
    rows, at = of(d, "data").view(d.logical), 0
    for count, own in zip(of(d, "first_dims").tolist(), of(bias, "data").view(bias.logical)):
        rows[at : at + count] = (rows[at : at + count].float() + own.float()).to(rows.dtype)
        at += count


def several(function, **words):
    return lambda sources, outputs, count, stream: [function(*pair, stream, **words) for pair in zip(listed(sources), listed(outputs))]


def unswizzle(source, output, stream):
    swizzle(source, output, stream, "unswizzle")


CALLS = {
    "nvte_compute_amax_with_config": compute_amax, "nvte_compute_scale_from_amax": compute_scale, "nvte_quantize_v2": quantize,
    "nvte_dequantize": dequantize, "nvte_swizzle_scaling_factors": swizzle, "nvte_unswizzle_scaling_factors": unswizzle,
    "nvte_multi_tensor_swizzle_scaling_factors": several(swizzle), "nvte_multi_tensor_unswizzle_scaling_factors": several(unswizzle),
    "nvte_delayed_scaling_recipe_amax_and_scale_update": update,
    "nvte_delayed_scaling_recipe_amax_and_scale_update_after_reduction": bulk_update, "nvte_splits_to_offsets": offsets,
    "nvte_splits_to_offsets_multi": offsets_multi, "nvte_splits_to_offsets_2d": offsets_2d, "nvte_permute": permute,
    "nvte_unpermute": unpermute, "nvte_multi_tensor_gemm": multi_tensor_gemm, "nvte_cublas_gemm_v2": gemm, "nvte_grouped_bias_add": bias_add,
    "nvte_grouped_gemm": grouped_gemm,
}


class Library:
    """What nvte.Library is, with CALLS."""

    def __init__(self):
        self.functions = types.SimpleNamespace(nvte_get_num_compute_streams=lambda: 4,
                                               nvte_get_grouped_gemm_setup_workspace_size=lambda groups: 1000 + groups)
        for kind in ("tensor", "grouped_tensor", "quantization_config", "matmul_config", "grouped_matmul_config"):
            setattr(self.functions, f"nvte_create_{kind}", self.create)
            setattr(self.functions, f"nvte_destroy_{kind}", lambda handle: HANDLES.pop(handle))

    def create(self, *arguments):
        handle = next(NUMBERS)
        HANDLES[handle] = None
        return handle

    def call(self, name, *arguments, real=0.0):
        if name.startswith("nvte_set_"):
            HANDLES[arguments[0].handle] = _Weak(arguments[0])
            return
        CALLS[name](*arguments, **({"real": real} if real or "recipe" in name else {}))


class _Weak:
    """A tensor by its fields, without keeping it."""

    def __init__(self, tensor):
        self.fields, self.mode = getattr(tensor, "fields", {}), getattr(tensor, "mode", None)
