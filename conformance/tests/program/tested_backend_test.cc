// What is judged if no backend is named: the device if there is one, and otherwise the reference; never another backend in place
// of a device.

#include "conformance/suites/tested_backend.h"

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

using Choice = BackendDecision::Choice;

// All combinations of the availability, against the three sentences of the rule.
TEST(TestedBackend, OfEveryCombinationOfAvailability) {
  int refused = 0;
  for (const bool named : {false, true}) {
    for (const bool built : {false, true}) {
      for (const bool opens : {false, true}) {
        for (const char* seen : {"", "/dev/nvidia0"}) {
          const BackendDecision decision = decide_backend({named, built, opens, opens ? "" : "no kernel image", seen});
          const bool device_works = built && opens, device_there = *seen != '\0';
          if (named) {
            EXPECT_EQ(decision.choice, Choice::as_named);  // a named backend is judged
          } else if (device_works) {
            EXPECT_EQ(decision.choice, Choice::device);
          } else if (device_there) {  // present but not usable: refused, with the remedy
            ++refused;
            EXPECT_EQ(decision.choice, Choice::refused);
            for (const char* part : {"/dev/nvidia0", "ASSAY_CUDA_ARCHITECTURES=", "--backend reference"})
              EXPECT_TRUE(contains(decision.text, part)) << decision.text;
            EXPECT_TRUE(contains(decision.text, built ? "no kernel image" : "no CUDA half")) << decision.text;
          } else {
            EXPECT_EQ(decision.choice, Choice::reference);
            EXPECT_NE(decision.text, "") << "why no device is judged is said";
          }
        }
      }
    }
  }
  EXPECT_EQ(refused, 3);
}

// A device is detected without CUDA.
TEST(TestedBackend, DevicesAreSeenWithoutCuda) {
  const golden::TemporaryFolder folder;
  EXPECT_EQ(nvidia_device(folder.path()), "");
  std::filesystem::create_directory(folder / "dev");
  for (const char* other : {"nvidiactl", "nvidia-uvm", "nvidia", "nvidia-modeset", "null", "nvidia0x"})
    std::ofstream(folder / "dev" / other).flush();
  EXPECT_EQ(nvidia_device(folder.path()), "");
  std::filesystem::create_directories(folder / "proc" / "driver" / "nvidia" / "gpus" / "0000:01:00.0");
  EXPECT_EQ(nvidia_device(folder.path()), (folder / "proc/driver/nvidia/gpus/0000:01:00.0").string());
  std::ofstream(folder / "dev" / "nvidia3").flush();
  EXPECT_EQ(nvidia_device(folder.path()), (folder / "dev/nvidia3").string());
}

// Commands with a backend's former name reach the same backend, and its verdict has the present name.
TEST(TestedBackend, AnswersToItsFormerName) {
  const EmptyGolden golden;
  for (const char* name : {"bringup", "emulated"}) {
    const Ran ran = assay({"run", "splits_to_offsets", "--profile", "smoke", "--quiet", "--backend", name}, golden.options);
    EXPECT_TRUE(contains(ran.out + ran.err, "backend emulated") || contains(ran.err, "backend 'emulated'")) << ran.out << ran.err;
  }
}

// Whoever judges a library asked for no device of this project.
TEST(TestedBackend, OfOneThatIsBuiltInTheRunSaysThatNoDeviceIsJudged) {
  const EmptyGolden golden;
  const std::string note = "not run, device cases: --backend device judges the CUDA implementation";
  const Ran library = assay(faulty_run("none", {"swizzle"}), golden.options);
  EXPECT_EQ(library.code, 0) << library.err;
  EXPECT_FALSE(contains(library.out, note)) << library.out;
  const Ran built_in = assay({"run", "swizzle", "--profile", "smoke", "--quiet", "--backend", "reference"}, golden.options);
  EXPECT_TRUE(contains(built_in.out, note)) << built_in.out;
}

// On this machine the program acts as decided: it names its backend first, on standard error, and in the verdict; or it refuses.
TEST(TestedBackend, IsNamedFirst) {
  const EmptyGolden golden;
  const Ran ran = assay({"run", "splits_to_offsets", "--profile", "smoke", "--quiet"}, golden.options);
  const BackendDecision decision = decide_backend(backend_availability(false));
  if (decision.choice == Choice::refused) {
    EXPECT_EQ(ran.code, 9);
    EXPECT_EQ(ran.err, "assay run: " + decision.text + "\n");
    EXPECT_EQ(ran.out, "");
    return;
  }
  const std::string name = decision.choice == Choice::device ? "device" : "reference";
  EXPECT_TRUE(ran.err.starts_with("assay: judging backend " + name + " on ")) << ran.err;
  EXPECT_TRUE(contains(ran.err, "run --profile smoke splits_to_offsets, ") && contains(ran.err, " cases, ")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "PASS run --profile smoke splits_to_offsets: backend " + name + " on ")) << ran.out;
  EXPECT_EQ(contains(ran.err, "(no device: "), decision.choice == Choice::reference) << ran.err;
}

TEST(TestedBackend, OfALibraryIsItsFile) {
  const EmptyGolden golden;
  const Ran ran = assay(faulty_run("none", {"splits_to_offsets"}), golden.options);
  const std::string file = std::filesystem::canonical(ASSAY_FAULTY_BACKEND).string();
  EXPECT_TRUE(ran.err.starts_with("assay: judging backend faulty of " + file + " on ")) << ran.err;
  EXPECT_TRUE(contains(ran.out, "backend faulty of " + file + " on ")) << ran.out;
}

}  // namespace
}  // namespace assay::conformance
