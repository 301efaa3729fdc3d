#!/usr/bin/env python3
"""Writes a fixture of golden/ from what record.py recorded of TransformerEngine.

    te_fixture.py TE.h5 [TE.h5 ...] -o FOLDER/transformer_engine_ops.h5
    te_fixture.py TE.h5 [TE.h5 ...] -o FOLDER/transformer_engine_stochastic.h5

Takes the cases that golden/schema.md has an op for and that the list of this file's name has, without the attributes that the schema
does not know. Equal arrays stand once.
"""

import argparse
import fnmatch
import json
import sys
from pathlib import Path

import h5py
import numpy as np

# Each option at least once, with the edges: all of a group of calls would be many times as large and say no more.
OPS = [
    *(f"delayed_update/*_margin[02]_{length}/*" for length in (1, 5, 16)), "delayed_update/*_margin-3_16/in_place",
    "delayed_update/*_margin-3_16/mixed", "delayed_update/max_e4m3_margin0_300/bulk_reduced",
    *(f"offsets/{kind}_{n}" for kind in ("one", "two_i32", "two_i64", "multi_i32", "multi_i64") for n in (1, 31, 33, 257, 1025)),
    "offsets/multi_large", "offsets/multi_eight",
    "dequantize/tensor_*", "dequantize/nvfp4_*", "dequantize/block1d_rowwise_e5m2_bf16", "dequantize/block1d_columnwise_e5m2_f16",
    "dequantize/block2d_*_empty",
    *(f"*swizzle/*_{size}{tail}" for size in ("32x32", "64x96", "128x128", "200x160", "224x160") for tail in ("", "_multi")),
    "swizzle/grouped_*", "unswizzle/grouped_*", "swizzle/varying_*", "swizzle/mxfp8_rowwise_256x1024", "unswizzle/mxfp8_columnwise_256x1024",
    "quantize/grouped_current_*_small*", "quantize/grouped_current_*_e4m3_tail*", "quantize/grouped_current_bf16_e4m3_ragged*",
    "quantize/grouped_current_bf16_pow2", "quantize/grouped_current_bf16_eps", "quantize/delayed_dbias_*_96x80",
    "quantize/delayed_dbias_bf16_*_40x272", "quantize/delayed_dbias_bf16_e5m2_64x128", "quantize/block?d_dbias_bf16_empty",
    "quantize/block?d_dbias_f32_empty", "bias/*",
    "mxfp8/quantize_bf16_64x96", "mxfp8/quantize_bf16_special",
    "permute/bf16_k6_dropped", "permute/f16_k3_plain", "permute/f32_k2", "unpermute/*_k2", "unpermute/*_k3_plain", "unpermute/*16_k6_dropped",
    "unpermute/bf16_k8",
]

OPS_CALLS = {
    "delayed_update": "nvte_delayed_scaling_recipe_amax_and_scale_update (plain, in_place) and _after_reduction (bulk, mixed)",
    "offsets": "nvte_splits_to_offsets, nvte_splits_to_offsets_multi, nvte_splits_to_offsets_2d",
    "dequantize": "nvte_dequantize; blocks: nvte_group_dequantize",
    "swizzle, unswizzle": "nvte_swizzle_scaling_factors, nvte_unswizzle_scaling_factors; multi: nvte_multi_tensor_..., the second of "
                          "three tensors; grouped, varying: nvte_..._grouped_scaling_factors",
    "quantize/grouped_current": "nvte_group_compute_amax_with_config, nvte_group_compute_scale_from_amax, nvte_group_quantize",
    "quantize/delayed_dbias": "nvte_quantize_dbias. Its sums have another order than dbias-1.1, which 16 bits of these data do not show: "
                              "those in f32 are left out",
    "quantize/block": "nvte_group_quantize_dbias",
    "bias": "nvte_grouped_bias_add onto sums of small integers, which every order of additions gives exactly",
    "permute, unpermute": "nvte_permute, nvte_unpermute; their map is [topk, R]",
    "mxfp8": "composed of nvte_mxfp8_scaling_compute_partial_amax, nvte_multi_tensor_compute_scale_inv_e8m0_cuda and "
             "nvte_mxfp8_scaling_partial_cast, since nvte_quantize_v2 needs SM100",
}

# A file of fixtures: the cases, and what was called for them.
FIXTURES = {
    "transformer_engine_ops.h5": (OPS, OPS_CALLS),
    "transformer_engine_stochastic.h5": (["stochastic/*"], {
        "stochastic": "nvte_quantize_v2 of NVFP4 with stochastic_rounding and rng_state, by the kernel whose draws are te_vector_blockwise"}),
}

