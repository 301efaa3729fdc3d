#include "conformance/report/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <tuple>

#include "conformance/report/judgement_json.h"
#include "conformance/report/line_chain.h"
#include "conformance/report/run_header.h"
#include "conformance/report/verdict_digest.h"
#include "conformance/suites/journal.h"
#include "golden/io/fixture_error.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

// Members of a report that belong to the header of a file of results.
constexpr const char* kHeaderMembers[] = {"assay",   "commit",    "format", "verb",    "arguments", "date",   "host",
                                          "backend", "selection", "merged", "waivers", "predicted", "devices"};

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

// What judging the case itself ended with; the other verdicts say that it was not judged.
bool is_final(const json& entry) {
  const std::string verdict = entry.at("verdict");
  for (const Verdict each : {Verdict::unfinished, Verdict::not_tried, Verdict::machine_failed}) {
    if (verdict == name_of(each)) return false;
  }
  return true;
}

using LineKey = std::pair<std::string, std::string>;  // suite, case line or name

LineKey key_of_case(const json& entry) {
  const std::string suite = entry.at("suite"), name = entry.at("name");
  return {suite, entry.value("case", name)};
}

// The verdicts on one case, one for each setting, and where they are from.
struct JudgedCase {
  std::vector<json> entries;
  std::size_t part = 0;
  bool is_final = true;
};

std::string title_of(const json& entry) {
  const std::string line = entry.value("case", "");
  return line.empty() ? entry.at("suite").get<std::string>() + ": " + entry.at("name").get<std::string>() : line;
}

// Findings about a process, which are of no case: those of all parts stay.
bool is_of_no_case(const json& entry) { return entry.at("suite") == "backend"; }

// The first verdict that differs, as "passed in a.jsonl, failed in b.jsonl"; empty: none does.
std::string contradiction(const JudgedCase& one, const JudgedCase& other, const std::vector<RunPart>& parts) {
  const auto lines = [](const JudgedCase& judged) {
    std::vector<std::string> all;
    for (const json& each : judged.entries) all.push_back(digested_line(each));
    std::sort(all.begin(), all.end());
    return all;
  };
  if (lines(one) == lines(other)) return "";
  const auto text = [&](const JudgedCase& judged) {
    std::string all;
    for (const json& each : judged.entries) {
      const std::string setting = each.value("setting", ""), ground = each.value("ground", "");
      all += fmt::format("{}{}{}{}", all.empty() ? "" : ", ", each.at("verdict").get<std::string>(),
                         ground.empty() ? "" : " by " + ground, setting.empty() ? "" : " (" + setting + ")");
    }
    return all + " in " + file_name(parts[judged.part].path);
  };
  if (text(one).substr(0, text(one).rfind(" in ")) == text(other).substr(0, text(other).rfind(" in "))) {
    return fmt::format("{} with {} elements, plan '{}'; {} with {} elements, plan '{}'", text(one),
                       one.entries[0].value("elements", 0), one.entries[0].value("plan", ""), text(other),
                       other.entries[0].value("elements", 0), other.entries[0].value("plan", ""));
  }
  return text(one) + ", " + text(other);
}

// Carries out `body`, which reads the file: a member that is missing, or has another type or value than a result file's, is a fault of it.
template <class Body>
void as_fault_of(const std::string& path, Body body) {
  const auto fail = [&](const std::exception& error) {
    throw golden::FixtureError(path, "", std::string("is not a result file of this program: ") + error.what());
  };
  try {
    body();
  } catch (const golden::FixtureError&) {
    throw;
  } catch (const json::exception& error) {
    fail(error);
  } catch (const std::runtime_error& error) {
    fail(error);
  }
}

class Joined {
 public:
  explicit Joined(const std::vector<RunPart>& parts) : parts_(parts) {}

  // Takes the cases of a part all of whose settings are there.
  void take(std::size_t part, MergedRun& made) {
    std::map<LineKey, JudgedCase> all;
    for (const json& each : parts_[part].results.cases) {
      if (is_of_no_case(each)) {
        made.cases.push_back(report_from(each));
        continue;
      }
      report_from(each);  // an entry that is none is a fault of this file
      JudgedCase& judged = all[key_of_case(each)];
      judged.part = part;
      judged.is_final = judged.is_final && is_final(each);
      judged.entries.push_back(each);
    }
    for (auto& [key, judged] : all) {
      if (judged.entries.size() != judged.entries.back().value("of", judged.entries.size())) continue;
      const auto [found, is_new] = cases_.emplace(key, judged);
      if (!is_new) join(found->second, std::move(judged), made);
    }
  }

