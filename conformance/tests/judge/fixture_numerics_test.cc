// The expected output of a fixture depends on what the backend states: no right implementation fails because it sums in another
// order, follows another plan or treats the sign of zero in another way than the recorded one.

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <ostream>

#include "conformance/tests/diagnose/product_models.h"
#include "golden/io/contained_reader.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

std::vector<std::string> fixture_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(ASSAY_GOLDEN_CASES).parent_path())) {
    if (entry.path().extension() == ".h5") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The same call with one more parameter, or with another value of it.
struct With {
  With(const assay_call& of, const char* name, const std::string& text) : value(text), call(of) {
    for (int i = 0; i < of.parameter_count; ++i) {
      if (std::string(of.parameters[i].name) != name) parameters.push_back(of.parameters[i]);
    }
    parameters.push_back({name, ASSAY_TEXT, 0, 0, value.c_str()});
    call.parameters = parameters.data();
    call.parameter_count = static_cast<std::int32_t>(parameters.size());
  }
  std::string value;
  std::vector<assay_parameter> parameters;
  assay_call call;
};

// A plan for the same operands that is not the table's; empty where there is none.
std::string another_plan(const Request& request, const std::string& usual) {
  for (const AccumulationPlan& plan : accumulation_plans()) {
    if (plan.name == usual) continue;
    Request other = request;
    other.attributes["plan"] = std::string(plan.name);
    try {
      if (numerics_of(other).plan == plan.name) return std::string(plan.name);
    } catch (const InvalidArgument&) {  // of another kind
    }
  }
  return "";
}

void state(Rogue& rogue, const std::string& unit, const std::string& plan) {
  rogue.state = [=](assay_numerics& numerics) {
    std::snprintf(numerics.unit, sizeof numerics.unit, "%s", unit.c_str());
    std::snprintf(numerics.plan, sizeof numerics.plan, "%s", plan.c_str());
    numerics.deterministic = numerics.batch_invariant = -1;
  };
}

Judgement judged(const Case& problem) {
  JudgeOptions options;
  options.title = problem.name;
  Backend backend(Rogue::table());
  return judge(backend, problem, &problem, options);
}

std::int64_t size_of(const Case& problem) {
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : problem.out) bytes += static_cast<std::int64_t>(tensor.bytes.size());
  return bytes;
}

constexpr std::int64_t kMaxBytes = 60'000;  // of outputs: the models are slow

class Fixture : public testing::TestWithParam<std::string> {};

TEST_P(Fixture, passes_right_products_whatever_is_stated) {
  int planned = 0, unplanned = 0, large = 0;
  for (Case& problem : golden::read_fixture_contained(GetParam()).cases) {
    if (product_output(problem.op).empty() || problem.out.empty()) continue;
    if (size_of(problem) > kMaxBytes) {
      ++large;
      continue;
    }
    const Request request = Request::of(problem);
    const Numerics usual = numerics_of(request);
    const std::string other = another_plan(request, usual.plan);
    if (!other.empty()) {
      Rogue rogue;  // follows another plan, and says so
      state(rogue, "", other);
      rogue.execute = [&](const assay_call& call) { return rogue.honest(With(call, "plan", other).call); };
      const Judgement judgement = judged(problem);
      EXPECT_EQ(judgement.verdict, Verdict::passed) << problem.name << " under " << other << "\n" << judgement.text;
      EXPECT_EQ(judgement.basis, CheckBasis::bits);
      state(rogue, "", "");  // says nothing
      const Judgement silent = judged(problem);
      EXPECT_EQ(silent.verdict, Verdict::passed) << problem.name << " under " << other << ", unstated\n" << silent.text;
      EXPECT_EQ(silent.basis, CheckBasis::bound);
      ++planned;
    }
    // The recorded output lies within the bounds, with the unit stated and without.
    for (const std::string& unit : {std::string(), usual.unit}) {
      Rogue rogue;
      state(rogue, unit, "");
      rogue.execute = [&](const assay_call& call) {
        const auto written = written_bytes(Request::of(call));  // rows past the groups and padding are unchanged
        for (const auto& [name, mask] : written) {
          for (std::size_t at = 0; at < mask.size(); ++at) {
            if (mask[at] != 0) bytes(call, name)[at] = static_cast<std::uint8_t>(problem.out.at(name).bytes[at]);
          }
        }
        return ASSAY_OK;
      };
      const Judgement judgement = judged(problem);
      EXPECT_EQ(judgement.verdict, Verdict::passed) << problem.name << ", unit '" << unit << "'\n" << judgement.text;
    }
    if (problem.op == "grouped_gemm") {
      for (const models::Model& model : models::right_models()) {
        if (model.name.find("16") == std::string::npos && model.name.find("product at a time") == std::string::npos) continue;
        if (model.only_fp22 && usual.unit.find("fp8") == std::string::npos) continue;
        if (model.only_fp22 && usual.unit.find("sm90") == std::string::npos && usual.unit.find("sm89") == std::string::npos)
          continue;
        Rogue rogue;
        models::plant(rogue, model);
        const Judgement judgement = judged(problem);
        EXPECT_EQ(judgement.verdict, Verdict::passed) << problem.name << ", " << model.name << "\n" << judgement.text;
      }
    }
    ++unplanned;
  }
  RecordProperty("planned", planned);
  RecordProperty("unplanned", unplanned);
  RecordProperty("large", large);
}

TEST_P(Fixture, follows_the_stated_sign_of_zero) {
  for (Case& problem : golden::read_fixture_contained(GetParam()).cases) {
    if (problem.op != "quantize" || problem.out.empty() || problem.attributes.count("zero_sign") != 0 ||
        size_of(problem) > kMaxBytes)
      continue;
    for (const char* made : {"kept", "positive"}) {
      for (const int stated : {-1, 0, 1}) {
        Rogue rogue;
        rogue.state = [=](assay_numerics& numerics) { numerics.keeps_zero_sign = stated; };
        rogue.execute = [&](const assay_call& call) { return rogue.honest(With(call, "zero_sign", made).call); };
        const Judgement judgement = judged(problem);
        const bool right = stated == -1 || (stated == 1) == (std::string(made) == "kept");
        if (!right) continue;
        EXPECT_EQ(judgement.verdict, Verdict::passed) << problem.name << ", stated " << stated << ", made " << made << "\n"
                                                      << judgement.text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(golden, Fixture, testing::ValuesIn(fixture_files()),
                         [](const auto& each) { return std::filesystem::path(each.param).stem().string(); });

}  // namespace
}  // namespace assay::conformance