NOT_OF_THE_SCHEMA = {"peer", "call", "row_scaled", "untouched"}


def stored(node):
    """{path: (dtype, array)} of a recorded case."""
    return {f"{side}/{key}": (data.attrs["dtype"], data[()]) for side in ("in", "out") for key, data in node[side].items()}


def schema_case(node):
    """(attributes, arrays) of a recorded case, without what the schema does not know and without sums in another order."""
    attributes, arrays = dict(node.attrs), stored(node)
    if attributes.get("dbias", 0) == 1 and attributes["recipe"] == "tensor_delayed" and arrays["in/x"][0] == "f32":
        del attributes["dbias"], arrays["out/dbias"]
    return {key: value for key, value in attributes.items() if key not in NOT_OF_THE_SCHEMA}, arrays


def permutations(node):
    """The ops permute and unpermute of one record. Its map is [topk, R]; that of the schema is [R, topk]."""
    arrays = stored(node)
    topk = int(node.attrs["top_k"])
    row_map = ("i32", np.ascontiguousarray(arrays["out/row_id_map"][1].reshape(topk, -1).T))
    there = {"in/x": arrays["in/x"], "in/row_map": row_map, "out/permuted": arrays["out/permuted"]}
    yield "permute", {"op": "permute", "permuted_rows": np.int64(arrays["out/permuted"][1].shape[0])}, there
    back = {"in/permuted": arrays["in/y"], "in/row_map": row_map, "out/x": arrays["out/unpermuted"]}
    if "in/probs" in arrays:
        back["in/weights"] = arrays["in/probs"]
    yield "unpermute", {"op": "unpermute", "sums": "fma_in_type"}, back


def cases(files):
    """(name without the recorder's group, attributes, arrays) of each case that has an op of the schema and was written whole."""
    for path in files:
        file = h5py.File(path, "r")
        found = []
        file.visititems(lambda name, node: found.append(name) if isinstance(node, h5py.Group) and "call" in node.attrs else None)
        for name in found:
            node, short = file[name], name.partition("/")[2]
            if "untouched" in node.attrs or node.attrs.get("row_scaled", 0):
                continue
            if "op" in node.attrs:
                yield short, *schema_case(node)
            elif node.attrs.get("peer_op") == "permute":
                for op, attributes, arrays in permutations(node):
                    yield short.replace("permute", op, 1), attributes, arrays


def provenance(files, calls):
    """That of the recordings, which must be one, with what a reader of the fixture needs to know."""
    first = [json.loads(h5py.File(path, "r").attrs["provenance"]) for path in files]
    if any(each != first[0] for each in first):
        raise SystemExit("the files come from different recordings")
    return json.dumps({"producer": first[0]["producer"], "version": first[0]["version"], "wheels": first[0]["wheels"],
                       "device": first[0]["device"] + " (SM90)", "driver": first[0]["driver"], "calls": calls,
                       "note": "outputs recorded from the vendor library; no code of this project took part"})


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+")
    parser.add_argument("-o", "--output", required=True)
    arguments = parser.parse_args()
    name = Path(arguments.output).name
    if name not in FIXTURES:
        parser.error(f"the output is named {name}, expected one of {', '.join(FIXTURES)}")
    chosen, calls = FIXTURES[name]
    wanted, known = set(chosen), {}
    with h5py.File(arguments.output, "w", libver=("v110", "v110")) as out:
        out.attrs["assay_schema"] = np.int64(2)
        out.attrs["provenance"] = provenance(arguments.files, calls)
        for name, attributes, arrays in sorted(cases(arguments.files), key=lambda case: case[0]):
            matching = {pattern for pattern in chosen if fnmatch.fnmatchcase(name, pattern)}
            if not matching:
                continue
            wanted -= matching
            case = out.create_group(name)
            for key, value in attributes.items():
                case.attrs[key] = value
            for path, (label, array) in arrays.items():
                content = (label, array.dtype.str, array.shape, array.tobytes())
                if content in known:
                    case[path] = known[content]
                    continue
                pressed = {"compression": 9, "shuffle": True} if array.size > 64 else {}
                known[content] = case.create_dataset(path, data=array, **pressed)
                known[content].attrs["dtype"] = label
    if wanted:
        raise SystemExit(f"no case is {sorted(wanted)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