  void give(MergedRun& made) const {
    for (const auto& [key, judged] : cases_) {
      for (const json& each : judged.entries) made.cases.push_back(report_from(each));
    }
    std::stable_sort(made.cases.begin(), made.cases.end(), [](const CaseReport& a, const CaseReport& b) {
      return std::tie(a.suite, a.name, a.line, a.setting) < std::tie(b.suite, b.name, b.line, b.setting);
    });
  }

 private:
  void join(JudgedCase& known, JudgedCase other, MergedRun& made) const {
    if (!other.is_final) return;
    if (!known.is_final) {
      known = std::move(other);
      return;
    }
    const std::string title = title_of(known.entries[0]);
    if (const std::string differs = contradiction(known, other, parts_); !differs.empty())
      throw golden::FixtureError(parts_[other.part].path, "", fmt::format("contradicts another file: {}: {}", title, differs));
    made.twice.push_back(
        fmt::format("{}: in {} and in {}", title, file_name(parts_[known.part].path), file_name(parts_[other.part].path)));
  }

  const std::vector<RunPart>& parts_;
  std::map<LineKey, JudgedCase> cases_;
};

RunPart read_part(const std::string& path) {
  RunPart part{path, golden::sha256_hex_of_file(path), read_results(path)};
  json& header = part.results.header;
  if (!header.contains("selection")) {
    throw golden::FixtureError(path, "",
                               fmt::format("is of '{}': expected a file of assay run", header.value("verb", "another verb")));
  }
  header.erase("record");
  header.erase("journal");
  try {
    whole_header(header);
  } catch (const std::exception& error) {
    throw golden::FixtureError(path, "", std::string("cannot be merged: ") + error.what());
  }
  return part;
}

MergedFile file_of(const RunPart& part) {
  const json& header = part.results.header;
  return {part.path,
          part.sha256,
          header.at("selection").at("shard"),
          header.value("date", ""),
          header.value(json::json_pointer("/host/name"), ""),
          static_cast<std::int64_t>(part.results.cases.size()),
          part.results.has_summary};
}

// The files that parts are of; those of a journal are one.
std::vector<MergedFile> files_of(const std::vector<RunPart>& parts) {
  std::vector<MergedFile> files;
  std::map<std::string, std::size_t> journals;
  std::map<std::string, std::set<std::string>> hosts;
  std::map<std::string, golden::Sha256> sums;
  for (const RunPart& part : parts) {
    MergedFile file = file_of(part);
    if (part.journal.empty()) {
      files.push_back(std::move(file));
      continue;
    }
    const auto [found, is_new] = journals.emplace(part.journal, files.size());
    hosts[part.journal].insert(file.host);
    sums[part.journal].update(std::as_bytes(std::span(part.sha256)));
    if (is_new) {
      files.push_back({part.journal, "", "journal", file.date, file.host, file.verdicts, !part.is_cut_short});
      continue;
    }
    MergedFile& journal = files[found->second];
    journal.verdicts += file.verdicts;
    journal.date = std::min(journal.date, file.date);
  }
  for (const auto& [journal, at] : journals) {
    files[at].sha256 = golden::hex_of(sums[journal].digest());
    if (hosts[journal].size() > 1) files[at].host = fmt::format("{} machines", hosts[journal].size());
  }
  return files;
}

// "3/8" before "10/8".
std::pair<std::int64_t, std::int64_t> order_of(const std::string& shard) {
  const std::size_t slash = shard.find('/');
  return {std::stoll(shard.substr(slash + 1)), std::stoll(shard)};
}

}  // namespace

std::vector<RunPart> read_parts(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_directory(path, none)) return {read_part(path)};
  const JournalFiles files = journal_files(path);
  std::vector<RunPart> parts;
  for (const std::string& file : files.leases) {
    if (std::filesystem::file_size(file, none) == 0) continue;  // its worker died before it wrote
    parts.push_back(read_part(file));
    parts.back().journal = path;
    parts.back().is_cut_short = files.done < files.blocks;
  }
  if (parts.empty()) throw golden::FixtureError(path, "", "is a journal of which no block was leased yet");
  return parts;
}

