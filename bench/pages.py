#!/usr/bin/env python3
"""Tables of the pages that show measured figures, made from bench/results.

  bench/pages.py                says which table of a page is not what the files give
  bench/pages.py --write        puts into all pages what they give
  bench/pages.py --list         the tables, and the page of each

A page has the place of a table between two lines:

  <!-- table of bench/pages.py: NAME -->
  <!-- end of table -->

Exit codes: 0; 1 a table is not what the files give; 2 wrong usage, a page names a table that there is not, a table stands in no
page, or a file lacks a figure.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from figures import BadFile  # noqa: E402
from page_results import Results  # noqa: E402
from page_tables import TABLES  # noqa: E402

BEGIN = re.compile(r"^<!-- table of bench/pages\.py: (?P<name>.*) -->\r?\n", re.M)
END = re.compile(r"^<!-- end of table -->", re.M)


def pages(root: pathlib.Path) -> list[pathlib.Path]:
    found = []

    def unreadable(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(root, onerror=unreadable):
        folders[:] = sorted(each for each in folders if not each.startswith((".", "build")))
        found += [path for path in (pathlib.Path(folder, name) for name in sorted(names)) if path.suffix == ".md" and path.is_file() and not path.is_symlink()]
    return found


def text_of(path: pathlib.Path) -> str:
    with open(path, encoding="utf-8", newline="") as file:  # the ends of lines stay
        return file.read()


class Pages:
    """The pages with tables below `root`, and what the files in `root`/bench/results give for each.

    Raises:
        BadFile: as the exit code 2 says.
    """

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root
        self.place: dict[str, str] = {}  # the page of each table
        self.texts: dict[pathlib.Path, tuple[str, str]] = {}  # as it is and as it should be
        self.wrong: list[str] = []  # lines about tables
        results = Results(root / "bench" / "results")
        for path in pages(root):
            try:
                text = text_of(path)
            except ValueError as error:
                raise BadFile(f"{path.relative_to(root)}: {error}") from error
            self._read(path, text, results)
        absent = sorted(set(TABLES) - set(self.place))
        if absent:
            raise BadFile(f"no page has the table {', '.join(absent)}")

    def _read(self, path: pathlib.Path, text: str, results: Results) -> None:
        page = path.relative_to(self.root).as_posix()
        places = list(BEGIN.finditer(text))
        made, at = "", 0  # the page as it should be, up to `at` of `text`
        for place, next_place in zip(places, [*places[1:], None]):
            end = END.search(text, place.end(), next_place.start() if next_place else len(text))
            table = self._table(page, place["name"], results)
            if end is None:
                raise BadFile(f"{page}: the table {place['name']} has no line <!-- end of table -->")
            if table != text[place.end():end.start()]:
                self.wrong.append(f"{page}: the table {place['name']} is not what bench/results gives")
            made, at = made + text[at:place.end()] + table, end.start()
        if places:
            self.texts[path] = text, made + text[at:]

    def _table(self, page: str, name: str, results: Results) -> str:
        if name not in TABLES:
            raise BadFile(f"{page}: there is no table {name}; there are {', '.join(TABLES)}")
        if name in self.place:
            raise BadFile(f"{page}: the table {name} stands in {self.place[name]} as well")
        self.place[name] = page
        return TABLES[name](results) + "\n"

    def write(self) -> None:
        """All pages or none: each is complete beside its place before the first one moves there.

        Raises:
            OSError: a page cannot be written.
        """
        changed = {path: after for path, (before, after) in self.texts.items() if before != after}
        beside = {path: path.with_name(f".{path.name}.new") for path in changed}
        try:
            for path, new in beside.items():
                with open(new, "w", encoding="utf-8", newline="") as file:
                    file.write(changed[path])
                shutil.copymode(path, new)
            for path, new in beside.items():
                os.replace(new, path)
        finally:
            for new in beside.values():
                new.unlink(missing_ok=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--write", action="store_true", help="put into all pages what the files give")
    what.add_argument("--list", action="store_true", help="print the tables and their pages")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1], help="of the project")
    arguments = parser.parse_args()
    try:
        read = Pages(arguments.root)
        if arguments.write:
            read.write()
    except (BadFile, OSError) as error:
        print(f"pages.py: {error}", file=sys.stderr)
        return 2
    if arguments.list:
        for name, page in read.place.items():
            print(f"{name}: {page}")
    elif read.wrong and not arguments.write:
        for line in read.wrong:
            print(line)
        print("bench/pages.py --write makes them anew")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
