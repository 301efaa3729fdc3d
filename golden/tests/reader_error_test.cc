// Every kind of broken file, and the line it gives. The files are made with HDF5 itself and are valid HDF5, so that only the
// reader's own checks can find the fault. Damaged bytes: damage_and_limits_test.cc, fuzz_test.cc.

#include <gtest/gtest.h>

#include <vector>

#include "golden/io/contained_reader.h"
#include "golden/io/reader.h"
#include "golden/tests/strange_file.h"
#include "golden/tests/temporary_folder.h"

namespace assay::golden {
namespace {

struct Broken {
  const char* name;
  void (*make)(StrangeFile&);  // changes a valid file with the case /c: in/x, out/y
  const char* message;         // after the file's name
};
void PrintTo(const Broken& each, std::ostream* to) { *to << each.name; }

constexpr std::uint8_t kBytes[6] = {1, 2, 3, 4, 5, 6};

void put_x(StrangeFile& file, const char* dtype, hid_t type, const std::vector<hsize_t>& shape, const void* values,
           hid_t creation = H5P_DEFAULT) {
  file.unlink("/c/in/x");
  file.dataset("/c/in/x", dtype, type, shape, values, creation);
}

// Attributes of an object that HDF5 cannot read as one value.
void put_pair(StrangeFile& file) {
  const std::int64_t pair[2] = {1, 2};
  file.put_raw("/c", "a", H5T_STD_I64LE, H5T_NATIVE_INT64, {2}, pair);
}

// clang-format off
const Broken kBroken[] = {
    // the file
    {"no_schema", [](StrangeFile& f) { f.remove("/", "assay_schema"); },
     "/: has no attribute assay_schema: this is not a fixture file"},
    {"newer_schema", [](StrangeFile& f) { f.put("/", "assay_schema", 99); },
     "/: assay_schema is 99: this build reads up to 2; the file was made for a newer one"},
    {"schema_0", [](StrangeFile& f) { f.put("/", "assay_schema", 0); }, "/: assay_schema is 0: expected 1"},
    {"schema_below_0", [](StrangeFile& f) { f.put("/", "assay_schema", -1); }, "/: assay_schema is -1: expected 1"},
    {"schema_text", [](StrangeFile& f) { f.put("/", "assay_schema", "1"); },
     "/: attribute assay_schema is not an integer: expected 1"},
    {"schema_real", [](StrangeFile& f) { f.put("/", "assay_schema", 1.0); },
     "/: attribute assay_schema is not an integer: expected 1"},
    {"no_provenance", [](StrangeFile& f) { f.remove("/", "provenance"); },
     "/: has no provenance: expected values need one (JSON text: who produced them, and with what)"},
    {"provenance_empty", [](StrangeFile& f) { f.put("/", "provenance", ""); },
     "/: has no provenance: expected values need one (JSON text: who produced them, and with what)"},
    {"provenance_number", [](StrangeFile& f) { f.put("/", "provenance", 1); },
     "/: attribute provenance is not a string: expected JSON text"},
    {"no_case", [](StrangeFile& f) { f.unlink("/c"); }, "holds no case: expected a group with a string attribute op"},

    // groups
    {"no_op", [](StrangeFile& f) { f.remove("/c", "op"); },
     "/c: has no string attribute op, but holds in/ with datasets as a case does"},
    {"op_misspelt_expected_only",
     [](StrangeFile& f) {
       f.remove("/c", "op");
       f.put("/c", "Op", "quantize");
       f.unlink("/c/in");
     },
     "/c: has no string attribute op, but holds out/ with datasets as a case does"},
    {"op_number", [](StrangeFile& f) { f.put("/c", "op", 3); }, "/c: attribute op is a number: expected a string"},
    {"op_empty", [](StrangeFile& f) { f.put("/c", "op", ""); }, "/c: attribute op is '': expected the name of an op"},
    {"op_two_lines", [](StrangeFile& f) { f.put("/c", "op", "a\nb"); },
     "/c: attribute op is 'a\\x0ab': expected the name of an op"},
    {"no_in", [](StrangeFile& f) { f.unlink("/c/in"); }, "/c: is a case without the group in/"},
    {"in_dataset",
     [](StrangeFile& f) {
       f.unlink("/c/in");
       f.dataset("/c/in", "e4m3", H5T_STD_U8LE, {6}, kBytes);
     },
     "/c/in: is not a group: expected a group of datasets"},
    {"dataset_in_case", [](StrangeFile& f) { f.dataset("/c/x", "e4m3", H5T_STD_U8LE, {6}, kBytes); },
     "/c/x: is not expected in a case: its datasets belong in in/ or out/"},
    {"type_in_case",
     [](StrangeFile& f) {
       sure(H5Tcommit2(f.id, "/c/t", sure(H5Tcopy(H5T_STD_I32LE)), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
     },
     "/c/t: is not expected in a case: its datasets belong in in/ or out/"},
    {"group_in_case", [](StrangeFile& f) { f.group("/c/input"); },
     "/c/input: is an unknown group in a case: expected in/, out/ or a case with an attribute op"},
    {"group_in_in", [](StrangeFile& f) { f.group("/c/in/more"); },
     "/c/in/more: is not a dataset: expected nothing else here"},
    {"op_on_in", [](StrangeFile& f) { f.put("/c/in", "op", "quantize"); },
     "/c/in: has an attribute op: in/ and out/ of a case cannot be cases"},
    {"root_case_without_in", [](StrangeFile& f) { f.put("/", "op", "quantize"); }, "/: is a case without the group in/"},

    // links
    {"soft_link",
     [](StrangeFile& f) { sure(H5Lcreate_soft("/c/out/y", f.id, "/c/in/z", H5P_DEFAULT, H5P_DEFAULT)); },
     "/c/in/z: is a soft link: expected a hard link"},
    {"soft_link_to_nothing",
     [](StrangeFile& f) { sure(H5Lcreate_soft("/nowhere", f.id, "/s", H5P_DEFAULT, H5P_DEFAULT)); },
     "/s: is a soft link: expected a hard link"},
    {"external_link",
     [](StrangeFile& f) { sure(H5Lcreate_external("/etc/passwd", "/x", f.id, "/c/in/z", H5P_DEFAULT, H5P_DEFAULT)); },
     "/c/in/z: is a link to another file: expected a hard link"},
    {"cycle_to_itself", [](StrangeFile& f) { f.link("/c", "/c/again"); },
     "/c/again: is a second link to a group: only datasets may be shared"},
    {"cycle_to_the_root",
     [](StrangeFile& f) {
       f.group("/g");
       f.link("/", "/g/top");
     },
     "/g/top: is a second link to a group: only datasets may be shared"},
    {"cycle_of_two",
     [](StrangeFile& f) {
       f.group("/g");
       f.group("/g/h");
       f.link("/g", "/g/h/g");
     },
     "/g/h/g: is a second link to a group: only datasets may be shared"},
    {"case_linked_twice", [](StrangeFile& f) { f.link("/c", "/d"); },
     "/d: is a second link to a group: only datasets may be shared"},
    {"in_is_the_case", [](StrangeFile& f) {
       f.unlink("/c/in");
       f.link("/c", "/c/in");
     },
     "/c/in: has an attribute op: in/ and out/ of a case cannot be cases"},
    {"too_deep",
     [](StrangeFile& f) {
       std::string path;
       for (int i = 0; i < 66; ++i) f.group(path += "/d");
     },
     "/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d/d"
     "/d/d/d/d/d/d/d: lies deeper than 64 groups"},
    {"name_of_two_lines", [](StrangeFile& f) { f.group("/a\nb"); },
     "/: holds a link named 'a\\x0ab': expected UTF-8 without control characters"},
    {"name_in_latin1", [](StrangeFile& f) { f.group("/gr\xf6\xdf" "e"); },
     "/: holds a link named 'gr\\xf6\\xdfe': expected UTF-8 without control characters"},

    // attributes
    {"pair", put_pair, "/c: attribute a is not a single value"},
    {"no_value",
     [](StrangeFile& f) {
       sure(H5Acreate2(f.open("/c"), "a", H5T_STD_I64LE, sure(H5Screate(H5S_NULL)), H5P_DEFAULT, H5P_DEFAULT));
     },
     "/c: attribute a is not a single value"},
    {"uint64_too_large",
     [](StrangeFile& f) {
       const std::uint64_t value = std::uint64_t{1} << 63;
       f.put_raw("/c", "a", H5T_STD_U64LE, H5T_NATIVE_UINT64, {}, &value);
     },
     "/c: attribute a is 9223372036854775808: expected a value of int64"},
    {"long_double",
     [](StrangeFile& f) { f.put_raw("/c", "a", H5T_NATIVE_LDOUBLE, H5T_NATIVE_LDOUBLE, {}, nullptr); },
     "/c: attribute a is float128: expected int64, float64 or a string"},
    {"int24",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcopy(H5T_STD_I32LE));
       sure(H5Tset_precision(type, 24));
       f.put_raw("/c", "a", type, type, {}, nullptr);
     },
     "/c: attribute a is int32 of an unusual layout: expected int64, float64 or a string"},
    {"compound",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcreate(H5T_COMPOUND, 8));
       sure(H5Tinsert(type, "re", 0, H5T_IEEE_F32LE));
       sure(H5Tinsert(type, "im", 4, H5T_IEEE_F32LE));
       f.put_raw("/c", "a", type, type, {}, nullptr);
     },
     "/c: attribute a is a compound: expected int64, float64 or a string"},
    {"reference",
     [](StrangeFile& f) { f.put_raw("/c", "a", H5T_STD_REF_OBJ, H5T_STD_REF_OBJ, {}, nullptr); },
     "/c: attribute a is a reference: expected int64, float64 or a string"},
    {"opaque",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcreate(H5T_OPAQUE, 8));
       f.put_raw("/c", "a", type, type, {}, nullptr);
     },
     "/c: attribute a is opaque: expected int64, float64 or a string"},
    {"sequence",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tvlen_create(H5T_STD_I64LE));
       f.put_raw("/c", "a", type, type, {}, nullptr);
     },
     "/c: attribute a is of variable length: expected int64, float64 or a string"},
    {"latin1", [](StrangeFile& f) { f.put("/c", "a", "gr\xf6\xdf" "e"); }, "/c: attribute a is not UTF-8 text"},
    {"text_with_nul",
     [](StrangeFile& f) {
       const hid_t type = StrangeFile::fixed_text_type(3, H5T_STR_NULLPAD);
       f.put_raw("/c", "a", type, type, {}, "a\0b");
     },
     "/c: attribute a is not UTF-8 text"},
    {"attribute_name", [](StrangeFile& f) { f.put("/c", "a\tb", 1); },
     "/c: holds an attribute named 'a\\x09b': expected UTF-8 without control characters"},

    // datasets
    {"no_dtype", [](StrangeFile& f) { put_x(f, nullptr, H5T_STD_U8LE, {6}, kBytes); },
     "/c/in/x: has no attribute dtype, and is stored as uint8: expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, "
     "e2m1, e3m2, e2m3 (float16, float32, int32 and int64 need none)"},
    {"no_dtype_uint16", [](StrangeFile& f) { put_x(f, nullptr, H5T_STD_U16LE, {2}, nullptr); },
     "/c/in/x: has no attribute dtype, and is stored as uint16: expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, "
     "e2m1, e3m2, e2m3 (float16, float32, int32 and int64 need none)"},
    {"no_dtype_float64", [](StrangeFile& f) { put_x(f, nullptr, H5T_IEEE_F64LE, {2}, nullptr); },
     "/c/in/x: has no attribute dtype, and is stored as float64: expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, "
     "e2m1, e3m2, e2m3 (float16, float32, int32 and int64 need none)"},
    {"dtype_number",
     [](StrangeFile& f) { f.put("/c/in/x", "dtype", 3); },
     "/c/in/x: attribute dtype is a number: expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, e2m1, e3m2, e2m3"},
    {"dtype_unknown", [](StrangeFile& f) { f.put("/c/in/x", "dtype", "fp8"); },
     "/c/in/x: attribute dtype is 'fp8': expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, e2m1, e3m2, e2m3"},
    {"dtype_of_no_schema", [](StrangeFile& f) { f.put("/c/in/x", "dtype", "e4m3_fnuz"); },
     "/c/in/x: attribute dtype is 'e4m3_fnuz': expected one of f32, i32, i64, bf16, f16, e4m3, e5m2, e8m0, e2m1, e3m2, e2m3"},
    {"f32_in_float64", [](StrangeFile& f) { put_x(f, "f32", H5T_IEEE_F64LE, {2}, nullptr); },
     "/c/in/x: is stored as float64: dtype f32 needs float32"},
    {"f32_in_int32", [](StrangeFile& f) { put_x(f, "f32", H5T_STD_I32LE, {2}, nullptr); },
     "/c/in/x: is stored as int32: dtype f32 needs float32"},
    {"i64_in_int32", [](StrangeFile& f) { put_x(f, "i64", H5T_STD_I32LE, {2}, nullptr); },
     "/c/in/x: is stored as int32: dtype i64 needs int64"},
    {"i64_in_uint64", [](StrangeFile& f) { put_x(f, "i64", H5T_STD_U64LE, {2}, nullptr); },
     "/c/in/x: is stored as uint64: dtype i64 needs int64"},
    {"bf16_in_float32", [](StrangeFile& f) { put_x(f, "bf16", H5T_IEEE_F32LE, {2}, nullptr); },
     "/c/in/x: is stored as float32: dtype bf16 needs uint16 (raw bits)"},
    {"bf16_in_int16", [](StrangeFile& f) { put_x(f, "bf16", H5T_STD_I16LE, {2}, nullptr); },
     "/c/in/x: is stored as int16: dtype bf16 needs uint16 (raw bits)"},
    {"bf16_in_float16", [](StrangeFile& f) { put_x(f, "bf16", StrangeFile::half_type(), {2}, nullptr); },
     "/c/in/x: is stored as float16: dtype bf16 needs uint16 (raw bits)"},
    {"f16_in_bfloat16",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcopy(H5T_IEEE_F32LE));
       sure(H5Tset_fields(type, 15, 7, 8, 0, 7));
       sure(H5Tset_size(type, 2));
       put_x(f, "f16", type, {2}, nullptr);
     },
     "/c/in/x: is stored as float16 of an unusual layout: dtype f16 needs uint16 (raw bits)"},
    {"e4m3_in_uint16", [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_U16LE, {2}, nullptr); },
     "/c/in/x: is stored as uint16: dtype e4m3 needs uint8 (raw bits)"},
    {"e4m3_in_text", [](StrangeFile& f) { put_x(f, "e4m3", StrangeFile::text_type(), {2}, nullptr); },
     "/c/in/x: is stored as a string: dtype e4m3 needs uint8 (raw bits)"},
    {"f32_of_another_layout",
     [](StrangeFile& f) {
       const hid_t type = sure(H5Tcopy(H5T_IEEE_F32LE));
       sure(H5Tset_ebias(type, 126));
       put_x(f, "f32", type, {2}, nullptr);
     },
     "/c/in/x: is stored as float32 of an unusual layout: dtype f32 needs float32"},
    {"no_shape",
     [](StrangeFile& f) {
       f.unlink("/c/in/x");
       f.dataset_in("/c/in/x", "e4m3", H5T_STD_U8LE, sure(H5Screate(H5S_NULL)), nullptr);
     },
     "/c/in/x: has no shape (an empty dataspace)"},
    {"rank_9", [](StrangeFile& f) { put_x(f, "e4m3", H5T_STD_U8LE, {1, 1, 1, 1, 1, 1, 1, 1, 1}, kBytes); },
     "/c/in/x: has 9 dimensions: at most 8 are expected"},
    {"a_terabyte_of_nothing",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({1 << 20});
       sure(H5Pset_deflate(creation, 9));
       put_x(f, "e4m3", H5T_STD_U8LE, {hsize_t{1} << 40}, nullptr, creation);
     },
     "/c/in/x: claims 1099511627776 elements of e4m3: more than the file can hold"},
    {"contiguous_terabyte", [](StrangeFile& f) { put_x(f, "f32", H5T_IEEE_F32LE, {1 << 20, 1 << 18}, nullptr); },
     "/c/in/x: claims 274877906944 elements of f32: more than the file can hold"},
    {"product_past_2_64",
     [](StrangeFile& f) {
       put_x(f, "e4m3", H5T_STD_U8LE, {hsize_t{1} << 33, hsize_t{1} << 33}, nullptr, StrangeFile::chunked({1, 1}));
     },
     "/c/in/x: claims the shape [8589934592,8589934592]: more than the file can hold"},
    {"product_past_2_64_times_0",
     [](StrangeFile& f) {
       put_x(f, "e4m3", H5T_STD_U8LE, {hsize_t{1} << 33, hsize_t{1} << 33, 0}, nullptr, StrangeFile::chunked({1, 1, 1}));
     },
     "/c/in/x: claims the shape [8589934592,8589934592,0]: more than the file can hold"},
    {"huge_chunks",
     [](StrangeFile& f) {
       const hsize_t now[1] = {6}, most[1] = {H5S_UNLIMITED};
       f.unlink("/c/in/x");
       f.dataset_in("/c/in/x", "e4m3", H5T_STD_U8LE, sure(H5Screate_simple(1, now, most)), nullptr,
                    StrangeFile::chunked({(hsize_t{1} << 32) - 1}));
     },
     "/c/in/x: has chunks that are larger than the file can hold"},
    {"unknown_filter",
     [](StrangeFile& f) {
       const hid_t creation = StrangeFile::chunked({6});
       sure(H5Pset_filter(creation, 305, H5Z_FLAG_OPTIONAL, 0, nullptr));
       put_x(f, "e4m3", H5T_STD_U8LE, {6}, nullptr, creation);
     },
     "/c/in/x: is stored through filter 305: expected one that HDF5 itself brings, such as gzip"},
    {"virtual",
     [](StrangeFile& f) {
       const hid_t creation = sure(H5Pcreate(H5P_DATASET_CREATE));
       const hid_t space = StrangeFile::space_of({6});
       sure(H5Pset_virtual(creation, space, "/etc/passwd", "/x", space));
       put_x(f, "e4m3", H5T_STD_U8LE, {6}, nullptr, creation);
     },
     "/c/in/x: is a virtual dataset: expected the values in this file"},
    {"values_in_another_file",
     [](StrangeFile& f) {
       const hid_t creation = sure(H5Pcreate(H5P_DATASET_CREATE));
       sure(H5Pset_external(creation, "/etc/passwd", 0, 6));
       put_x(f, "e4m3", H5T_STD_U8LE, {6}, nullptr, creation);
     },
     "/c/in/x: keeps its values in another file: expected them in this one"},
};
// clang-format on

