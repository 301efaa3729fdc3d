// The help lists all verbs, options and words, and no others.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>

#include "conformance/backends/backend_handle.h"
#include "conformance/cases/case_line.h"
#include "conformance/cases/case_schema.h"
#include "conformance/catalogue/catalogue.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/tests/program/run_program.h"
#include "golden/tests/temporary_folder.h"
#include "reference/gemm/plan.h"

namespace assay::conformance {
namespace {

using Words = std::vector<std::string>;

struct Verb {
  Words words;
  Words options;
};
void PrintTo(const Verb& verb, std::ostream* out) {
  for (const std::string& word : verb.words) *out << word << ' ';
}

const Words kBackend{"--backend", "--backend-options", "--timeout", "--algorithm"};
Words with_backend(Words options) {
  options.insert(options.end(), kBackend.begin(), kBackend.end());
  return options;
}

class Help : public testing::TestWithParam<Verb> {};

TEST_P(Help, NamesItsOptions) {
  Words words = GetParam().words;
  words.push_back("--help");
  const Ran ran = assay(words);
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  std::set<std::string> named;
  std::istringstream lines(ran.out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream start(line);
    std::string word;
    if (line.starts_with("  -") && start >> word) named.insert(word.substr(word.rfind(',') + 1));
  }
  EXPECT_TRUE(named.count("--help")) << ran.out;
  for (const std::string& option : GetParam().options) EXPECT_TRUE(named.count(option)) << option << " is not in\n" << ran.out;
}
INSTANTIATE_TEST_SUITE_P(
    Verbs, Help,
    testing::Values(
        Verb{{}, {"--version"}},
        Verb{{"run"},
             with_backend({"--profile", "--shard", "--require", "--baseline", "--json", "--results", "--resume", "--device",
                           "--journal", "--lease", "--blocks", "--predicted", "--predicted-only", "--show", "--quiet"})},
        Verb{{"verify"}, with_backend({"--case", "--device", "--json", "--show", "--quiet"})},
        Verb{{"compute"}, {"--output", "--units", "--quiet"}},
        Verb{{"list"},
             {"--profile", "--names", "--json", "--backends", "--schema", "--op", "--plans", "--units", "--levels", "--counts"}},
        Verb{{"repro"}, with_backend({"--save", "--save-got", "--device", "--json"})},
        Verb{{"explain"}, with_backend({"--most", "--json", "--quiet"})}, Verb{{"shrink"}, kBackend},
        Verb{{"trace"}, {"--element", "--output", "--got", "--plan", "--json"}},
        Verb{{"scale-map"}, with_backend({"--axis", "--operand", "--json", "--quiet"})},
        Verb{{"emit"}, {"--c", "--output", "--plan", "--max-bytes", "--units", "--presets"}},
        Verb{{"matrix"}, {"--html", "--markdown"}},
        Verb{{"selftest"}, {"--profile", "--cases",  "--mutants",     "--family", "--survivors-of", "--kills",  "--tries",
                            "--jobs",    "--shard",  "--seed",        "--json",   "--list",         "--matrix", "--again",
                            "--cover",   "--record", "--cover-times", "--proofs", "--library",      "--show"}},
        Verb{{"merge"}, {"--output", "--json", "--require", "--baseline", "--waivers", "--show"}},
        Verb{{"predict"},
             {"--out",   "--resume",  "--profile",      "--cases",   "--random",    "--seed",   "--shard",   "--journal",
              "--lease", "--blocks",  "--architecture", "--plan",    "--unit",      "--stated", "--backend", "--backend-options",
              "--units", "--presets", "--axis",         "--timeout", "--algorithm", "--quiet"}},
        Verb{{"doctor"}, {"--backend", "--backend-options", "--json"}}, Verb{{"golden"}, {}},
        Verb{{"golden", "build"}, {"--folder", "--quiet"}}, Verb{{"golden", "check"}, {"--folder", "--quiet"}}),
    [](const auto& each) {
      std::string name;
      for (const std::string& word : each.param.words) name += (name.empty() ? "" : "_") + word;
      std::replace(name.begin(), name.end(), '-', '_');
      return name.empty() ? "assay" : name;
    });

// A verb is in the help if and only if it works.
class VerbOfTheDesign : public testing::TestWithParam<const char*> {};

TEST_P(VerbOfTheDesign, IsInTheHelpIfItIsBuilt) {
  const std::string help = assay({"--help"}).out;
  const bool named = contains(help.substr(0, help.find("Exit codes")), std::string("\n  ") + GetParam() + " ");
  const std::string usage = std::string("Usage: assay ") + GetParam() + " ";
  EXPECT_EQ(contains(assay({GetParam(), "--help"}).out, usage), named) << help;
}
INSTANTIATE_TEST_SUITE_P(Verbs, VerbOfTheDesign,
                         testing::Values("run", "verify", "compute", "list", "repro", "scale-map", "trace", "emit", "matrix",
                                         "shrink", "explain", "golden", "selftest", "merge", "predict", "diff", "doctor",
                                         "fingerprint", "build", "check"),
                         [](const auto& each) {
                           std::string name = each.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

Words lines_of(const std::string& text) {
  Words lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// A line of `text` whose first word is `word`.
bool has_line_of(const std::string& text, std::string_view word) {
  for (const std::string& line : lines_of(text)) {
    if (line.substr(0, line.find(' ')) == word) return true;
  }
  return false;
}

TEST(List, CasesCanBeParsedAndAreThoseOfTheProfile) {
  for (const char* profile : {"smoke", "standard"}) {
    Words want;
    for (const CaseLine& line : catalogue(*profile_named(profile))) want.push_back(to_text(line));
    EXPECT_EQ(lines_of(assay({"list", "--profile", profile}).out), want);
    for (std::string& each : want) each = name_of(parse_case_line(each));
    EXPECT_EQ(lines_of(assay({"list", "--profile", profile, "--names"}).out), want);
  }
}

TEST(List, WordsSelect) {
  const Words lines = lines_of(assay({"list", "--profile", "smoke", "quantize", "recipe=nvfp4"}).out);
  EXPECT_GE(lines.size(), 5u);
  for (const std::string& line : lines) EXPECT_TRUE(contains(line, "quantize recipe=nvfp4")) << line;
}

TEST(List, WritesJson) {
  const golden::TemporaryFolder folder;
  const Ran ran = assay({"list", "swizzle", "--profile", "smoke", "--json", (folder / "list.json").string()});
  const std::vector<std::byte> bytes = golden::bytes_of_file(folder / "list.json");
  const std::string text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const std::string& line : lines_of(ran.out)) EXPECT_TRUE(contains(text, "\"case\": \"" + line + "\"")) << line;
}

TEST(List, NamesBackendsPlansAndUnits) {
  const std::string backends = assay({"list", "--backends"}).out, plans = assay({"list", "--plans"}).out,
                    listed = assay({"list", "--units"}).out;
  const std::string units = std::regex_replace(listed, std::regex("\n  "), " ");  // before its lines are wrapped
  for (const assay_backend* each : built_in_backends()) EXPECT_TRUE(contains(backends, each->name)) << backends;
  for (const AccumulationPlan& plan : accumulation_plans()) EXPECT_TRUE(has_line_of(plans, plan.name)) << plan.name;
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    EXPECT_TRUE(has_line_of(listed, unit.name)) << unit.name;
    EXPECT_TRUE(contains(units, std::string(unit.evidence))) << unit.name;
  }
  EXPECT_TRUE(contains(units, "not measured by us"));
}

TEST(List, SchemaNamesEveryOpWithItsTensorsAndKeys) {
  const std::string text = assay({"list", "--schema"}).out;
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 100u) << line;
  for (const OpSchema& op : case_schema()) {
    const std::string one = assay({"list", "--schema", "--op", std::string(op.op)}).out;
    const std::size_t begin = one.find("\n\n" + std::string(op.op) + ": ");
    ASSERT_NE(begin, std::string::npos) << one;
    EXPECT_TRUE(contains(text, one.substr(begin))) << op.op;
    for (const KeySchema& key : op.keys)
      EXPECT_TRUE(contains(one, "\n  " + std::string(key.key) + "=")) << op.op << " " << key.key;
    if (op.op == "scenario") continue;
    for (const TensorSchema& tensor : tensors_of(op.op).in)
      EXPECT_TRUE(contains(one, "\n      " + tensor.name + ": ")) << op.op << " " << tensor.name;
    for (const TensorSchema& tensor : tensors_of(op.op).out)
      EXPECT_TRUE(contains(one, "\n      " + tensor.name + ": ")) << op.op << " " << tensor.name;
  }
}

TEST(List, SchemaIsWrittenAsJson) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "schema.json").string();
  EXPECT_EQ(assay({"list", "--schema", "--json", file}).code, 0);
  const std::vector<std::byte> bytes = golden::bytes_of_file(folder / "schema.json");
  const auto schema = nlohmann::json::parse(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  ASSERT_EQ(schema.at("ops").size(), case_schema().size());
  for (std::size_t i = 0; i < case_schema().size(); ++i) {
    const nlohmann::json& op = schema.at("ops").at(i);
    EXPECT_EQ(op.at("op"), case_schema()[i].op);
    EXPECT_EQ(op.at("keys").size(), case_schema()[i].keys.size());
    if (op.at("op") == "scenario") continue;
    EXPECT_EQ(op.at("in").size(), tensors_of(case_schema()[i].op).in.size());
    EXPECT_EQ(op.at("out").size(), tensors_of(case_schema()[i].op).out.size());
  }
  const nlohmann::json offsets = nlohmann::json::parse(
      R"({"name": "splits", "type": "i64|i32", "shape": "G", "need": "required", "help": "rows of each group"})");
  for (const nlohmann::json& op : schema.at("ops")) {
    if (op.at("op") != "splits_to_offsets") continue;
    EXPECT_EQ(op.at("in"), nlohmann::json::array({offsets}));
  }
}

// The schema names the words that attributes and lines of earlier versions use in place of the present ones.
TEST(List, SchemaNamesTheFormerWords) {
  const golden::TemporaryFolder folder;
  const std::string file = (folder / "schema.json").string();
  const std::string text = assay({"list", "--schema", "--op", "linear_wgrad", "--json", file}).out;
  const std::string whole = std::regex_replace(text, std::regex("\n +"), " ");  // before its lines are wrapped
  EXPECT_TRUE(
      contains(whole,
               " former words, which still read; attributes and names of cases keep them: recipe=block for recipe=fp8_block, "
               "itype for x_type, dtype_d for d_type\n"))
      << text;
  EXPECT_FALSE(contains(assay({"list", "--schema", "--op", "swizzle"}).out, "former words"));
  const nlohmann::json schema = nlohmann::json::parse(std::ifstream(file));
  std::map<std::string, nlohmann::json> keys;
  for (const nlohmann::json& key : schema.at("ops").at(0).at("keys")) keys[key.at("key")] = key;
  EXPECT_EQ(keys.at("x_type").at("former"), "itype");
  EXPECT_EQ(keys.at("d_type").at("former"), "dtype_d");
  EXPECT_EQ(keys.at("recipe").at("former_values"), (nlohmann::json{{"fp8_block", "block"}}));
  EXPECT_FALSE(keys.at("otype").contains("former"));
}

}  // namespace
}  // namespace assay::conformance
