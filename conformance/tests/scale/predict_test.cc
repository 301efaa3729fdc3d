// assay predict, and run --predicted: the same verdicts and texts without the reference, and no file can make a failure pass unseen.

#include <algorithm>
#include <functional>
#include <map>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

// The generated cases of the smoke profile, predicted once.
struct Predictions {
  EmptyGolden golden;
  std::string file = path("predicted.jsonl");
  Ran ran;

  Predictions() { ran = predict({}, file); }
  std::string path(const std::string& name) const { return (golden.folder / name).string(); }
  Ran predict(Words more, const std::string& to) const {
    more.insert(more.begin(), {"predict", "--profile", "smoke", "--quiet", "--out", to});
    return assay(more, golden.options);
  }
  Ran run(const char* fault, Words more) const { return assay(faulty_run(fault, more), golden.options); }
};

const Predictions& predictions() {
  static const Predictions made;
  return made;
}

std::vector<json> records_of(const std::string& path) {
  std::vector<json> made;
  std::istringstream lines(text_of(path));
  for (std::string line; std::getline(lines, line);) made.push_back(json::parse(line));
  return made;
}

// SHA-256 of a text, by the system's sha256sum.
std::string sha256_of(const std::string& text, const std::string& scratch) {
  std::ofstream(scratch, std::ios::binary) << text;
  return run_program({"sha256sum", scratch}).out.substr(0, 64);
}

// Writes records with the chain that they must have.
void write_chained(const std::string& path, const std::vector<json>& records) {
  std::string chain, text;
  for (json each : records) {
    each.erase("chain");
    std::string line = each.dump();
    chain = sha256_of(chain + line, path + ".scratch");
    line.pop_back();
    text += line + ",\"chain\":\"" + chain + "\"}\n";
  }
  std::ofstream(path, std::ios::binary) << text;
}

// The verdicts of a run by case, without times, and without how they were predicted, which `predicted` counts.
std::map<std::string, json> predicted_verdicts_of(const std::string& path, std::map<std::string, int>* predicted = nullptr) {
  std::map<std::string, json> made;
  for (json each : results_of(path)) {
    if (each.at("record") != "case") continue;
    if (predicted != nullptr && each.contains("predicted")) ++(*predicted)[each.at("predicted")];
    for (const char* name : {"seconds", "chain", "predicted"}) each.erase(name);
    made[each.at("suite").get<std::string>() + " " + each.at("case").get<std::string>()] = each;
  }
  return made;
}

TEST(Predict, EveryCaseIsPredicted) {
  const Predictions& made = predictions();
  ASSERT_EQ(made.ran.code, 0) << made.ran.out << made.ran.err;
  const json summary = records_of(made.file).back();
  EXPECT_EQ(summary.at("record"), "summary");
  EXPECT_EQ(summary.at("left_out"), json::object());
  EXPECT_EQ(summary.at("predicted"), summary.at("cases"));
  EXPECT_TRUE(contains(made.ran.out, "digest " + summary.at("digest").get<std::string>())) << made.ran.out;
}

TEST(Predict, DoesNotDependOnThreadsOrShards) {
  const Predictions& made = predictions();
  const std::string one = made.path("one_thread.jsonl");
  ProcessOptions options = made.golden.options;
  options.environment.emplace_back("ASSAY_THREADS", "1");
  ASSERT_EQ(assay({"predict", "--profile", "smoke", "--quiet", "--out", one}, options).code, 0);
  EXPECT_EQ(records_of(one).back().at("digest"), records_of(made.file).back().at("digest"));
  std::vector<std::string> whole, parts;
  const auto add = [](const std::string& path, std::vector<std::string>& to) {
    for (json each : records_of(path)) {
      each.erase("chain");
      if (each.at("record") == "prediction") to.push_back(each.dump());
    }
  };
  add(made.file, whole);
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    const std::string part = made.path("part.jsonl");
    ASSERT_EQ(made.predict({"--shard", shard}, part).code, 0);
    add(part, parts);
  }
  std::sort(whole.begin(), whole.end());
  std::sort(parts.begin(), parts.end());
  EXPECT_EQ(whole, parts);
}

