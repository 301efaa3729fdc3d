#include "conformance/report/run_header.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <ctime>

#include <nlohmann/json.hpp>

#include "conformance/report/judgement_json.h"
#include "conformance/report/report.h"
#include "conformance/report/version.h"
#include "conformance/worker/row_files.h"
#include "golden/io/sha256.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

std::vector<std::string>& kept_arguments() {
  static std::vector<std::string> words;
  return words;
}

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                     parts.tm_min, parts.tm_sec);
}

json host() {
  utsname system{};
  uname(&system);
  return {{"name", system.nodename},
          {"system", fmt::format("{} {} {}", system.sysname, system.release, system.machine)},
          {"threads", thread_count()}};
}

std::string digest_of(const std::string& library) {
  std::error_code none;
  return std::filesystem::is_regular_file(library, none) ? golden::sha256_hex_of_file(library) : "";
}

}  // namespace

void keep_arguments(int argc, char** argv) { kept_arguments().assign(argv + std::min(argc, 1), argv + argc); }

json run_header(const std::string& verb, const TestedBackend& tested, const BackendChoice& choice,
                const SelectionText* selection) {
  json header{{"assay", kVersion},
              {"commit", build_commit()},
              {"format", kReportFormat},
              {"verb", verb},
              {"arguments", kept_arguments()},
              {"date", date_text()},
              {"host", host()},
              {"backend",
               {{"name", tested.backend},
                {"device", tested.device},
                {"architecture", tested.architecture},
                {"software", tested.software},
                {"built_in", tested.built_in},
                {"library", {{"path", tested.library}, {"sha256", digest_of(tested.library)}}},
                {"options", choice.options},
                {"axes", choice.axes},
                {"algorithm", choice.algorithm},
                {"expect_by", choice.expect_by}}}};
  for (const std::string& file : worker::row_files(worker::kUnitRows))
    header["backend"]["units"].push_back({{"path", file}, {"sha256", digest_of(file)}});
  for (const std::string& file : worker::row_files(worker::kPresetRows))
    header["backend"]["presets"].push_back({{"path", file}, {"sha256", digest_of(file)}});
  if (selection == nullptr) return header;
  header["selection"] = {{"profile", selection->profile}, {"words", selection->words},       {"shard", selection->shard},
                         {"random", selection->random},   {"seed", selection->seed},         {"settings", selection->settings},
                         {"cases", selection->cases},     {"fixtures", selection->fixtures}, {"sha256", selection->sha256}};
  if (!selection->case_files.empty()) header["selection"]["case_files"] = selection->case_files;
  if (selection->shard != "0/1")
    header["selection"]["whole"] = {{"cases", selection->whole_cases}, {"sha256", selection->whole_sha256}};
  return header;
}

std::string header_text(const std::string& verb, const TestedBackend& tested, const BackendChoice& choice,
                        const SelectionText* selection) {
  return line_of(run_header(verb, tested, choice, selection));
}

void head(Report& report, const std::string& verb, const BackendChoice& choice) {
  report.set_header(run_header(verb, report.tested(), choice, nullptr));
}

std::string header_difference(const json& there, const json& here) {
  const auto shown = [](const json& header, const json::json_pointer& place) {
    return header.contains(place) ? line_of(header.at(place)) : "absent";
  };
  for (const char* field : {"/assay",
                            "/commit",
                            "/verb",
                            "/format",
                            "/backend/name",
                            "/backend/device",
                            "/backend/architecture",
                            "/backend/software",
                            "/backend/library/sha256",
                            "/backend/options",
                            "/backend/axes",
                            "/backend/algorithm",
                            "/backend/expect_by",
                            "/backend/units",
                            "/backend/presets",
                            "/selection/profile",
                            "/selection/case_files",
                            "/selection/words",
                            "/selection/shard",
                            "/selection/random",
                            "/selection/seed",
                            "/selection/settings",
                            "/selection/cases",
                            "/selection/fixtures",
                            "/selection/sha256",
                            "/waivers/sha256",
                            "/predictions",  // the rest is of files of predictions
                            "/layer",
                            "/units",
                            "/presets",
                            "/asked",
                            "/library",
                            "/plans",
                            "/units_stated",
                            "/stated",
                            "/architecture"}) {
    const json::json_pointer place(field);
    const std::string one = shown(there, place), other = shown(here, place);
    if (one != other) return fmt::format("{}: {} there, {} here", std::string(field + 1), one, other);
  }
  return "";
}

}  // namespace assay::conformance
