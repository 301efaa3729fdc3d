#include "conformance/report/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/run_header.h"
#include "conformance/report/version.h"
#include "conformance/worker/row_files.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"
#include "golden/io/text_file.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

constexpr std::int64_t kLargestPredictions = std::int64_t{4} << 30;

json digests_of_rows(const worker::RowTable& kind) {
  json digests = json::array();
  for (const std::string& file : worker::row_files(kind)) digests.push_back(golden::sha256_hex_of_file(file));
  return digests;
}

bool is_digest(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string digest_from(const json& value) {
  const std::string text = value.get<std::string>();
  if (!is_digest(text)) throw std::runtime_error("'" + text + "' is not a digest: expected 64 digits 0-9, a-f");
  return text;
}

PredictedOutputs outputs_from(const json& entry) {
  PredictedOutputs outputs;
  outputs.elements = entry.at("elements");
  for (const auto& [name, value] : entry.at("outputs").items()) {
    const bool two = value.is_array();
    if (two && value.size() != 2)
      throw std::runtime_error(fmt::format("output {} has {} digests: expected 1 or 2", name, value.size()));
    outputs.digests[name] = {digest_from(two ? value[0] : value), digest_from(two ? value[1] : value)};
  }
  return outputs;
}

PredictedCall call_from(const json& entry) {
  return {entry.at("step"), entry.value("order_free", false), entry.value("plan", ""), entry.at("zero_sign"),
          entry.value("linked", "")};
}

std::string call_text(const PredictedCall& call) {
  std::string text;
  if (call.step > 0) text += fmt::format(", replay {}", call.step + 1);
  if (!call.plan.empty()) text += ", plan " + call.plan;
  return text;
}

// Calls `take(number, record)` for each whole line whose digest is right. Returns why the rest of the file cannot be used, "line 17: was
// changed"; empty: all of it can.
std::pair<std::string, std::string> each_record(const std::string& path, const std::string& text,
                                                const std::function<void(std::size_t, json)>& take) {
  std::string chain;
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string place = fmt::format("line {}", ++number);
    if (end == std::string::npos) return {place, "was cut off"};
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::optional<ChainedLine> parts = split_chained(line);
    if (!parts) return {place, number == 1 ? "is not a header of a file of predictions" : "has no digest"};
    if (parts->chain != chain_of(chain, parts->body))
      return {place, "was changed, or a line before it was removed, added or moved: its digest is another"};
    chain = parts->chain;
    json record = json::parse(parts->body, nullptr, false);
    if (!record.is_object()) return {place, "is not a record"};
    try {
      take(number, std::move(record));
    } catch (const golden::FixtureError&) {
      throw;
    } catch (const std::exception& error) {
      throw golden::FixtureError(path, place, std::string("is not a record of a file of predictions: ") + error.what());
    }
  }
  return {};
}

// Members that are shown where they differ.
std::string difference_of(const json& there, const json& here, std::initializer_list<const char*> members) {
  for (const char* member : members) {
    const json one = there.value(member, json()), other = here.value(member, json());
    if (one != other) return fmt::format("{}: {} there, {} here", member, line_of(one), line_of(other));
  }
  return "";
}

}  // namespace

std::string_view name_of(Layer layer) { return layer == Layer::scalar ? "scalar" : "fast"; }

json predictor_of(Layer layer) {
  return {{"predictions", kPredictionsFormat},
          {"assay", kVersion},
          {"commit", build_commit()},
          {"layer", name_of(layer)},
          {"units", digests_of_rows(worker::kUnitRows)},
          {"presets", digests_of_rows(worker::kPresetRows)}};
}

json to_json(const std::string& line, const PredictedCall& call, const PredictedOutputs& outputs) {
  json entry{{"record", "prediction"},
             {"case", line},
             {"step", call.step},
             {"zero_sign", call.zero_sign},
             {"elements", outputs.elements}};
  if (call.order_free) entry["order_free"] = true;
  if (!call.plan.empty()) entry["plan"] = call.plan;
  if (!call.linked.empty()) entry["linked"] = call.linked;
  json& made = entry["outputs"] = json::object();
  for (const auto& [name, digests] : outputs.digests) {
    if (digests[0] == digests[1]) {
      made[name] = digests[0];
    } else {
      made[name] = digests;
    }
  }
  return entry;
}

void PredictionsDigest::add(const json& prediction) { lines_.insert(line_of(prediction) + "\n"); }

std::string PredictionsDigest::hex() const {
  golden::Sha256 sum;
  for (const std::string& line : lines_) sum.update(std::as_bytes(std::span(line)));
  return golden::hex_of(sum.digest());
}

