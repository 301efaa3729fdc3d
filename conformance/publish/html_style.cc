// The style of report.html, beside that of all pages.

#include "conformance/publish/html_parts.h"

namespace assay::conformance {

std::string_view report_style() {
  return R"(:root { --passed: #1a7f37; --waived: #7a5c00; --absent: #8c959f; --flaky: #8250df; --bad-box: #ffebe9; --good-box: #dafbe1;
  --warm-box: #fff8c5; --hint: #fff3b0; }
@media (prefers-color-scheme: dark) {
  :root { --passed: #3fb950; --waived: #d9a927; --absent: #6e7681; --flaky: #bc8cff; --bad-box: #3c1618; --good-box: #12261a;
    --warm-box: #2b240c; --hint: #4a3c00; }
}
header { border-bottom: 1px solid var(--line); padding-bottom: 0.5rem; }
header h1 { margin: 0.25rem 0 0.75rem; font-size: 1.7rem; line-height: 1.2; }
header h1.good { color: var(--passed); } header h1.bad { color: var(--failed); }
.kind { margin: 0; color: var(--quiet); letter-spacing: 0.02em; } .judged { margin: 0.1rem 0; }
.bar-of-counts { display: flex; height: 0.9rem; margin: 1rem 0 0.5rem; border-radius: 0.45rem; overflow: hidden; background: var(--box); gap: 2px; }
.bar-of-counts span { min-width: 3px; }
.counts, nav ul { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin: 0; padding: 0; list-style: none; }
.key { display: inline-block; width: 0.7rem; height: 0.7rem; margin-right: 0.35rem; border-radius: 0.15rem; }
.is-passed { background: var(--passed); } .is-failed { background: var(--failed); } .is-flaky { background: var(--flaky); }
.is-other { background: var(--link); } .is-waived { background: var(--waived); } .is-absent { background: var(--absent); }
nav { position: sticky; top: 0; z-index: 1; padding: 0.6rem 0; background: var(--page); border-bottom: 1px solid var(--line); }
section { scroll-margin-top: 3.5rem; } h3 { scroll-margin-top: 3.5rem; }
code, pre { font-family: ui-monospace, "DejaVu Sans Mono", monospace; } code { font-size: 0.88em; }
.failure { margin: 0.6rem 0; border: 1px solid var(--line); border-left: 4px solid var(--failed); border-radius: 0.3rem; padding: 0.5rem 0.8rem; }
.failure > summary small { margin: 0.15rem 0 0 1.1rem; }
.failure[open] > summary { margin-bottom: 0.5rem; }
.failure details { margin-left: 0; }
.verdict { color: var(--failed); font-weight: 600; }
.finding { border-top: 1px solid var(--line); padding-top: 0.5rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0.15rem 1rem; margin: 0.3rem 0; }
dt { color: var(--quiet); } dd { margin: 0; }
mark { color: inherit; background: var(--hint); padding: 0 0.2rem; border-radius: 0.2rem; }
.pictures { display: flex; flex-wrap: wrap; align-items: flex-start; gap: 1rem 1.5rem; margin: 0.6rem 0; }
figure { margin: 0; max-width: 100%; } figure svg { display: block; max-width: 100%; height: auto; }
figcaption { margin-top: 0.25rem; color: var(--quiet); font-size: 0.8rem; }
.map .ground { fill: var(--box); stroke: var(--line); } .map .grid { stroke: var(--page); stroke-width: 0.75; opacity: 0.6; }
)"
         R"(.map [class^=w] { fill: var(--failed); }
.w1 { opacity: 0.3; } .w2 { opacity: 0.38; } .w3 { opacity: 0.46; } .w4 { opacity: 0.54; } .w5 { opacity: 0.62; } .w6 { opacity: 0.7; }
.w7 { opacity: 0.8; } .w8 { opacity: 0.9; } .w9 { opacity: 1; }
.ulp text { fill: var(--text); font-size: 11.5px; } .ulp .label { fill: var(--quiet); text-anchor: end; } .ulp .bar { fill: var(--link); }
.matrix th small { display: block; } .matrix .big { font-size: 1.05rem; font-variant-numeric: tabular-nums; }
.matrix td.cell a { display: block; font-size: 0.85rem; }
.passes { background: var(--good-box); } .fails { background: var(--bad-box); } .waives { background: var(--warm-box); }
.absents { color: var(--quiet); }
div.scroll .matrix td { min-width: 5.5rem; } div.scroll .matrix th[scope=row] { min-width: 8.5rem; }
.of th { text-align: left; }
td.number { font-variant-numeric: tabular-nums; } td.time { width: 9rem; font-variant-numeric: tabular-nums; }
.length { display: block; height: 0.3rem; margin-top: 0.2rem; border-radius: 0.15rem; background: var(--link); }
.facts { margin-bottom: 1rem; } td.date { white-space: nowrap; } footer { margin: 2.5rem 0 1rem; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
@media (max-width: 48rem) {
  header h1 { font-size: 1.35rem; }
  dl { grid-template-columns: 4.5rem minmax(0, 1fr); gap: 0.15rem 0.6rem; }
  .wide td.number, td.time { width: auto; text-align: left; } .matrix td.cell { border-top: 0; }
  .failure { padding: 0.5rem; } .wide td:empty { display: none; }
  .wide.matrix tr { display: flex; flex-wrap: wrap; gap: 0.25rem; margin-bottom: 0.75rem; }
  .wide.matrix th { width: 100%; } .wide.matrix th small { display: inline; margin-left: 0.5rem; }
  .wide.matrix td.cell { min-width: 0; padding: 0.15rem 0.5rem; border: 1px solid var(--line); border-radius: 0.3rem; }
  .wide.matrix td.cell::before, .wide.matrix td.cell small, .wide.matrix td.cell a { display: inline; margin-right: 0.4rem; }
}
@media print { nav { position: static; } details.failure { break-inside: avoid; } }
)";
}

}  // namespace assay::conformance
