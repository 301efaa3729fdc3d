"""Expected values by another route: NumPy and ml_dtypes, from the formulas of reference/spec, without a call of the package."""

import ml_dtypes
import numpy as np

E4M3 = ml_dtypes.float8_e4m3fn


def e4m3_codes(values):
    """Nearest E4M3 of f32 values, ties to even, saturated to 448."""
    return np.clip(values, np.float32(-448), np.float32(448)).astype(E4M3).view(np.uint8)


def block_1x128(x):
    """Codes [R, K] and decode scales [ceil(K/128), R], one for 128 elements along K. x: f32, finite."""
    rows, columns = x.shape
    blocks = -(-columns // 128)
    padded = np.zeros((rows, blocks * 128), np.float32)
    padded[:, :columns] = x
    tiles = padded.reshape(rows, blocks, 128)
    amax = np.abs(tiles).max(axis=2, initial=0)
    scale = np.where(amax > 0, np.float32(448) / np.where(amax > 0, amax, np.float32(1)), np.float32(1)).astype(np.float32)
    codes = e4m3_codes(tiles * scale[:, :, None]).reshape(rows, padded.shape[1])[:, :columns]
    return codes, (np.float32(1) / scale).T


def mxfp8(x):
    """Codes [R, K] and E8M0 bytes [R, ceil(K/32)]: the scale is the power of two at or above fl(amax * fl(1/448)). x: f32, finite."""
    rows, columns = x.shape
    blocks = -(-columns // 32)
    padded = np.zeros((rows, blocks * 32), np.float32)
    padded[:, :columns] = x
    tiles = padded.reshape(rows, blocks, 32)
    mantissa, exponent = np.frexp(np.abs(tiles).max(axis=2, initial=0) * (np.float32(1) / np.float32(448)))  # 0.5 to 1, times 2^exponent
    exponent = np.clip(np.where(mantissa > 0, exponent - (mantissa == 0.5), -127), -127, 127)
    codes = e4m3_codes((tiles * np.ldexp(1.0, -exponent)[:, :, None]).astype(np.float32)).reshape(rows, padded.shape[1])[:, :columns]
    return codes, (exponent + 127).astype(np.uint8)


def grouped_block_1x128(x, splits, codes, scale_inv):
    """block_1x128 of each group into flat scales: [ceil(K/128), rows up to 4] of one group behind those of another."""
    blocks, row, at = -(-x.shape[1] // 128), 0, 0
    for rows in map(int, splits):
        padded = -(-rows // 4) * 4
        group_codes, group_scales = block_1x128(x[row : row + rows])
        codes[row : row + rows] = group_codes
        scale_inv[at : at + blocks * padded].reshape(blocks, padded)[:, :rows] = group_scales
        row += rows
        at += blocks * padded


def group_scales(scale_inv, splits, columns, group):
    """The scales of one group, as a view [ceil(K/128), rows]."""
    blocks = -(-columns // 128)
    padded = [-(-int(rows) // 4) * 4 for rows in splits]
    start = blocks * sum(padded[:group])
    return scale_inv[start : start + blocks * padded[group]].reshape(blocks, padded[group])[:, : int(splits[group])]
