#!/usr/bin/env python3
"""Draws NAME.svg from NAME.picture: boxes with text, arrows between their sides, and plain text.

    docs/pictures/draw.py            draws every picture anew
    docs/pictures/draw.py --check    exit 1 if a drawing is not that of its source

A picture is a file of lines; lengths are pixels from the upper left corner:

    size WIDTH HEIGHT
    frame X Y WIDTH HEIGHT | TITLE                   a dashed border round several boxes
    box NAME X Y WIDTH HEIGHT | TITLE | LINE | ...   what stands in `backquotes` has a fixed width
    arrow NAME.SIDE NAME.SIDE [X Y] [| LABEL]        SIDE: left, right, top, bottom, with an offset as in top+40 or right-10;
                                                     X Y: the middle of the label
    text X Y | TEXT
"""

import glob
import os
import re
import sys
from html import escape

HERE = os.path.dirname(os.path.abspath(__file__))
LINE_HEIGHT = 17
STYLE = """<style>
  text { font: 13px 'DejaVu Sans', Verdana, sans-serif; fill: #1f2328; }
  .title { font-weight: bold; font-size: 14px; }
  .code { font-family: 'DejaVu Sans Mono', Menlo, monospace; font-size: 12px; }
  .label { fill: #57606a; font-size: 12px; }
  .box { fill: #f6f8fa; stroke: #57606a; }
  .frame { fill: none; stroke: #8c959f; stroke-dasharray: 5 4; }
  .arrow { fill: none; stroke: #0969da; stroke-width: 1.5; marker-end: url(#head); }
</style>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
  <path d="M0,0 L8,4 L0,8 z" fill="#0969da"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>"""


def text(x, y, words, kind="", anchor="start"):
    """One line; a part in backquotes has a fixed width."""
    parts = [f'<tspan class="code">{escape(part, quote=False)}</tspan>' if odd % 2 else escape(part, quote=False)
             for odd, part in enumerate(words.split("`"))]
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{"".join(parts)}</text>'


def end_of(place, boxes):
    """The point that BOX.SIDE+OFFSET names."""
    name, side, offset = re.fullmatch(r"(\w+)\.(left|right|top|bottom)([+-]\d+)?", place).groups()
    x, y, width, height = boxes[name]
    offset = int(offset or 0)
    return {"left": (x, y + height // 2 + offset), "right": (x + width, y + height // 2 + offset),
            "top": (x + width // 2 + offset, y), "bottom": (x + width // 2 + offset, y + height)}[side]


def drawing(source):
    size, boxes, parts = None, {}, []
    for line in source.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        words, *texts = [part.strip() for part in line.split("|")]
        kind, *words = words.split()
        if kind == "size":
            size = tuple(map(int, words))
        elif kind == "frame":
            x, y, width, height = map(int, words)
            parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" class="frame"/>')
            parts += [text(x + 12, y + 20, each, "label") for each in texts]
        elif kind == "box":
            x, y, width, height = boxes[words[0]] = tuple(map(int, words[1:]))
            parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" class="box"/>')
            for row, each in enumerate(texts):
                parts.append(text(x + 12, y + 22 + row * LINE_HEIGHT, each, "title" if row == 0 else ""))
        elif kind == "arrow":
            (x1, y1), (x2, y2) = (end_of(place, boxes) for place in words[:2])
            parts.append(f'<path d="M{x1},{y1} L{x2},{y2}" class="arrow"/>')
            at = tuple(map(int, words[2:])) or ((x1 + x2) // 2, (y1 + y2) // 2 - 6)
            parts += [text(at[0], at[1] + row * 15, each, "label", "middle") for row, each in enumerate(texts)]
        elif kind == "text":
            parts += [text(int(words[0]), int(words[1]) + row * LINE_HEIGHT, each, "label") for row, each in enumerate(texts)]
        else:
            raise ValueError(f"'{kind}' is no part of a picture: expected size, frame, box, arrow or text")
    width, height = size
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    return "\n".join([head, STYLE, *parts, "</svg>", ""])


def main(arguments):
    stale = 0
    for path in sorted(glob.glob(os.path.join(HERE, "*.picture"))):
        with open(path, encoding="utf-8") as file:
            drawn = drawing(file.read())
        target = path[: -len("picture")] + "svg"
        if arguments == ["--check"]:
            kept = open(target, encoding="utf-8").read() if os.path.exists(target) else None
            if kept != drawn:
                stale += 1
                print(f"{os.path.basename(target)} is not the drawing of {os.path.basename(path)}: run docs/pictures/draw.py")
        else:
            with open(target, "w", encoding="utf-8") as file:
                file.write(drawn)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
