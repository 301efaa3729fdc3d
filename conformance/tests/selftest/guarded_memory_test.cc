// Guarded allocations, each test in a process of its own.

#include "conformance/selftest/hunt/guarded_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

namespace assay::conformance {
namespace {

// How a process ended in which allocations are guarded: its exit code, or minus a signal.
template <class Body>
int guarded(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    guard_allocations();
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

unsigned char* allocated(std::size_t bytes) { return static_cast<unsigned char*>(guarded_allocate(bytes)); }
int value_at(const unsigned char* data, std::ptrdiff_t at) { return *const_cast<const volatile unsigned char*>(data + at); }

int first_value(std::size_t bytes) { return bytes < (std::size_t{1} << 20) ? 0xA5 : 0; }

constexpr std::size_t kSizes[] = {0, 1, 16, 17, 100, 4080, 4096, 4097, 70'000, std::size_t{5} << 20};

TEST(GuardedMemory, IsOffAtFirst) {
  int here = 0;
  EXPECT_EQ(guarded_allocate(8), nullptr);
  EXPECT_FALSE(guarded_release(&here));
}

TEST(GuardedMemory, EndsAtAPageThatCannotBeRead) {
  for (const std::size_t bytes : kSizes) {
    const auto rounded = static_cast<std::ptrdiff_t>(std::max<std::size_t>((bytes + 15) / 16 * 16, 16));
    EXPECT_EQ(guarded([&] { return value_at(allocated(bytes), rounded - 1); }), first_value(bytes)) << bytes;
    EXPECT_EQ(guarded([&] { return value_at(allocated(bytes), rounded); }), -SIGSEGV) << bytes;
    EXPECT_EQ(guarded([&] { return value_at(allocated(bytes), rounded + 1000); }), -SIGSEGV) << bytes;
  }
}

TEST(GuardedMemory, WritingBesideItEndsTheProcess) {
  for (const std::size_t bytes : {1, 20, 4001, 70'001}) {
    for (const std::ptrdiff_t at : {std::ptrdiff_t{-1}, std::ptrdiff_t{-40}, static_cast<std::ptrdiff_t>(bytes)}) {
      EXPECT_EQ(guarded([&] {
                  unsigned char* const data = allocated(bytes);
                  data[at] = 3;
                  return guarded_release(data);
                }),
                -SIGABRT)
          << bytes << " " << at;
    }
    EXPECT_EQ(guarded([&] { return guarded_release(allocated(bytes)); }), 1) << bytes;
  }
}

TEST(GuardedMemory, HoldsTheSameBytesWhateverWasThereBefore) {
  EXPECT_EQ(guarded([] {
              for (const std::size_t bytes : kSizes) {
                unsigned char* const first = allocated(bytes);
                std::fill_n(first, bytes, static_cast<unsigned char>(7));
                if (!guarded_release(first)) return 1;
                unsigned char* const second = allocated(std::max<std::size_t>(bytes, 40) - 40);
                const bool is_same = std::all_of(second, second + std::max<std::size_t>(bytes, 40) - 40,
                                                 [&](int each) { return each == first_value(bytes); });
                if (!is_same || reinterpret_cast<std::uintptr_t>(second) % 16 != 0) return 2;
              }
              return 0;
            }),
            0);
}

TEST(GuardedMemory, AllocationsDoNotOverlap) {
  EXPECT_EQ(guarded([] {
              std::vector<std::pair<unsigned char*, std::size_t>> all;
              for (std::size_t i = 0; i < 3000; ++i) {
                const std::size_t bytes = i * 2654435761u % 9000;
                all.emplace_back(allocated(bytes), bytes);
                std::fill_n(all.back().first, bytes, static_cast<unsigned char>(i));
                if (i % 3 == 2) {  // an earlier one is released
                  auto& [data, size] = all[i / 2];
                  if (size != 0) guarded_release(data);
                  size = 0;
                }
              }
              for (std::size_t i = 0; i < all.size(); ++i) {
                const auto [data, bytes] = all[i];
                if (!std::all_of(data, data + bytes, [&](unsigned char each) { return each == static_cast<unsigned char>(i); }))
                  return 1;
              }
              return 0;
            }),
            0);
}

TEST(GuardedMemory, WithoutRoomNothingIsGuarded) {
  EXPECT_EQ(guarded([] {
              if (allocated(kGuardedBytes) != nullptr) return 1;
              int made = 0;
              while (allocated(std::size_t{300} << 20) != nullptr && made < 100) ++made;
              return made;
            }),
            3);
}

TEST(GuardedMemory, IsForThreadsToo) {
  EXPECT_EQ(guarded([] {
              std::vector<std::thread> threads;
              std::vector<int> wrong(4);
              for (int& each : wrong) {
                threads.emplace_back([&each] {
                  for (int i = 0; i < 2000; ++i) {
                    unsigned char* const one = allocated(64);
                    std::fill_n(one, 64, static_cast<unsigned char>(i));
                    each += std::any_of(one, one + 64, [&](int value) { return value != i % 256; });
                    guarded_release(one);
                  }
                });
              }
              for (std::thread& each : threads) each.join();
              return *std::max_element(wrong.begin(), wrong.end()) > 0 ? 1 : 0;
            }),
            0);
}

}  // namespace
}  // namespace assay::conformance
