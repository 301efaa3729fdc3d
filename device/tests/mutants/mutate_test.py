#!/usr/bin/env python3
"""Tests of mutate.py: what becomes a point, what does not, and which points no call reaches."""

import json
import pathlib
import re
import unittest

import mutate

HERE = pathlib.Path(__file__).parent


def changed(body: str) -> str:
    """The body of a kernel as the copy has it, without the prefix of names."""
    copy, _ = mutate.mutate("a.cu", "__global__ void kernel() {\n" + body + "\n}\n", 0)
    return copy.split("{\n", 1)[1].rsplit("\n}", 1)[0].replace(mutate.PREFIX, "")


def changes(body: str) -> list[str]:
    return [each.change for each in mutate.mutate("a.cu", "__global__ void kernel() {\n" + body + "\n}\n", 0)[1]]


class Points(unittest.TestCase):
    def test_comparisons_keep_their_precedence(self):
        self.assertEqual(changed("x = a + b <= c && d;"), "x = a + b <= Compared{0} <= c && d;")

    def test_the_condition_of_a_loop_is_a_call(self):
        self.assertEqual(changed("for (int i = a; i < b; ++i) f(i);"), "for (int i = a; is_less(0, i, b); ++i) f(i);")
        self.assertEqual(changed("for (; a < b && c;) f(d < e);"), "for (; a < Compared{0} < b && c;) f(d < Compared{1} < e);")
        self.assertEqual(changes("for (int i = a; i < b; ++i) f(i);"), ["< becomes <="])

    def test_launches_and_memsets_of_the_host(self):
        source = ("void run() {\n  if (a)\n    launch_kernel(f(1), g);\n  else\n    check_cuda(cudaMemsetAsync(p, 0, n), \"x\");\n"
                  "  check_cuda(cudaGetDevice(&d));\n}\n")
        self.assertEqual(mutate.mutate("a.cu", source, 0)[1], [])
        copy, mutants = mutate.mutate("a.cu", source, 0, host=True)
        self.assertEqual([(each.line, each.change) for each in mutants], [(3, "no launch_kernel"), (5, "no cudaMemsetAsync")])
        self.assertIn("  if (a)\n    { if (!is_left_out(0)) launch_kernel(f(1), g); }\n  else\n    { if (!is_left_out(1)) check_cuda",
                      copy.replace(mutate.PREFIX, ""))

    def test_a_condition_is_true_or_false(self):
        self.assertEqual(changed("if (f(a, (b))) g();"), "if (condition(0, static_cast<bool>(f(a, (b))))) g();")
        self.assertEqual(changes("if (f(a, (b))) g();"), ["if (true)", "if (false)"])

    def test_literals_are_one_more_or_less(self):
        self.assertEqual(changed("x = 4u;"), "x = literal(0, 4u);")
        self.assertEqual(changes("x = 4u;"), ["4u plus 1", "4u minus 1"])

    def test_barriers_and_stores_are_left_out(self):
        self.assertEqual(changed("__syncthreads();"), "if (!is(0)) __syncthreads();")
        self.assertEqual(changed("__syncwarp(lanes);"), "if (!is(0)) __syncwarp(lanes);")
        self.assertEqual(changed("atomicOr(p, f(v));"), "(is(0) ? 0u : atomicOr(p, f(v)));")

    def test_extremes_and_rounding(self):
        self.assertEqual(changed("x = std::max(a, b);"), "x = maximum(0, a, b);")
        self.assertEqual(changed("x = __fmul_rn(a, b);"), "x = multiply(0, a, b);")

    def test_what_is_no_point(self):
        for body in ("// a < 4", "x = \"a < 4\";", "x = '4';", "x = 1.5f;", "x = 0xFF;", "x = 0x1'0000;", "#pragma unroll 4",
                     "constexpr int k = 4;", "static_assert(a < 4);", "x << y >> z;", "p->q();", "a1 = b2;"):
            self.assertEqual(changes(body), [], body)

    def test_only_what_a_device_runs(self):
        source = "int host() { return a < 4; }\n__device__ int declared(int);\nint other() { return 4; }\n__device__ int f() { return 5; }\n"
        self.assertEqual([each.line for each in mutate.mutate("a.cu", source, 0)[1]], [4, 4])

    def test_nested_points_stay_inside_one_another(self):
        self.assertEqual(changed("if (max(a, 1) > b) atomicOr(p, 2);"),
                         "if (condition(0, static_cast<bool>(maximum(2, a, literal(3, 1)) > Compared{5} > b))) "
                         "(is(6) ? 0u : atomicOr(p, literal(7, 2)));")

    def test_shared_memory_has_guards(self):
        source = ("__global__ void kernel() {\n  __shared__ Pair<A, B<n>> one, two[4];\n  extern __shared__ int sized[];\n"
                  "  extern __shared__ __align__(16) char aligned[];\n}\n")
        copy, _ = mutate.mutate("a.cu", source, 0, shared_memory=True)
        self.assertIn("static struct { Pair<A, B<n>> one, two[literal(0, 4)]; SharedGuard guard; } shared_0; "
                      "auto& [one, two, guard_0] = shared_0; enter_shared(shared_0);\n  int* const sized = dynamic_shared<int>();\n"
                      "  char* const aligned = dynamic_shared<char, literal(2, 16)>();",
                      copy.replace(mutate.PREFIX, ""))
        self.assertIn('#include "device/tests/mutants/shared_memory.h"', copy)
        self.assertNotIn("SharedGuard", mutate.mutate("a.cu", source, 0)[0])

    def test_instructions_are_calls_for_the_host(self):
        source = ('__device__ void f() {\n  asm volatile("stop.all;" : : : "memory");\n  asm("get.u32 %0, [%1];"\n      : "=r"(a[0])\n'
                  '      : "l"(g(b)), "r"(c) : "memory");\n}\n')
        copy, _ = mutate.mutate("a.cu", source, 0, shared_memory=True)
        copy = copy.replace(mutate.PREFIX, "").replace("::assay::device::host::", "")
        self.assertIn('  stop_all();\n  get_u32((a[literal(0, 0)]), (g(b)), (c));\n}', copy)

    def test_assembly_of_several_instructions_is_a_block_for_the_host(self):
        def block(assembly: str) -> str:
            copy, _ = mutate.mutate("a.cu", "__device__ void f() {\n  " + assembly + "\n}\n", 0, shared_memory=True)
            return copy.replace(mutate.PREFIX, "").replace("::assay::device::host::", "").split("f() {\n  ")[1].rsplit("\n}", 1)[0]

        self.assertEqual(block('asm volatile("{\\n .reg .b32 far;\\n map::it.u32 far, %0, {%1, 3};\\n go _, [far];\\n}"\n ::"r"(a[0]), "r"(b)\n : "memory");'),
                         "{ auto&& operand_0 = (a[literal(0, 0)]); auto&& operand_1 = (b); std::uint32_t far; map_it_u32(far, operand_0, operand_1, 3); go(far); };")
        self.assertEqual(block('asm volatile("{\\n .reg .pred done;\\nagain:\\n try done, [%0];\\n @done bra out;\\n"\n // anew\n " bra again;\\nout:\\n}" ::"r"(a));'),
                         "{ auto&& operand_0 = (a); bool done; again:; try(done, operand_0); if (done) goto out; goto again; out:; };")
        self.assertEqual(block('asm volatile("one;\\n two 4;" ::: "memory");'), "{ one(); two(4); };")
        self.assertEqual(block('asm("mov.u32 %0, %%rank;" : "=r"(a));'), "{ auto&& operand_0 = (a); mov_u32(operand_0, rank()); };")
        self.assertEqual(block('asm volatile("wait.all 0;");'), "{ wait_all(0); };")
        self.assertEqual(block('asm volatile("" : "+f"(a)::"memory");'), "{ auto&& operand_0 = (a);  };")

    def test_lines_of_a_device_are_compiled_for_the_host(self):
        source = "__device__ int f() {\n#ifdef __CUDA_ARCH__\n  return g();\n#endif\n}\n"
        self.assertIn("\n#ifdef __CUDACC__\n", mutate.mutate("a.cu", source, 0, device_lines=True)[0])
        self.assertIn("\n#ifdef __CUDA_ARCH__\n", mutate.mutate("a.cu", source, 0)[0])

    def test_the_host_has_early_launches(self):
        source = "__device__ void f() {\n#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900\n  g();\n#endif\n#ifdef __CUDA_ARCH__\n#endif\n}\n"
        self.assertIn("{\n#if 1\n  g();\n#endif\n#ifdef __CUDA_ARCH__\n", mutate.mutate("a.cu", source, 0, shared_memory=True)[0])
        self.assertIn(source, mutate.mutate("a.cu", source, 0)[0])

    def test_numbers_go_on_and_names_stay(self):
        first, second = (mutate.mutate("a.cu", "\n" * lines + "__device__ int f() {\n return 5;\n}\n", number)[1]
                         for lines, number in ((0, 0), (7, 100)))
        self.assertEqual([(each.name, each.change) for each in first], [(each.name, each.change) for each in second])

    def test_equal_lines_have_names_of_their_own(self):
        names = [each.name for each in mutate.mutate("a.cu", "__device__ void f() {\n g(5);\n g(5);\n}\n", 0)[1]]
        self.assertEqual(len(set(names)), 2)


