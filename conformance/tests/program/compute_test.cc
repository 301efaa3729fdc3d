// compute: the file that it writes, beside the answers themselves.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "conformance/tests/program/run_program.h"
#include "golden/io/reader.h"
#include "golden/io/writer.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

using golden::Fixture;
using golden::StrangeFile;
using golden::sure;

Case quantize(const std::string& name, std::int64_t rows) {
  Case made{name,
            "quantize",
            {{"recipe", std::string("block_1x128")}, {"otype", std::string("e4m3")}, {"pow2", std::int64_t{1}}},
            {},
            {}};
  made.in["x"] = make_tensor(Format::bf16, {rows, 128});
  for (std::int64_t i = 0; i < rows * 128; ++i) made.in["x"].as<std::uint16_t>()[i] = static_cast<std::uint16_t>(0x3f80 + i % 97);
  return made;
}

H5O_info_t info_of(hid_t file, const std::string& path) {
  H5O_info_t info;
  sure(H5Oget_info_by_name2(file, path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT));
  return info;
}

// Changing an output in place must not change another: equal outputs are separate objects. Inputs may be shared.
TEST(Computed, OutputsAreObjectsOfTheirOwn) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  Fixture fixture;
  fixture.cases = {quantize("a", 8), quantize("b", 8)};
  golden::write_fixture(in, fixture);
  ASSERT_EQ(assay({"compute", in, "-o", out}).code, 0);
  const Fixture made = golden::read_fixture(out);
  const hid_t file = sure(H5Fopen(out.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  std::set<haddr_t> addresses;
  for (const Case& each : made.cases) {
    for (const auto& [name, tensor] : each.out) {
      const H5O_info_t info = info_of(file, each.name + "/out/" + name);
      EXPECT_TRUE(addresses.insert(info.addr).second) << each.name << "/out/" << name;
      EXPECT_EQ(info.rc, 1u) << "links to " << each.name << "/out/" << name;
    }
  }
  EXPECT_EQ(addresses.size(), 8u);
  EXPECT_EQ(info_of(file, "a/in/x").addr, info_of(file, "b/in/x").addr);
  sure(H5Fclose(file));
  EXPECT_EQ(assay({"verify", out}).code, 0);
}

// 1, then 2^-24 * 1.5 in the second half of K: one chain cuts it off, and two slices round 1 + 1.5 * 2^-24 up.
Case product(const std::string& name) {
  Case made{name,
            "grouped_gemm",
            {{"kind", std::string("bf16")}, {"layout", std::string("TN")}, {"N", std::int64_t{1}}, {"K", std::int64_t{32}}},
            {},
            {}};
  made.in["splits"] = make_tensor(Format::i64, {1});
  made.in["splits"].as<std::int64_t>()[0] = 1;
  for (const char* operand : {"x", "w"}) {
    made.in[operand] = make_tensor(Format::bf16, {1, 32});
    std::fill_n(made.in[operand].as<std::uint16_t>(), 32, std::uint16_t{0});
  }
  made.in["x"].as<std::uint16_t>()[0] = made.in["w"].as<std::uint16_t>()[0] = made.in["w"].as<std::uint16_t>()[16] = 0x3F80;
  made.in["x"].as<std::uint16_t>()[16] = 0x33C0;
  return made;
}

TEST(Computed, ProductsFollowThePlanThatIsGiven) {
  constexpr const char* kSlices = "unit=sm90.wgmma.f16,slices=2x16,merge=sequential_f32";
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  Fixture fixture;
  fixture.cases = {product("own"), product("stated"), quantize("other", 8)};
  fixture.cases[1].attributes["plan"] = std::string(kSlices);
  fixture.schema = 2;
  golden::write_fixture(in, fixture);
  const auto words = [&] {
    const Fixture made = golden::read_fixture(out);
    return std::pair(made.cases[1].out.at("d").as<std::uint32_t>()[0], made.cases[2].out.at("d").as<std::uint32_t>()[0]);
  };
  ASSERT_EQ(assay({"compute", in, "-o", out}).code, 0);
  EXPECT_EQ(words(), std::pair(0x3F800000u, 0x3F800001u));
  EXPECT_EQ(assay({"verify", out}).code, 0);
  ASSERT_EQ(assay({"compute", in, "-o", out, "--plan", kSlices}).code, 0);
  EXPECT_EQ(words(), std::pair(0x3F800001u, 0x3F800001u));
  ASSERT_EQ(assay({"compute", in, "-o", out, "--plan", "cublaslt.sm90.bf16"}).code, 0);
  EXPECT_EQ(words(), std::pair(0x3F800000u, 0x3F800000u));
  std::filesystem::remove(out);
  const auto refused = assay({"compute", in, "-o", out, "--plan", "unit=sm90.wgmma.f16,slices=2x16"});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE((refused.out + refused.err).find("plan.merge is none: expected a way to merge 2 slices"), std::string::npos)
      << refused.err;
  EXPECT_FALSE(std::filesystem::exists(out));
}

// Compression would take most of the command's time.
TEST(Computed, LargeTensorsAreStoredAsTheyAre) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  Fixture fixture;
  fixture.cases = {quantize("large", 8200), quantize("small", 8)};
  golden::write_fixture(in, fixture);
  ASSERT_EQ(assay({"compute", in, "-o", out}).code, 0);
  const hid_t file = sure(H5Fopen(out.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  const auto layout_of = [&](const char* path) {
    return H5Pget_layout(sure(H5Dget_create_plist(sure(H5Dopen2(file, path, H5P_DEFAULT)))));
  };
  EXPECT_EQ(layout_of("large/in/x"), H5D_CONTIGUOUS);
  EXPECT_EQ(layout_of("large/out/rowwise_data"), H5D_CONTIGUOUS);
  EXPECT_EQ(layout_of("small/in/x"), H5D_CHUNKED);
  H5Fclose(file);
  EXPECT_EQ(assay({"verify", out}).code, 0);
}

TEST(Computed, WhatIsNotKeptIsNamed) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  {
    StrangeFile file{std::filesystem::path(in)};
    file.put("/", "assay_schema", 1);
    file.put("/", "author", "A. N. Other");
    file.group("/notes");
    file.put("/notes", "to\x1b[2Jdo", "nothing");
    const std::int64_t splits[2] = {3, 5};
    file.dataset("/raw", nullptr, H5T_STD_I64LE, {2}, splits);
    file.dataset("/linked", nullptr, H5T_STD_I64LE, {2}, splits);
    file.group("/c");
    file.put("/c", "op", "splits_to_offsets");
    file.put("/c", "stride", 7);
    file.group("/c/in");
    file.link("/linked", "/c/in/splits");
    file.put("/linked", "unit", "rows");
  }
  const Ran ran = assay({"compute", in, "-o", out});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_TRUE(contains(ran.out, in + ": not kept, since no case has it: attribute author of /, ")) << ran.out;
  for (const char* part : {"attribute unit of /c/in/splits", "attribute to\\x1b[2Jdo of /notes", "dataset /raw"}) {
    EXPECT_TRUE(contains(ran.out, part)) << part << "\n" << ran.out;
  }
  EXPECT_FALSE(contains(ran.out, "/linked")) << ran.out;
  const Ran again = assay({"compute", out, "-o", out});
  EXPECT_FALSE(contains(again.out, "not kept")) << again.out;
}

TEST(Computed, ProvenanceOfTheInputsIsKept) {
  const golden::TemporaryFolder folder;
  const std::string in = (folder / "in.h5").string(), out = (folder / "out.h5").string();
  Fixture fixture;
  fixture.cases = {quantize("a", 8)};
  const std::string deep = std::string(100'000, '[');
  for (const std::string& before : {std::string(R"({"producer": "a lab", "run": 7})"), std::string("a word"), deep}) {
    fixture.provenance = before;
    golden::write_fixture(in, fixture);
    ASSERT_EQ(assay({"compute", in, "-o", out}).code, 0);
    ASSERT_EQ(assay({"compute", out, "-o", out}).code, 0);  // printed once
    const auto provenance = nlohmann::json::parse(golden::read_fixture(out).provenance);
    EXPECT_EQ(provenance["producer"], "assay compute");
    const auto parsed = nlohmann::json::parse(before, nullptr, false);
    EXPECT_EQ(provenance["inputs"], parsed.is_object() ? parsed : nlohmann::json(before));
  }
}

}  // namespace
}  // namespace assay::conformance