class BrokenFileTest : public ::testing::TestWithParam<Broken> {};

// The line is the same whether the file is read here or in a separate process.
TEST_P(BrokenFileTest, GivesItsLine) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "bad.h5";
  StrangeFile::make(path, GetParam().make);
  const std::string line = path.string() + ": " + GetParam().message;
  for (const bool contained : {false, true}) {
    try {
      contained ? read_fixture_contained(path) : read_fixture(path);
      ADD_FAILURE() << "nothing was thrown";
    } catch (const FixtureError& error) {
      EXPECT_EQ(error.what(), line);
      EXPECT_EQ(error.file(), path.string());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, BrokenFileTest, ::testing::ValuesIn(kBroken),
                         [](const auto& info) { return std::string(info.param.name); });

// ---- text of errors

TEST(OneLine, ShowsWhatCannotBePrinted) {
  EXPECT_EQ(one_line("größe 大 𝄞"), "größe 大 𝄞");
  EXPECT_EQ(one_line("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(one_line("\xc0\x80|\xed\xa0\x80|\xf4\x90\x80\x80|\xe5\xa4"),
            "\\xc0\\x80|\\xed\\xa0\\x80|\\xf4\\x90\\x80\\x80|\\xe5\\xa4");
  EXPECT_EQ(one_line(std::string(1000, 'x'), 10), "xxxxxxxxxx...");
}

}  // namespace
}  // namespace assay::golden
