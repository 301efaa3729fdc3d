// What an error says: argument, value and what was expected.

#include "reference/types/error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>

namespace assay {
namespace {

template <class Value>
std::string text_of(const Value& value) {
  try {
    require(false, "argument", value, "something else");
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(error.argument(), "argument");
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Require, ThrowsOnlyWhenItDoesNotHold) {
  EXPECT_NO_THROW(require(true, "argument", 1, "something"));
  EXPECT_THROW(require(false, "argument", 1, "something"), InvalidArgument);
  EXPECT_THROW(require(false, "argument", 1, "something"), std::invalid_argument);
}

TEST(Require, ShowsTheValueAsAPersonWouldWriteIt) {
  EXPECT_EQ(text_of(-1), "argument is -1: expected something else");
  EXPECT_EQ(text_of(std::numeric_limits<std::int64_t>::min()), "argument is -9223372036854775808: expected something else");
  EXPECT_EQ(text_of(std::numeric_limits<std::uint64_t>::max()), "argument is 18446744073709551615: expected something else");
  EXPECT_EQ(text_of(0.5f), "argument is 0.5: expected something else");
  EXPECT_EQ(text_of(0.1), "argument is 0.1: expected something else");
  EXPECT_EQ(text_of(-0.0f), "argument is -0: expected something else");
  EXPECT_EQ(text_of(std::numeric_limits<float>::infinity()), "argument is inf: expected something else");
  EXPECT_EQ(text_of(true), "argument is true: expected something else");
  EXPECT_EQ(text_of(false), "argument is false: expected something else");
  EXPECT_EQ(text_of("text"), "argument is text: expected something else");
  EXPECT_EQ(text_of(std::string("text")), "argument is text: expected something else");
  EXPECT_EQ(text_of(static_cast<const void*>(nullptr)), "argument is null: expected something else");
  const int value = 0;
  EXPECT_EQ(text_of(&value), "argument is a pointer: expected something else");
}

TEST(Require, AFloatIsShownSoThatItReadsBackTheSame) {
  const float values[] = {1.0f / 3, 16777217.0f, 0x1p-149f, 0x1.fffffep127f};
  for (const float value : values) EXPECT_EQ(std::strtof(show(value).c_str(), nullptr), value) << show(value);
}

TEST(NotSupported, IsNotABadArgument) {
  const NotSupported error("no plan for sm70");
  EXPECT_STREQ(error.what(), "no plan for sm70");
  EXPECT_EQ(dynamic_cast<const std::invalid_argument*>(static_cast<const std::exception*>(&error)), nullptr);
}

}  // namespace
}  // namespace assay
