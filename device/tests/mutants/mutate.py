#!/usr/bin/env python3
"""Writes copies of CUDA sources with numbered points, each of which is one small fault when it is chosen at run time (mutation.h).

    mutate.py --root CHECKOUT --out FOLDER [--host] [--shared-memory] SOURCE...

A SOURCE is a path below CHECKOUT. FOLDER gets a copy of each under the same path, and points.inc: a row for each mutant, by number.
What a mutant is called does not depend on its number, so that a record stays true when lines are added: file, the text of its line,
which of the equal lines, which point of the line, and what is changed. With --host each launch and memset that the host makes is a
point too: it can be left out. With --shared-memory, for kernels that the host runs, what each block finds in its shared memory is
nothing that it may count on, and has guards behind it (shared_memory.h); instructions that are asm are calls; and what only SM90 and
later have, to begin before the kernel before has ended, is there too. In the copy of a FILE of --device-lines a host's compiler reads
what `#ifdef __CUDA_ARCH__` keeps for a device's.
"""

from __future__ import annotations

import argparse
import bisect
import functools
import pathlib
import re
import sys
from collections import Counter
from typing import Callable, Iterator, NamedTuple

ROUNDED = {"__fmul_rn": "multiply", "__fadd_rn": "add", "__fsub_rn": "subtract", "__fdiv_rn": "divide"}
COMPARISONS = {"<": "is_less", "<=": "is_at_most", ">": "is_greater", ">=": "is_at_least", "==": "is_equal", "!=": "is_unequal"}
MUTATED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}

# The source with comments, texts, directives and lines of constants blanked has a point wherever one of these matches.
POINTS = re.compile(r"""
    (?P<comparison>(?<=\s)(?:<=|>=|==|!=|<|>)(?=\s))
  | (?P<condition>\bif\s\((?!constexpr))
  | (?P<barrier>\b(?:__syncthreads|__syncwarp|__threadfence\w*|arrive_at_cluster|wait_for_cluster|wait_for_work_before
      |wait_for_earlier_kernels|wait|arrive|arrive_at|publish_barriers|order_with_copy_engine|cluster_sync|cooperative_groups::this_grid\(\)\.sync)\([^()]*\);)
  | (?P<rounded>\b(?:__fmul_rn|__fadd_rn|__fsub_rn|__fdiv_rn)\()
  | (?P<extreme>(?:\bstd::)?\b(?:max|min)\((?!\)))
  | (?P<store>\b(?:atomicOr|atomicMax|atomicAdd|cudaMemsetAsync|cudaMemset2DAsync)\()
  | (?P<literal>(?<![\w.'])\d+(?:u|ll|ull)?(?![\w.']))
""", re.VERBOSE)

# A statement of the host that launches a kernel or fills memory.
HOST_STATEMENT = re.compile(r"^[ ]+(?P<statement>(?:launch_kernel(?:_early)?|check_cuda)\()", re.MULTILINE)

# Shared memory of a fixed size, and the names that are declared there.
SHARED = re.compile(r"(?<!extern )__shared__ (?P<declared>[^;()]*);")
SIZED_BY_LAUNCH = re.compile(r"extern __shared__ (?:__align__\((?P<alignment>\d+)\) )?(?P<type>[\w: ]+) (?P<name>\w+)\[\];")
DECLARATOR = re.compile(r"(\w+)(?:\[[^\]]*\])*\s*(?=,|$)")

# One instruction of a device as asm, and its operands.
INSTRUCTION = re.compile(r"\basm(?: volatile)?\(\s*\"([\w.:]+)[^\";]*;?\"")
OPERAND = re.compile(r"\"[=+]?\w\"\s*(?=\()")
# The text of assembly: its strings, with comments between. A part of it that is no instruction.
ASSEMBLY = re.compile(r"\basm(?: volatile)?\((?P<text>(?:\s*(?:\"(?:\\.|[^\"\\])*\"|//[^\n]*\n))+)")
REGISTER, LABEL, BRANCH = (re.compile(each) for each in (r"\.reg \.(\w+) (\w+)$", r"(\w+):$", r"(?:@(\w+) )?bra (\w+)$"))
# What operands alone do not say: a special register, or a number.
BESIDE_OPERANDS = re.compile(r"%%|(?<![%\w.])\d+;")
REGISTER_TYPES = {"pred": "bool", "b32": "std::uint32_t", "b64": "std::uint64_t"}

