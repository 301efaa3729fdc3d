// The text of the table of units: the meaning of rows, the messages for refused rows, and how rows are added (spec
// tensor-core-2.2).

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/arithmetic/unit_table.h"
#include "reference/types/error.h"

namespace assay {
namespace {

// The values of some rows, field by field.
struct Literal {
  const char *name, *architecture, *instruction;
  std::vector<Format> operands;
  int products, fraction_bits;
  Accumulator accumulator;
  int zero_floor;
  StepScaling scaling;
  Execution execution;
  bool measured;
  const char* evidence;
};

// clang-format off
const Literal kLiterals[] = {
    {"sm80.mma.tf32", "sm80", "mma.sync tf32 -> f32", {Format::f32}, 4, 24, Accumulator::f32_truncated, -132, StepScaling::none,
     Execution::native, false, "MMA-Sim 2.1.1; arXiv 2512.07004"},
    {"sm89.mma.fp8.to_f16", "sm89", "mma.sync e4m3/e5m2 -> f16", {Format::e4m3, Format::e5m2}, 16, 13, Accumulator::f16_nearest, -20,
     StepScaling::none, Execution::native, false, "published Ada and L40S outputs reproduced; MMA-Sim 2.1.1; arXiv 2512.07004"},
    {"sm90.wgmma.fp8", "sm90", "wgmma e4m3/e5m2 -> f32", {Format::e4m3, Format::e5m2}, 32, 13, Accumulator::e8m13_truncated, -133,
     StepScaling::none, Execution::native, true,
     "whole grouped GEMMs of cuBLASLt 13.10 on an H200 predicted in every word (docs/measured.md)"},
    {"sm90.mma.fp8", "sm90", "mma.sync e4m3/e5m2 -> f32", {Format::e4m3, Format::e5m2}, 32, 25, Accumulator::f32_truncated, -133,
     StepScaling::none, Execution::emulated_fp8, false,
     "instruction sequence read from compiled code; published H100/H200 and B200 outputs reproduced"},
    {"sm120.mma.mxf4nvf4", "sm120", "mma.sync kind::mxf4nvf4, e4m3 per 16", {Format::e2m1}, 64, 35, Accumulator::f32_truncated, -139,
     StepScaling::e4m3_per_16, Execution::native, false, "MMA-Sim 2.1.1; compiled code shows a native instruction"},
};
// clang-format on

TEST(unit_table, built_in_rows_say_what_the_code_said) {
  for (const Literal& want : kLiterals) {
    const TensorCoreUnit* got = find_tensor_core_unit(want.name);
    ASSERT_NE(got, nullptr) << want.name;
    EXPECT_EQ(got->architecture, want.architecture);
    EXPECT_EQ(got->instruction, want.instruction);
    EXPECT_TRUE(std::ranges::equal(got->operands, want.operands)) << want.name;
    EXPECT_EQ(got->products_per_step, want.products);
    EXPECT_EQ(got->fraction_bits, want.fraction_bits);
    EXPECT_EQ(got->accumulator, want.accumulator);
    EXPECT_EQ(got->zero_floor, want.zero_floor);
    EXPECT_EQ(got->scaling, want.scaling);
    EXPECT_EQ(got->execution, want.execution);
    EXPECT_EQ(got->measured_by_us, want.measured);
    EXPECT_EQ(got->evidence, want.evidence);
  }
}

TEST(unit_table, every_row_reads_back_as_it_is_written) {
  for (const TensorCoreUnit& unit : tensor_core_units()) {
    const std::vector<TensorCoreUnit> again = parse_units(to_text(unit), "again");
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(to_text(again[0]), to_text(unit));
    EXPECT_EQ(again[0].zero_floor, unit.zero_floor) << unit.name;
    EXPECT_EQ(again[0].accumulator, unit.accumulator) << unit.name;
    EXPECT_EQ(again[0].tf32, unit.tf32) << unit.name;
  }
}

constexpr const char* kRow =
    "name=sm77.mma.f16 instruction=\"mma f16\" operands=f16 products=8 fraction_bits=24 evidence=\"none\"";

TEST(unit_table, fields_left_out_have_their_plain_value) {
  const TensorCoreUnit unit = parse_units(kRow, "f").at(0);
  EXPECT_EQ(unit.architecture, "sm77");
  EXPECT_EQ(unit.accumulator, Accumulator::f32_truncated);
  EXPECT_EQ(unit.zero_floor, -132);
  EXPECT_EQ(unit.scaling, StepScaling::none);
  EXPECT_EQ(unit.execution, Execution::native);
  EXPECT_FALSE(unit.measured_by_us);
  EXPECT_EQ(parse_units(std::string(kRow) + " accumulator=f16_nearest", "f").at(0).zero_floor, -20);
}

TEST(unit_table, rows_may_be_continued_and_commented) {
  const std::vector<TensorCoreUnit> units = parse_units(
      "# first\n\nname=a.b instruction=i operands=bf16,f16\n  # between\n\tproducts=4 fraction_bits=23\r\n   evidence=\"= # "
      "ok\"\n"
      "name=a.c instruction=i operands=tf32 products=4 fraction_bits=23 evidence=e",
      "f");
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].operands.size(), 2u);
  EXPECT_EQ(units[0].evidence, "= # ok");
  EXPECT_EQ(units[1].name, "a.c");
  EXPECT_TRUE(parse_units("", "f").empty());
  EXPECT_TRUE(parse_units("# nothing\n", "f").empty());
}

