// The suite as GoogleTest tests: one for each case of a profile, named OP.REST_OF_THE_NAME.
//
//   ASSAY_PROFILE=standard ASSAY_BACKEND=./libvendor.so assay_suite --gtest_filter='quantize.*' --gtest_output=json:report.json
//
//   ASSAY_PROFILE           smoke (default), standard or full
//   ASSAY_BACKEND           reference (default), null, or the path of a shared library
//   ASSAY_BACKEND_OPTIONS   text for the backend's open()
//   ASSAY_UNITS             files of further tensor-core units, with colons between them
//   ASSAY_PRESETS           files of further scale rules, the same
//
// A case that was not run, with proof, is a skipped test that says why. Filters, shards, repetition and reports are
// GoogleTest's own. Properties of each test: case, ground, elements (also as words, the former name). Exit codes: 0 and 1 as GoogleTest, 2 for an environment
// that is invalid, 4 when nothing passed and nothing failed, 9 for a backend that cannot be opened.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <set>

#include "conformance/catalogue/catalogue.h"
#include "conformance/report/exit_code.h"
#include "conformance/suites/suite.h"
#include "conformance/worker/row_files.h"
#include "conformance/worker/server.h"

namespace {

using namespace assay::conformance;

std::string from_environment(const char* name, const char* absent) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? absent : text;
}

BackendChoice choice_from_environment() {
  BackendChoice choice;
  choice.name = from_environment("ASSAY_BACKEND", choice.name.c_str());
  choice.options = from_environment("ASSAY_BACKEND_OPTIONS", "");
  return choice;
}

// The backend of the tests; in a new process if the last test made it unusable.
class Opened {
 public:
  Opened() : backend_(choice_from_environment().open()) {}
  Backend& backend() {
    if (backend_->is_given_up()) backend_ = choice_from_environment().open();
    return *backend_;
  }

 private:
  std::unique_ptr<Backend> backend_;
};

class CaseTest : public testing::Test {
 public:
  CaseTest(CaseLine line, std::shared_ptr<Opened> opened) : line_(std::move(line)), opened_(std::move(opened)) {}

  void TestBody() override {
    const Judgement judgement = judge_line(line_, {opened_->backend()}, choice_from_environment()).judgement;
    RecordProperty("case", to_text(line_));
    RecordProperty("elements", std::to_string(judgement.elements));
    RecordProperty("words", std::to_string(judgement.elements));  // the former name of elements
    if (judgement.verdict == Verdict::passed) RecordProperty("ground", std::string(name_of(judgement.basis)));
    if (judgement.verdict == Verdict::not_run) GTEST_SKIP() << judgement.text;
    if (judgement.verdict != Verdict::passed) FAIL() << judgement.text;
  }

 private:
  CaseLine line_;
  std::shared_ptr<Opened> opened_;
};

// "grouped_gemm/bf16/TN/3f2a91c0" without its op, as GoogleTest wants names: letters, digits and underscores.
std::string test_name(const CaseLine& line) {
  std::string name = name_of(line).substr(line.op.size() + 1);
  for (char& letter : name) {
    const bool plain = (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!plain) letter = '_';
  }
  return name;
}

// `opened` is null when tests are only listed.
void register_cases(const std::vector<CaseLine>& lines, const std::shared_ptr<Opened>& opened) {
  std::set<std::pair<std::string, std::string>> taken;
  for (const CaseLine& line : lines) {
    std::string name = test_name(line);
    while (!taken.emplace(line.op, name).second) name += "_again";
    testing::RegisterTest(line.op.c_str(), name.c_str(), nullptr, to_text(line).c_str(), __FILE__, __LINE__,
                          [line, opened]() -> testing::Test* { return new CaseTest(line, opened); });
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::optional<int> served = worker::serve_as_worker(argc, argv)) return *served;
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    fmt::print(stderr, "assay_suite: '{}' is not an option of GoogleTest\n", argv[1]);
    return static_cast<int>(ExitCode::usage);
  }
  const std::string profile_name = from_environment("ASSAY_PROFILE", "smoke");
  const auto profile = profile_named(profile_name);
  if (!profile) {
    fmt::print(stderr, "assay_suite: ASSAY_PROFILE is '{}': expected smoke, standard or full\n", profile_name);
    return static_cast<int>(ExitCode::usage);
  }
  try {
    worker::use_row_files(worker::kUnitRows, {});
    worker::use_row_files(worker::kPresetRows, {});
  } catch (const std::exception& error) {
    fmt::print(stderr, "assay_suite: ASSAY_UNITS: {}\n", error.what());
    return static_cast<int>(ExitCode::usage);
  }
  std::shared_ptr<Opened> opened;
  if (!testing::GTEST_FLAG(list_tests)) {
    try {
      opened = std::make_shared<Opened>();
    } catch (const BackendFault& fault) {
      fmt::print(stderr, "assay_suite: {}\n", fault.what());
      return static_cast<int>(fault.status() == ASSAY_TIMEOUT ? ExitCode::incomplete : ExitCode::failed);
    } catch (const BackendError& error) {
      fmt::print(stderr, "assay_suite: {}\n", error.what());
      const bool usage = error.status() == ASSAY_INVALID_ARGUMENT || error.status() == ASSAY_FAILED;
      return static_cast<int>(usage ? ExitCode::usage : ExitCode::machine_failed);
    }
  }
  register_cases(catalogue(*profile), opened);
  const int status = RUN_ALL_TESTS();
  // An empty selection is not a pass; but a shard may be empty.
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  const bool sharded = std::getenv("GTEST_TOTAL_SHARDS") != nullptr;
  if (status == 0 && !sharded && !testing::GTEST_FLAG(list_tests) && all.successful_test_count() == 0) {
    fmt::print(stderr, "assay_suite: no case was judged\n");
    return static_cast<int>(ExitCode::nothing_selected);
  }
  return status;
}
