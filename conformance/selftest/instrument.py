#!/usr/bin/env python3
"""Makes a copy of sources in which every operator, bound, condition and statement is a numbered point that can be made wrong.

    instrument.py ROOT OUTPUT FILE...

FILEs are paths below ROOT. Their copies go below OUTPUT, with OUTPUT/points.inc, a row for each point. The sources stay as they
are. What a point can do is in points.h; which of them is wrong is chosen at run time.

The sources are formatted by clang-format, which this relies on: a binary operator has a blank on each side, and the < of a
template has none. An operator is written twice, with a point between: `a < b` becomes `a < POINT(7) < b`. Both have the same
precedence, so that nothing else in the expression changes its meaning.
"""

import collections
import hashlib
import os
import pathlib
import re
import sys

# Kinds of points, in the order of points.h.
KINDS = ("less", "less_equal", "greater", "greater_equal", "equal", "unequal", "plus", "minus", "times", "divide", "modulo",
         "bit_and", "bit_or", "bit_xor", "shift_left", "shift_right", "condition", "conjunct", "disjunct", "value", "minimum",
         "maximum", "fused", "magnitude", "sign", "statement")
OPERATORS = {"<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal", "!=": "unequal", "+": "plus",
             "-": "minus", "*": "times", "/": "divide", "%": "modulo", "&": "bit_and", "|": "bit_or", "^": "bit_xor",
             "<<": "shift_left", ">>": "shift_right"}
BINARY = re.compile(r"(?<=[\w)\]}'\"]) (<=|>=|==|!=|<<|>>|[-<>+*/%&|^]) (?=[\w(~!\-{'\"*&])")
CALLS = {"std::min": "minimum", "std::max": "maximum", "std::fma": "fused", "std::fabs": "magnitude", "std::abs": "magnitude",
         "std::signbit": "sign"}
CALL = re.compile(r"std::(?:min|max|fma|fabs|abs|signbit)(?:<[\w:]+>)?\((?!\{)")
VALUE = re.compile(r"(?<= [-+*/%<>] )\d+(?![\w.'])|(?<= [<>]= )\d+(?![\w.'])|\bk[A-Z]\w*\b(?![(<[]|::| = )")
ASSIGNMENT = re.compile(r"^ +(?:\+\+|--)?[\w.>\-:*]+(?:\[.*\])?(?:(?:\.|->)\w+)*(?:\[[^\]]*\])? (?:=|[-+*|&^]=|<<=|>>=) [^=].*;$")
CALL_STATEMENT = re.compile(r"^ +(?!return\b|throw\b|if\b|for\b|while\b|switch\b|delete\b|case\b|default\b|else\b|do\b|using\b|static_assert\b)"
                            r"(?:[\w:]+(?:\.|->))*[\w:]+\(.*\);$")
SKIPPED = re.compile(r"^\s*(#|template\b|static_assert|using |namespace |enum |friend |struct |class |constexpr \w+(<.*>)? k|case "
                     r"|inline constexpr)|\boperator\b|\bconsteval\b")


def masked(line):
    """The line with comments and literals replaced by letters of no meaning, at equal length."""
    out, i = list(line), 0
    while i < len(line):
        if line.startswith("//", i):
            out[i:] = " " * (len(line) - i)
            break
        if line[i] == '"' or (line[i] == "'" and not (i and line[i - 1].isalnum())):
            quote, j = line[i], i + 1
            while j < len(line) and line[j] != quote:
                j += 2 if line[j] == "\\" else 1
            for k in range(i + 1, min(j, len(line))):
                out[k] = "x"
            i = j
        i += 1
    return "".join(out)


def closing(text, at):
    """The index of the bracket that closes the one at `at`, or -1."""
    depth = 0
    for i in range(at, len(text)):
        depth += text[i] in "([{"
        depth -= text[i] in ")]}"
        if depth == 0:
            return i
    return -1


def operand_end(text, at):
    """Where the operand of && or || that begins at `at` ends, or -1 if that is on another line."""
    depth = 0
    for i in range(at, len(text)):
        if depth == 0 and (text[i] in ")];," or text.startswith((" && ", " || ", " ? ", " : "), i)):
            return i
        depth += text[i] in "([{"
        depth -= text[i] in ")]}"
    return -1