TEST(Predict, GoesOnWhereItWasCutOff) {
  const Predictions& made = predictions();
  const std::string text = text_of(made.file), cut = made.path("cut.jsonl");
  std::ofstream(cut, std::ios::binary) << text.substr(0, text.size() / 2);
  const Ran refused = made.run("none", {"swizzle", "--predicted", cut});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(contains(refused.err, "was cut off")) << refused.err;
  const Ran ran = made.predict({"--resume"}, cut);
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(records_of(cut).back().at("digest"), records_of(made.file).back().at("digest"));
  EXPECT_EQ(made.run("none", {"swizzle", "--predicted", cut}).code, 0);
  const Ran other = made.predict({"--resume", "quantize"}, cut);
  EXPECT_EQ(other.code, 3);
  EXPECT_TRUE(contains(other.err, "is of another run")) << other.err;
  const Ran planned = made.predict({"--resume", "--plan", "sm80.bf16.chain"}, cut);
  EXPECT_EQ(planned.code, 3);
  EXPECT_TRUE(contains(planned.err, R"(is of another run: plans: [] there, ["sm80.bf16.chain"] here)")) << planned.err;
}

TEST(Predict, RunHasTheVerdictsOfOneWithoutPredictions) {
  const Predictions& made = predictions();
  const std::string plain = made.path("plain.jsonl"), with = made.path("with.jsonl"), report = made.path("with.json");
  ASSERT_EQ(made.run("none", {"--results", plain}).code, 0);
  const Ran ran = made.run("none", {"--results", with, "--json", report, "--predicted", made.file});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  std::map<std::string, int> predicted;
  EXPECT_EQ(predicted_verdicts_of(with, &predicted), predicted_verdicts_of(plain));
  EXPECT_EQ(results_of(with).back().at("digest"), results_of(plain).back().at("digest"));
  const int cases = records_of(made.file).back().at("predicted");
  EXPECT_EQ(predicted, (std::map<std::string, int>{{"by digest", cases}}));
  EXPECT_TRUE(contains(ran.out, "expected outputs, " + std::to_string(cases) + " cases: by digest")) << ran.out;
  EXPECT_EQ(results_of(with).front().at("predicted").at(0).at("path"), made.file);
  expect_valid(json::parse(text_of(report)), "report");
  // Shards with and without predictions are of one run.
  EXPECT_EQ(assay({"merge", plain, with, "--show", "0"}, made.golden.options).code, 0);
}

TEST(Predict, FailuresReadTheSame) {
  const Predictions& made = predictions();
  for (const auto& [fault, word] : {std::pair{"turned=rowwise_data", "quantize"}, std::pair{"doubled=d", "grouped_gemm"},
                                    std::pair{"left=columnwise_scale_inv", "mxfp8"}, std::pair{"wrong", "permute"},
                                    std::pair{"absent=dequantize", "dequantize"}}) {
    const std::string plain = made.path("plain.jsonl"), with = made.path("with.jsonl");
    const Ran one = made.run(fault, {word, "--results", plain, "--show", "0"});
    const Ran other = made.run(fault, {word, "--results", with, "--show", "0", "--predicted", made.file});
    EXPECT_EQ(one.code, other.code) << fault;
    std::map<std::string, int> predicted;
    const auto verdicts = predicted_verdicts_of(plain);
    EXPECT_EQ(predicted_verdicts_of(with, &predicted), verdicts) << fault;
    const auto failed = std::count_if(verdicts.begin(), verdicts.end(), [](const auto& each) {
      return each.second.at("verdict") == "failed" && each.second.at("suite") == "generated";
    });
    EXPECT_EQ(failed > 0, std::string(fault) != "absent=dequantize") << fault;
    EXPECT_EQ(predicted.count("computed: the prediction is wrong"), 0u) << fault;
    EXPECT_LE(predicted["computed: the outputs differ from the prediction"], failed) << fault;
  }
}

// A line of an op whose outputs are few, to be attacked.
const char* const kLine = "quantize recipe=block_1x128 splits=8,0,20 K=272 seed=5";

struct Attacked {
  const Predictions& made = predictions();
  std::string cases = made.path("attacked.txt"), file = made.path("attacked.jsonl");
  std::vector<json> records;
  Attacked() {
    std::ofstream(cases) << kLine << "\n";
    EXPECT_EQ(assay({"predict", "--cases", cases, "--quiet", "--out", file}, made.golden.options).code, 0);
    records = records_of(file);
  }
  Ran run(const std::string& predicted, Words more = {}, const char* fault = "none") const {
    more.insert(more.begin(), {"run", "--cases", cases, "--backend", ASSAY_FAULTY_BACKEND, "--backend-options", fault, "--quiet",
                               "--predicted", predicted});
    return assay(more, made.golden.options);
  }
};