std::string fault_of(const std::string& text) {
  try {
    parse_units(text, "my.txt");
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "no fault";
}

// kRow with the value of one field replaced, or the field added.
std::string with(const std::string& field, const std::string& value) {
  std::string row = kRow;
  const std::size_t at = row.find(field + "=");
  if (at == std::string::npos) return row + " " + field + "=" + value;
  return row.replace(at, row.find(' ', at) - at, field + "=" + value);
}

TEST(unit_table, a_fault_names_file_line_field_value_and_what_was_expected) {
  EXPECT_EQ(fault_of("\n# a comment\n" + with("products", "65")),
            "my.txt:3: products is 65: expected a whole number from 1 to 64");
  const struct {
    std::string text, part;
  } faults[] = {
      {with("products", "0"), "my.txt:1: products is 0: expected a whole number from 1 to 64"},
      {with("products", "8x"), "products is 8x: expected a whole number"},
      {with("products", ""), "products is : expected a whole number"},
      {with("fraction_bits", "41"), "fraction_bits is 41: expected a whole number from 1 to 40"},
      {with("zero_floor", "-401"), "zero_floor is -401: expected a whole number from -400 to 400"},
      {with("operands", "f16,int8"), "operands is int8: expected tf32, f32, bf16, f16"},
      {with("operands", "f16,f16"), "operands is f16: expected each format once"},
      {with("operands", "f16,"), "operands is : expected tf32"},
      {with("accumulator", "f64"), "accumulator is f64: expected f32_truncated, e8m13_truncated"},
      {with("scaling", "mx"), "scaling is mx: expected none, e8m0_per_32"},
      {with("scaling", "e8m0_per_32"), "scaling is e8m0_per_32: expected none for operands of 16 bits"},
      {with("execution", "emulated_fp8"), "execution is emulated_fp8: expected operands=e4m3,e5m2"},
      {with("measured", "maybe"), "measured is maybe: expected no or yes"},
      {with("name", "sm77"), "name is sm77: expected ARCHITECTURE.INSTRUCTION"},
      {with("name", "sm77.MMA"), "name is sm77.MMA: expected ARCHITECTURE.INSTRUCTION"},
      {with("name", "sm77."), "name is sm77.: expected ARCHITECTURE.INSTRUCTION"},
      {with("name", "a." + std::string(62, 'b')), "of at most 63 letters"},
      {with("product", "8"), "product is '8': expected one of the fields name, architecture"},
      {std::string(kRow) + " products=8", "products is given twice: expected each field once"},
      {std::string(kRow) + " words", "field is words: expected FIELD=VALUE"},
      {std::string(kRow) + " =4", "expected FIELD=VALUE"},
      {"name=a.b instruction=\"no end", "instruction is \"no end: expected a closing quote"},
      {"name=a.b instruction=\"i\"x", "instruction is x: expected a blank after the closing quote"},
      {"name=a.b", "instruction is missing: expected the instruction"},
      {"operands=f16", "name is missing: expected a name"},
      {"  name=a.b", "my.txt:1 is an indented line: expected a row above it to continue"},
      {std::string(kRow) + "\n" + kRow, "my.txt:2: name is sm77.mma.f16: expected a name of its own"},
      {"name=a.b instruction=i operands=e2m1 products=24 fraction_bits=35 scaling=e4m3_per_16 evidence=e",
       "products is 24: expected a multiple of 16 with e4m3_per_16"},
      {"name=a.b instruction=i operands=e4m3 products=64 fraction_bits=35 scaling=e4m3_per_16 evidence=e",
       "scaling is e4m3_per_16: expected operands=e2m1"},
      {"name=a.b instruction=i operands=e2m1 products=48 fraction_bits=35 scaling=e8m0_per_32 group=16 evidence=e",
       "products is 48: expected a multiple of 32 with e8m0_per_32"},
      {"name=a.b instruction=i operands=e2m1 products=64 fraction_bits=35 scaling=e8m0_per_16 group=1 evidence=e",
       "group is 1: expected 16 with a scale for 16 products"},
      {with("group", "16"), "group is 16: expected 1 without scales"},
      {with("sum", "some"), "sum is some: expected fused, joined, exact, tree or chains"},
      {with("accumulator", "f32_nearest"), "accumulator is f32_nearest: expected another than f32_nearest with sum=fused"},
      {with("chains", "2"), "chains is 2: expected 1 with sum=fused"},
      {with("joined_bits", "31"), "joined_bits is 31: expected none with sum=fused"},
      {with("far_c", "dropped"), "far_c is dropped: expected floored with sum=fused"},
      {with("flush", "f32_values"), "flush is f32_values: expected none with sum=fused"},
      {with("operands", "f32"), "operands is f32: expected tf32, or operands of 16 bits and fewer, with sum=fused"},
      {with("sum", "joined"), "joined_bits is 0: expected at least fraction_bits with sum=joined"},
      {with("sum", "joined") + " joined_bits=31 chains=3", "chains is 3: expected a whole number from 1 to 2"},
      {with("sum", "exact"), "fraction_bits is '24': expected one of the fields name, architecture"},
      {"name=a.b instruction=i operands=f16 products=6 sum=tree evidence=e",
       "products is 6: expected a power of two with sum=tree"},
      {"name=a.b instruction=i operands=f16 products=4 sum=tree flush=f32_values evidence=e",
       "flush is f32_values: expected none or operands_and_results with sum=tree"},
      {"name=a.b instruction=i operands=e2m1 products=4 sum=exact scaling=e8m0_per_32 evidence=e",
       "scaling is e8m0_per_32: expected none with sum=exact"},
      {"name=a.b instruction=i operands=e4m3 products=4 sum=tree execution=emulated_fp8 evidence=e",
       "execution is emulated_fp8: expected native with sum=tree"},
      {"name=a.b instruction=i operands=e4m3 products=16 fraction_bits=25 scaling=e8m0_per_32 evidence=e",
       "products is 16: expected 32 with e8m0_per_32"},
      {"name=a.b instruction=i operands=e4m3 products=6 fraction_bits=25 execution=emulated_fp8 evidence=e",
       "products is 6: expected a multiple of 4 with emulated_fp8"},
  };
  for (const auto& each : faults) EXPECT_NE(fault_of(each.text).find(each.part), std::string::npos) << fault_of(each.text);
}

// The last test of this program that adds rows, which stay in the table.
TEST(unit_table, rows_are_added_all_or_none) {
  const std::span<const TensorCoreUnit> before = tensor_core_units();
  const TensorCoreUnit* const known = find_tensor_core_unit("sm90.wgmma.fp8");
  add_tensor_core_units(to_text(*known), "same.txt");
  EXPECT_EQ(tensor_core_units().size(), before.size()) << "an equal row is not added again";

  std::string other = to_text(*known);
  other.replace(other.find("fraction_bits=13"), 16, "fraction_bits=14");
  try {
    add_tensor_core_units(std::string(kRow) + "\n" + other, "other.txt");
    ADD_FAILURE() << "a second row of this name was accepted";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what())
                  .find("other.txt: name is sm90.wgmma.fp8: expected a new name, or the row that has it: "
                        "name=sm90.wgmma.fp8 instruction"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(find_tensor_core_unit("sm77.mma.f16"), nullptr) << "the row before the fault was added";

  add_tensor_core_units(kRow, "new.txt");
  ASSERT_NE(find_tensor_core_unit("sm77.mma.f16"), nullptr);
  EXPECT_EQ(tensor_core_units().size(), before.size() + 1);
  EXPECT_EQ(before.back().name, tensor_core_units()[before.size() - 1].name) << "the earlier list is still there";
  EXPECT_EQ(known->name, "sm90.wgmma.fp8");
  const std::uint32_t one[] = {0x3C00};
  EXPECT_EQ(tensor_core_step(*find_tensor_core_unit("sm77.mma.f16"), Format::f16, one, Format::f16, one, 0), 0x3F800000u);
}

}  // namespace
}  // namespace assay
