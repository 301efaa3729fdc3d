#include "conformance/report/predictions_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
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

// A prediction in a file.
struct PredictionRecord {
  std::size_t number;  // of its line
  std::string line;    // of its case
  PredictedCall call;
  PredictedOutputs outputs;
  std::size_t of;  // predictions of the case
  nlohmann::json entry;
};

namespace {

using nlohmann::json;

constexpr std::int64_t kLargestPredictions = std::int64_t{4} << 30;
constexpr const char* kCutOff = "was cut off";

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

bool is_same(const PredictedOutputs& one, const PredictedOutputs& other) {
  return one.digests == other.digests && one.elements == other.elements;
}

std::string call_text(const PredictedCall& call) {
  std::string text;
  if (call.step > 0) text += fmt::format(", replay {}", call.step + 1);
  if (!call.plan.empty()) text += ", plan " + call.plan;
  return text;
}

// Takes the records of a file. Each function may throw std::runtime_error: the record is at fault.
struct RecordReader {
  std::function<void(json)> header;
  std::function<void(PredictionRecord)> prediction;
  std::function<void(const std::string& line, const std::string& why)> left_out;
};

// Why a file cannot be used from some place on, "line 17: was changed".
struct FileFault {
  std::string place, why;
};

void take_record(std::size_t number, json record, const RecordReader& reader) {
  const std::string kind = record.at("record");
  if ((number == 1) != (kind == "header" && record.contains("predictions")))
    throw std::runtime_error("is not a header of a file of predictions");
  if (kind == "header") {
    reader.header(std::move(record));
  } else if (kind == "left_out") {
    reader.left_out(record.at("case"), record.at("why"));
  } else if (kind == "prediction") {
    PredictionRecord taken{number,
                           record.at("case"),
                           {record.at("step"), record.value("order_free", false), record.value("plan", ""),
                            record.at("zero_sign"), record.value("linked", "")},
                           outputs_from(record),
                           record.value("of", std::size_t{1}),
                           {}};
    taken.entry = std::move(record);
    reader.prediction(std::move(taken));
  } else {
    throw std::runtime_error("is a record of an unknown kind, '" + kind + "'");
  }
}

// Reads each whole line whose digest is right. `ended`: the last one is the summary. Errors: golden::FixtureError for a record at fault.
FileFault read_records(const std::string& path, const std::string& text, const RecordReader& reader, bool& ended) {
  std::string chain;
  std::size_t number = 0;
  ended = false;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string place = fmt::format("line {}", ++number);
    if (end == std::string::npos) return {place, kCutOff};
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    const std::optional<ChainedLine> parts = split_chained(line);
    if (!parts) return {place, number == 1 ? "is not a header of a file of predictions" : "has no digest"};
    if (parts->chain != chain_of(chain, parts->body))
      return {place, "was changed, or a line before it was removed, added or moved: its digest is another"};
    chain = parts->chain;
    json record = json::parse(parts->body, nullptr, false);
    if (!record.is_object()) return {place, "is not a record"};
    if (ended) return {place, "follows the summary"};
    try {
      ended = number > 1 && record.at("record") == "summary";
      if (!ended) take_record(number, std::move(record), reader);
    } catch (const json::exception& error) {
      throw golden::FixtureError(path, place, std::string("is not a record of a file of predictions: ") + error.what());
    } catch (const std::runtime_error& error) {
      throw golden::FixtureError(path, place, error.what());
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

std::vector<json> records_of(const std::string& line, const std::vector<std::pair<PredictedCall, PredictedOutputs>>& calls,
                             const std::string& why_not) {
  std::vector<json> records;
  if (calls.empty()) records.push_back({{"record", "left_out"}, {"case", line}, {"why", why_not}});
  for (const auto& [call, outputs] : calls) {
    json entry{{"record", "prediction"},
               {"case", line},
               {"step", call.step},
               {"zero_sign", call.zero_sign},
               {"elements", outputs.elements}};
    if (call.order_free) entry["order_free"] = true;
    if (!call.plan.empty()) entry["plan"] = call.plan;
    if (!call.linked.empty()) entry["linked"] = call.linked;
    if (calls.size() > 1) entry["of"] = calls.size();
    json& made = entry["outputs"] = json::object();
    for (const auto& [name, digests] : outputs.digests) {
      if (digests[0] == digests[1]) {
        made[name] = digests[0];
      } else {
        made[name] = digests;
      }
    }
    records.push_back(std::move(entry));
  }
  return records;
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
  std::error_code none;
  if (std::filesystem::is_directory(path, none))
    throw golden::FixtureError(path, "", "is a folder: expected a file (assay merge FOLDER -o FILE joins those of a journal)");
  const std::string text = golden::read_text_file(path, kLargestPredictions);
  const auto check_program = [&](const json& header) {
    const json here = predictor_of(layer);
    const std::string difference = difference_of(header, here, {"predictions", "assay", "commit", "layer", "units", "presets"});
    if (difference.starts_with("layer"))
      throw std::runtime_error(
          fmt::format("was computed by the layer {} of the reference; this backend is judged by the layer {} (assay predict "
                      "--backend reference predicts for the reference itself)",
                      header.value("layer", ""), name_of(layer)));
    if (!difference.empty()) throw std::runtime_error("is of another program than this one: " + difference);
  };
  bool ended = false;
  const auto [place, why] = read_records(
      path, text,
      {check_program, [&](PredictionRecord record) { add(path, std::move(record)); }, [](const auto&, const auto&) {}}, ended);
  if (!why.empty()) throw golden::FixtureError(path, place, why);
  if (text.empty()) throw golden::FixtureError(path, "", "is empty: expected a file of predictions");
  if (!ended)
    throw golden::FixtureError(path, "", "has no summary: it is cut off, or assay predict did not end (--resume goes on)");
  files_.emplace_back(path, golden::sha256_hex(std::as_bytes(std::span(text))));
}

void Predictions::add(const std::string& path, PredictionRecord record) {
  const std::string& line = record.line;
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
  record.outputs.place = fmt::format("{}: line {}", golden::one_line(path), record.number);
  const auto [found, is_new] = known->calls.emplace(record.call, record.outputs);
  if (is_new || is_same(found->second, record.outputs)) return;
  throw std::runtime_error(
      fmt::format("predicts other outputs than {}: {}{}", found->second.place, line, call_text(record.call)));
}

RecordedPredictions recorded_predictions(const std::string& path) {
  RecordedPredictions recorded;
  const std::string text = golden::read_text_file(path, kLargestPredictions);
  std::map<std::string, std::size_t> of;
  std::map<std::pair<std::string, PredictedCall>, PredictedOutputs> known;
  const auto take = [&](PredictionRecord record) {
    of[record.line] = record.of;
    const auto [found, is_new] = known.emplace(std::pair(record.line, record.call), record.outputs);
    if (!is_new && !is_same(found->second, record.outputs))
      throw std::runtime_error(
          fmt::format("predicts other outputs than a line before it: {}{}", record.line, call_text(record.call)));
    recorded.predicted[record.line].emplace(std::move(record.call), std::move(record.entry));
  };
  const auto [place, why] =
      read_records(path, text,
                   {[&](json header) { recorded.header = std::move(header); }, take,
                    [&](const std::string& line, const std::string& left_out) { recorded.left_out[line] = left_out; }},
                   recorded.has_summary);
  if (!why.empty() && why != kCutOff) throw golden::FixtureError(path, place, why);
  if (recorded.header.is_null())
    throw golden::FixtureError(path, "", text.empty() ? "is empty: expected a file of predictions" : "holds no whole line");
  std::erase_if(recorded.predicted, [&](const auto& each) { return each.second.size() != of.at(each.first); });
  for (const auto& [line, calls] : recorded.predicted) recorded.left_out.erase(line);
  return recorded;
}

void RecordedPredictions::merge(RecordedPredictions other) {
  predicted.merge(other.predicted);
  left_out.merge(other.left_out);
}

RecordedPredictions begun_predictions(const std::string& path, const json& header) {
  RecordedPredictions begun = recorded_predictions(path);
  if (const std::string difference = header_difference(begun.header, header); !difference.empty())
    throw golden::FixtureError(path, "", "is of another run: " + difference);
  return begun;
}

json summary_of(const PredictionsDigest& digest, std::size_t cases, std::size_t predicted,
                const std::map<std::string, std::int64_t>& left_out) {
  return {{"record", "summary"},  {"cases", cases},        {"predicted", predicted}, {"predictions", digest.predictions()},
          {"left_out", left_out}, {"digest", digest.hex()}};
}

}  // namespace assay::conformance
