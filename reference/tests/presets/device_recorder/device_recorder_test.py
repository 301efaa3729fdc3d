#!/usr/bin/env python3
"""The recorder's files are Python, and te_fixture.py chooses the cases of two files of golden/. No GPU is needed."""

import fnmatch
import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parents[3] / "golden"


class Recorder(unittest.TestCase):
    def test_every_file_compiles(self):
        files = sorted(HERE.glob("*.py"))
        self.assertGreater(len(files), 10)
        for path in files:
            compile(path.read_text(), str(path), "exec")

    def test_every_module_of_its_own_that_is_imported_is_there(self):
        own = {path.stem for path in HERE.glob("*.py")}
        elsewhere = set(sys.stdlib_module_names) | {"adapters", "h5py", "numpy", "torch", "triton"}
        for path in HERE.glob("*.py"):
            for line in path.read_text().splitlines():
                if line.startswith(("import ", "from ")):
                    self.assertIn(line.split()[1].split(".")[0], own | elsewhere, f"{path.name}: {line}")

    def test_the_fixtures_hold_what_is_chosen(self):
        try:
            import h5py
        except ImportError:
            self.skipTest("no h5py")
        sys.path.insert(0, str(HERE))
        import te_fixture
        wheels = json.loads((HERE / "versions.json").read_text())["provenance"]["te.h5"]["wheels"]
        for fixture, (chosen, calls) in te_fixture.FIXTURES.items():
            with h5py.File(GOLDEN / fixture, "r") as file:
                names = []
                file.visititems(lambda name, node: names.append(name) if "op" in node.attrs else None)
                provenance = json.loads(file.attrs["provenance"])
            for name in names:
                self.assertTrue(any(fnmatch.fnmatchcase(name, pattern) for pattern in chosen), name)
            for pattern in chosen:
                self.assertTrue(fnmatch.filter(names, pattern), pattern)
            self.assertEqual(provenance["calls"], calls)
            self.assertEqual(provenance["wheels"], wheels)


if __name__ == "__main__":
    unittest.main()
