#pragma once
// The command line of every benchmark program:
//   PROGRAM [WORDS ...] [--out FILE] [--repetitions N] [--list] [--benchmark_...]
// Words choose benchmarks whose name holds each of them, in any order. Without options each benchmark is measured three times,
// and mean, median, deviation and coefficient of variation (cv) are printed. Options of Google Benchmark pass through.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace assay::bench {

class CommandLine {
 public:
  // Errors: std::invalid_argument for an option without its value, more than 5 words, or --out that cannot be written.
  CommandLine(int argc, char** argv) {
    arguments_.emplace_back(argv[0]);
    std::string repetitions = "3";
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      const auto value = [&] {
        if (++i == argc) throw std::invalid_argument(word + " needs a value");
        return std::string(argv[i]);
      };
      if (word == "--out") {
        out_ = value();
      } else if (word == "--repetitions") {
        repetitions = value();
        if (repetitions.empty() || repetitions.find_first_not_of("0123456789") != std::string::npos ||
            std::stol(repetitions) < 1) {
          throw std::invalid_argument("--repetitions " + repetitions + ": expected a number of 1 or more");
        }
      } else if (word == "--list") {
        arguments_.emplace_back("--benchmark_list_tests=true");
        lists_ = true;
      } else if (word.rfind("--benchmark_", 0) == 0) {
        arguments_.push_back(word);
      } else if (word.rfind("-", 0) == 0) {
        throw std::invalid_argument(word + " is unknown: expected WORDS, --out FILE, --repetitions N, --list or --benchmark_...");
      } else {
        words_.push_back(word);
      }
    }
    if (!words_.empty()) arguments_.push_back("--benchmark_filter=" + filter(words_));
    const std::string aggregates = repetitions == "1" ? "false" : "true";
    arguments_.insert(arguments_.begin() + 1,
                      {"--benchmark_repetitions=" + repetitions, "--benchmark_display_aggregates_only=" + aggregates});
    if (!out_.empty()) {
      if (!std::ofstream(part()).is_open()) throw std::invalid_argument("--out " + out_ + ": " + part() + " cannot be written");
      arguments_.insert(arguments_.end(), {"--benchmark_out=" + part(), "--benchmark_out_format=json"});
    }
  }

  bool lists() const { return lists_; }

  // Passes the options to Google Benchmark.
  void initialize() {
    pointers_.clear();
    for (std::string& argument : arguments_) pointers_.push_back(argument.data());
    pointers_.push_back(nullptr);
    int count = static_cast<int>(arguments_.size());
    benchmark::Initialize(&count, pointers_.data());
    if (benchmark::ReportUnrecognizedArguments(count, pointers_.data()))
      throw std::invalid_argument("an option of Google Benchmark is unknown");
  }

  // Runs the chosen benchmarks. The file of --out appears when all are measured. Returns 0, or 4 when no name has these words.
  int run() {
    const std::size_t measured = benchmark::RunSpecifiedBenchmarks();
    if (measured == 0) {
      std::string all;
      for (const std::string& word : words_) all += (all.empty() ? "" : " ") + word;
      std::fprintf(stderr, "%s: no benchmark has '%s' in its name (--list shows the names)\n", arguments_[0].c_str(),
                   all.c_str());
    }
    if (!out_.empty()) {
      if (measured == 0 || lists_) {
        std::filesystem::remove(part());
      } else {
        std::filesystem::rename(part(), out_);
      }
    }
    return measured == 0 ? 4 : 0;
  }

 private:
  std::string part() const { return out_ + ".part"; }

  // A regular expression for the words in any order.
  static std::string filter(std::vector<std::string> words) {
    if (words.size() > 5) throw std::invalid_argument(std::to_string(words.size()) + " words: expected at most 5");
    for (std::string& word : words) {
      std::string escaped;
      for (const char letter : word) {
        if (std::string(".[]{}()*+?^$|\\").find(letter) != std::string::npos) escaped += '\\';
        escaped += letter;
      }
      word = escaped;
    }
    std::sort(words.begin(), words.end());
    std::string text;
    do {
      std::string one;
      for (const std::string& word : words) one += (one.empty() ? "" : ".*") + word;
      text += (text.empty() ? "" : "|") + one;
    } while (std::next_permutation(words.begin(), words.end()));
    return text;
  }

  std::string out_;
  std::vector<std::string> words_, arguments_;
  std::vector<char*> pointers_;
  bool lists_ = false;
};

}  // namespace assay::bench
