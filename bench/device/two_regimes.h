#pragma once
// Two questions that one figure cannot answer: how fast is a kernel on a card that has rested (short), and how fast on one that is
// hot and at its limit of power (sustained)?
//
//   short       rest 0.25 s | 50 ms of calls                          time of all; clock and power at 40 ms
//   sustained   4 s of calls, of which two pieces always wait         medians of the second half
//               |-------------------|#################|
//
// Several kernels are measured in turn, in the other order in every other turn: what one leaves behind as heat then counts for each.
//
// A load is a kernel that can be called many times:
//   double seconds()             of one call, roughly
//   void begin(int calls)        enqueues them
//   double end()                 waits for the earliest of what was begun, and returns the seconds of one of its calls
// A card tells the time and rests:
//   double now(), void rest(double seconds), Board::Reading read()

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bench/device/board.h"

namespace assay::bench {

struct Regime {
  double seconds = 0;  // of one call
  Board::Reading board;
  double picojoules(double operations) const { return board.watts * seconds / operations * 1e12; }
};
struct TwoRegimes {
  Regime short_run, sustained;
};

struct RegimeLengths {  // seconds, and turns
  double rest = 0.25, burst = 0.05, load = 4, piece = 0.01;
  int short_turns = 5, sustained_turns = 2;
};

// The middle one of an odd number, the mean of the two in the middle of an even one.
inline double middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// Each part by itself.
inline Regime middle_of(const std::vector<Regime>& all) {
  std::vector<double> seconds, mhz, watts;
  for (const Regime& each : all) {
    seconds.push_back(each.seconds);
    mhz.push_back(each.board.mhz);
    watts.push_back(each.board.watts);
  }
  return {middle(seconds), {middle(mhz), middle(watts)}};
}

template <class Load>
int calls_for(double seconds, Load& load) {
  return std::max(1, static_cast<int>(std::lround(seconds / load.seconds())));
}

template <class Load, class Card>
Regime short_run(Load& load, Card& card, const RegimeLengths& lengths) {
  const int calls = calls_for(lengths.burst, load);
  card.rest(lengths.rest);
  load.begin(calls);
  card.rest(0.8 * lengths.burst);
  const Board::Reading reading = card.read();
  return {load.end(), reading};
}

template <class Load, class Card>
Regime sustained(Load& load, Card& card, const RegimeLengths& lengths) {
  const int calls = calls_for(lengths.piece, load);
  std::vector<Regime> late;
  load.begin(calls);
  load.begin(calls);
  const double begun = card.now();
  while (card.now() - begun < lengths.load || late.empty()) {
    load.begin(calls);
    const double seconds = load.end();
    if (card.now() - begun >= lengths.load / 2) late.push_back({seconds, card.read()});
  }
  load.end();
  load.end();
  return middle_of(late);
}

// What was measured of each load, and how the others compare with the first: `ratios[i]` has the time of load i over that of the
// first, the middle one of those of each turn.
struct InTurn {
  std::vector<TwoRegimes> loads;
  std::vector<double> short_ratios, sustained_ratios;
};

namespace regimes_detail {

// Measures each load once a turn; `of[turn][load]`.
template <class Load, class Measure>
std::vector<std::vector<Regime>> by_turns(const std::vector<Load*>& loads, int turns, Measure&& measure) {
  std::vector<std::vector<Regime>> of(static_cast<std::size_t>(turns), std::vector<Regime>(loads.size()));
  for (std::size_t turn = 0; turn < of.size(); ++turn) {
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const std::size_t place = turn % 2 == 0 ? i : loads.size() - 1 - i;
      of[turn][place] = measure(*loads[place]);
    }
  }
  return of;
}

inline Regime of_load(const std::vector<std::vector<Regime>>& turns, std::size_t load) {
  std::vector<Regime> all;
  for (const auto& turn : turns) all.push_back(turn[load]);
  return middle_of(all);
}

inline double ratio_of(const std::vector<std::vector<Regime>>& turns, std::size_t load) {
  std::vector<double> all;
  for (const auto& turn : turns) all.push_back(turn[load].seconds / turn[0].seconds);
  return middle(all);
}

}  // namespace regimes_detail

template <class Load, class Card>
InTurn measure_in_turn(const std::vector<Load*>& loads, Card& card, const RegimeLengths& lengths = {}) {
  using namespace regimes_detail;
  const auto rested = by_turns(loads, lengths.short_turns, [&](Load& load) { return short_run(load, card, lengths); });
  const auto hot = by_turns(loads, lengths.sustained_turns, [&](Load& load) { return sustained(load, card, lengths); });
  InTurn made;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    made.loads.push_back({of_load(rested, i), of_load(hot, i)});
    made.short_ratios.push_back(ratio_of(rested, i));
    made.sustained_ratios.push_back(ratio_of(hot, i));
  }
  return made;
}

}  // namespace assay::bench
