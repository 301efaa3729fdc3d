#include "conformance/suites/failure_bundle.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "conformance/report/version.h"
#include "conformance/suites/backend_choice.h"
#include "golden/io/contained_reader.h"
#include "golden/io/replace_file.h"
#include "golden/io/utf8.h"
#include "golden/io/writer.h"

namespace assay::conformance {
namespace {

using nlohmann::json;

constexpr int kBundleFormat = 1;
constexpr const char* kCallName = "call";

std::string earlier_name(std::size_t back) { return fmt::format("before/{}", back); }

std::int64_t bytes_in(const Case& each) {
  std::int64_t bytes = 0;
  for (const auto* tensors : {&each.in, &each.out}) {
    for (const auto& [name, tensor] : *tensors) bytes += static_cast<std::int64_t>(tensor.bytes.size());
  }
  return bytes;
}

// "quantize/block_1x128/.../3f2a91c0" with a setting as the name of a file.
std::string file_name_of(const CaseReport& report) {
  std::string name = report.name + (report.setting.empty() ? "" : "-" + report.setting);
  for (char& letter : name) {
    const bool plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
    if (!plain && letter != '-' && letter != '_' && letter != '.') letter = '_';
  }
  return name.substr(0, 200) + ".h5";
}

std::string json_text(const std::string& text) { return json(text).dump(-1, ' ', false, json::error_handler_t::replace); }

}  // namespace

bool is_bundle(const std::string& provenance) {
  const json parsed = json::parse(provenance, nullptr, false);
  return parsed.is_object() && parsed.value("producer", json()) == kBundleProducer;
}

void write_bundle(const std::filesystem::path& path, const FailureBundle& bundle) {
  golden::Fixture fixture;
  fixture.schema = golden::kNewestSchema;
  json about{{"producer", kBundleProducer},
             {"format", kBundleFormat},
             {"version", kVersion},
             {"line", bundle.line},
             {"text", json::parse(json_text(bundle.text))},
             {"when", bundle.kept.when},
             {"poison", bundle.kept.poison},
             {"plan", bundle.kept.plan},
             {"unit", bundle.kept.unit},
             {"environment", json::parse(bundle.environment.empty() ? "{}" : bundle.environment, nullptr, false)}};
  fixture.provenance = about.dump(-1, ' ', false, json::error_handler_t::replace);
  Case call = bundle.kept.call;
  call.name = kCallName;
  fixture.cases.push_back(std::move(call));
  for (std::size_t back = 1; back <= bundle.kept.earlier.size(); ++back) {
    Case earlier = bundle.kept.earlier[bundle.kept.earlier.size() - back];
    earlier.name = earlier_name(back);
    fixture.cases.push_back(std::move(earlier));
  }
  golden::write_fixture(path, fixture, {.shares_outputs = false, .leaves_large_uncompressed = true});
}

FailureBundle read_bundle(const std::filesystem::path& path) {
  golden::Fixture fixture = golden::read_fixture_contained(path);
  const std::string file = path.string();
  const json about = json::parse(fixture.provenance, nullptr, false);
  if (!is_bundle(fixture.provenance))
    throw golden::FixtureError(file, "", "is no failure bundle: expected a file that run or repro --save-got wrote");
  FailureBundle bundle;
  try {
    if (const int format = about.at("format"); format != kBundleFormat)
      throw golden::FixtureError(file, "", fmt::format("is a failure bundle of format {}: expected {}", format, kBundleFormat));
    bundle.line = about.at("line");
    bundle.text = about.at("text");
    bundle.kept.when = about.at("when");
    bundle.kept.poison = about.at("poison");
    bundle.kept.plan = about.at("plan");
    bundle.kept.unit = about.at("unit");
    bundle.environment = about.at("environment").dump();
  } catch (const json::exception& error) {
    throw golden::FixtureError(file, "provenance", error.what());
  }
  std::vector<Case*> earlier(kKeptEarlier + 1, nullptr);
  for (Case& each : fixture.cases) {
    if (each.name == kCallName) bundle.kept.call = std::move(each);
    for (std::size_t back = 1; back <= kKeptEarlier; ++back) {
      if (each.name == earlier_name(back)) earlier[back] = &each;
    }
  }
  if (bundle.kept.call.op.empty() || bundle.kept.call.out.empty())
    throw golden::FixtureError(file, kCallName, "is missing: expected the failed call with its outputs");
  for (std::size_t back = kKeptEarlier; back >= 1; --back) {
    if (earlier[back] != nullptr) bundle.kept.earlier.push_back(std::move(*earlier[back]));
  }
  return bundle;
}

BundleFolder::BundleFolder(std::filesystem::path folder, std::string environment)
    : folder_(std::move(folder)), environment_(std::move(environment)) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (!std::filesystem::is_directory(folder_)) {
    throw golden::OutputError(folder_.string(), error ? error.value() : ENOTDIR,
                              error ? "" : "is no folder: expected one for failure bundles");
  }
}

void BundleFolder::save(CaseReport& report) {
  if (report.judgement.kept == nullptr) return;
  const std::shared_ptr<const KeptCall> kept = std::exchange(report.judgement.kept, nullptr);
  const std::int64_t bytes = bytes_in(kept->call);
  if (bytes_.fetch_add(bytes) + bytes > kMostBytes) {
    bytes_ -= bytes;
    ++left_out_;
    return;
  }
  const std::filesystem::path path = folder_ / file_name_of(report);
  try {
    write_bundle(path, {report.line, *kept, report.judgement.text, environment_});
    ++saved_;
    const std::lock_guard lock(mutex_);
    last_ = path.string();
  } catch (const std::exception& error) {  // the verdict stands; the run reports this at its end
    const std::lock_guard lock(mutex_);
    if (fault_.empty()) fault_ = error.what();
  }
}

std::string BundleFolder::text() const {
  const std::lock_guard lock(mutex_);
  const std::string where = saved_ == 1 ? "1 failure is saved as " + last_
                                        : fmt::format("{} failures are saved in {}", saved_.load(), folder_.string());
  const std::string rest = left_out_ == 0 ? ""
                                          : fmt::format("; {} more are not: there is room for {} GiB of tensors a run",
                                                        left_out_.load(), kMostBytes >> 30);
  return fmt::format("{} ({} explain {} names the cause){}", where, command_name(), saved_ == 1 ? quoted(last_) : "FILE", rest);
}

void tell_saved(const BundleFolder& folder, Report& report) {
  if (folder.saved() > 0) report.note(folder.text());
  if (!folder.fault().empty()) report.note_machine_failed(folder.fault());
}

std::string BundleFolder::fault() const {
  const std::lock_guard lock(mutex_);
  return fault_;
}

}  // namespace assay::conformance