json whole_header(json header) {
  json& selection = header.at("selection");
  const std::string shard = selection.at("shard");
  if (shard == "0/1") return header;
  const std::string tail = " --shard " + shard;  // absent where GoogleTest's variables asked for the shard
  std::string verb = header.at("verb");
  if (verb.ends_with(tail)) verb.resize(verb.size() - tail.size());
  header["verb"] = verb;
  if (!selection.contains("whole") || selection.at("whole").at("sha256") == "")
    throw std::runtime_error("the header of shard " + shard + " has no digest of the whole selection");
  selection["cases"] = selection.at("whole").at("cases");
  selection["sha256"] = selection.at("whole").at("sha256");
  selection["shard"] = "0/1";
  selection.erase("whole");
  order_of(shard);  // it must be one
  return header;
}

MergedRun merge_parts(std::vector<RunPart> parts) {
  if (parts.empty()) throw std::invalid_argument("no file to merge");
  const auto order = [](const RunPart& part) {
    return std::tuple(order_of(part.results.header.at("selection").at("shard")), part.sha256, part.path);
  };
  std::sort(parts.begin(), parts.end(), [&](const RunPart& a, const RunPart& b) { return order(a) < order(b); });
  const auto same = [](const RunPart& a, const RunPart& b) { return a.sha256 == b.sha256; };
  const auto rest = std::unique(parts.begin(), parts.end(), same);
  MergedRun made;
  made.same_files = parts.end() - rest;
  parts.erase(rest, parts.end());

  made.header = whole_header(parts[0].results.header);
  made.header.erase("merged");
  made.header.erase("predicted");
  made.header.erase("devices");  // of one machine; each case names its own
  std::set<std::string> hosts;
  std::set<json> predicted;  // files of predictions: shards may have others
  std::string first_date;
  Joined joined(parts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    as_fault_of(parts[i].path, [&] {
      const json header = whole_header(parts[i].results.header);
      if (const std::string difference = header_difference(made.header, header); !difference.empty()) {
        throw golden::FixtureError(parts[i].path, "",
                                   fmt::format("is of another run than {}: {}", file_name(parts[0].path), difference));
      }
      joined.take(i, made);
      for (const json& each : parts[i].results.header.value("predicted", json::array())) predicted.insert(each);
      hosts.insert(parts[i].results.header.value(json::json_pointer("/host/name"), ""));
      const std::string date = parts[i].results.header.value("date", "");
      if (!date.empty() && (first_date.empty() || date < first_date)) first_date = date;
      if (!parts[i].results.summary.is_null()) made.others.push_back(parts[i].results.summary);
      for (const json& each : parts[i].results.cases) made.seconds += each.value("seconds", 0.0);
      file_of(parts[i]);
      made.whole_cases = header.at("selection").at("cases");
    });
  }
  made.files = files_of(parts);
  joined.give(made);
  made.header["date"] = first_date;
  if (!predicted.empty()) made.header["predicted"] = json(std::vector<json>(predicted.begin(), predicted.end()));
  if (hosts.size() > 1) {
    made.header["host"]["name"] = fmt::format("{} machines", hosts.size());
    made.header["host"]["system"] = "";
  }
  for (const MergedFile& each : made.files) {
    made.header["merged"].push_back({{"name", file_name(each.path)},
                                     {"sha256", each.sha256},
                                     {"shard", each.shard},
                                     {"date", each.date},
                                     {"host", each.host},
                                     {"verdicts", each.verdicts}});
  }
  return made;
}

std::string results_text(const json& report) {
  json header{{"record", "header"}}, summary{{"record", "summary"}};
  std::map<LineKey, std::size_t> settings;
  for (const json& each : report.at("cases")) ++settings[key_of_case(each)];
  for (const auto& [name, value] : report.items()) {
    const bool heads = std::find(std::begin(kHeaderMembers), std::end(kHeaderMembers), name) != std::end(kHeaderMembers);
    if (name != "cases" && name != "sha256") (heads ? header : summary)[name] = value;
  }
  std::string text, chain;
  const auto add = [&](const json& record) { text += chained(line_of(record), chain) + "\n"; };
  add(header);
  for (json each : report.at("cases")) {
    each["record"] = "case";
    if (const std::size_t of = settings[key_of_case(each)]; of > 1 && each.at("suite") != "backend") each["of"] = of;
    add(each);
  }
  add(summary);
  return text;
}

}  // namespace assay::conformance
