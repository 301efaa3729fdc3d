#!/usr/bin/env python3
"""Prints the mutants of a library of mutants, a line each: name, family, what is wrong.

    mutants.py build/bin/assay_mutants.so [WORD]    those whose line contains WORD
"""

import ctypes
import sys


class Mutant(ctypes.Structure):  # MutantRow of point_state.h
    _fields_ = [("id", ctypes.c_char_p), ("family", ctypes.c_char_p), ("says", ctypes.c_char_p), ("benign", ctypes.c_bool),
                ("base", ctypes.c_int32), ("times", ctypes.c_int32)]


class Library(ctypes.Structure):  # the first members of Library
    _fields_ = [("size", ctypes.c_int32), ("count", ctypes.c_int32), ("mutants", ctypes.POINTER(Mutant))]


def mutants(path):
    library = ctypes.CDLL(path)
    library.assay_mutant_library.restype = ctypes.POINTER(Library)
    held = library.assay_mutant_library().contents
    rows = [held.mutants[i] for i in range(held.count)]
    return [(row.id.decode(), row.family.decode(), row.says.decode(), row.benign) for row in rows if row.id]


if __name__ == "__main__":
    for row in mutants(sys.argv[1]):
        line = "\t".join(row[:3])
        if len(sys.argv) < 3 or sys.argv[2] in line:
            print(line)
