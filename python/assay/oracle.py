"""Expected arrays for own inputs: what the CPU reference computes, bit by bit."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator

import numpy as np

from . import _assay, _formats, _lines


class Arrays(dict):
    """Arrays by name, which are attributes too: `want["d"]` is `want.d`. The one array whose name ends in `_data` is also `codes`, the
    one that ends in `_scale_inv` also `scale_inv`."""

    def __getattr__(self, name: str) -> Any:
        found = resolve(self, name)
        if found is None:
            raise AttributeError(f"there is no array '{name}': expected one of {', '.join(self)}")
        return self[found]


def resolve(names: Any, name: str) -> str | None:
    """The name in `names` that `name` stands for, or None."""
    if name in names:
        return name
    ending = {"codes": "data", "scale_inv": "scale_inv"}.get(name)
    if ending is None:
        return None
    found = [each for each in names if each == ending or each.endswith("_" + ending)]
    return found[0] if len(found) == 1 else None


def _matrices_in_x(op: str, keys: dict[str, str]) -> int:
    """2 where x is [R, 2 K], gate then up: with an activation, of the recipe or of the preset's rule."""
    if op == "quantize":
        return 1 if keys.get("activation", "off") == "off" else 2
    return 1 + any(each["name"] == keys.get("preset") and each["activation"] != "" for each in _assay.presets())


def _columns(op: str, keys: dict[str, str], x: Any) -> int:
    """K of a line for x. Raises ValueError: x is gate and up, and has an odd number of columns."""
    columns, matrices = int(np.shape(x)[1]), _matrices_in_x(op, keys)
    if columns % matrices != 0:
        raise ValueError(f"x has the shape {list(np.shape(x))}: expected an even number of columns, gate then up")
    return columns // matrices


def _completed(op: str, keys: dict[str, str], own: dict[str, Any]) -> dict[str, str]:
    """The keys with what the own arrays say: sizes of x, its type, the splits."""
    keys = dict(keys)
    if "splits" in own and "splits" not in keys and op != "splits_to_offsets_2d":
        keys["splits"] = _lines.splits_text(_formats.to_numpy(own["splits"])[0].reshape(-1).tolist()
                                            if not isinstance(own["splits"], (list, tuple, str)) else own["splits"])
        if op.startswith("splits_to"):
            return keys
    known = _assay.op_keys(op)
    x = own.get("x")
    if x is None or "K" not in known or op.startswith(("grouped_gemm", "linear", "unpermute")):
        return keys
    if len(np.shape(x)) != 2:
        raise ValueError(f"x has the shape {list(np.shape(x))}: expected a matrix [rows, columns]")
    if "K" not in keys:
        keys["K"] = str(_columns(op, keys, x))
    if "splits" not in keys:
        keys.setdefault("R", str(np.shape(x)[0]))
    if "x_type" in known and "x_type" not in keys:
        keys["x_type"] = _formats.to_host(x, "x")[0]
    return keys


def expect(line: str, **own: Any) -> Arrays:
    """The expected outputs of a case line, for own inputs where they are given.

    Args:
        line: a case line (`assay list --schema` prints every key), such as "quantize recipe=block_1x128". `preset=` may stand beside
            `recipe=`: the rule of another library (see `presets`) with the blocks of the recipe. Sizes and type of `x` may be left out
            where x is given.
        own: input tensors by their names in the schema, such as `x` [R, K] (with an activation [R, 2 K], gate then up), `splits` [G],
            `w_rowwise_data`. Types and shapes are those of the line. FP8, FP4 and E8M0 are codes: float8 dtypes, or bytes (uint8; two FP4 codes a byte, the lower
            column in the low bits). Inputs that are not given are those that the line generates.

    Returns:
        Every output that the line requests, by name, in the framework and on the device of the first own array (NumPy without
        one). Codes are uint8; bf16 is bfloat16 (uint16 in NumPy without ml_dtypes, and in CuPy). Bytes which the op leaves as they
        are (padding of compact scales, rows beyond the splits) are 0.

    Raises:
        ValueError: a line that makes no sense, an input that the op does not have, another shape than the line says.
        TypeError: another type than the line says.
        NotImplementedError: a call that the reference cannot answer.
    """
    op, keys = _lines.by_rule(*_lines.words_of(line))
    text = _assay.line_parts(_lines.line_of(op, _completed(op, keys, own)))["line"]
    op, attributes, inputs, wanted = _assay.case_of(text)
    for name, array in own.items():
        if name not in inputs:
            raise ValueError(f"'{name}' is no input of '{text}': expected one of {', '.join(inputs)}")
        format, shape, _ = inputs[name]
        if name == "splits" and isinstance(array, str):
            continue
        if name == "splits" and not isinstance(array, (list, tuple)):
            format = _formats.to_host(array, name)[0]  # i32 or i64
        given = _formats.to_host(array, name, format)
        if given[1] != list(shape):
            raise ValueError(f"{name} has the shape {given[1]}: expected {list(shape)} for '{text}'")
        inputs[name] = given
    return _answered(op, attributes, inputs, wanted, next(iter(own.values()), None))