def compiled_for_host(source: str) -> list[bool]:
    """For each line, whether a compiler of the host alone sees it: no architecture of a device is defined there."""
    seen, open_parts = [], [True]
    for line in source.split("\n"):
        directive = line.strip()
        if directive.startswith("#if"):
            of_device = re.search(r"__CUDA_ARCH__|\bASSAY_NVFP4_MMA$", directive) is not None
            open_parts.append(open_parts[-1] and not (of_device and not directive.startswith("#ifndef")))
        elif directive.startswith("#else"):
            open_parts[-1] = open_parts[-2] and not open_parts[-1]
        elif directive.startswith("#endif"):
            open_parts.pop()
        seen.append(open_parts[-1])
    return seen


class NotReached(unittest.TestCase):
    """What README.md says of the points that no call reaches."""

    ROOMS = ("nvfp4", "token_permutation")
    ARRAY = re.compile(r"(?:__shared__ |const )?[\w:]+ \w+\[")

    def test_the_compiler_alone_reads_them(self):
        for room in self.ROOMS:
            missing = set(json.loads((HERE / "rooms" / f"{room}.json").read_text())["not_reached"])
            for file in sorted({each.split(": ")[0] for each in missing}):
                source = (HERE.parents[2] / file).read_text()
                lines, seen = source.split("\n"), compiled_for_host(source)
                for mutant in mutate.mutate(file, source, 0)[1]:
                    text = lines[mutant.line - 1].strip()
                    if f"{file}: {mutant.name}: {mutant.change}" in missing:
                        self.assertTrue(not seen[mutant.line - 1] or "if constexpr" in text or self.ARRAY.match(text), mutant)


if __name__ == "__main__":
    unittest.main()
