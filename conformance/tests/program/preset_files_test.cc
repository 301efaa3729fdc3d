// Files of further scale rules (reference/spec/scale-rules.md, clause 1.2): a user's rule as a line of text.

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

constexpr const char* kOwnRule =
    "name=mine blocks=1x64 rule=\"s = max(amax, 1e-6) / 448; scale = s; code = x / s\" source=\"a page of ours\"\n";

struct PresetFile {
  golden::TemporaryFolder folder;
  std::string path = (folder / "mine.txt").string();
  explicit PresetFile(const std::string& text) { std::ofstream(path) << text; }
};

TEST(PresetFiles, AreListedAfterTheBuiltInRules) {
  const PresetFile file(kOwnRule);
  const Ran run = assay({"list", "--presets", file.path});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("\nmine\n  blocks 1x64; codes e4m3; scales f32, k_major\n"), std::string::npos) << run.out;
  EXPECT_EQ(run.out.rfind("te\n", 0), 0u);
}

TEST(PresetFiles, AreJudgedAndNamedByTheCommandThatRepeatsACase) {
  const PresetFile file(kOwnRule);
  const Words line{"quantize_by_rule preset=mine splits=5,0,12 K=144 data=every_special"};
  const Ran passed = assay({"repro", line[0], "--backend", "reference", "--presets", file.path});
  EXPECT_EQ(passed.code, 0) << passed.out << passed.err;
  const Ran failed = assay({"repro", line[0], "--backend", "null", "--presets", file.path});
  EXPECT_EQ(failed.code, 1) << failed.err;
  EXPECT_NE(failed.out.find(" --presets " + file.path), std::string::npos) << failed.out;
  const Ran unknown = assay({"repro", line[0], "--backend", "reference"});
  EXPECT_NE(unknown.code, 0);
  EXPECT_NE(unknown.err.find("preset is 'mine': expected a name that `assay list --presets` prints"), std::string::npos)
      << unknown.err;
}

TEST(PresetFiles, AreRefusedWithTheLineAndTheField) {
  struct Wrong {
    const char *text, *message;
  };
  for (const Wrong& each :
       {Wrong{"name=mine blocks=1x64 rule=\"scale = amax\" source=x\n",
              "mine.txt:1: rule is 'scale = amax': expected an assignment to code"},
        Wrong{"name=mine blocks=1x64 rule=\"scale = amax; code = amax\" source=x\n", "expected x in the assignment to code"},
        Wrong{"name=mine blocks=1x64 rule=\"scale = x; code = x\" source=x\n", "expected x in the assignment to code alone"},
        Wrong{"name=mine blocks=0x64 rule=\"scale = amax; code = x\" source=x\n",
              "mine.txt:1: blocks is '0x64': expected ROWSxCOLUMNS"},
        Wrong{"name=mine blocks=1x64 round=odd rule=\"scale = amax; code = x\" source=x\n",
              "mine.txt:1: round is 'odd': expected even, down, away or truncate"},
        Wrong{"name=mine blocks=1x64 colour=red rule=\"scale = amax; code = x\" source=x\n",
              "mine.txt:1: colour is 'red': expected one of the fields name, blocks"},
        Wrong{"blocks=1x64 rule=\"scale = amax; code = x\" source=x\n", "mine.txt:1: name is missing"},
        Wrong{"name=te blocks=1x64 rule=\"scale = amax; code = x\" source=x\n",
              "name is 'te': expected a name that no other rule has"},
        Wrong{"name=mine blocks=1x64 rule=\"scale = amax; code = x\n", "expected a closing quote"},
        Wrong{"name=mine blocks=1x64 rule=\"scale = amax; code = x\"source=x\n",
              "mine.txt:1: rule is source=x: expected a blank after the closing quote"},
        Wrong{"name=mine blocks\n", "mine.txt:1: field is blocks: expected FIELD=VALUE"},
        Wrong{"  name=mine\n", "mine.txt:1 is an indented line: expected a row above it to continue"}}) {
    const PresetFile file(each.text);
    const Ran run = assay({"list", "--presets", file.path});
    EXPECT_EQ(run.code, 2) << each.text << run.err;
    EXPECT_NE(run.err.find(each.message), std::string::npos) << run.err;
  }
}

}  // namespace
}  // namespace assay::conformance