json& first_digest(json& prediction) {
  json& value = prediction.at("outputs").begin().value();
  return value.is_array() ? value.at(0) : value;
}

TEST(Predict, AChangedFileIsRefused) {
  const Attacked attacked;
  const std::string changed = attacked.made.path("changed.jsonl"), text = text_of(attacked.file);
  const auto refused = [&](const std::string& contents, const std::string& why) {
    std::ofstream(changed, std::ios::binary) << contents;
    const Ran ran = attacked.run(changed);
    EXPECT_EQ(ran.code, 3) << why << ran.out;
    EXPECT_TRUE(contains(ran.err, why)) << why << "\n" << ran.err;
    EXPECT_FALSE(contains(ran.out, "passed")) << ran.out;
  };
  std::string flipped = text;
  char& digit = flipped.at(flipped.find("\"rowwise_data\":") + 20);
  digit = digit == '0' ? '1' : '0';
  refused(flipped, "line 2: was changed");
  const std::size_t second = text.find('\n') + 1, third = text.find('\n', second) + 1;
  refused(text.substr(0, second) + text.substr(third), "line 2: was changed, or a line before it was removed");
  refused(text.substr(0, third), "has no summary");
  refused(text.substr(0, third - 9), "was cut off");
  refused("", "is empty");
  refused("{}\n", "line 1: is not a header of a file of predictions");
  const std::string results = attacked.made.path("results.jsonl");
  ASSERT_EQ(attacked.run(attacked.file, {"--results", results}).code, 0);
  refused(text_of(results), "line 1: is not a header of a file of predictions");
  const Ran absent = attacked.run(attacked.made.path("none.jsonl"));
  EXPECT_EQ(absent.code, 3) << absent.err;
}

// Whoever writes the digests of the lines anew can put anything there.
TEST(Predict, AWrongPredictionIsAFaultOfTheFile) {
  Attacked attacked;
  const std::string wrong = attacked.made.path("wrong.jsonl"), results = attacked.made.path("results.jsonl");
  for (const char* what : {"digest", "elements"}) {
    std::vector<json> records = attacked.records;
    for (json& each : records) {
      if (each.at("record") != "prediction") continue;
      if (std::string(what) == "digest") {
        std::string text = first_digest(each);
        text[0] = text[0] == '0' ? '1' : '0';
        first_digest(each) = text;
      } else {
        each.at("elements") = each.at("elements").get<int>() - 1;
        std::string text = first_digest(each);
        text[0] = text[0] == '0' ? '1' : '0';  // otherwise nothing makes the run look
        first_digest(each) = text;
      }
    }
    write_chained(wrong, records);
    const Ran ran = attacked.run(wrong, {"--results", results});
    EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.out, ": wrong prediction: " + std::string(kLine))) << ran.out;
    EXPECT_TRUE(contains(ran.out, "1 passed, 0 failed")) << ran.out;
    std::map<std::string, int> predicted;
    predicted_verdicts_of(results, &predicted);
    EXPECT_EQ(predicted, (std::map<std::string, int>{{"computed: the prediction is wrong", 1}}));
    EXPECT_EQ(results_of(results).back().at("bad_fixtures").size(), 1u);
    // A fault of the backend is found all the same.
    EXPECT_TRUE(contains(attacked.run(wrong, {}, "turned=rowwise_data").out, "0 passed, 1 failed"));
  }
}

