#include "bench/device/buffer_places.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

namespace assay::bench {
namespace {

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;
constexpr Lifetime kCase = Lifetime::one_case, kProcess = Lifetime::process;

TEST(BufferPlaces, SmallFromTheBeginningLargeAfterThemKeptFromTheEnd) {
  BufferPlaces places(4 * kGiB);
  EXPECT_EQ(places.take(3 * kMiB, kCase), 256 * kMiB);
  EXPECT_EQ(places.take(1, kCase), 0);
  EXPECT_EQ(places.take(2 * kMiB - 1, kCase), 2 * kMiB);
  EXPECT_EQ(places.take(2 * kMiB, kCase), 260 * kMiB);
  EXPECT_EQ(places.take(kGiB, kProcess), 3 * kGiB);
  EXPECT_EQ(places.take(1, kProcess), 3 * kGiB - 2 * kMiB);
}

TEST(BufferPlaces, AGapOfJustTheSizeIsTaken) {
  BufferPlaces places(kGiB);
  const auto first = places.take(4 * kMiB, kCase), second = places.take(4 * kMiB, kCase);
  const auto last = places.take(4 * kMiB, kProcess), last_but_one = places.take(4 * kMiB, kProcess);
  ASSERT_TRUE(places.give_back(*first) && places.give_back(*last));
  EXPECT_EQ(places.take(4 * kMiB, kCase), first);
  EXPECT_EQ(places.take(4 * kMiB, kProcess), last);
  EXPECT_EQ(places.take(2 * kMiB, kCase), *second + 4 * kMiB);
  EXPECT_EQ(places.take(2 * kMiB, kProcess), *last_but_one - 2 * kMiB);
}

// The buffers that a case takes and releases, in any order, do not affect the places of the next case; kept ones stay.
TEST(BufferPlaces, ACaseFindsItsPlacesWhateverRanBefore) {
  using Take = std::pair<std::int64_t, Lifetime>;
  const std::vector<Take> requested = {{kGiB, kCase}, {100, kCase}, {7 * kMiB, kCase}, {64, kCase}, {kGiB / 2, kCase}};
  const auto places_of_case = [&](BufferPlaces& places) {
    std::vector<std::optional<std::int64_t>> found;
    for (const auto& [bytes, lifetime] : requested) found.push_back(places.take(bytes, lifetime));
    return found;
  };
  BufferPlaces fresh(8 * kGiB);
  const auto alone = places_of_case(fresh);

  BufferPlaces used(8 * kGiB);
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::int64_t> taken;
    for (int i = 0; i < 20; ++i) {
      if (!taken.empty() && random() % 3 == 0) {
        std::swap(taken[random() % taken.size()], taken.back());
        ASSERT_TRUE(used.give_back(taken.back()));
        taken.pop_back();
      }
      const auto place =
          used.take(1 + static_cast<std::int64_t>(random() % (random() % 2 == 0 ? 4'000'000 : 700'000'000)), kCase);
      if (place) taken.push_back(*place);
    }
    if (round % 50 == 0) {
      ASSERT_TRUE(used.take(300 * kMiB, kProcess));
    }
    std::shuffle(taken.begin(), taken.end(), random);
    for (const std::int64_t place : taken) ASSERT_TRUE(used.give_back(place));
  }
  EXPECT_EQ(places_of_case(used), alone);
}

TEST(BufferPlaces, BuffersBeginPagesAndDoNotOverlap) {
  BufferPlaces places(kGiB);
  std::vector<bool> pages(static_cast<std::size_t>(kGiB / BufferPlaces::kPage));
  std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // place, pages
  const auto mark = [&](std::int64_t place, std::int64_t count, bool as) {
    for (std::int64_t page = place / BufferPlaces::kPage; count > 0; ++page, --count) {
      ASSERT_EQ(pages.at(static_cast<std::size_t>(page)), !as) << "page " << page;
      pages[static_cast<std::size_t>(page)] = as;
    }
  };
  std::mt19937 random(9);
  int full = 0;
  for (int i = 0; i < 20'000; ++i) {
    if (!taken.empty() && random() % 2 == 0) {
      std::swap(taken[random() % taken.size()], taken.back());
      mark(taken.back().first, taken.back().second, false);
      ASSERT_TRUE(places.give_back(taken.back().first));
      taken.pop_back();
    }
    const std::int64_t bytes = 1 + static_cast<std::int64_t>(random() % 40'000'000);
    const auto place = places.take(bytes, random() % 4 == 0 ? kProcess : kCase);
    if (!place) {
      ++full;
      continue;
    }
    ASSERT_EQ(*place % BufferPlaces::kPage, 0);
    taken.emplace_back(*place, (bytes + BufferPlaces::kPage - 1) / BufferPlaces::kPage);
    mark(*place, taken.back().second, true);
  }
  EXPECT_GT(full, 0);  // the range was full at times
}

TEST(BufferPlaces, SmallOnesGoToTheLargePartWhenTheirsIsFull) {
  BufferPlaces places(16 * kMiB);  // 2 MiB for small ones
  EXPECT_EQ(places.take(1, kCase), 0);
  EXPECT_EQ(places.take(1, kCase), 2 * kMiB);
  EXPECT_EQ(places.take(12 * kMiB, kCase), 4 * kMiB);
  EXPECT_EQ(places.take(1, kCase), std::nullopt);
  EXPECT_EQ(places.take(1, kProcess), std::nullopt);
}

TEST(BufferPlaces, WhatCannotFitOrWasNotTaken) {
  BufferPlaces places(kGiB + 1);
  EXPECT_EQ(places.bytes(), kGiB);
  EXPECT_EQ(places.take(INT64_MAX, kCase), std::nullopt);
  EXPECT_EQ(places.take(kGiB, kCase), std::nullopt);  // an eighth is for small ones
  const auto place = places.take(kGiB / 8 * 7, kCase);
  EXPECT_EQ(place, kGiB / 8);
  EXPECT_FALSE(places.give_back(0));
  EXPECT_TRUE(places.give_back(*place));
  EXPECT_FALSE(places.give_back(*place));
}

}  // namespace
}  // namespace assay::bench
