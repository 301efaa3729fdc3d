// Predictions in parts, by workers that share a journal and by shards: killed at random, nothing is lost and nothing is there twice, and the
// merged file has the same bytes however the work was divided.

#include <functional>
#include <map>
#include <set>

#include "conformance/suites/journal.h"
#include "conformance/tests/scale/workers.h"

namespace assay::conformance {
namespace {

// Whole lines of a file of predictions.
std::vector<json> lines_of_file(const std::string& path) {
  std::vector<json> made;
  const std::string text = text_of(path);
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    made.push_back(json::parse(text.substr(at, end - at)));
  return made;
}

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Folder : golden::TemporaryFolder {
  std::string at(const std::string& name) const { return (*this / name).string(); }
  // The merged file.
  std::string merged(const Words& parts, const std::string& name, int code = 0) const {
    const Ran ran = assay(joined(joined({"merge"}, parts), {"-o", at(name)}));
    EXPECT_EQ(ran.code, code) << ran.out << ran.err;
    EXPECT_FALSE(contains(ran.out, "twice")) << ran.out;
    return text_of(at(name));
  }
};

TEST(PredictJournal, NothingIsLostAndNothingTwiceWhereWorkersAreKilled) {
  const Folder folder;
  const Words predict{"predict", "--cases", case_file(folder, 2000), "--quiet"};
  ASSERT_EQ(assay(joined(predict, {"--out", folder.at("whole.jsonl")})).code, 0);
  EXPECT_GE(run_workers(joined(predict, {"--journal", folder.at("journal"), "--blocks", "40"}), 8, 12), 3);

  const std::string one = folder.merged({folder.at("whole.jsonl")}, "one.jsonl");
  EXPECT_TRUE(one == folder.merged({folder.at("journal")}, "joined.jsonl")) << "the bytes of the merged files differ";
  const json summary = lines_of_file(folder.at("joined.jsonl")).back();
  EXPECT_EQ(summary.at("digest"), lines_of_file(folder.at("whole.jsonl")).back().at("digest"));
  EXPECT_EQ(summary.at("cases"), 2000);
  // Counted in the leases themselves: each case is whole in one of them.
  std::map<std::string, int> whole;
  for (const std::string& path : journal_files(folder.at("journal")).leases) {
    std::map<std::string, std::size_t> calls, of;
    for (const json& each : lines_of_file(path)) {
      if (each.at("record") == "header") continue;
      ++calls[each.at("case")];
      of[each.at("case")] = each.value("of", std::size_t{1});
    }
    for (const auto& [line, number] : calls) whole[line] += number == of.at(line);
  }
  EXPECT_EQ(whole.size(), 2000u);
  for (const auto& [line, times] : whole) EXPECT_EQ(times, 1) << line;
  EXPECT_EQ(assay({"report", "--check", folder.at("joined.jsonl")}).code, 0);
}

TEST(PredictJournal, ShardsMergeToTheSameBytes) {
  const Folder folder;
  // A plan that products of FP8 cannot have: they are left out, and the file says of each why.
  const Words predict{"predict", "--profile", "smoke", "grouped_gemm", "--plan", "sm80.bf16.chain", "--quiet"};
  ASSERT_EQ(assay(joined(predict, {"--out", folder.at("whole.jsonl")})).code, 0);
  Words parts;
  for (const char* shard : {"0/3", "1/3", "2/3"}) {
    parts.insert(parts.begin(), folder.at("part" + std::string(1, *shard) + ".jsonl"));
    ASSERT_EQ(assay(joined(predict, {"--shard", shard, "--out", parts[0]})).code, 0);
  }
  const std::string one = folder.merged({folder.at("whole.jsonl")}, "one.jsonl");
  EXPECT_TRUE(one == folder.merged(parts, "all.jsonl")) << "the bytes of the merged files differ";
  const json whole = lines_of_file(folder.at("whole.jsonl")).back(), all = lines_of_file(folder.at("all.jsonl")).back();
  for (const char* member : {"cases", "predicted", "predictions", "left_out", "digest"})
    EXPECT_EQ(all.at(member), whole.at(member));
  EXPECT_GT(all.at("left_out").size(), 0u);
  EXPECT_FALSE(all.contains("missing"));

  const Ran run = assay({"run", "--profile", "smoke", "grouped_gemm", "--backend", ASSAY_FAULTY_BACKEND, "--backend-options",
                         "none", "--quiet", "--predicted", folder.at("all.jsonl")});
  EXPECT_EQ(run.code, 0) << run.out << run.err;

  // A part that is missing is named, and its cases; what is there can be used, and joined with the rest later.
  const Ran partly = assay({"merge", parts[0], parts[2], "-o", folder.at("partly.jsonl"), "--show", "1000"});
  EXPECT_EQ(partly.code, 5) << partly.out << partly.err;
  EXPECT_TRUE(contains(partly.out, "a shard of the run is missing: 1/3")) << partly.out;
  for (const json& each : lines_of_file(parts[1])) {
    if (each.contains("case"))
      EXPECT_TRUE(contains(partly.out, "missing: " + each.at("case").get<std::string>() + "\n")) << each << "\n" << partly.out;
  }
  EXPECT_EQ(lines_of_file(folder.at("partly.jsonl")).back().at("missing"), lines_of_file(parts[1]).back().at("cases"));
  EXPECT_TRUE(one == folder.merged({folder.at("partly.jsonl"), parts[1]}, "again.jsonl"));
}

TEST(PredictJournal, GoesOnWhereTheOnlyWorkerWasInterrupted) {
  const Folder folder;
  const Words worker{"predict", "--cases", case_file(folder, 600), "--quiet", "--journal", folder.at("journal"), "--blocks", "4"};
  ProcessOptions options;
  options.environment = {{"ASSAY_THREADS", "1"}};
  options.meanwhile = [&](pid_t child) {
    appears(folder.at("journal/run.json"));
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    kill(child, SIGTERM);
  };
  const Ran first = assay(worker, options);
  EXPECT_EQ(first.code, 5) << first.out << first.err;
  EXPECT_NE(assay({"merge", folder.at("journal")}).code, 0);
  options.meanwhile = nullptr;
  const Ran second = assay(worker, options);
  EXPECT_EQ(second.code, 0) << second.out << second.err;
  folder.merged({folder.at("journal")}, "joined.jsonl");
  const Ran third = assay(worker, options);
  EXPECT_EQ(third.code, 0) << third.out << third.err;
  EXPECT_TRUE(contains(third.out, ": 0 of 4 blocks; assay merge ")) << third.out;
}

// What a backend states is asked by each worker, and what it does not take is left out.
TEST(PredictJournal, AsksABackend) {
  const Folder folder;
  const Words predict{"predict",           "--profile",         "smoke",  "dequantize", "--backend", ASSAY_FAULTY_BACKEND,
                      "--backend-options", "absent=dequantize", "--quiet"};
  const Ran whole = assay(joined(predict, {"--out", folder.at("whole.jsonl")}));
  EXPECT_EQ(whole.code, 4) << whole.out << whole.err;
  EXPECT_TRUE(contains(whole.out, "the backend does not support the case")) << whole.out;
  const Ran again = assay(joined(predict, {"--journal", folder.at("journal")}));
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_TRUE(folder.merged({folder.at("whole.jsonl")}, "one.jsonl") == folder.merged({folder.at("journal")}, "joined.jsonl"));
}

// A worker of another run, and another verb's, are refused by name before anything is predicted.
TEST(PredictJournal, RefusesTheJournalOfAnotherRun) {
  const Folder folder;
  const std::string journal = folder.at("journal");
  const Words worker{"predict", "--profile", "smoke", "swizzle", "--quiet", "--journal", journal};
  ASSERT_EQ(assay(worker).code, 0);
  const auto refused = [&](const Words& words, const std::string& why) {
    const Ran ran = assay(words);
    EXPECT_EQ(ran.code, 3) << why << "\n" << ran.out;
    EXPECT_TRUE(contains(ran.err, journal + ": is the journal of another run: " + why)) << why << "\n" << ran.err;
  };
  refused({"predict", "--profile", "standard", "swizzle", "--quiet", "--journal", journal},
          R"(verb: "predict --profile smoke swizzle" there, "predict --profile standard swizzle" here)");
  refused({"predict", "--profile", "smoke", "dequantize", "--quiet", "--journal", journal},
          R"(verb: "predict --profile smoke swizzle" there, "predict --profile smoke dequantize" here)");
  refused({"run", "--profile", "smoke", "swizzle", "--backend", "reference", "--quiet", "--journal", journal},
          R"(verb: "predict --profile smoke swizzle" there, "run --profile smoke swizzle" here)");
  refused(joined(worker, {"--plan", "sm80.bf16.chain"}), R"(plans: [] there, ["sm80.bf16.chain"] here)");
  refused(joined(worker, {"--unit", "sm90.wgmma.f16"}), R"(units_stated: [] there, ["sm90.wgmma.f16"] here)");
  refused(joined(worker, {"--backend", "reference"}), R"(layer: "fast" there, "scalar" here)");
  // Another build.
  json start = json::parse(text_of(journal + "/run.json"));
  start.at("header").at("commit") = "another";
  std::ofstream(journal + "/run.json") << start.dump();
  refused(worker, R"(commit: "another" there, )");
}

TEST(PredictJournal, RefusesOtherCasesUnderTheSameName) {
  const Folder folder;
  const std::string cases = folder.at("cases.txt"), journal = folder.at("journal");
  const Words worker{"predict", "--cases", cases, "--quiet", "--journal", journal};
  std::ofstream(cases) << "quantize recipe=block_1x128 splits=8,0,20 K=272 seed=5\n";
  ASSERT_EQ(assay(worker).code, 0);
  std::ofstream(cases) << "quantize recipe=block_1x128 splits=8,0,20 K=272 seed=6\n";
  const Ran ran = assay(worker);
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(contains(ran.err, "is the journal of another run: selection/sha256: ")) << ran.err;
}

TEST(PredictJournal, RefusesWhatDoesNotGoTogether) {
  const Folder folder;
  const Words predict{"predict", "--profile", "smoke", "swizzle", "--quiet"};
  const std::string journal = folder.at("journal"), file = folder.at("file.jsonl");
  for (const auto& [more, why] : {std::pair{Words{}, "--out: is absent: expected --out FILE or --journal FOLDER"},
                                  std::pair{Words{"--journal", journal, "--out", file}, "--journal: with --out or --resume: "},
                                  std::pair{Words{"--journal", journal, "--resume"}, "--journal: with --out or --resume: "},
                                  std::pair{Words{"--journal", journal, "--shard", "0/2"}, "--journal: with shard 0/2: "},
                                  std::pair{Words{"--out", file, "--blocks", "3"}, "--blocks requires --journal"}}) {
    const Ran ran = assay(joined(predict, more));
    EXPECT_EQ(ran.code, 2) << why << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, why)) << why << "\n" << ran.err;
  }
  EXPECT_FALSE(std::filesystem::exists(journal));
  EXPECT_FALSE(std::filesystem::exists(file));