def _answered(op: str, attributes: dict[str, Any], inputs: dict[str, _formats.Host], wanted: list[str] | None, example: Any) -> Arrays:
    made = _assay.answer(op, attributes, inputs, wanted)
    return Arrays({name: _formats.like(_formats.from_host(each), each[0], example) for name, each in made.items()})


@dataclasses.dataclass(frozen=True)
class Quantized:
    """Codes and scales of a matrix x [R, K], or of its groups. `codes, scale_inv = assay.quantize(...)` unpacks it.

    Attributes:
        codes: uint8, [R, K] rowwise ([R, K/2] with two FP4 codes a byte); columnwise [K, R], [R, K] in mxfp8, flat where grouped.
        scale_inv: decode scales: x is codes * scale_inv. block_1x128 rowwise: f32 [ceil(K/128), R up to 4]; block_128x128: f32
            [ceil(R/128), ceil(K/128) up to 4]; mxfp8: E8M0 bytes [R up to 128, ceil(K/32) up to 4]; nvfp4: E4M3 bytes; per tensor: f32
            [G]. Padding is 0. Groups are padded one by one and lie one behind the other.
        recipe, otype: names, such as "mxfp8" and "e4m3".
        rows, columns: R and K.
        direction: "rowwise": elements share scales along K; "columnwise": along the rows.
        splits: rows of each group, or None.
        amax: f32 [G], of the recipes that have one.
    """

    codes: Any
    scale_inv: Any
    recipe: str
    otype: str
    rows: int
    columns: int
    direction: str = "rowwise"
    splits: tuple[int, ...] | None = None
    scale_layout: str = "compact"
    amax: Any = None

    def __iter__(self) -> Iterator[Any]:
        return iter((self.codes, self.scale_inv))


def quantize(x: Any, recipe: str | None = None, *, preset: str | None = None, direction: str = "rowwise", splits: Any = None,
             otype: str | None = None, amax: Any = None, scale: Any = None, **options: Any) -> Quantized:
    """Codes and scales of a matrix, bit for bit those of the specification.

    Args:
        x: [R, K], f32, f16 or bf16; with an activation [R, 2 K], gate then up.
        recipe: "tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8" or "nvfp4".
        preset: the scale rule of another library instead (`presets()` lists them); `recipe` then gives the blocks.
        direction: "rowwise" or "columnwise": one of them; `expect` gives both at once.
        splits: rows of each group; without it x is one tensor.
        otype: type of the codes, "e4m3" or "e5m2"; "e2m1" in nvfp4. With `preset` any that the preset has.
        amax: f32 [G], nvfp4 and presets with an outer amax: used in place of that of x.
        scale: f32 [G], tensor_delayed: the scales.
        options: further keys of the op, such as pow2=1, eps=1e-4, scale_layout="swizzled", activation="swiglu" (block recipes: codes of
            silu(gate) * up; `assay list --schema --op quantize`).

    Raises:
        ValueError, TypeError, NotImplementedError: as `expect`.
    """
    if recipe is None and preset is None:
        raise ValueError("quantize() has neither recipe nor preset: expected one of them, such as recipe='mxfp8'")
    keys = {key: str(int(value) if isinstance(value, bool) else value) for key, value in options.items()}
    named = {"recipe": recipe, "preset": preset, "otype": otype, "amax": None if amax is None else "given"}
    keys |= {key: value for key, value in named.items() if value is not None} | {"direction": direction}
    if splits is not None:
        rows = tuple(int(each) for each in (splits if isinstance(splits, (list, tuple)) else _formats.to_numpy(splits)[0].tolist()))
        keys["splits"] = _lines.splits_text(rows)
    own = {"x": x} | ({} if amax is None else {"amax": amax}) | ({} if scale is None else {"scale": scale})
    made = expect(_lines.line_of("quantize", keys), **own)
    default = "e2m1" if recipe == "nvfp4" else "e4m3"
    used = next((made[name] for name in ("amax", "columnwise_amax") if name in made), amax)
    op, used_keys = _lines.by_rule("quantize", keys)
    height, width = int(np.shape(x)[0]), _columns(op, used_keys, x)
    return Quantized(made.codes, made.scale_inv, preset or recipe or "", otype or default, height, width, direction,
                     None if splits is None else rows, keys.get("scale_layout", "compact"), used)