class Source:
    def __init__(self, path, first):
        self.path, self.next, self.points = path, first, []
        self.seen = collections.Counter()

    def point(self, kind, number, line, text):
        stripped = line.strip()
        self.points.append((self.next, kind, number, text, stripped))
        self.next += 1
        return self.next - 1

    def edits(self, number, line, before):
        """Insertions and replacements: (begin, end, order, text). `before`: the code before this line."""
        mask, edits = masked(line), []
        code = mask.rstrip()
        if SKIPPED.search(code):
            return edits
        statement = ASSIGNMENT.match(code) or CALL_STATEMENT.match(code)
        begins = not before or before[-1] in ";{}:" or (
            before.endswith(")") and re.match(r"\s*(\} else )?(if|for|while)\b", before)) or before.endswith("else")
        if statement and begins and closing_is_whole(code):
            begin, end = len(code) - len(code.lstrip()), len(code) - 1
            at = self.point("statement", number, line, "left out")
            edits += [(begin, begin, 0, f"ASSAY_POINT_STATEMENT({at}, ("), (end, end, 9, "))")]
        if not re.match(r"^ +(const |auto |\w+\*? )?&", code):
            for found in BINARY.finditer(mask):
                operator = found[1]
                if operator in "&*" and re.search(r"\b(const|auto|bool|float|double|int|[A-Z]\w+|\w+_t)$", mask[:found.start()]):
                    continue  # a reference or a pointer
                at = self.point(OPERATORS[operator], number, line, operator)
                edits.append((found.start(), found.end(), 5, f" {operator} ASSAY_POINT({OPERATORS[operator]}, {at}) {operator} "))
        for found in re.finditer(r" (&&|\|\|) ", mask):
            end = operand_end(mask, found.end())
            if end < 0:
                continue
            kind = "conjunct" if found[1] == "&&" else "disjunct"
            at = self.point(kind, number, line, f"{found[1]} {mask[found.end():end]}" if end - found.end() < 60 else found[1])
            opening = f"assay_points::{kind}<{at}>(static_cast<bool>("
            edits += [(found.end(), found.end(), 6, opening), (end, end, 4, "))")]
        for found in re.finditer(r"\b(if|while) \(", mask):
            begin, end = found.end() - 1, closing(mask, found.end() - 1)
            inside = mask[begin + 1:end]
            if end < 0 or ";" in inside or re.search(r"[^=!<>]=[^=]", inside) or mask[:begin].rstrip().endswith("constexpr"):
                continue
            at = self.point("condition", number, line, inside)
            edits += [(begin + 1, begin + 1, 1, "("), (end, end, 8, f") != ASSAY_POINT(condition, {at})")]
        for found in re.finditer(r" \? ", mask):
            before = mask[:found.start()]
            tail = re.split(r"[=,(:?]|return|&&|\|\|", before)[-1]
            if re.search(r" [&|^] ", tail) or re.search(r"\bwiden$", before):
                continue
            at = self.point("condition", number, line, tail.strip() or "?")
            edits.append((found.start(), found.start(), 7, f" != ASSAY_POINT(condition, {at})"))
        for found in VALUE.finditer(mask):
            if mask[:found.start()].rstrip().endswith(("Format::", "::", ".", "int", "int64_t", "size_t", "uint8_t", "float", "int>")):
                continue
            at = self.point("value", number, line, found[0])
            edits += [(found.start(), found.start(), 7, f"ASSAY_POINT_VALUE({at}, "), (found.end(), found.end(), 3, ")")]
        for found in CALL.finditer(mask):
            name = re.match(r"std::\w+", found[0])[0]
            at = self.point(CALLS[name], number, line, name)
            kept = re.search(r"<([\w:]+)>", found[0])
            typed = f", {kept[1]}" if kept else ""
            edits.append((found.start(), found.end(), 7, f"assay_points::{CALLS[name]}<{at}{typed}>("))
        return edits

    def copy(self, text):
        out, before = [], ""
        for number, line in enumerate(text.split("\n"), 1):
            edits = self.edits(number, line, before)
            before = masked(line).rstrip() or before
            for begin, end, _, new in sorted(edits, key=lambda e: (-e[0], -e[1], -e[2])):
                line = line[:begin] + new + line[end:]
            out.append(line)
        return "\n".join(out)


def closing_is_whole(code):
    """Whether every bracket of the line is closed on it."""
    depth = 0
    for letter in code:
        depth += letter in "([{"
        depth -= letter in ")]}"
        if depth < 0:
            return False
    return depth == 0


def write_if_changed(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    root, output, *files = sys.argv[1:]
    rows, first, names = [], 0, collections.Counter()
    for file in files:
        source = Source(file, first)
        copy = source.copy((pathlib.Path(root) / file).read_text())
        write_if_changed(pathlib.Path(output) / file,
                         f'#include "conformance/selftest/points.h"\n#line 1 "{file}"\n' + copy if file.endswith(".cc") else
                         copy.replace("#pragma once\n", '#pragma once\n#include "conformance/selftest/points.h"\n#line 2 '
                                      f'"{file}"\n', 1))
        stem = os.path.splitext(os.path.basename(file))[0]
        for number, kind, line, text, code in source.points:
            # The name holds the text of the line and no number, so that it lasts when other lines change.
            key = f"{file}|{code}|{kind}|{text}"
            names[key] += 1
            digest = hashlib.sha1(f"{key}|{names[key]}".encode()).hexdigest()[:8]
            rows.append(f'ASSAY_POINT_ROW({number}, {kind}, "{stem}.{digest}", "{file}", {line}, R"__({text})__", R"__({code})__")')
        first = source.next
    write_if_changed(pathlib.Path(output) / "points.inc",
                     "// Made by conformance/selftest/instrument.py.\n" + "\n".join(rows) + f"\n#define ASSAY_POINT_COUNT {first}\n")


if __name__ == "__main__":
    main()
