#!/usr/bin/env python3
"""report.html in a real browser: at the widths of a phone and of a desk, dark and light. Without Chromium the test says so and is skipped.

    report_browser_test.py --program BUILD/bin/assay --faulty FILE [--pictures FOLDER]
"""

import argparse
import os
import re
import struct
import sys
import unittest
import zlib

import browser
import report_runs

program = pictures = window = None
WIDTHS = (390, 1280)

# Contrast by WCAG 2: of each visible text that lies directly in an element, with the first opaque background below it.
CONTRAST = """(() => {
  const channel = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); };
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = c => 0.2126 * channel(c[0]) + 0.7152 * channel(c[1]) + 0.0722 * channel(c[2]);
  let worst = [99, ''];
  for (const each of document.querySelectorAll('body *')) {
    if (each.closest('svg') || !each.checkVisibility()) continue;
    if (![...each.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
    let below = each, back = null;
    for (; below; below = below.parentElement) {
      const c = parts(getComputedStyle(below).backgroundColor);
      if (c.length === 3 || c[3] === 1) { back = c; break; }
    }
    if (!back) back = parts(getComputedStyle(document.body).backgroundColor);
    const a = light(parts(getComputedStyle(each).color)), b = light(back);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < worst[0]) worst = [ratio, each.tagName + '.' + each.className + ': ' + each.textContent.slice(0, 40)];
  }
  return worst;
})()"""


def pixels(png):
    """Width, height and the set of colours of a PNG of 8 bits a channel without interlace."""
    width, height, depth, kind = struct.unpack(">IIBB", png[16:26])
    assert depth == 8 and kind in (2, 6), (depth, kind)
    data, at = b"", 8
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at:at + 8])
        if name == b"IDAT":
            data += png[at + 8:at + 8 + length]
        at += 12 + length
    raw, size = zlib.decompress(data), 3 if kind == 2 else 4
    return width, height, len(raw) == height * (1 + width * size), len(set(raw))


class InABrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        program.run("failures.jsonl", "turned=rowwise_scale_inv")
        program.run("scales.jsonl", "scales=3", "grouped_gemm")
        program.run("absent.jsonl", "absent=swizzle")
        for name in ("failures", "scales", "absent"):
            program.assay("report", program.path(name + ".jsonl"), "--out", program.path(name))

    def page(self, name):
        return os.path.join(program.path(name), "report.html")

    def test_it_reads_well_everywhere(self):
        grounds = {}
        for name in ("failures", "scales", "absent"):
            for width in WIDTHS:
                for dark in (False, True):
                    window.show(self.page(name), width, 1400, dark)
                    what = f"{name}, {width} wide, {'dark' if dark else 'light'}"
                    self.assertLessEqual(window.value("document.documentElement.scrollWidth"), width, what + ": it is wider than the window")
                    requests = [each["params"]["request"]["url"] for each in window.events
                                if each.get("method") == "Network.requestWillBeSent"]
                    self.assertEqual(requests, ["file://" + self.page(name)], what)
                    complaints = [each for each in window.events if each.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown")]
                    self.assertEqual(complaints, [], what)
                    ratio, where = window.value(CONTRAST)
                    self.assertGreaterEqual(ratio, 4.5, f"{what}: {where}")
                    colour = window.value("getComputedStyle(document.body).backgroundColor")
                    grounds.setdefault(dark, set()).add(colour)
                    png = window.picture(os.path.join(pictures, f"{name}_{width}_{'dark' if dark else 'light'}.png"))
                    seen = pixels(png)
                    self.assertEqual(seen[:3], (width, 1400, True), what)
                    self.assertGreater(seen[3], 20, what + ": the picture is nearly empty")
        self.assertEqual({dark: len(each) for dark, each in grounds.items()}, {False: 1, True: 1})
        self.assertTrue(grounds[False].isdisjoint(grounds[True]), "dark and light have one ground")

    def test_pictures_and_links(self):
        cases = report_runs.cases_of(program.path("failures.jsonl"))
        failed = [each for each in cases.values() if each["verdict"] == "failed"]
        window.show(self.page("failures"), 1280, 900, False)
        self.assertEqual(window.value("document.querySelectorAll('details.failure').length"), len(failed))
        # Unfolded, each map is as large as its cells, and drawn in one of the colours of wrong cells.
        window.value("document.querySelectorAll('details').forEach(each => each.open = true)")
        self.assertEqual(window.value("[...document.querySelectorAll('figure svg')].filter(e => e.getBoundingClientRect().width < 4).length"), 0)
        wrong = window.value("getComputedStyle(document.querySelector('.map rect[class^=w]')).fill")
        ground = window.value("getComputedStyle(document.querySelector('.map .ground')).fill")
        self.assertTrue(re.match(r"rgb\(", wrong))
        self.assertNotEqual(wrong, ground)
        drawn = window.value("""[...document.querySelectorAll('figure.map svg')].map(e => [...e.querySelectorAll('rect[class^=w]')].reduce(
          (sum, r) => sum + r.width.baseVal.value * r.height.baseVal.value, 0) / (e.width.baseVal.value * e.height.baseVal.value))""")
        expected = []  # the share of cells with wrong elements, from the result file, in the order of the page
        for each in sorted(failed, key=lambda e: (e["op"], e["recipe"], e["suite"], report_runs.title_of(e))):
            for finding in each["findings"]:
                for a_map in finding.get("maps", []):
                    cells = "".join(a_map["wrong"])
                    expected.append(sum(letter != "." for letter in cells) / len(cells))
        self.assertEqual(len(drawn), len(expected))
        for seen, share in zip(drawn, expected):
            self.assertAlmostEqual(seen, share, places=6)
        # A cell of the matrix leads to its failures.
        target = window.value("document.querySelector('.matrix a.failed').getAttribute('href')")
        window.value("document.querySelector('.matrix a.failed').click()")
        self.assertTrue(window.value(f"document.querySelector('{target}').getBoundingClientRect().top < 300"))

    def test_names_for_those_who_do_not_see(self):
        window.show(self.page("failures"), 1280, 900, False)
        self.assertEqual(window.value("document.documentElement.lang"), "en")
        self.assertEqual(window.value("document.querySelectorAll('h1').length"), 1)
        self.assertEqual(window.value("[...document.querySelectorAll('figure svg')].filter(e => !e.querySelector('title')).length"), 0)
        self.assertEqual(window.value("[...document.querySelectorAll('th')].filter(e => !e.scope).length"), 0)
        levels = window.value("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
        self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])), "a level of headings is skipped")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True)
    parser.add_argument("--faulty", required=True)
    parser.add_argument("--pictures", help="keep the screenshots in this folder")
    known, rest = parser.parse_known_args()
    if browser.chromium() is None:
        print("skipped: no Chromium here (Debian's package chromium)")
        sys.exit(77)
    program = report_runs.Program(known.program, known.faulty)
    pictures = known.pictures or program.path("pictures")
    os.makedirs(pictures, exist_ok=True)
    try:
        window = browser.Browser(browser.chromium())
    except (OSError, RuntimeError) as error:
        print(f"skipped: {browser.chromium()} does not start here: {error}")
        sys.exit(77)
    done = unittest.main(argv=[sys.argv[0], *rest], exit=False)
    window.close()
    sys.exit(not done.result.wasSuccessful())