TEST(Predict, FilesThatContradictOrAreOfAnotherProgramAreRefused) {
  Attacked attacked;
  const std::string other = attacked.made.path("other.jsonl");
  const auto run_with = [&](const std::function<void(json&)>& change) {
    std::vector<json> records = attacked.records;
    for (json& each : records) change(each);
    write_chained(other, records);
    return attacked.run(attacked.file, {"--predicted", other});
  };
  EXPECT_EQ(run_with([](json&) {}).code, 0);
  const Ran twice = run_with([](json& each) {
    if (each.at("record") == "prediction") first_digest(each) = std::string(64, '7');
  });
  EXPECT_EQ(twice.code, 3);
  EXPECT_TRUE(contains(twice.err, "predicts other outputs than " + attacked.file)) << twice.err;
  const Ran merged = assay({"merge", attacked.file, other}, attacked.made.golden.options);
  EXPECT_EQ(merged.code, 3);
  EXPECT_TRUE(contains(merged.err, "predicts other outputs than attacked.jsonl: " + std::string(kLine) + ": ")) << merged.err;
  for (const char* member : {"assay", "commit", "layer"}) {
    const Ran ran = run_with([&](json& each) {
      if (each.contains(member)) each.at(member) = "other";
    });
    EXPECT_EQ(ran.code, 3) << member;
    EXPECT_TRUE(contains(ran.err, "other")) << ran.err;
  }
  const Ran malformed = run_with([](json& each) {
    if (each.at("record") == "prediction") first_digest(each) = "12";
  });
  EXPECT_EQ(malformed.code, 3);
  EXPECT_TRUE(contains(malformed.err, "'12' is not a digest")) << malformed.err;
  // The reference is judged by its other layer.
  const Ran layer = assay({"run", "--cases", attacked.cases, "--backend", "reference", "--quiet", "--predicted", attacked.file},
                          attacked.made.golden.options);
  EXPECT_EQ(layer.code, 3);
  EXPECT_TRUE(contains(layer.err, "by the layer fast of the reference")) << layer.err;
}

TEST(Predict, OtherPlansAreComputedOrLeftOut) {
  const Predictions& made = predictions();
  const std::string file = made.path("plan.jsonl"), results = made.path("plan_results.jsonl");
  const Words words{"grouped_gemm", "kind=bf16"};
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    return more;
  };
  const Ran other = made.predict(with({"--plan", "sm80.bf16.chain"}), file);
  ASSERT_EQ(other.code, 0) << other.out << other.err;
  const Ran ran = made.run("none", with({"--predicted", file, "--results", results}));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  std::map<std::string, int> predicted;
  const std::size_t cases = predicted_verdicts_of(results, &predicted).size();
  const int computed = predicted["computed: predicted under other plans only"];
  const int unfit = predicted["computed: the case is not predicted"];  // the chain is no plan of these
  EXPECT_GT(computed, 0);
  EXPECT_GT(unfit, 0);
  const Ran left_out = made.run("none", with({"--predicted", file, "--predicted-only", "--results", results}));
  EXPECT_EQ(left_out.code, 5) << left_out.out << left_out.err;
  EXPECT_TRUE(contains(left_out.out, "not tried, " + std::to_string(computed) + " cases: predicted under other plans only"))
      << left_out.out;
  EXPECT_TRUE(contains(left_out.out, "not tried, " + std::to_string(unfit) + " cases: the case is not predicted"))
      << left_out.out;
  EXPECT_EQ(results_of(results).back().at("counts").at("passed").get<std::size_t>() + static_cast<std::size_t>(computed + unfit),
            cases);
  // What an earlier run recorded is what the backend states.
  const std::string stated = made.path("stated.jsonl");
  ASSERT_EQ(made.run("none", with({"--results", results})).code, 0);
  ASSERT_EQ(made.predict(with({"--stated", results}), stated).code, 0);
  EXPECT_EQ(made.run("none", with({"--predicted", stated, "--predicted-only"})).code, 0);
  // And so is what it says when it is asked.
  ASSERT_EQ(made.predict(with({"--backend", ASSAY_FAULTY_BACKEND}), stated).code, 0);
  EXPECT_EQ(made.run("none", with({"--predicted", stated, "--predicted-only"})).code, 0);
}

TEST(Predict, RefusesWhatItCannotUse) {
  const Predictions& made = predictions();
  const std::string file = made.path("refused.jsonl");
  EXPECT_EQ(made.predict({"--plan", "unit=none"}, file).code, 2);
  EXPECT_EQ(made.predict({"--unit", "sm1.none"}, file).code, 2);
  EXPECT_EQ(made.predict({"--backend", ASSAY_FAULTY_BACKEND, "--stated", made.file}, file).code, 2);
  EXPECT_EQ(made.predict({"nothing_has_this_name"}, file).code, 4);
  EXPECT_EQ(made.predict({}, "/no/such/folder/file.jsonl").code, 2);
  EXPECT_EQ(made.predict({"--backend", "/no/such/library.so"}, file).code, 9);
  EXPECT_EQ(made.run("none", {"--predicted", made.file, "--expect-by", "reference"}).code, 2);
  EXPECT_EQ(made.run("none", {"--predicted-only"}).code, 2);
}

}  // namespace
}  // namespace assay::conformance
