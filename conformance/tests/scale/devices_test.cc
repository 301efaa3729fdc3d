// run --device: a process for each device, which sees that one alone; the cases are divided among them, and the verdicts are those of one.
// The library that is judged writes down what it sees; CUDA's driver is a library of this test.

#include <algorithm>
#include <map>
#include <set>

#include "conformance/tests/program/evidence.h"

namespace assay::conformance {
namespace {

struct FakeDevices {
  EmptyGolden golden;
  std::string seen = path("seen.txt");

  explicit FakeDevices(const std::string& names = "NVIDIA H100;NVIDIA H100;NVIDIA H100", const std::string& visible = "") {
    golden.options.environment.emplace_back("LD_LIBRARY_PATH", ASSAY_FAKE_CUDA);
    golden.options.environment.emplace_back("FAKE_CUDA", names);
    golden.options.environment.emplace_back("CUDA_VISIBLE_DEVICES", visible);
    golden.options.environment.emplace_back("CUDA_DEVICE_ORDER", "");
  }
  std::string path(const std::string& name) const { return (golden.folder / name).string(); }
  Ran run(Words more, const std::string& fault = "visible") const {
    more.insert(more.begin(), "quantize");
    return assay(faulty_run((fault + "=" + seen).c_str(), more), golden.options);
  }
  // The processes that were started, by the device that they saw.
  std::multiset<std::string> devices_seen() const {
    std::multiset<std::string> made;
    std::istringstream lines(text_of(seen));
    for (std::string line; std::getline(lines, line);) made.insert(line);
    return made;
  }
};

std::map<std::string, json> cases_of(const std::string& path, std::map<int, int>& devices) {
  std::map<std::string, json> made;
  for (json each : results_of(path)) {
    if (each.at("record") != "case") continue;
    ++devices[each.value("device", -1)];
    for (const char* name : {"seconds", "chain", "device"}) each.erase(name);
    made[each.at("name")] = each;
  }
  return made;
}

TEST(Devices, EachProcessSeesItsOwn) {
  const FakeDevices fake;
  const std::string plain = fake.path("plain.jsonl"), divided = fake.path("divided.jsonl"), report = fake.path("divided.json");
  ASSERT_EQ(fake.run({"--results", plain}).code, 0);
  EXPECT_EQ(fake.devices_seen(), (std::multiset<std::string>{"none"}));
  std::filesystem::remove(fake.seen);
  const Ran ran = fake.run({"--device", "2,0", "--results", divided, "--json", report});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "devices 2, 0: ")) << ran.err;
  EXPECT_EQ(fake.devices_seen(), (std::multiset<std::string>{"0", "2"}));
  std::map<int, int> one, both;
  EXPECT_EQ(cases_of(plain, one), cases_of(divided, both));
  EXPECT_EQ(results_of(plain).back().at("digest"), results_of(divided).back().at("digest"));
  EXPECT_EQ(one.size(), 1u);
  ASSERT_EQ(both.size(), 2u);
  EXPECT_EQ(both[0] + both[2], one[-1]);
  EXPECT_TRUE(contains(ran.out, "device 0: " + std::to_string(both[0]) + " case")) << ran.out;
  const json header = results_of(divided).front();
  EXPECT_EQ(header.at("devices"), json::parse(R"([{"number":2,"name":"NVIDIA H100"},{"number":0,"name":"NVIDIA H100"}])"));
  expect_valid(json::parse(text_of(report)), "report");
  EXPECT_EQ(assay({"merge", plain, divided}, fake.golden.options).code, 0);
}

TEST(Devices, AllAreThoseThatCudaShows) {
  const FakeDevices fake("A;A;A;A", "GPU-11,3,GPU-22");
  ASSERT_EQ(fake.run({"--device", "all"}).code, 0);
  EXPECT_EQ(fake.devices_seen(), (std::multiset<std::string>{"3", "GPU-11", "GPU-22"}));
  std::filesystem::remove(fake.seen);
  ASSERT_EQ(fake.run({"--device", "2"}).code, 0);
  EXPECT_EQ(fake.devices_seen(), (std::multiset<std::string>{"GPU-22"}));
}