# What only the compiler of a device reads.
FOR_A_DEVICE = re.compile(r"^#ifdef (?P<name>__CUDA_ARCH__)$", re.MULTILINE)
# What a kernel has where it may begin before the one before it has ended.
EARLY_LAUNCH = re.compile(r"^#if defined\(__CUDA_ARCH__\) && __CUDA_ARCH__ >= 900$", re.MULTILINE)

BLANKED = re.compile(r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<!\w)'(?:\\.|[^'\\\n])+'""", re.DOTALL)
# Lines on which nothing is a point: directives, what only the compiler reads, and checks of arguments, which no valid call reaches.
CONSTANT_LINE = re.compile(r"^[ ]*(?:#.*|.*\b(?:static_assert|template|asm|using|case|enum|require\w*)\b.*)$|^.*\bconstexpr\b[^\n(]*=.*$", re.MULTILINE)
PREFIX = "::assay::mutants::"
# What a device runs: functions that begin so. The code around them, which the host runs, chooses between kernels of equal results.
DEVICE_FUNCTION = re.compile(r"\b(?:__global__|__device__|ASSAY_BOTH|ASSAY_BOTH_CALLED|ASSAY_HD|ASSAY_DEVICE)\b")


class Mutant(NamedTuple):
    file: str
    line: int
    name: str    # of the line and the point in it
    change: str


class Edit(NamedTuple):
    begin: int
    end: int
    text: str


def blank(pattern: re.Pattern[str], text: str) -> str:
    """The text with each match replaced by as many spaces; line breaks stay."""
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(text: str, opening: int) -> int:
    """Where the parenthesis that opens at `opening` closes."""
    depth = 0
    for at in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if depth == 0:
            return at
    raise ValueError(f"a parenthesis is not closed: {text[opening:opening + 40]!r}")


def loop_condition(text: str, at: int) -> tuple[int, int] | None:
    """Where the condition of a loop lies, if the comparison at `at` is all of it."""
    begin, end = text.rfind(";", 0, at) + 1, text.find(";", at)
    header = text.rfind("for (", 0, begin)
    if header < 0 or closing(text, header + 4) < end or text.count(";", header, end) != 1:
        return None
    condition = text[begin:end]
    single = len(re.findall(r"(?<=\s)(?:<=|>=|==|!=|<|>|&&|\|\||\?)(?=\s)", condition)) == 1
    return (begin + len(condition) - len(condition.lstrip()), end) if single else None


def device_code(text: str) -> str:
    """The text with everything blank but the bodies of functions that a device runs."""
    kept = [" " if each != "\n" else each for each in text]
    at = 0
    while found := DEVICE_FUNCTION.search(text, at):
        opening = re.compile(r"[{;]").search(text, found.end())
        if opening is None:
            break
        at = opening.end()
        if opening.group() == ";":  # declared only
            continue
        depth = 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        kept[opening.end():at] = text[opening.end():at]
    return "".join(kept)


