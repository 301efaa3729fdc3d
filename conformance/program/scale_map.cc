// assay scale-map CASE: which scale each tile of a product really used.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "conformance/diagnose/scale_map/scale_map.h"
#include "conformance/program/backend_options.h"
#include "conformance/program/verbs.h"
#include "conformance/report/run_header.h"
#include "conformance/suites/parallel_judging.h"
#include "conformance/suites/progress.h"
#include "conformance/support/interrupt.h"
#include "conformance/support/standard_output.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kMaxReads = 1'000'000;  // written to a file

nlohmann::json to_json(const ScaleRead& read) {
  if (read.kind == ScaleRead::Kind::place) return read.place;
  return fmt::format("{} 0x{:08x} at [{},{}]", read.kind == ScaleRead::Kind::several ? "several" : "nothing", read.bits, read.row,
                     read.column);
}

// `left` reads may still be written.
nlohmann::json to_json(const ScaleSide& side, std::int64_t& left) {
  const ScaleArray& array = side.array;
  nlohmann::json pieces = nlohmann::json::array();
  bool cut = false;
  for (const ScalePiece& piece : side.pieces) {
    cut = left < static_cast<std::int64_t>(piece.reads.size());
    if (cut) break;
    left -= static_cast<std::int64_t>(piece.reads.size());
    nlohmann::json reads = nlohmann::json::array();
    for (const ScaleRead& read : piece.reads) reads.push_back(to_json(read));
    pieces.push_back({{"group", piece.group},
                      {"tile", {piece.tile_row, piece.tile_column}},
                      {"number_by_rows", piece.by_rows},
                      {"number_by_columns", piece.by_columns},
                      {"rows", {piece.row, piece.row + piece.rows}},
                      {"columns", {piece.column, piece.column + piece.columns}},
                      {"wanted", piece.wanted},
                      {"read", std::move(reads)}});
  }
  return {{"operand", array.operand},
          {"tensor", array.tensor},
          {"block", fmt::format("{}x128", array.line_block)},
          {"supplies", array.of_columns ? "columns" : "rows"},
          {"scales", array.elements()},
          {"calls", side.calls},
          {"planned_calls", side.planned},
          {"tiles", side.tiles},
          {"wrong_tiles", side.wrong_tiles},
          {"pairs", side.pairs},
          {"wrong_pairs", side.wrong_pairs},
          {"read",
           {{"another_scale", side.others},
            {"padding", side.padding},
            {"outside", side.outside},
            {"nothing", side.nothing},
            {"several", side.several}}},
          {"wrong_pieces", side.pieces.size()},
          {"pieces_cut", cut},
          {"pieces", std::move(pieces)}};
}

nlohmann::json to_json(const ScaleMap& map) {
  std::int64_t left = kMaxReads;
  nlohmann::json sides = nlohmann::json::array();
  for (const ScaleSide& side : map.sides) sides.push_back(to_json(side, left));
  return sides;
}

std::string text_of(const ScaleMap& map) {
  std::string text;
  for (const ScaleSide& side : map.sides) text += text_of(side);
  if (!map.trouble.empty()) text += (map.verdict == Verdict::not_run ? "" : "call    ") + map.trouble + "\n";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace

Action add_scale_map(cli::App& verb) {
  struct Options {
    std::vector<std::string> words;
    BackendChoice backend;
    std::string operand, json;
    bool quiet = false;
  };
  const auto options = std::make_shared<Options>();
  verb.add_option("CASE", options->words,
                  "A line of grouped_gemm kind=fp8_block d_type=f32, quoted or not; its data and scales do not matter")
      ->required();
  add_judge_options(verb, options->backend);
  verb.remove_option(verb.get_option("--expect-by"));  // nothing is expected
  verb.add_option("--operand", options->operand, "Look at the scales of this operand alone: x, w or dy; else at those of both");
  verb.add_option("--json", options->json, "Write the whole map to this file: for each wrong piece, what it read in every block");
  verb.add_flag("--quiet", options->quiet, "No progress");
  verb.footer(
      "One call for each block of the contraction and each operand: the codes are 1 within that block and the operand's scales\n"
      "encode their own places, so that D shows which scale each element used. Memory before and behind the scales encodes its "
      "place too.");
  return [options] {
    std::string words;
    for (const std::string& word : options->words) words += (words.empty() ? "" : " ") + word;
    const CaseLine line = parse_case_line(words);
    ScaleMapOptions asked;
    asked.operand = options->operand;
    asked.algorithm = options->backend.algorithm;
    asked.timeout_ms = options->backend.timeout_s * 1000;
    asked.interrupted = interrupted;
    if (!options->json.empty()) check_output(options->json);
    const std::int64_t calls = scale_map_calls(line, asked);  // checks the line before a device is opened
    std::unique_ptr<Backend> backend = options->backend.open();
    const TestedBackend tested = tested_backend_of(*backend, options->backend);
    Report report("scale-map", tested, 1);
    say("{}\n", to_text(line));
    std::fflush(stdout);
    ScaleMap map;
    {
      Progress progress("calls", calls, !options->quiet);
      asked.called = [&](const std::string& what) { progress.done(what, false); };
      try {
        map = map_scales(*backend, line, asked);
        backend->settle();
      } catch (const BackendFault& fault) {
        JudgeOptions none;
        none.title = to_text(line);
        const Judgement judgement = judgement_of(fault, {*backend}, none);
        map.verdict = judgement.verdict;
        map.trouble = fault.what();
      }
    }
    if (interrupted()) report.note_interrupted();
    CaseReport case_report{"generated", name_of(line), to_text(line), line.op, line.text("kind"), {}};
    case_report.judgement.verdict = map.verdict;
    case_report.judgement.text = text_of(map);
    case_report.judgement.elements = map.elements;
    if (map.verdict == Verdict::passed) {
      say("{}\n\n", case_report.judgement.text);
      case_report.judgement.text.clear();
    }
    report.add(std::move(case_report));
    keep_open(options->backend, std::move(backend));
    close_backends(report);
    if (!options->json.empty()) {
      nlohmann::json header = run_header("scale-map", tested, options->backend, nullptr);
      header["scale_map"] = to_json(map);
      report.set_header(header);
    }
    report.conclude(options->json);
    return report.exit_code();
  };
}

}  // namespace assay::conformance