TEST(Devices, WhatIsNotThereIsRefused) {
  const auto refused = [](const FakeDevices& fake, const std::string& devices, int code, const std::string& why) {
    const Ran ran = fake.run({"--device", devices});
    EXPECT_EQ(ran.code, code) << devices << ran.out << ran.err;
    EXPECT_TRUE(contains(ran.err, why)) << devices << ": " << ran.err;
    EXPECT_FALSE(std::filesystem::exists(fake.seen)) << devices;
  };
  const FakeDevices fake("A;A"), mixed("A;A;B"), none("");
  refused(fake, "0,2", 2, "there is no device 2: CUDA shows 2 devices here, 0 to 1");
  refused(fake, "1,1", 2, "names device 1 twice");
  refused(fake, "first", 2, "expected all, or numbers of devices");
  refused(fake, "0,", 2, "expected all, or numbers of devices");
  refused(mixed, "all", 2, "device 0 is A, and device 2 is B: expected devices of one model");
  EXPECT_EQ(mixed.run({"--device", "0,1"}).code, 0);
  refused(none, "all", 9, "cuInit() of libcuda.so.1 fails with error 100");
  const Ran host = assay({"run", "--backend", "reference", "--device", "0", "permute"}, fake.golden.options);
  EXPECT_EQ(host.code, 2);
  EXPECT_TRUE(contains(host.err, "backend reference runs on the host processor and has no devices")) << host.err;
}

TEST(Devices, NoDriverIsAFaultOfTheMachine) {
  FakeDevices fake;
  fake.golden.options.environment.emplace_back("LD_LIBRARY_PATH", "");
  const Ran ran = fake.run({"--device", "all"});
  if (ran.code == 0) GTEST_SKIP() << "this machine has CUDA's driver";
  EXPECT_EQ(ran.code, 9) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.err, "--device all: CUDA's driver") || contains(ran.err, "cuInit()")) << ran.err;
}

// The process of device 1 ends in its first case, and then cannot be opened again.
TEST(Devices, TheOthersTakeTheCasesOfOneThatFails) {
  const FakeDevices fake;
  const std::string results = fake.path("gone.jsonl");
  const Ran ran = fake.run({"--device", "0,1", "--results", results}, "gone");
  EXPECT_EQ(ran.code, 9) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, "device 1 cannot be used any more")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "other devices took its cases")) << ran.out;
  std::map<int, int> devices;
  std::map<std::string, int> verdicts;
  for (const auto& [name, each] : cases_of(results, devices)) ++verdicts[each.at("verdict")];
  EXPECT_EQ(devices[1], 1);
  EXPECT_GT(devices[0], 10);
  EXPECT_EQ(verdicts, (std::map<std::string, int>{{"failed", 1}, {"machine failed", 1}, {"passed", devices[0]}}));

  // What cannot be opened at all is said before anything is judged.
  const Ran again = fake.run({"--device", "0,1"}, "gone");
  EXPECT_EQ(again.code, 9) << again.out << again.err;
  EXPECT_FALSE(contains(again.out, "passed")) << again.out;
}

TEST(Devices, ReproAndVerifyTakeOne) {
  const FakeDevices fake;
  const Words line{"repro",
                   "--backend",
                   ASSAY_FAULTY_BACKEND,
                   "--backend-options",
                   "visible=" + fake.seen,
                   "swizzle recipe=mxfp8 splits=3 K=32 seed=1"};
  Words one = line, two = line;
  one.insert(one.end(), {"--device", "1"});
  two.insert(two.end(), {"--device", "0,1"});
  const Ran ran = assay(one, fake.golden.options);
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(fake.devices_seen(), (std::multiset<std::string>{"1"}));
  const Ran both = assay(two, fake.golden.options);
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(contains(both.err, "expected the number of one device")) << both.err;
}

}  // namespace
}  // namespace assay::conformance