def changes(match: re.Match[str], text: str, number: int) -> tuple[list[str], list[Edit]]:
    """What the mutants of a point change, and the edits that make them possible; none where the point cannot be planted."""
    kind, found, begin, end = match.lastgroup, match.group(), match.start(), match.end()
    if kind == "comparison" and (whole := loop_condition(text, begin)):  # as a call: nvcc 13.0 crashes on some of the others
        return [f"{found} becomes {MUTATED[found]}"], [
            Edit(whole[0], whole[0], f"{PREFIX}{COMPARISONS[found]}({number}, "), Edit(begin - 1, end, ","), Edit(whole[1], whole[1], ")")]
    if kind == "comparison":
        return [f"{found} becomes {MUTATED[found]}"], [Edit(begin, end, f"{found} {PREFIX}Compared{{{number}}} {found}")]
    if kind == "condition":
        last = closing(text, end - 1)
        if ";" in text[end:last]:  # declares a variable
            return [], []
        return ["if (true)", "if (false)"], [Edit(end, end, f"{PREFIX}condition({number}, static_cast<bool>("), Edit(last, last, "))")]
    if kind == "barrier":
        return [f"no {found}"], [Edit(begin, begin, f"if (!{PREFIX}is({number})) ")]
    if kind == "rounded":
        return [f"{found[:-1]} rounds toward zero"], [Edit(begin, end, f"{PREFIX}{ROUNDED[found[:-1]]}({number}, ")]
    if kind == "extreme":
        is_max = "max" in found
        return ["min for max" if is_max else "max for min"], [
            Edit(begin, end, f"{PREFIX}{'maximum' if is_max else 'minimum'}({number}, ")]
    if kind == "store":
        nothing = "cudaSuccess" if "Memset" in found else "0u"
        return [f"no {found[:-1]}"], [Edit(begin, begin, f"({PREFIX}is({number}) ? {nothing} : "), Edit(closing(text, end - 1) + 1, closing(text, end - 1) + 1, ")")]
    return [f"{found} plus 1", f"{found} minus 1"], [Edit(begin, end, f"{PREFIX}literal({number}, {found})")]


def as_text(match: re.Match[str], text: str, change: str) -> list[Edit]:
    """The edits that change the source itself, for one mutant: no point, no number."""
    kind, found, begin, end = match.lastgroup, match.group(), match.start(), match.end()
    if kind == "comparison":
        return [Edit(begin, end, MUTATED[found])]
    if kind == "condition":
        last = closing(text, end - 1)
        return [Edit(end, end, "true || (" if change == "if (true)" else "false && ("), Edit(last, last, ")")]
    if kind == "barrier":
        return [Edit(begin, end, "{}")]
    if kind == "rounded":
        return [Edit(begin, end, found.replace("_rn(", "_rz("))]
    if kind == "extreme":
        return [Edit(begin, end, found.replace("max", "min") if "max" in found else found.replace("min", "max"))]
    if kind == "store":
        return [Edit(begin, closing(text, end - 1) + 1, "cudaSuccess" if "Memset" in found else "0u")]
    return [Edit(begin, end, f"({found} {'+' if change.endswith('plus 1') else '-'} 1)")]


def left_out(match: re.Match[str], text: str, number: int) -> tuple[list[str], list[Edit]]:
    """As changes(), for a statement of the host. Braces keep an `else` that follows with the `if` before."""
    begin = match.start("statement")
    end = closing(text, match.end() - 1) + 1
    if text[end] != ";" or not re.search(r"launch_kernel|cudaLaunch|cudaMem(?:set|cpy)", text[begin:end]):
        return [], []
    what = re.search(r"launch_kernel|cudaLaunchKernelEx|cudaMem\w+", text[begin:end])
    return [f"no {what.group()}"], [Edit(begin, begin, f"{{ if (!{PREFIX}is_left_out({number})) "), Edit(end + 1, end + 1, " }")]


