#include "conformance/report/judgement_json.h"

#include <stdexcept>

#include <nlohmann/json.hpp>

namespace assay::conformance {

using nlohmann::json;

std::optional<Verdict> verdict_named(std::string_view name) {
  for (const Verdict each : {Verdict::passed, Verdict::failed, Verdict::flaky, Verdict::not_run, Verdict::unproven_skip,
                             Verdict::unfinished, Verdict::not_tried, Verdict::machine_failed}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

std::optional<CheckBasis> basis_named(std::string_view name) {
  for (const CheckBasis each : {CheckBasis::bits, CheckBasis::order_free_bits, CheckBasis::bound}) {
    if (name == name_of(each)) return each;
  }
  return std::nullopt;
}

std::optional<Predicted> predicted_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Predicted::computed_wrong); ++i) {
    if (name == name_of(static_cast<Predicted>(i))) return static_cast<Predicted>(i);
  }
  return std::nullopt;
}

json to_json(const Finding& finding) {
  json entry{{"kind", finding.kind}};
  if (!finding.when.empty()) entry["when"] = finding.when;
  if (!finding.text.empty()) entry["text"] = finding.text;
  if (finding.element < 0) return entry;
  json got{{"value", finding.got}}, want{{"value", finding.want}};
  if (!finding.got_hex.empty()) got["hex"] = finding.got_hex;
  if (!finding.want_hex.empty()) want["hex"] = finding.want_hex;
  entry["output"] = finding.output;
  entry["compared"] = finding.compared;
  entry["wrong"] = finding.wrong;
  entry["first"] = {{"element", finding.element}, {"place", finding.place}, {"got", std::move(got)}, {"want", std::move(want)}};
  if (!finding.where.empty()) entry["where"] = finding.where;
  if (!finding.hints.empty()) entry["hints"] = finding.hints;
  if (!finding.digest.empty()) entry["digest"] = finding.digest;
  if (finding.ulp.total() > 0) {
    entry["ulp"] = {{"buckets", finding.ulp.buckets}, {"zero_sign", finding.ulp.zero_sign}, {"special", finding.ulp.special}};
  }
  for (const WrongMap& map : finding.maps) {
    entry["maps"].push_back({{"group", map.group},
                             {"shape", {map.rows, map.columns}},
                             {"cell", {map.cell_rows, map.cell_columns}},
                             {"wrong", map.cells}});
  }
  return entry;
}

namespace {

WrongMap map_from(const json& entry) {
  const json &shape = entry.at("shape"), &cell = entry.at("cell");
  return {entry.at("group"), shape.at(0), shape.at(1), cell.at(0), cell.at(1), entry.at("wrong").get<std::vector<std::string>>()};
}

Finding finding_from(const json& entry) {
  Finding finding;
  finding.kind = entry.at("kind");
  finding.when = entry.value("when", "");
  finding.text = entry.value("text", "");
  if (!entry.contains("first")) return finding;
  const json& first = entry.at("first");
  finding.output = entry.at("output");
  finding.compared = entry.at("compared");
  finding.wrong = entry.at("wrong");
  finding.element = first.at("element");
  finding.place = first.at("place");
  finding.got = first.at("got").at("value");
  finding.got_hex = first.at("got").value("hex", "");
  finding.want = first.at("want").at("value");
  finding.want_hex = first.at("want").value("hex", "");
  finding.where = entry.value("where", "");
  finding.hints = entry.value("hints", std::vector<std::string>{});
  finding.digest = entry.value("digest", "");
  if (entry.contains("ulp")) {
    const json& ulp = entry.at("ulp");
    finding.ulp = {ulp.at("buckets").get<std::vector<std::int64_t>>(), ulp.at("zero_sign"), ulp.at("special")};
  }
  if (entry.contains("maps")) {
    for (const json& each : entry.at("maps")) finding.maps.push_back(map_from(each));
  }
  return finding;
}

}  // namespace

json to_json(const Judgement& judgement) {
  json entry{{"verdict", name_of(judgement.verdict)},
             {"elements", judgement.elements},
             {"words", judgement.elements},
             {"seconds", judgement.seconds}};
  if (judgement.verdict == Verdict::passed || judgement.elements > 0) entry["ground"] = name_of(judgement.basis);
  if (judgement.elements_bounded > 0) entry["bounded"] = judgement.elements_bounded;
  if (judgement.elements_unbounded > 0) entry["unbounded"] = judgement.elements_unbounded;
  if (!judgement.expected_by.empty()) entry["expected_by"] = judgement.expected_by;
  if (!judgement.way.empty()) entry["way"] = judgement.way;
  if (judgement.predicted != Predicted::not_asked) entry["predicted"] = name_of(judgement.predicted);
  if (!judgement.details.empty()) entry["details"] = judgement.details;
  if (!judgement.plan.empty()) entry["plan"] = judgement.plan;
  if (!judgement.unit.empty()) entry["unit"] = judgement.unit;
  if (!judgement.text.empty()) entry["text"] = judgement.text;
  for (const Finding& each : judgement.findings) entry["findings"].push_back(to_json(each));
  return entry;
}

Judgement judgement_from(const json& entry) {
  Judgement judgement;
  const std::string verdict = entry.at("verdict"), basis = entry.value("ground", "bits");
  if (!verdict_named(verdict)) throw std::runtime_error("verdict is '" + verdict + "': expected passed, failed, not run, ...");
  if (!basis_named(basis)) throw std::runtime_error("ground is '" + basis + "': expected bits, order-free bits or bound");
  judgement.verdict = *verdict_named(verdict);
  judgement.basis = *basis_named(basis);
  judgement.elements = entry.contains("elements") ? entry.at("elements") : entry.at("words");  // the former name
  judgement.elements_bounded = entry.value("bounded", std::int64_t{0});
  judgement.elements_unbounded = entry.value("unbounded", std::int64_t{0});
  judgement.elements_exact = judgement.elements - judgement.elements_bounded;
  judgement.seconds = entry.at("seconds");
  judgement.expected_by = entry.value("expected_by", "");
  judgement.details = entry.value("details", std::vector<std::string>{});
  judgement.plan = entry.value("plan", "");
  judgement.way = entry.value("way", "");
  judgement.predicted = predicted_named(entry.value("predicted", "")).value_or(Predicted::not_asked);
  judgement.unit = entry.value("unit", "");
  judgement.text = entry.value("text", "");
  if (entry.contains("findings")) {
    for (const json& each : entry.at("findings")) judgement.findings.push_back(finding_from(each));
  }
  return judgement;
}

std::string line_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace assay::conformance