Predictions::Predictions(const std::vector<std::string>& paths, Layer layer, bool only)
    : none_(std::make_shared<CasePredictions>()), only_(only) {
  none_->only = only;
  for (const std::string& path : paths) read(path, layer);
}

std::shared_ptr<const CasePredictions> Predictions::of(const std::string& line) const {
  const auto found = cases_.find(line);
  return found == cases_.end() ? none_ : found->second;
}

json Predictions::files() const {
  json made = json::array();
  for (const auto& [path, sha256] : files_) made.push_back({{"path", path}, {"sha256", sha256}});
  return made;
}

std::vector<std::pair<std::string, std::string>> Predictions::faults() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::string, std::string>> made;
  for (const auto& [place, fault] : faults_) made.push_back(fault);
  return made;
}

void Predictions::read(const std::string& path, Layer layer) {
  const std::string text = golden::read_text_file(path, kLargestPredictions);
  bool ended = false;
  const auto take = [&](std::size_t number, json record) {
    const std::string kind = record.at("record");
    const auto refuse = [&](const std::string& why) { throw golden::FixtureError(path, fmt::format("line {}", number), why); };
    if (ended) refuse("follows the summary");
    if ((number == 1) != (kind == "header" && record.contains("predictions"))) refuse("is not a header of a file of predictions");
    if (kind == "header") {
      const json here = predictor_of(layer);
      const std::string difference = difference_of(record, here, {"predictions", "assay", "commit", "layer", "units", "presets"});
      if (difference.starts_with("layer"))
        refuse(fmt::format(
            "was computed by the layer {} of the reference; this backend is judged by the layer {} (assay predict --backend "
            "reference predicts for the reference itself)",
            record.value("layer", ""), name_of(layer)));
      if (!difference.empty()) refuse("is of another program than this one: " + difference);
    } else if (kind == "summary") {
      ended = true;
    } else if (kind == "prediction") {
      add(path, number, record);
    } else {
      refuse("is a record of an unknown kind, '" + kind + "'");
    }
  };
  const auto [place, fault] = each_record(path, text, take);
  if (!fault.empty()) throw golden::FixtureError(path, place, fault);
  if (text.empty()) throw golden::FixtureError(path, "", "is empty: expected a file of predictions");
  if (!ended)
    throw golden::FixtureError(path, "", "has no summary: it is cut off, or assay predict did not end (--resume goes on)");
  files_.emplace_back(path, golden::sha256_hex(std::as_bytes(std::span(text))));
}

void Predictions::add(const std::string& path, std::size_t number, const json& entry) {
  const std::string line = entry.at("case");
  std::shared_ptr<CasePredictions>& known = cases_[line];
  if (known == nullptr) {
    known = std::make_shared<CasePredictions>();
    known->only = only_;
    known->on_wrong = [this, line](const PredictedOutputs& wrong, const std::string& what) {
      const std::string file = wrong.place.substr(0, wrong.place.rfind(": "));
      const std::lock_guard lock(mutex_);
      faults_[wrong.place] = {file,
                              fmt::format("{}: wrong prediction: {}: the reference gives other {}", wrong.place, line, what)};
    };
  }
  PredictedOutputs outputs = outputs_from(entry);
  outputs.place = fmt::format("{}: line {}", golden::one_line(path), number);
  const PredictedCall call = call_from(entry);
  const auto [found, is_new] = known->calls.emplace(call, outputs);
  if (is_new || (found->second.digests == outputs.digests && found->second.elements == outputs.elements)) return;
  throw golden::FixtureError(path, fmt::format("line {}", number),
                             fmt::format("predicts other outputs than {}: {}{}", found->second.place, line, call_text(call)));
}

BegunPredictions begun_predictions(const std::string& path, const json& header) {
  BegunPredictions begun;
  const std::string text = golden::read_text_file(path, kLargestPredictions);
  const auto [place, fault] = each_record(path, text, [&](std::size_t number, json record) {
    if (number == 1) {
      const std::string difference = difference_of(
          record, header, {"predictions", "assay", "commit", "layer", "units", "presets", "verb", "asked", "selection"});
      if (!difference.empty()) throw golden::FixtureError(path, "", "is of another run: " + difference);
    } else if (record.at("record") == "summary") {
      begun.has_summary = true;
    } else {
      begun.last_case = record.at("case");
      begun.predictions.push_back(std::move(record));
    }
  });
  if (!fault.empty() && fault != "was cut off") throw golden::FixtureError(path, place, fault);
  if (text.empty()) throw golden::FixtureError(path, "", "is empty: there is nothing to go on with");
  return begun;
}

}  // namespace assay::conformance