def dequantize(quantized: Quantized, *, d_type: str = "f32") -> Any:
    """The values of codes and scales: x [R, K] in `d_type`, each the exact product rounded once.

    Args:
        quantized: what `quantize` gave, or a `Quantized` made from own codes and scales. Of a recipe, not of a preset.
        d_type: "f32", "bf16" or "f16".

    Raises:
        ValueError, TypeError, NotImplementedError: as `expect`.
    """
    q = quantized
    attributes = {"recipe": q.recipe, "otype": q.otype, "d_type": d_type, "direction": q.direction, "R": q.rows, "K": q.columns}
    if q.recipe in ("mxfp8", "nvfp4"):
        attributes["scale_layout"] = q.scale_layout
    inputs = _operand(q, "", q.direction)
    if q.splits is not None:
        inputs["splits"] = _formats.to_host(list(q.splits), "splits", "i64")
    if q.amax is not None and q.recipe == "nvfp4":
        inputs["amax"] = _formats.to_host(q.amax, "amax", "f32")
    return _answered("dequantize", _assay.in_words("dequantize", attributes, False), inputs, None, q.codes)["x"]


def _scale_format(recipe: str) -> str:
    return {"mxfp8": "e8m0", "nvfp4": "e4m3"}.get(recipe, "f32")


def _operand(q: Quantized, prefix: str, direction: str) -> dict[str, _formats.Host]:
    return {f"{prefix}{direction}_data": _formats.to_host(q.codes, f"{prefix}codes", q.otype),
            f"{prefix}{direction}_scale_inv": _formats.to_host(q.scale_inv, f"{prefix}scale_inv", _scale_format(q.recipe))}


_OPERANDS = {"TN": ("x", "w"), "NN": ("dy", "w"), "NT": ("dy", "x")}


def grouped_gemm(*, kind: str, splits: Any, N: int, K: int, layout: str = "TN", x: Any = None, w: Any = None, dy: Any = None,
                 plan: str | None = None, d_type: str = "bf16", c: Any = None, bias: Any = None, d_scale: Any = None,
                 alpha: float = 1.0, beta: float = 0.0, **options: Any) -> Any:
    """One product a group, D, under an accumulation plan: bit for bit what a tensor core with this plan gives.

    Args:
        kind: "bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8" or "nvfp4".
        splits: rows of each group, [G].
        N, K: rows and columns of each w.
        layout: TN: D = x w^T, [R, N]; NN: D = dy w, [R, K]; NT: D = dy^T x for each group, [G N, K].
        x: [R, K]; w: [G N, K]; dy: [R, N]: the two that the layout has. Arrays in kinds bf16 and f16, else `Quantized`, whose direction
            says which storage it is. A `Quantized` of w has G N rows; w of fp8_block is block_128x128, unless weight_block="1x128".
        plan: name or line of an accumulation plan (`plans()`); without it that of the library on `arch`, where one is known.
        d_type: "f32", "bf16", "f16"; "e4m3" and "e5m2" with `d_scale` [G].
        c: as D, needed where beta is not 0. bias: [G, N], layout TN.
        options: further keys, such as arch="sm100", split_accumulator=0, weight_block, scale_layout.

    Raises:
        ValueError, TypeError: as `expect`.
        NotImplementedError: no plan was given, and none is known for this product.
    """
    if layout not in _OPERANDS:
        raise ValueError(f"layout is {layout!r}: expected TN, NN or NT")
    keys = {"kind": kind, "layout": layout, "N": str(N), "K": str(K), "splits": "1", "d_type": d_type}
    keys |= {key: str(int(value) if isinstance(value, bool) else value) for key, value in options.items()}
    if plan is not None:
        keys["plan"] = plan
    if bias is not None:
        keys["bias"] = "1"
    # The attributes are those of a line with these keys; its tensors, of one row, are not used.
    small = _assay.line_parts(_lines.line_of("grouped_gemm", keys))["line"]
    _, attributes, _, _ = _assay.case_of(small)
    attributes |= {"alpha": float(alpha), "beta": float(beta)}
    if kind in ("mxfp8", "nvfp4"):
        attributes["scale_layout"] = options.get("scale_layout", "swizzled")
    inputs = {"splits": _formats.to_host(list(map(int, splits)) if isinstance(splits, (list, tuple)) else splits, "splits", "i64")}
    given = {"x": x, "w": w, "dy": dy}
    example = None
    for name, value in given.items():
        if (value is not None) != (name in _OPERANDS[layout]):
            raise ValueError(f"{name} is {'absent' if value is None else 'given'} in layout {layout}: expected "
                             f"{' and '.join(_OPERANDS[layout])}")
        if value is None:
            continue
        if kind in ("bf16", "f16"):
            inputs[name] = _formats.to_host(value, name, kind)
            example = value if example is None else example
            continue
        if not isinstance(value, Quantized):
            raise TypeError(f"{name} is {type(value).__name__}: expected assay.Quantized, codes with their scales, in kind {kind}")
        inputs |= _operand(value, f"{name}_", value.direction)
        if value.amax is not None and kind == "nvfp4":
            inputs[f"{name}_{value.direction}_amax"] = _formats.to_host(value.amax, f"amax of {name}", "f32")
        example = value.codes if example is None else example
    for name, value, format in (("c", c, d_type), ("bias", bias, d_type), ("d_scale", d_scale, "f32")):
        if value is not None:
            inputs[name] = _formats.to_host(value, name, format)
    return _answered("grouped_gemm", attributes, inputs, ["d"], example)["d"]
