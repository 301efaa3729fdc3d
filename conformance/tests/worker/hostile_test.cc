// Backends that break the rules. Each ends in a verdict that names the case and the call; every other case is judged as if
// nothing had happened.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include <atomic>
#include <future>

#include "conformance/tests/worker/run_hostile.h"
#include "golden/tests/temporary_folder.h"
#include "reference/support/sanitized.h"

namespace assay::conformance {
namespace {

struct Hostile {
  const char* deed;     // as hostile_backend.cc reads it
  const char* verdict;  // of the target case; "passed" where the deed is no fault
  Words reported;       // in its text
};

void check(const Hostile& hostile) {
  SCOPED_TRACE(hostile.deed);
  const Seen seen = run_hostile(hostile.deed);
  ASSERT_FALSE(seen.target.is_null()) << seen.ran.out << seen.ran.err;
  EXPECT_EQ(seen.target.at("verdict"), hostile.verdict) << seen.ran.out;
  EXPECT_EQ(seen.others_passed, others()) << seen.ran.out;
  EXPECT_EQ(seen.ran.signal, 0);
  const std::string verdict = hostile.verdict;
  EXPECT_EQ(seen.ran.code, verdict == "passed" ? 0 : verdict == "unfinished" ? 5 : 1) << seen.ran.out << seen.ran.err;
  EXPECT_EQ(without_judged_line(seen.ran.err), "");
  const std::string text = text_of(seen.target);
  for (const std::string& part : hostile.reported) EXPECT_TRUE(contains(text, part)) << part << "\nis not in\n" << text;
  if (verdict != "passed") {
    EXPECT_TRUE(contains(text, std::string("FAILED  ") + kTarget)) << text;
    EXPECT_TRUE(contains(text, "  repro   assay repro ")) << text;
  }
}

// Tests that mostly wait run side by side.
void check_all(const std::vector<Hostile>& all) {
  std::vector<std::future<void>> running;
  std::atomic<std::size_t> next = 0;
  for (int i = 0; i < 6; ++i) {
    running.push_back(std::async(std::launch::async, [&] {
      for (std::size_t at = next++; at < all.size(); at = next++) check(all[at]);
    }));
  }
  for (std::future<void>& each : running) each.get();
}

TEST(Hostile, ProcessesThatEnd) {
  check_all({
      {"exit@execute", "failed", {"ended with exit code 0 in execute()"}},
      {"_exit@execute", "failed", {"ended with exit code 3 in execute()"}},
      {"quick_exit@supports", "failed", {"ended with exit code 0 in supports()"}},
      {"abort@execute", "failed", {"ended by signal 6 (SIGABRT) in execute()"}},
      {"terminate@numerics", "failed", {"ended by signal 6 (SIGABRT) in numerics()"}},
      {"segv@supports", "failed", {"ended by signal 11 (SIGSEGV) in supports()"}},
      {"segv@numerics", "failed", {"ended by signal 11 (SIGSEGV) in numerics()"}},
      {"segv@workspace_bytes", "failed", {"ended by signal 11 (SIGSEGV) in workspace_bytes()"}},
      {"segv@execute", "failed", {"ended by signal 11 (SIGSEGV) in execute()"}},
      {"segv@synchronize", "failed", {"ended by signal 11 (SIGSEGV) in synchronize()"}},
      {"segv@copy_to_host", "failed", {"ended by signal 11 (SIGSEGV) in copy_to_host()"}},
      {"segv@last_error", "failed", {"ended by signal 11 (SIGSEGV) in last_error()"}},
      {"segv@release", "failed", {"ended by signal 11 (SIGSEGV) in release()"}},
      {"segv@stream_destroy", "failed", {"ended by signal 11 (SIGSEGV) in stream_destroy()"}},
      {"fpe@execute", "failed", {"ended by signal 8 (SIGFPE) in execute()"}},
      {"overflow@execute", "failed", {"ended by signal 11 (SIGSEGV) in execute()"}},
      {"kill@execute", "failed", {"ended by signal 9 (SIGKILL) in execute()"}},
      {"term@execute", "failed", {"ended by signal 15 (SIGTERM) in execute()"}},
      {"pipe@execute", "failed", {"ended by signal 13 (SIGPIPE) in execute()"}},
      {"group@execute", "failed", {"ended by signal 9 (SIGKILL) in execute()"}},
      {"end_thread@execute", "failed", {"ended by signal 6 (SIGABRT) in execute()"}},
      {"thread_exit@execute", "failed", {"ended with exit code 0 in execute()"}},
      {"child_answers@execute", "failed", {"ended with exit code 0 in execute()"}},
      {"exec@execute", "failed", {"ended with exit code 0 in execute()"}},
      {"handled_segv@execute", "failed", {"ended with exit code 0 in execute()"}},
      {"unmap@execute", "failed", {"ended by signal 11 (SIGSEGV) in execute()"}},
      {"leave_parent@execute", "failed", {"ended by signal 9 (SIGKILL) in execute()"}},
      {"print_segv@execute", "failed", {"SIGSEGV) in execute()", "  printed assertion failed: tile < tiles"}},
  });
}

TEST(Hostile, CallsThatDoNotReturn) {
  check_all({
      {"hang@supports", "unfinished", {"supports() did not return within 1 s"}},
      {"hang@numerics", "unfinished", {"numerics() did not return within 1 s"}},
      {"hang@workspace_bytes", "unfinished", {"workspace_bytes() did not return within 1 s"}},
      {"hang@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"hang@synchronize", "unfinished", {"synchronize() did not return within 1 s"}},
      {"hang@copy_to_host", "unfinished", {"copy_to_host() did not return within 1 s"}},
      {"hang@last_error", "unfinished", {"last_error() did not return within 1 s"}},
      {"hang@release", "unfinished", {"release() did not return within 1 s"}},
      {"spin@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"stop@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"exec_sleep@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"handled_for_ever@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"stop_parent@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"stop_parent_exit@execute", "unfinished", {"execute() did not return within 1 s"}},
      {"deaf_hang@execute", "unfinished", {"execute() did not return within 1 s"}},
  });
}

TEST(Hostile, WhatComesThroughTheInterface) {
  check_all({
      {"throw@execute", "failed", {"execute() let a C++ exception through the C interface: out of the interface \\xff"}},
      {"throw@supports", "failed", {"supports() let a C++ exception through the C interface"}},
      {"throw_int@execute", "failed", {"execute() let a C++ exception through the C interface"}},
      {"answer@execute=77", "failed", {"returned 'an unknown status'"}},
      {"answer@execute=-1", "failed", {"returned 'an unknown status'"}},
      {"answer@supports=77", "failed", {"supports() returned 'an unknown status'"}},
      {"answer@execute=failed", "failed", {"returned 'failed': because \\xff\\xfe \\x1b[31mred"}},
      {"answer@last_error=null", "failed", {"supports() returned 'failed': \n"}},
      {"answer@execute=lost", "failed", {"returned 'device lost'"}},
      {"answer@synchronize=lost", "failed", {"device lost"}},
      {"answer@numerics=zero_sign", "failed", {"numerics() gives keeps_zero_sign 7: expected 1, 0 or -1"}},
      {"answer@numerics=deterministic", "failed", {"numerics() gives deterministic -2: expected 1, 0 or -1"}},
      {"answer@numerics=unit", "failed", {"numerics() gives a unit without an end"}},
      {"answer@numerics=plan", "failed", {"numerics() gives a plan without an end"}},
      {"answer@workspace_bytes=negative", "failed", {"workspace_bytes() asks for -1 bytes: expected 0 to 2^48"}},
  });
}

// setjmp in one call, longjmp to it from another, after its frame has ended: whatever happens is a failure that names the call.
TEST(Hostile, JumpsIntoAFrameThatIsGone) {
  const Seen seen = run_hostile("jump@execute");
  ASSERT_FALSE(seen.target.is_null()) << seen.ran.out << seen.ran.err;
  EXPECT_NE(seen.target.at("verdict"), "passed");
  EXPECT_TRUE(contains(text_of(seen.target), "()")) << text_of(seen.target);
  EXPECT_EQ(seen.others_passed, others()) << seen.ran.out;
}

#if defined(__x86_64__) || defined(__aarch64__)
TEST(Hostile, FloatingPointModesLeftOn) {
  std::vector<Hostile> all{{"round@execute", "failed", {"execute() left rounding upward"}},
                           {"round@release", "failed", {"release() left rounding upward"}}};
#if defined(__x86_64__)
  all.insert(all.end(), {{"ftz@execute", "failed", {"execute() left flush-to-zero on"}},
                         {"daz@supports", "failed", {"supports() left denormals-are-zero on"}},
                         {"traps@execute", "failed", {"execute() left floating-point traps on"}},
                         {"x87@numerics", "failed", {"numerics() left another x87 control word"}}});
#endif
  check_all(all);
}
#endif

// Changes that a process makes to itself alone are no fault.
TEST(Hostile, WhatStaysInTheProcessIsNoFault) {
  check_all({
      {"close_all@execute", "passed", {}},
      {"environment@execute", "passed", {}},
      {"limits@execute", "passed", {}},
      {"deaf@execute", "passed", {}},
      {"children@execute", "passed", {}},
      {"print@execute", "passed", {}},
      {"close_all@supports", "passed", {}},
      {"close_for_ever@execute", "passed", {}},
      {"both_answer@execute", "passed", {}},
      {"affinity@execute", "passed", {}},
  });
  if (!kHasShadowMemory) check_all({{"address_space@execute", "passed", {}}});  // shadow memory grows as the program runs
}

// Memory that cannot be allocated, in every case.
TEST(Hostile, Allocations) {
  const struct {
    const char* deed;
    const char* reported;
  } rows[] = {{"answer@allocate=null!", "allocate() returned 'ok' and no address for "},
              {"answer@allocate=misaligned!", ": expected a multiple of 256"},
              {"answer@allocate=wild!", kAddressSanitizer ? " in copy_to_device()" : "SIGSEGV) in copy_to_device()"},
              {"segv@allocate!", "SIGSEGV) in allocate()"},
              {"segv@stream_create!", "SIGSEGV) in stream_create()"},
              {"segv@copy_to_device!", "SIGSEGV) in copy_to_device()"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(row.deed);
    const Seen seen = run_hostile(std::string(row.deed).replace(std::string(row.deed).find('!'), 1, "") + "!");
    EXPECT_EQ(seen.ran.code, 1) << seen.ran.out << seen.ran.err;
    EXPECT_EQ(seen.others_passed, 0);
    EXPECT_TRUE(contains(text_of(seen.target), row.reported)) << text_of(seen.target);
  }
}

TEST(Hostile, TakesAllMemory) {
  if (kHasShadowMemory) GTEST_SKIP() << "compiled with a sanitizer, whose shadow memory counts as data: no limit can be set";
  const golden::TemporaryFolder folder;
  ProcessOptions options;
  options.environment.emplace_back("ASSAY_GOLDEN", folder.path().string());
  Words words{"sh", "-c", "ulimit -d 700000; exec \"$@\"", "sh", ASSAY_PROGRAM};
  for (const std::string& each : hostile_run(folder.path())) words.push_back(each);
  words.insert(words.end(), {"--backend-options", "hog@execute"});
  const Ran ran = run_program(words, options);
  EXPECT_EQ(ran.code, 1) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "ended by signal 11 (SIGSEGV) in execute()")) << ran.out;
  EXPECT_TRUE(contains(ran.out, std::to_string(others()) + " passed, 1 failed")) << ran.out;
}

// Before the first case and after the last one.
TEST(Hostile, OpeningAndClosing) {
  const struct {
    const char *deed, *environment;
    int code;
    const char *name, *reported;
  } rows[] = {{"segv@open", "", 1, "backend/open", "ended by signal 11 (SIGSEGV) in open()"},
              {"hang@open", "", 5, "backend/open", "open() did not return within 1 s"},
              {"ftz@open", "", 1, "backend/open", "open() left flush-to-zero on"},
              {"throw@open", "", 1, "backend/open", "open() let a C++ exception through"},
              {"", "segv@load", 1, "backend/open", "ended by signal 11 (SIGSEGV) in the loading of the library"},
              {"", "hang@load", 5, "backend/open", "the loading of the library did not return within 1 s"},
              {"", "exit@entry", 1, "backend/open", "ended with exit code 0 in the loading of the library"},
              {"answer@device_info=name!", "", 1, "backend/open", "device_info() gives a name without an end"},
              {"segv@device_info!", "", 1, "backend/open", "SIGSEGV) in device_info()"},
              {"segv@close", "", 1, "backend/close", "ended by signal 11 (SIGSEGV) in close()"},
              {"hang@close", "", 5, "backend/close", "close() did not return within 1 s"},
              {"", "segv@unload", 1, "backend/close", "ended by signal 11 (SIGSEGV) in the unloading of the library"},
              {"", "hang@unload", 5, "backend/close", "the unloading of the library did not return within 1 s"}};
  for (const auto& row : rows) {
    SCOPED_TRACE(std::string(row.deed) + row.environment);
    ProcessOptions options;
    if (*row.environment != '\0') options.environment.emplace_back("HOSTILE", row.environment);
    const Seen seen = run_hostile(row.deed, {}, options);
    EXPECT_EQ(seen.ran.code, row.code) << seen.ran.out << seen.ran.err;
    ASSERT_FALSE(seen.beside.is_null()) << seen.ran.out << seen.ran.err;
    EXPECT_EQ(seen.beside.at("name"), row.name);
    EXPECT_TRUE(contains(text_of(seen.beside), row.reported)) << text_of(seen.beside);
    const bool closes = std::string(row.name) == "backend/close";
    EXPECT_EQ(seen.others_passed, closes ? others() : 0);
    EXPECT_EQ(!seen.target.is_null() && seen.target.at("verdict") == "passed", closes);
  }
}

TEST(Hostile, Axes) {
  for (const auto& [deed, reported] :
       {std::pair{"answer@list_axes=name!", "list_axes() gives a name without an end"},
        std::pair{"answer@list_axes=negative!", "list_axes() counts -3"},
        std::pair{"answer@list_axes=many!", "list_axes() counts 2000000000"},
        std::pair{"answer@list_axes=overrun!", "list_axes() wrote more than the 1 items that were requested"},
        std::pair{"segv@list_axes!", "SIGSEGV) in list_axes()"}}) {
    const Ran ran = assay({"list", "--axes", "--backend", ASSAY_HOSTILE_BACKEND, "--backend-options", deed});
    EXPECT_EQ(ran.code, 1) << deed << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, reported)) << deed << ran.out << ran.err;
  }
}

TEST(Hostile, Algorithms) {
  for (const auto& [deed, reported] :
       {std::pair{"answer@list_algorithms=negative", "list_algorithms() counts -3: expected 0 to "},
        std::pair{"answer@list_algorithms=many", "list_algorithms() counts 2000000000: expected 0 to "},
        std::pair{"answer@list_algorithms=description", "list_algorithms() gives a description without an end"},
        std::pair{"hang@list_algorithms", "list_algorithms() did not return within 1 s"}}) {
    const Seen seen = run_hostile(deed, {"--algorithms", "all"});
    EXPECT_EQ(seen.ran.code, std::string(deed).starts_with("hang") ? 5 : 1) << deed << seen.ran.out << seen.ran.err;
    EXPECT_TRUE(contains(text_of(seen.target), reported)) << deed << seen.ran.out;
    EXPECT_EQ(seen.others_passed, 2 * others()) << seen.ran.out;  // each with its one algorithm too
  }
}

// A fault under one setting is the verdict of that setting. The others are judged, in another process if necessary.
TEST(Hostile, OneOfManySettings) {
  for (const auto& [deed, verdict, reported] :
       {std::tuple{"segv@algorithm", "failed", "ended by signal 11 (SIGSEGV) in execute()"},
        std::tuple{"hang@algorithm", "unfinished", "execute() did not return within 1 s"},
        std::tuple{"ftz@algorithm", "failed", "execute() left flush-to-zero on"}}) {
    SCOPED_TRACE(deed);
    const Seen seen = run_hostile(deed, {"--algorithms", "all", "--axes", "size=1"});
    std::map<std::string, nlohmann::json> settings;
    for (const nlohmann::json& each : seen.json.at("cases")) {
      if (each.value("case", "") == kTarget) settings[each.value("setting", "")] = each;
    }
    EXPECT_EQ(settings.size(), 3u) << seen.ran.out;
    EXPECT_EQ(settings[""].value("verdict", ""), "passed") << seen.ran.out;
    EXPECT_EQ(settings["axis: size=1"].value("verdict", ""), "passed") << seen.ran.out;
    EXPECT_EQ(settings["algorithm: the only one"].value("verdict", ""), verdict) << seen.ran.out;
    EXPECT_TRUE(contains(text_of(settings["algorithm: the only one"]), reported)) << seen.ran.out;
    EXPECT_TRUE(contains(text_of(settings["algorithm: the only one"]), "  under   algorithm: the only one")) << seen.ran.out;
  }
}

TEST(Hostile, TextThatIsNoUtf8IsShownAndKeepsTheJson) {
  const Seen seen = run_hostile("answer@device_info=utf8!");
  EXPECT_EQ(seen.ran.code, 0) << seen.ran.out << seen.ran.err;
  EXPECT_EQ(seen.json.at("backend").at("device"), "device \\xff\\xfe");
}

// Memory shared with the harness is overwritten: that is reported, for the case or for the process, and the run continues.
TEST(Hostile, WritesOverSharedMemory) {
  const Seen seen = run_hostile("scribble@execute");
  EXPECT_EQ(seen.ran.code, 1) << seen.ran.out << seen.ran.err;
  EXPECT_EQ(seen.others_passed, others()) << seen.ran.out;
  EXPECT_TRUE(contains(text_of(seen.beside) + text_of(seen.target), "the process of backend ")) << seen.ran.out;
}

// A thread ends the process after its case has passed: that is reported, whichever case is running.
TEST(Hostile, AThreadThatOutlivesItsCase) {
  const Seen seen = run_hostile("thread_segv@execute");
  EXPECT_EQ(seen.ran.code, 1) << seen.ran.out << seen.ran.err;
  EXPECT_EQ(seen.others_passed, others()) << seen.ran.out;
  const std::string text = text_of(seen.beside) + text_of(seen.target);
  EXPECT_TRUE(contains(text, "ended by signal 11 (SIGSEGV)")) << seen.ran.out;
}

// A right backend whose library is linked with -ffast-math passes, and no expected value changes.
TEST(FastMath, ChangesNoExpectedBit) {
  const Ran fast = assay({"run", "--profile", "smoke", "--quiet", "--backend", ASSAY_FAST_MATH_BACKEND});
  EXPECT_EQ(fast.code, 0) << fast.out << fast.err;
  EXPECT_TRUE(contains(fast.out, "note: loading backend fast_math set another floating-point mode (")) << fast.out;
  const auto counts = [](const std::string& out) {
    const std::size_t first = out.rfind(": ", out.rfind(" passed, "));  // of the verdict line
    return out.substr(first, out.rfind(" elements compared") - first);
  };
  const Ran plain = assay({"run", "--profile", "smoke", "--quiet", "--backend", "reference"});
  EXPECT_EQ(counts(fast.out), counts(plain.out));
}

}  // namespace
}  // namespace assay::conformance