  ASSERT_EQ(assay(joined(predict, {"--journal", journal})).code, 0);
  ASSERT_EQ(assay(joined(predict, {"--out", file})).code, 0);
  const Words run{"run", "--profile", "smoke", "swizzle", "--backend", "reference", "--quiet"};
  const Ran folder_given = assay(joined(run, {"--predicted", journal}));
  EXPECT_EQ(folder_given.code, 3) << folder_given.err;
  EXPECT_TRUE(contains(folder_given.err, "is a folder: expected a file (assay merge FOLDER -o FILE")) << folder_given.err;
  ASSERT_EQ(assay(joined(run, {"--results", folder.at("results.jsonl")})).code, 0);
  const Ran mixed = assay({"merge", file, folder.at("results.jsonl")});
  EXPECT_EQ(mixed.code, 3) << mixed.err;
  EXPECT_TRUE(contains(mixed.err, "results.jsonl: holds no predictions, and other files do")) << mixed.err;
  const Ran required = assay({"merge", file, "--require", "swizzle"});
  EXPECT_EQ(required.code, 2) << required.err;
  EXPECT_TRUE(contains(required.err, "--require: is of verdicts: these are files of predictions")) << required.err;
  // Files that are cut off, changed, or of another selection.
  const std::string text = text_of(file), other = folder.at("other.jsonl");
  std::ofstream(other, std::ios::binary) << text.substr(0, text.size() - 10);
  const Ran cut = assay({"merge", other});
  EXPECT_TRUE(contains(cut.out, "has no summary: its run did not end (--resume goes on)")) << cut.out << cut.err;
  std::string changed = text;
  char& digit = changed.at(changed.rfind("\"outputs\":") + 30);
  digit = digit == '0' ? '1' : '0';
  std::ofstream(other, std::ios::binary) << changed;
  const Ran refused = assay({"merge", other});
  EXPECT_EQ(refused.code, 3);
  EXPECT_TRUE(contains(refused.err, "was changed, or a line before it")) << refused.err;
  ASSERT_EQ(assay({"predict", "--profile", "smoke", "dequantize", "--quiet", "--out", other}).code, 0);
  const Ran apart = assay({"merge", file, other});
  EXPECT_EQ(apart.code, 3);
  EXPECT_TRUE(contains(apart.err, R"(is of another run than file.jsonl: verb: "predict --profile smoke swizzle" there, )"))
      << apart.err;
}

}  // namespace
}  // namespace assay::conformance
