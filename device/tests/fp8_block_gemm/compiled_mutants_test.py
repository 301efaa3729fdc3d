#!/usr/bin/env python3
"""Mutants of the FP8 block GEMM as changes of its sources, and the record of those that were compiled."""

import json
import pathlib
import struct
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import compiled_mutants  # noqa: E402
from compiled_mutants import ROOT, mutate  # noqa: E402


def elf(sections: dict[str, bytes]) -> bytes:
    names, bodies, headers = b"\0", b"", [(0, 0, 0, 0)]
    for name, body in [*sections.items(), (".shstrtab", b"")]:
        headers.append((len(names), 64 + len(bodies), len(body), 0))
        names, bodies = names + name.encode() + b"\0", bodies + body
    headers[-1] = (headers[-1][0], 64 + len(bodies), len(names), 0)
    bodies += names
    table = b"".join(struct.pack("<IIQQQQIIQQ", name, 1, 0, 0, at, size, 0, 0, 1, 0) for name, at, size, _ in headers)
    head = bytearray(64)
    head[:5] = b"\x7fELF\x02"
    struct.pack_into("<Q", head, 0x28, 64 + len(bodies))
    struct.pack_into("<HHH", head, 0x3A, 64, len(headers), len(headers) - 1)
    return bytes(head) + bodies + table


class CompiledMutants(unittest.TestCase):
    def test_every_mutant_is_a_change_of_its_file(self) -> None:
        for path in sorted((ROOT / compiled_mutants.FOLDER).glob("*.cuh")):
            file, source = str(path.relative_to(ROOT)), path.read_text()
            if path.name == "wgmma.cuh":
                continue
            texts = set()
            for each in mutate.mutate(file, source, 0)[1]:
                with self.subTest(each.name, change=each.change):
                    fault = compiled_mutants.fault_of(f"{file}: {each.name}: {each.change}", 7)
                    self.assertEqual((fault["name"], fault["file"]), ("mutant7", path.name))
                    self.assertNotEqual(fault["text"], source)
                    self.assertNotIn(fault["text"], texts)
                    texts.add(fault["text"])

    def test_what_a_mutant_looks_like(self) -> None:
        source = "__device__ int f(int a) {\n  if (a < 4) wait(a);\n  return max(a, 1);\n}\n"
        made = {each.change: mutate.written(source, each.name, each.change).split("\n")[1:3] for each in mutate.mutate("f", source, 0)[1]}
        self.assertEqual(made["if (true)"][0], "  if (true || (a < 4)) wait(a);")
        self.assertEqual(made["if (false)"][0], "  if (false && (a < 4)) wait(a);")
        self.assertEqual(made["< becomes <="][0], "  if (a <= 4) wait(a);")
        self.assertEqual(made["no wait(a);"][0], "  if (a < 4) {}")
        self.assertEqual(made["min for max"][1], "  return min(a, 1);")
        self.assertEqual(made["1 plus 1"][1], "  return max(a, (1 + 1));")
        self.assertEqual(made["1 minus 1"][1], "  return max(a, (1 - 1));")

    def test_names_of_nothing(self) -> None:
        file = "device/fp8_block_gemm/tiles.cuh"
        for name in (f"{file}: no such line point 1: < becomes <=", "device/layout/offsets.cu: x point 1: 0 plus 1"):
            with self.assertRaises(ValueError):
                compiled_mutants.fault_of(name, 0)

    def test_machine_code_is_that_of_kernels(self) -> None:
        one = elf({".text.f": b"add", ".nv.info": b"x", ".text.g": b"mul"})
        self.assertEqual(compiled_mutants.machine_code(one), {".text.f": b"add", ".text.g": b"mul"})
        other = elf({".nv.info": b"another", ".text.f": b"add", ".text.g": b"mad"})
        self.assertNotEqual(compiled_mutants.machine_code(other), compiled_mutants.machine_code(one))
        with self.assertRaises(ValueError):
            compiled_mutants.machine_code(elf({".nv.info": b"x"}))


if __name__ == "__main__":
    unittest.main()
