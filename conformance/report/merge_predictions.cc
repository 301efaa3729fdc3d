#include "conformance/report/merge_predictions.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/predictions_file.h"
#include "conformance/report/run_header.h"
#include "conformance/suites/journal.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

// Members of a header that differ from part to part, or from day to day.
constexpr const char* kOfOnePart[] = {"record", "journal", "arguments", "date", "host"};

std::string last_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

struct PredictionPart {
  MergedFile file;
  RecordedPredictions recorded;
};

PredictionPart read_prediction_part(const std::string& path, const std::string& sha256) {
  PredictionPart part{{}, recorded_predictions(path)};
  json& header = part.recorded.header;
  part.file.path = path;
  part.file.sha256 = sha256;
  part.file.ended = part.recorded.has_summary;
  try {
    part.file.shard = header.contains("journal") ? "journal" : header.at("selection").at("shard").get<std::string>();
    header = whole_header(std::move(header));
    header.at("selection").at("cases").get<std::int64_t>();
  } catch (const std::exception& error) {
    throw golden::FixtureError(path, "", std::string("cannot be merged: ") + error.what());
  }
  for (const char* member : kOfOnePart) header.erase(member);
  return part;
}

// Takes the cases of parts, one after another.
class JoinedPredictions {
 public:
  explicit JoinedPredictions(MergedPredictions& made) : made_(made) {}

  void take(const PredictionPart& part) {
    for (const auto& [line, calls] : part.recorded.predicted) {
      note(line, part);
      const auto [found, is_new] = made_.predicted.emplace(line, calls);
      if (!is_new && found->second != calls) refuse(line, calls, part);
    }
    for (const auto& [line, why] : part.recorded.left_out) {
      note(line, part);
      const auto [found, is_new] = made_.left_out.emplace(line, why);
      if (!is_new) found->second = std::min(found->second, why);
    }
  }

 private:
  void note(const std::string& line, const PredictionPart& part) {
    const auto [found, is_new] = places_.emplace(line, part.file.path);
    if (is_new) return;
    made_.twice.push_back(fmt::format("{}: in {} and in {}", line, last_name(found->second), last_name(part.file.path)));
  }

  [[noreturn]] void refuse(const std::string& line, const std::map<PredictedCall, json>& calls,
                           const PredictionPart& part) const {
    const std::map<PredictedCall, json>& known = made_.predicted.at(line);
    std::string what = fmt::format("{} calls there, {} here", known.size(), calls.size());
    for (const auto& [call, entry] : calls) {
      const auto found = known.find(call);
      if (found == known.end() || found->second == entry) continue;
      what = fmt::format("{} there, {} here", line_of(found->second.at("outputs")), line_of(entry.at("outputs")));
      break;
    }
    throw golden::FixtureError(part.file.path, "",
                               fmt::format("predicts other outputs than {}: {}: {}", last_name(places_.at(line)), line, what));
  }

  MergedPredictions& made_;
  std::map<std::string, std::string> places_;  // by case line: the first file that has it
};

std::vector<PredictionPart> parts_of(const std::string& path) {
  std::error_code none;
  std::vector<PredictionPart> parts;
  if (!std::filesystem::is_directory(path, none)) {
    parts.push_back(read_prediction_part(path, golden::sha256_hex_of_file(path)));
    return parts;
  }
  const JournalFiles files = journal_files(path);
  for (const std::string& file : files.leases) {
    if (std::filesystem::file_size(file, none) == 0) continue;  // its worker died before it wrote
    parts.push_back(read_prediction_part(file, golden::sha256_hex_of_file(file)));
    parts.back().file.ended = files.done == files.blocks;
  }
  if (parts.empty()) throw golden::FixtureError(path, "", "is a journal of which no block was leased yet");
  return parts;
}

PredictionsDigest all_of(const MergedPredictions& merged) {
  PredictionsDigest digest;
  for (const auto& [line, calls] : merged.predicted) {
    for (const auto& [call, entry] : calls) digest.add(entry);
  }
  return digest;
}

}  // namespace

bool holds_predictions(const std::string& path) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    std::ifstream start(path + "/run.json");
    const json record = json::parse(start, nullptr, false);
    return record.is_object() && record.contains("header") && record.at("header").contains("predictions");
  }
  if (!std::filesystem::is_regular_file(path, none)) return false;
  std::ifstream file(path);
  std::string first;
  std::getline(file, first);
  const json header = json::parse(first, nullptr, false);
  return header.is_object() && header.contains("predictions");
}

std::int64_t MergedPredictions::missing() const {
  return whole_cases - static_cast<std::int64_t>(predicted.size() + left_out.size());
}

MergedPredictions merge_predictions(const std::vector<std::string>& paths) {
  MergedPredictions made;
  JoinedPredictions joined(made);
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    bool is_first = true;
    for (PredictionPart& part : parts_of(path)) {
      if (!seen.insert(part.file.sha256).second) {
        ++made.same_files;
        continue;
      }
      if (made.header.is_null()) made.header = part.recorded.header;
      if (const std::string difference = header_difference(made.header, part.recorded.header); !difference.empty()) {
        throw golden::FixtureError(part.file.path, "",
                                   fmt::format("is of another run than {}: {}", last_name(made.files[0].path), difference));
      }
      joined.take(part);
      if (part.file.shard == "journal") part.file.path = path;
      if (is_first || part.file.shard != "journal") made.files.push_back(part.file);
      is_first = false;
    }
  }
  for (const auto& [line, calls] : made.predicted) made.left_out.erase(line);
  made.whole_cases = made.header.at("selection").at("cases");
  return made;
}

std::string predictions_text(const MergedPredictions& merged) {
  std::string text, chain;
  const auto add = [&](const json& record) { text += chained(line_of(record), chain) + "\n"; };
  json header = merged.header;
  header["record"] = "header";
  add(header);
  std::map<std::string, std::int64_t> left_out;
  auto next = merged.left_out.begin();
  const auto add_left_out = [&](const std::string* before) {
    for (; next != merged.left_out.end() && (before == nullptr || next->first < *before); ++next) {
      add(records_of(next->first, {}, next->second)[0]);
      ++left_out[next->second];
    }
  };
  for (const auto& [line, calls] : merged.predicted) {
    add_left_out(&line);
    for (const auto& [call, entry] : calls) add(entry);
  }
  add_left_out(nullptr);
  json summary = summary_of(all_of(merged), static_cast<std::size_t>(merged.whole_cases), merged.predicted.size(), left_out);
  if (merged.missing() > 0) summary["missing"] = merged.missing();
  add(summary);
  return text;
}

std::string MergedPredictions::digest() const { return all_of(*this).hex(); }

}  // namespace assay::conformance
