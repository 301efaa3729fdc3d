#pragma once
// What the reading of a file in a separate process gives: kRead, or its line of error.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "golden/io/contained_reader.h"

namespace assay::golden {

inline constexpr const char* kRead = "read";

inline std::string outcome_of(const std::filesystem::path& path, const Containment& containment = {}) {
  try {
    read_fixture_contained(path, containment);
    return kRead;
  } catch (const FixtureError& error) {
    const std::string line = error.what(), start = path.string() + ": ";
    EXPECT_EQ(line.substr(0, start.size()), start);
    EXPECT_EQ(line, one_line(line, 10'000));
    return line.substr(std::min(line.size(), start.size()));
  }
}

}  // namespace assay::golden