def guarded_shared_memory(text: str) -> list[Edit]:
    """Edits that put the shared memory of each declaration into a structure with guards behind it, and let a block enter it."""
    edits = []
    for match in SIZED_BY_LAUNCH.finditer(text):
        begin, end = f"{match['type']}* const {match['name']} = {PREFIX}dynamic_shared<{match['type']}", ">();"
        if match["alignment"] is None:
            edits.append(Edit(match.start(), match.end(), begin + end))
        else:
            edits += [Edit(match.start(), match.start("alignment"), begin + ", "), Edit(match.end("alignment"), match.end(), end)]
    for number, match in enumerate(SHARED.finditer(text)):
        plain = re.sub(r"<[^<>]*>", "", re.sub(r"<[^<>]*>", "", match["declared"]))
        names = ", ".join([each.group(1) for each in DECLARATOR.finditer(plain)] + [f"guard_{number}"])
        edits += [Edit(match.start(), match.start("declared"), "static struct { "),
                  Edit(match.end(), match.end(), f" {PREFIX}SharedGuard guard; }} shared_{number}; "
                       f"auto& [{names}] = shared_{number}; {PREFIX}enter_shared(shared_{number});")]
    return edits


def called_instructions(source: str) -> list[Edit]:
    """Edits that make each instruction a call of the function of its name, with its operands: see host_cuda."""
    edits = []
    for match in INSTRUCTION.finditer(source):
        if BESIDE_OPERANDS.search(match.group()):
            continue
        opening = source.index("(", match.start())
        last = closing(source, opening)
        at = match.start()
        text = "::assay::device::host::" + re.sub(r"\W+", "_", match.group(1)) + "("
        for operand in OPERAND.finditer(source, match.end(), last):
            edits.append(Edit(at, operand.end(), text))
            at, text = closing(source, operand.end()) + 1, ", "
        edits.append(Edit(at, last, text if at == match.start() else ""))
    return edits


def statement(assembly: str) -> str:
    """A statement of PTX, as one of C++ that calls the function of its name."""
    if declared := REGISTER.match(assembly):
        return f"{REGISTER_TYPES[declared[1]]} {declared[2]};"
    if label := LABEL.match(assembly):
        return f"{label[1]}:;"
    if branch := BRANCH.match(assembly):
        return (f"if ({branch[1]}) " if branch[1] else "") + f"goto {branch[2]};"
    name, _, rest = assembly.partition(" ")
    arguments = [each.strip() for each in re.sub(r"[\[\]{}]", "", rest).split(",")]
    arguments = [re.sub(r"^%(\d+)", r"operand_\1", each) for each in arguments if each not in ("", "_")]
    arguments = [re.sub(r"^%%(\w+)", r"::assay::device::host::\1()", each) for each in arguments]
    return "::assay::device::host::" + re.sub(r"\W+", "_", name) + "(" + ", ".join(arguments) + ");"


def called_assembly(source: str) -> list[Edit]:
    """The same for assembly of several instructions, of none, or of more than operands: a block of statements."""
    edits = []
    for match in ASSEMBLY.finditer(source):
        text = "".join(re.findall(r"\"((?:\\.|[^\"\\])*)\"", re.sub(r"//[^\n]*", "", match["text"]))).replace("\\n", "\n")
        parts = [each.strip() for each in re.split(r"[;\n]", text)]
        parts = [each for each in parts if each not in ("", "{", "}")]
        if len(parts) == 1 and not BESIDE_OPERANDS.search(text):
            continue
        opening = source.index("(", match.start())
        last = closing(source, opening)
        at, between = match.start(), "{ "
        for number, operand in enumerate(OPERAND.finditer(source, match.end(), last)):
            edits.append(Edit(at, operand.end(), f"{between}auto&& operand_{number} = "))
            at, between = closing(source, operand.end()) + 1, "; "
        edits.append(Edit(at, last + 1, between + " ".join(statement(each) for each in parts) + " }"))
    return edits


class Point(NamedTuple):
    match: re.Match[str]
    line: int  # from 0
    name: str  # of the line and the point in it
    plant: Callable[[re.Match[str], str, int], tuple[list[str], list[Edit]]]


