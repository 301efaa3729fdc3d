// Files as other programs write them: h5py, MATLAB, a big-endian machine. All have the same meaning.

#include <gtest/gtest.h>

#include <cstring>

#include "golden/io/reader.h"
#include "golden/tests/sample_fixture.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"

namespace assay::golden {
namespace {

Fixture read_made(void (*change)(StrangeFile&)) {
  const TemporaryFolder folder;
  StrangeFile::make(folder / "a.h5", change);
  return read_fixture(folder / "a.h5");
}

struct AttributeForm {
  const char* name;
  void (*write)(StrangeFile&);  // attribute "a" of /c
  Attribute value;
};
void PrintTo(const AttributeForm& each, std::ostream* to) { *to << each.name; }

template <class T>
void put_number(StrangeFile& file, hid_t type, hid_t memory_type, T value, std::vector<hsize_t> shape = {}) {
  file.put_raw("/c", "a", type, memory_type, shape, &value);
}

// numpy's bool: an enumeration of int8.
hid_t bool_type() {
  const hid_t type = sure(H5Tenum_create(H5T_STD_I8LE));
  const std::int8_t no = 0, yes = 1;
  sure(H5Tenum_insert(type, "FALSE", &no));
  sure(H5Tenum_insert(type, "TRUE", &yes));
  return type;
}

void put_fixed(StrangeFile& file, const char* text, std::size_t size, H5T_str_t padding) {
  const hid_t type = StrangeFile::fixed_text_type(size, padding);
  file.put_raw("/c", "a", type, type, {}, text);
}

// clang-format off
const AttributeForm kForms[] = {
    {"int8", [](StrangeFile& f) { put_number<std::int8_t>(f, H5T_STD_I8LE, H5T_NATIVE_INT8, -3); }, std::int64_t{-3}},
    {"uint8", [](StrangeFile& f) { put_number<std::uint8_t>(f, H5T_STD_U8LE, H5T_NATIVE_UINT8, 200); }, std::int64_t{200}},
    {"int16_big", [](StrangeFile& f) { put_number<std::int16_t>(f, H5T_STD_I16BE, H5T_NATIVE_INT16, -300); },
     std::int64_t{-300}},
    {"int32", [](StrangeFile& f) { put_number<std::int32_t>(f, H5T_STD_I32LE, H5T_NATIVE_INT32, -70000); },
     std::int64_t{-70000}},
    {"uint32", [](StrangeFile& f) { put_number<std::uint32_t>(f, H5T_STD_U32LE, H5T_NATIVE_UINT32, 4000000000u); },
     std::int64_t{4000000000}},
    {"int64_big", [](StrangeFile& f) { put_number<std::int64_t>(f, H5T_STD_I64BE, H5T_NATIVE_INT64, INT64_MIN + 1); },
     std::int64_t{INT64_MIN + 1}},
    {"uint64", [](StrangeFile& f) { put_number<std::uint64_t>(f, H5T_STD_U64LE, H5T_NATIVE_UINT64, INT64_MAX); },
     std::int64_t{INT64_MAX}},
    {"one_element", [](StrangeFile& f) { put_number<std::int64_t>(f, H5T_STD_I64LE, H5T_NATIVE_INT64, 5, {1}); },
     std::int64_t{5}},
    {"one_by_one", [](StrangeFile& f) { put_number<double>(f, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 5, {1, 1}); }, 5.0},
    {"bool_true", [](StrangeFile& f) { put_number<std::int8_t>(f, bool_type(), bool_type(), 1); }, std::int64_t{1}},
    {"bool_false", [](StrangeFile& f) { put_number<std::int8_t>(f, bool_type(), bool_type(), 0); }, std::int64_t{0}},
    {"float32", [](StrangeFile& f) { put_number<float>(f, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 0.1f); },
     static_cast<double>(0.1f)},
    {"float64_big", [](StrangeFile& f) { put_number<double>(f, H5T_IEEE_F64BE, H5T_NATIVE_DOUBLE, 0.1); }, 0.1},
    {"variable_text", [](StrangeFile& f) { f.put("/c", "a", "größe"); }, std::string("größe")},
    {"empty_variable_text", [](StrangeFile& f) { f.put("/c", "a", ""); }, std::string()},
    {"text_never_written",
     [](StrangeFile& f) { f.put_raw("/c", "a", StrangeFile::text_type(), StrangeFile::text_type(), {}, nullptr); },
     std::string()},
    {"fixed_text", [](StrangeFile& f) { put_fixed(f, "abc", 3, H5T_STR_NULLPAD); }, std::string("abc")},
    {"null_padded", [](StrangeFile& f) { put_fixed(f, "abc\0\0\0", 6, H5T_STR_NULLPAD); }, std::string("abc")},
    {"null_terminated", [](StrangeFile& f) { put_fixed(f, "abc\0xy", 6, H5T_STR_NULLTERM); }, std::string("abc")},
    {"space_padded", [](StrangeFile& f) { put_fixed(f, "abc   ", 6, H5T_STR_SPACEPAD); }, std::string("abc")},
    {"fixed_text_in_an_array",
     [](StrangeFile& f) {
       const hid_t type = StrangeFile::fixed_text_type(3, H5T_STR_NULLPAD);
       f.put_raw("/c", "a", type, type, {1}, "abc");
     },
     std::string("abc")},
    {"text_without_shape",  // h5py.Empty
     [](StrangeFile& f) {
       const hid_t type = StrangeFile::fixed_text_type(1, H5T_STR_NULLPAD);
       sure(H5Acreate2(f.open("/c"), "a", type, sure(H5Screate(H5S_NULL)), H5P_DEFAULT, H5P_DEFAULT));
     },
     std::string()},
};
// clang-format on

class AttributeFormTest : public ::testing::TestWithParam<AttributeForm> {};

TEST_P(AttributeFormTest, IsUnderstood) {
  const Fixture fixture = read_made(GetParam().write);
  ASSERT_EQ(fixture.cases.size(), 1u);
  ASSERT_TRUE(fixture.cases[0].attributes.contains("a"));
  EXPECT_EQ(fixture.cases[0].attributes.at("a"), GetParam().value);
  EXPECT_EQ(fixture.cases[0].op, "quantize");
  EXPECT_EQ(fixture.cases[0].attributes.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(Attributes, AttributeFormTest, ::testing::ValuesIn(kForms),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- datasets

struct Order {
  const char* dtype;
  Format format;
  hid_t little, big;
};

TEST(Datasets, MayBeOfEitherByteOrder) {
  const TemporaryFolder folder;
  const Order orders[] = {
      {"f32", Format::f32, H5T_IEEE_F32LE, H5T_IEEE_F32BE}, {"i32", Format::i32, H5T_STD_I32LE, H5T_STD_I32BE},
      {"i64", Format::i64, H5T_STD_I64LE, H5T_STD_I64BE},   {"bf16", Format::bf16, H5T_STD_U16LE, H5T_STD_U16BE},
      {"f16", Format::f16, H5T_STD_U16LE, H5T_STD_U16BE},   {"e8m0", Format::e8m0, H5T_STD_U8LE, H5T_STD_U8BE},
  };
  for (const Order& each : orders) {
    // The bytes are in the machine's order; HDF5 assumes the file's order and does not convert them.
    const Tensor little = patterned(each.format, {3, 4});
    Tensor big = little;
    const std::size_t width = static_cast<std::size_t>(stored_bytes(each.format));
    for (std::size_t at = 0; at < big.bytes.size(); at += width) std::reverse(&big.bytes[at], &big.bytes[at] + width);
    {
      StrangeFile file(folder / "a.h5");
      file.put("/", "assay_schema", 1);
      file.put("/", "provenance", "{}");
      file.add_case("c");
      file.dataset("c/in/little", each.dtype, each.little, {3, 4}, little.bytes.data());
      file.dataset("c/in/big", each.dtype, each.big, {3, 4}, big.bytes.data());
    }
    const Fixture fixture = read_fixture(folder / "a.h5");
    EXPECT_TRUE(same_tensor(fixture.cases[0].in.at("little"), little)) << each.dtype;
    EXPECT_TRUE(same_tensor(fixture.cases[0].in.at("big"), little)) << each.dtype;
  }
}

// numpy's float16, float32, int32 and int64 need no type attribute. HDF5 converts the numbers when it writes.
TEST(Datasets, OfPlainNumbersNeedNoDtype) {
  const TemporaryFolder folder;
  const double values[4] = {1.5, -2, 65504, 7};
  {
    StrangeFile file(folder / "a.h5");
    file.put("/", "assay_schema", 1);
    file.put("/", "provenance", "{}");
    file.add_case("c");
    const auto put = [&](const char* name, const char* dtype, hid_t type) {
      const hid_t made = file.dataset(name, dtype, type, {4}, nullptr);
      sure(H5Dwrite(made, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    };
    put("c/in/half", nullptr, StrangeFile::half_type());
    put("c/in/half_big", nullptr, StrangeFile::half_type(H5T_IEEE_F32BE));
    put("c/in/half_named", "f16", StrangeFile::half_type());
    put("c/in/single", nullptr, H5T_IEEE_F32LE);
    put("c/in/int32", nullptr, H5T_STD_I32BE);
    put("c/in/int64", nullptr, H5T_STD_I64LE);
  }
  const Fixture fixture = read_fixture(folder / "a.h5");
  const std::map<std::string, Tensor>& in = fixture.cases[0].in;
  const std::uint16_t half[4] = {0x3E00, 0xC000, 0x7BFF, 0x4700};
  for (const char* name : {"half", "half_big", "half_named"}) {
    EXPECT_EQ(in.at(name).type, Format::f16) << name;
    EXPECT_EQ(std::memcmp(in.at(name).bytes.data(), half, sizeof half), 0) << name;
  }
  EXPECT_EQ(in.at("single").type, Format::f32);
  EXPECT_EQ(in.at("int32").type, Format::i32);
  EXPECT_EQ(in.at("int64").type, Format::i64);
  const int whole[4] = {1, -2, 65504, 7};
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(in.at("single").as<float>()[i], static_cast<float>(values[i]));
    EXPECT_EQ(in.at("int32").as<std::int32_t>()[i], whole[i]);
    EXPECT_EQ(in.at("int64").as<std::int64_t>()[i], whole[i]);
  }
}

struct StorageForm {
  const char* name;
  void (*write)(StrangeFile&);  // dataset /c/in/v: f32 [5,7] with the values 0, 1, 2, ...
};
void PrintTo(const StorageForm& each, std::ostream* to) { *to << each.name; }

std::vector<float> counting() {
  std::vector<float> values(35);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return values;
}

void put_values(StrangeFile& file, hid_t creation) {
  file.dataset("/c/in/v", "f32", H5T_IEEE_F32LE, {5, 7}, counting().data(), creation);
}

// clang-format off
const StorageForm kStorage[] = {
    {"contiguous", [](StrangeFile& f) { put_values(f, H5P_DEFAULT); }},
    {"compact",
     [](StrangeFile& f) {
       const hid_t creation = sure(H5Pcreate(H5P_DATASET_CREATE));
       sure(H5Pset_layout(creation, H5D_COMPACT));
       put_values(f, creation);
     }},
    {"chunked", [](StrangeFile& f) { put_values(f, StrangeFile::chunked({2, 3})); }},
    {"gzip",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({2, 7});
       sure(H5Pset_deflate(creation, 9));
       put_values(f, creation);
     }},
    {"shuffle_gzip_checksum",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({5, 7});
       sure(H5Pset_shuffle(creation));
       sure(H5Pset_deflate(creation, 1));
       sure(H5Pset_fletcher32(creation));
       put_values(f, creation);
     }},
    {"growing",
     [](StrangeFile& f) {
       const hsize_t now[2] = {5, 7}, most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
       f.dataset_in("/c/in/v", "f32", H5T_IEEE_F32LE, sure(H5Screate_simple(2, now, most)), counting().data(),
                    StrangeFile::chunked({16, 16}));
     }},
    {"shared_with_a_dataset_outside",
     [](StrangeFile& f) {
       f.group("/inputs");
       f.dataset("/inputs/v", "f32", H5T_IEEE_F32LE, {5, 7}, counting().data());
       f.link("/inputs/v", "/c/in/v");
     }},
};
// clang-format on

class StorageFormTest : public ::testing::TestWithParam<StorageForm> {};

TEST_P(StorageFormTest, GivesTheSameValues) {
  const Fixture fixture = read_made(GetParam().write);
  const Tensor& tensor = fixture.cases[0].in.at("v");
  EXPECT_EQ(tensor.type, Format::f32);
  EXPECT_EQ(tensor.shape, (std::vector<std::int64_t>{5, 7}));
  ASSERT_EQ(tensor.bytes.size(), 140u);
  EXPECT_EQ(std::vector<float>(tensor.as<float>(), tensor.as<float>() + 35), counting());
}

INSTANTIATE_TEST_SUITE_P(Storage, StorageFormTest, ::testing::ValuesIn(kStorage),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Datasets, NeverWrittenReadAsTheirFillValue) {
  const Fixture fixture = read_made([](StrangeFile& file) {
    file.dataset("/c/in/zeros", "f32", H5T_IEEE_F32LE, {4}, nullptr);
    const hid_t creation = StrangeFile::chunked({2});
    const float filler = 1.5f;
    sure(H5Pset_fill_value(creation, H5T_NATIVE_FLOAT, &filler));
    file.dataset("/c/in/filled", "f32", H5T_IEEE_F32LE, {4}, nullptr, creation);
  });
  EXPECT_EQ(fixture.cases[0].in.at("zeros").bytes, std::vector<std::byte>(16));
  EXPECT_EQ(fixture.cases[0].in.at("filled").as<float>()[3], 1.5f);
}

// ---- groups

TEST(Groups, SharedInputsMayBeAWholeGroup) {
  const Fixture fixture = read_made([](StrangeFile& file) {
    file.group("/d");
    file.put("/d", "op", "quantize");
    file.link("/c/in", "/d/in");
  });
  ASSERT_EQ(fixture.cases.size(), 2u);
  EXPECT_TRUE(same_tensor(fixture.cases[0].in.at("x"), fixture.cases[1].in.at("x")));
}

TEST(Groups, CasesComeInTheOrderOfTheirNames) {
  const Fixture fixture = read_made([](StrangeFile& file) {
    for (const char* name : {"/b", "/B", "/c/nested", "/a b"}) file.add_case(name);
    file.group("/folder");
    file.add_case("/folder/z");
    file.group("/folder.x");
    file.add_case("/folder.x/z");
  });
  std::vector<std::string> names;
  for (const Case& each : fixture.cases) names.push_back(each.name);
  EXPECT_EQ(names, (std::vector<std::string>{"B", "a b", "b", "c", "c/nested", "folder.x/z", "folder/z"}));
}

TEST(Groups, OutsideCasesThereMayBeAnything) {
  const Fixture fixture = read_made([](StrangeFile& file) {
    file.group("/notes");
    file.put("/notes", "author", "anything");
    const double values[2] = {1, 2};
    file.dataset("/notes/table", nullptr, H5T_IEEE_F64LE, {2}, values);
    sure(H5Tcommit2(file.id, "/type", sure(H5Tcopy(H5T_STD_I32LE)), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  });
  EXPECT_EQ(fixture.cases.size(), 1u);
}

TEST(Groups, AUserBlockMayPrecedeTheFile) {
  const TemporaryFolder folder;
  {
    const hid_t creation = sure(H5Pcreate(H5P_FILE_CREATE));
    sure(H5Pset_userblock(creation, 1024));
    H5Fclose(sure(H5Fcreate((folder / "a.h5").c_str(), H5F_ACC_TRUNC, creation, H5P_DEFAULT)));
  }
  const hid_t file = sure(H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  const hid_t space = sure(H5Screate(H5S_SCALAR));
  const auto put = [&](hid_t object, const char* name, hid_t type, const void* value) {
    const hid_t attribute = sure(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
    sure(H5Awrite(attribute, type, value));
    H5Aclose(attribute);
  };
  const std::int64_t one = 1;
  const char* op = "quantize";
  const char* dtype = "i64";
  put(file, "assay_schema", H5T_NATIVE_INT64, &one);
  const hid_t group = sure(H5Gcreate2(file, "c", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  put(group, "op", StrangeFile::text_type(), &op);
  const hid_t in = sure(H5Gcreate2(group, "in", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const hid_t splits = sure(H5Dcreate2(in, "splits", H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  sure(H5Dwrite(splits, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, &one));
  put(splits, "dtype", StrangeFile::text_type(), &dtype);
  for (const hid_t id : {splits, in, group}) H5Oclose(id);
  H5Fclose(file);
  const Fixture fixture = read_fixture(folder / "a.h5");
  EXPECT_EQ(*fixture.cases.at(0).in.at("splits").as<std::int64_t>(), 1);
}

}  // namespace
}  // namespace assay::golden
