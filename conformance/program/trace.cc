// assay trace LINE --element G,R,C: one element, step by step.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "conformance/diagnose/trace/trace.h"
#include "conformance/generate/generator.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/failed_call.h"
#include "conformance/program/verbs.h"
#include "conformance/report/output_file.h"
#include "conformance/support/standard_output.h"
#include "reference/gemm/plan.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

// "1,5,60"; a leading part may be left out where there is one group, or one row.
TracedElement element_of(const std::string& text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  while (numbers.size() < 4) {
    std::int64_t value = -1;
    const auto parsed = std::from_chars(at, end, value);
    if (parsed.ec != std::errc() || value < 0) break;
    numbers.push_back(value);
    at = parsed.ptr;
    if (at == end || *at != ',') break;
    ++at;
  }
  require(numbers.size() == 3 && at == end, "--element", "'" + text + "'", "GROUP,ROW,COLUMN, three numbers from 0");
  return {"", numbers[0], numbers[1], numbers[2]};
}

void print(const Trace& trace) {
  std::size_t width = 0, values = 8;
  bool has_got = false;
  for (const TraceLine& line : trace.lines) {
    if (!line.expected.empty()) width = std::max(width, line.what.size());
    values = std::max(values, line.expected.size());
    has_got = has_got || !line.got.empty();
  }
  say("{}\n", trace.output);
  if (has_got) say("  {:<{}}  {:<{}}  got\n", "", width, "expected", values);
  for (const TraceLine& line : trace.lines) {
    if (line.expected.empty()) {
      say("  {}\n", line.what);
    } else if (line.got.empty()) {
      say("  {:<{}}  {}\n", line.what, width, line.expected);
    } else {
      say("  {:<{}}  {:<{}}  {}{}\n", line.what, width, line.expected, values, line.got,
          line.got == line.expected ? "" : "  differs");
    }
  }
}

nlohmann::json to_json(const Trace& trace, const std::string& line) {
  nlohmann::json lines = nlohmann::json::array();
  for (const TraceLine& each : trace.lines) {
    nlohmann::json entry{{"what", each.what}};
    if (!each.expected.empty()) entry["expected"] = each.expected;
    if (!each.got.empty()) entry["got"] = each.got;
    lines.push_back(std::move(entry));
  }
  return {{"line", line}, {"element", trace.output}, {"lines", std::move(lines)}};
}

}  // namespace

Action add_trace(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    std::string element, output, got, plan, json;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("LINE", options->words, "A case line, quoted or not; with --got it may be left out");
  verb.add_option("--element", options->element, "GROUP,ROW,COLUMN of the output, as the 'first' of a failure counts them")
      ->required();
  verb.add_option("--output", options->output, "Output whose element is traced; else the product, or the first output");
  verb.add_option("--got", options->got, "A file of --save-got: its call is traced, and what it gave is shown beside");
  verb.add_option("--plan", options->plan, "Accumulation plan of the product, by name or as a line, in place of the call's own");
  add_table_options(verb);
  verb.add_option("--json", options->json, "Write the lines to this file too");
  verb.footer(
      "Products: every step of the unit, with the largest of its products, every promotion, and what the epilogue reads.\n"
      "Quantization: the block and its amax, the scale, the product, the code and what it stands for. Each value by the\n"
      "scalar layer of the reference, in hex and as a number.");
  return [options] {
    const TracedElement parsed = element_of(options->element);
    if (!options->json.empty()) check_output(options->json);
    FailureBundle failure = options->got.empty() ? unjudged(options->words) : read_bundle(options->got);
    if (!options->got.empty() && !options->words.empty()) check_same_line(failure, options->words, options->got);
    Case& call = failure.kept.call;
    if (!options->plan.empty()) {
      require(find_accumulation_plan(options->plan) != nullptr, "--plan", options->plan,
              "the name or the line of an accumulation plan (assay list --plans)");
      call.attributes["plan"] = options->plan;
    }
    TracedElement at = parsed;
    at.output = options->output;
    const Trace trace = trace_element(call, at);
    say("{}\n", failure.line);
    print(trace);
    if (!options->json.empty()) write_json(options->json, to_json(trace, failure.line));
    return ExitCode::passed;
  };
}

}  // namespace assay::conformance
