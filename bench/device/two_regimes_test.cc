#include "bench/device/two_regimes.h"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::bench {
namespace {

// A card that is computed: it heats while it works and cools while it rests. Hot, its clock falls from 1800 to 1200 MHz, in the
// course of 1.5 s. A call takes as many cycles on any clock.
class ComputedCard {
 public:
  double now() const { return now_; }
  void rest(double seconds) {
    heat_ = std::max(0.0, heat_ - 10 * std::max(0.0, seconds - std::max(0.0, busy_until_ - now_)));
    now_ += seconds;
  }
  Board::Reading read() const { return {mhz(), 700 * mhz() / 1800}; }

  double mhz() const { return 1800 - 400 * heat_; }
  // Enqueues work of so many cycles; the seconds that it takes.
  double work(double cycles) {
    const double seconds = cycles / (mhz() * 1e6);
    heat_ = std::min(1.5, heat_ + seconds);
    busy_until_ = std::max(busy_until_, now_) + seconds;
    return seconds;
  }
  void wait_until(double moment) { now_ = std::max(now_, moment); }
  double busy_until() const { return busy_until_; }

 private:
  double now_ = 100, busy_until_ = 0, heat_ = 0;
};

class ComputedLoad {
 public:
  ComputedLoad(ComputedCard& card, double cycles, std::string name = "", std::string* order = nullptr)
      : card_(card), cycles_(cycles), name_(std::move(name)), order_(order) {}
  double seconds() const { return cycles_ / 1.8e9; }
  void begin(int calls) {
    if (order_ != nullptr && begun_.empty()) *order_ += name_;
    begun_.push_back({card_.work(cycles_ * calls) / calls, card_.busy_until()});
    most_waiting = std::max(most_waiting, begun_.size());
    all_calls += calls;
  }
  double end() {
    const Piece piece = begun_.front();
    begun_.pop_front();
    card_.wait_until(piece.done);
    return piece.seconds;
  }
  bool idle() const { return begun_.empty(); }

  std::size_t most_waiting = 0;
  long all_calls = 0;

 private:
  struct Piece {
    double seconds, done;
  };
  ComputedCard& card_;
  double cycles_;
  std::string name_;
  std::string* order_;
  std::deque<Piece> begun_;
};

TEST(TwoRegimes, AShortRunSeesTheRestedCard) {
  ComputedCard card;
  ComputedLoad load(card, 1.8e6);
  sustained(load, card, {});
  ASSERT_LT(card.mhz(), 1210);
  const Regime regime = short_run(load, card, {});
  EXPECT_DOUBLE_EQ(regime.seconds, 1e-3);
  EXPECT_GT(regime.board.mhz, 1750);
  EXPECT_TRUE(load.idle());
}

TEST(TwoRegimes, ASustainedRunSeesTheHotCardAlone) {
  ComputedCard card;
  ComputedLoad load(card, 1.8e6);
  const double begun = card.now();
  const Regime regime = sustained(load, card, {});
  EXPECT_DOUBLE_EQ(regime.seconds, 1.8e6 / 1.2e9);
  EXPECT_DOUBLE_EQ(regime.board.mhz, 1200);
  EXPECT_DOUBLE_EQ(regime.board.watts, 700 * 1200.0 / 1800);
  EXPECT_NEAR(card.now() - begun, 4, 0.1);
  EXPECT_EQ(load.most_waiting, 3u);  // two wait while the third is awaited
  EXPECT_TRUE(load.idle());
}

TEST(TwoRegimes, AShortRunTakesItsTimeWhateverACallTakes) {
  for (const double cycles : {1.8e4, 1.8e6, 1.8e8}) {
    ComputedCard card;
    ComputedLoad load(card, cycles);
    short_run(load, card, {});
    EXPECT_EQ(load.all_calls, std::max(1L, std::lround(0.05 * 1.8e9 / cycles)));
  }
}

TEST(TwoRegimes, LoadsAreMeasuredInTurnAndComparedTurnByTurn) {
  ComputedCard card;
  std::string order;
  ComputedLoad first(card, 1.8e6, "a", &order), second(card, 2.7e6, "b", &order);
  const InTurn all = measure_in_turn(std::vector<ComputedLoad*>{&first, &second}, card, {0.25, 0.05, 4, 0.01, 3, 2});
  EXPECT_EQ(order,
            "abbaab"
            "abba");
  ASSERT_EQ(all.loads.size(), 2u);
  EXPECT_EQ(all.short_ratios[0], 1);
  EXPECT_NEAR(all.short_ratios[1], 1.5, 0.01);
  EXPECT_NEAR(all.sustained_ratios[1], 1.5, 0.01);
  EXPECT_DOUBLE_EQ(all.loads[1].sustained.seconds, 2.7e6 / 1.2e9);
}

TEST(TwoRegimes, TheMiddleOfAnEvenNumberIsAMean) {
  EXPECT_EQ(middle({5, 1, 9}), 5);
  EXPECT_EQ(middle({5, 1, 9, 8}), 6.5);
  EXPECT_EQ(middle({2, 4}), 3);
}

TEST(TwoRegimes, EnergyOfAnOperation) {
  const Regime regime{2e-3, {1400, 700}};
  EXPECT_DOUBLE_EQ(regime.picojoules(2e12), 0.7);
}

TEST(Board, ReadsTheBoardOfTheBus) {
  const Board board("0000:17:00.0", STAND_IN_NVML);
  EXPECT_EQ(board.read().mhz, 1410);
  EXPECT_DOUBLE_EQ(board.read().watts, 699.5);
}

TEST(Board, TakesTheMeanPowerOfAnOlderBoard) {
  const Board board("0000:18:00.0", STAND_IN_NVML);
  EXPECT_EQ(board.read().mhz, 1605);
  EXPECT_DOUBLE_EQ(board.read().watts, 350);
}

std::string error_of(const std::string& bus, const std::string& library) {
  try {
    const Board board(bus, library);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(Board, NamesWhatIsMissing) {
  EXPECT_NE(error_of("0000:17:00.0", "no_such_nvml.so").find("no_such_nvml.so"), std::string::npos);
  EXPECT_EQ(error_of("0000:99:00.0", STAND_IN_NVML), "nvmlDeviceGetHandleByPciBusId_v2(0000:99:00.0): NVML error 6");
}

}  // namespace
}  // namespace assay::bench