@functools.cache
def points_of(source: str, host: bool = False) -> list[Point]:
    """The points of a source. `host`: those of HOST_STATEMENT too."""
    text = blank(BLANKED, source)
    of_device = device_code(text)
    found = [(match, changes) for match in POINTS.finditer(blank(CONSTANT_LINE, of_device))]
    if host:
        found += [(match, left_out) for match in HOST_STATEMENT.finditer(text) if of_device[match.start("statement")] == " "]
    lines = source.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    ordinal: Counter[str] = Counter()
    of_line = []
    for line in lines:
        of_line.append(ordinal[line.strip()])
        ordinal[line.strip()] += 1
    points: list[Point] = []
    at_line: Counter[int] = Counter()
    for match, plant in found:
        line = bisect.bisect_right(starts, match.start()) - 1
        at_line[line] += 1
        again = f" (line {of_line[line] + 1} of these)" if ordinal[lines[line].strip()] > 1 else ""
        points.append(Point(match, line, f"{lines[line].strip()}{again} point {at_line[line]}", plant))
    return points


def edited(source: str, edits: list[Edit]) -> str:
    out, at = [], 0
    for edit in sorted(edits, key=lambda each: (each.begin, each.end)):
        out += [source[at:edit.begin], edit.text]
        at = edit.end
    return "".join(out) + source[at:]


def mutate(file: str, source: str, first: int, host: bool = False, shared_memory: bool = False,
           device_lines: bool = False) -> tuple[str, list[Mutant]]:
    """The copy of a source whose mutants are numbered from `first`, and the mutants. `host`: those of HOST_STATEMENT too."""
    text = blank(BLANKED, source)
    mutants: list[Mutant] = []
    edits: list[Edit] = []
    if shared_memory:
        early = [Edit(match.start(), match.end(), "#if 1") for match in EARLY_LAUNCH.finditer(source)]
        edits = guarded_shared_memory(text) + called_instructions(source) + called_assembly(source) + early
    if device_lines:
        edits += [Edit(*match.span("name"), "__CUDACC__") for match in FOR_A_DEVICE.finditer(source)]
    for point in points_of(source, host):
        changed, made = point.plant(point.match, text, first + len(mutants))
        mutants += [Mutant(file, point.line + 1, point.name, change) for change in changed]
        edits += made
    headers = ["mutation.h", "shared_memory.h"] if shared_memory else ["mutation.h"]
    head = "".join(f'#include "device/tests/mutants/{each}"\n' for each in headers) + '#line 1 "' + file + '"\n'
    return head + edited(source, edits), mutants


def written(source: str, name: str, change: str) -> str:
    """The source with one mutant of a device as text. Errors: ValueError where it has no such mutant."""
    text = blank(BLANKED, source)
    for point in points_of(source):
        if point.name == name and change in point.plant(point.match, text, 0)[0]:
            return edited(source, as_text(point.match, text, change))
    raise ValueError(f"there is no mutant '{name}: {change}'")


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def rows(mutants: list[Mutant]) -> Iterator[str]:
    for mutant in mutants:
        yield f"{{{quoted(mutant.file)}, {mutant.line}, {quoted(mutant.name)}, {quoted(mutant.change)}}},\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", required=True, type=pathlib.Path, help="the checkout")
    parser.add_argument("--out", required=True, type=pathlib.Path, help="the folder of the copies")
    parser.add_argument("--host", action="store_true", help="launches and memsets of the host are points too")
    parser.add_argument("--shared-memory", action="store_true", help="shared memory has guards, and holds nothing of an earlier block")
    parser.add_argument("--device-lines", action="append", default=[], metavar="FILE", help="one of the sources")
    parser.add_argument("sources", nargs="+", metavar="SOURCE", help="a path below the checkout")
    given = parser.parse_args()
    mutants: list[Mutant] = []
    for name in given.sources:
        copy, made = mutate(name, (given.root / name).read_text(), len(mutants), given.host, given.shared_memory, name in given.device_lines)
        mutants += made
        write(given.out / name, copy)
    write(given.out / "points.inc", "".join(rows(mutants)))
    print(f"{len(mutants)} mutants of {len(given.sources)} sources")
    return 0


if __name__ == "__main__":
    sys.exit(main())
