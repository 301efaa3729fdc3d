#include "conformance/selftest/hunt/trial_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <sstream>

namespace assay::conformance {
namespace {

// So many cheap cases find most mutants: covers of cheap cases are cheap.
constexpr std::size_t kCheapest = 20;
// After so many rounds the cheapest come first again.
constexpr int kRounds = 24;

bool is_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char each) { return each >= '0' && each <= '9'; });
}

}  // namespace

std::string feature_of(const std::string& word) {
  const std::size_t equal = word.find('=');
  if (equal == std::string::npos) return word;
  const std::string key = word.substr(0, equal), value = word.substr(equal + 1);
  if (key == "seed") return "";
  if (is_digits(value) && value.size() > 1 && value.size() < 18) {
    const std::uint64_t number = std::stoull(value);
    const std::uint64_t divisor = number % 128 == 0 ? 128 : number % 16 == 0 ? 16 : number % 4 == 0 ? 4 : 1;
    return fmt::format("{}=about 2^{}, a multiple of {}", key, std::bit_width(number), divisor);
  }
  const auto commas = static_cast<std::uint64_t>(std::count(value.begin(), value.end(), ','));
  if (commas > 0 && value[0] >= '0' && value[0] <= '9') {
    const bool has_none = value[0] == '0' || value.find(",0") != std::string::npos;
    return fmt::format("{}=about {} parts{}", key, std::bit_width(commas), has_none ? ", empty ones" : "");
  }
  return word;
}

TrialOrder::TrialOrder(const std::vector<std::string>& cases) {
  std::map<std::string, std::int32_t> numbers;
  for (const std::string& each : cases) {
    begins_.push_back(features_.size());
    std::istringstream words(each);
    for (std::string word; words >> word;) {
      const std::string feature = feature_of(word);
      if (feature.empty()) continue;
      features_.push_back(numbers.emplace(feature, static_cast<std::int32_t>(numbers.size())).first->second);
    }
  }
  begins_.push_back(features_.size());
  round_of_.resize(numbers.size());
  left_.reserve(cases.size());
}

void TrialOrder::arrange(std::vector<std::int32_t>& cases) {
  if (cases.size() <= kCheapest) return;
  const auto rest = cases.begin() + kCheapest;
  left_.assign(rest, cases.end());
  auto to = rest;
  for (int i = 0; i < kRounds && !left_.empty(); ++i) {
    ++round_;
    auto kept = left_.begin();
    for (const std::int32_t each : left_) {
      bool is_new = false;
      for (std::size_t at = begins_[static_cast<std::size_t>(each)]; at < begins_[static_cast<std::size_t>(each) + 1]; ++at) {
        std::int64_t& last = round_of_[static_cast<std::size_t>(features_[at])];
        is_new |= last != round_;
        last = round_;
      }
      *(is_new ? to++ : kept++) = each;
    }
    left_.erase(kept, left_.end());
  }
  std::copy(left_.begin(), left_.end(), to);
}

}  // namespace assay::conformance
