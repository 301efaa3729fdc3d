"""How peers store E8M0 scales: from [rows, blocks of K] in order to the words or bytes that a GEMM of theirs reads."""

import numpy as np


def packed(scales):
    """DeepGEMM, math.py: pack_ue8m0_to_int. Four exponents along K in an int32, the first lowest."""
    rows, columns = scales.shape
    if columns % 4:
        raise ValueError(f"deepgemm.packed: {columns} scales a row, expected a multiple of 4")
    words = np.zeros((rows, columns // 4), np.uint32)
    for k in range(columns):
        words[:, k // 4] |= scales[:, k].astype(np.uint32) << np.uint32(8 * (k % 4))
    return words


def packed_mn_major(scales):
    """DeepGEMM, tests/test_layout.py. Four exponents along K in an int32; rows run fastest, padded to a multiple of 4 as the
    exponents of K are, with zeros."""
    rows, columns = scales.shape
    words = np.zeros((-(-columns // 4), -(-rows // 4) * 4), np.uint32)
    for k in range(columns):
        words[k // 4, :rows] |= scales[:, k].astype(np.uint32) << np.uint32(8 * (k % 4))
    return words


def blocked(scales):
    """torchao, mx_formats/utils.py: to_blocked. Tiles of 128 rows by 4 scales, row tiles outermost; in a tile the place of
    (r, k) is 16 (r mod 32) + 4 (r / 32) + k. Padding is zero."""
    rows, columns = scales.shape
    tiles = -(-columns // 4)
    out = np.zeros(-(-rows // 128) * tiles * 512, np.uint8)
    for r in range(rows):
        for k in range(columns):
            tile = (r // 128) * tiles + k // 4
            out[tile * 512 + r % 32 * 16 + r % 128 // 32 * 4 + k % 4] = scales[r, k]
    return out


LAYOUTS = {"deepgemm.packed": packed, "deepgemm.packed_mn_major": packed_mn_major, "torchao.blocked": blocked}
