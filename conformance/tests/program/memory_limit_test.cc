// Under a limited address space (ulimit -v) a run passes, or ends soon with exit 9 and "out of memory".

#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "conformance/tests/program/run_program.h"
#include "reference/support/sanitized.h"

namespace assay::conformance {
namespace {

Ran run_within(int kilobytes, const std::string& arguments) {
  const std::string program = ASSAY_PROGRAM;
  return run_program({"sh", "-c", "ulimit -v " + std::to_string(kilobytes) + " && exec '" + program + "' " + arguments});
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// From a limit too small for the program to start to one with room for everything.
TEST(AddressSpace, LimitedPassesOrEndsWithExit9) {
  if (kHasShadowMemory) GTEST_SKIP() << "compiled with a sanitizer, whose shadow memory takes terabytes of address space";
  int passed = 0, refused = 0;
  // Up to two passes: with CUDA linked and many threads the program needs more to start.
  for (int kilobytes = 24'000; kilobytes <= 2'000'000 && passed < 2; kilobytes = kilobytes * 8 / 7) {
    const auto begin = std::chrono::steady_clock::now();
    const Ran ran = run_within(kilobytes, "run --profile smoke --quiet --backend reference dequantize");
    EXPECT_LT(seconds_since(begin), 60) << kilobytes;
    // The dynamic linker has no room for the libraries, or they have none for their initialization before the program starts.
    const bool begun = passed + refused > 0 || (ran.signal == 0 && ran.code != 127);
    if (!begun) continue;
    EXPECT_EQ(ran.signal, 0) << kilobytes;
    passed += ran.code == 0;
    refused += ran.code == 9;
    EXPECT_TRUE(ran.code == 0 || ran.code == 9) << kilobytes << ": exit " << ran.code << "\n" << ran.out << ran.err;
    if (ran.code == 9) {
      EXPECT_TRUE(contains(ran.out + ran.err, "out of memory")) << kilobytes << "\n" << ran.out << ran.err;
    }
  }
  EXPECT_GT(passed, 0);
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace assay::conformance
