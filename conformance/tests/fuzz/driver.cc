// Replays the corpus of each target, and mutations of it that are the same on every machine.
//
//   fuzz_replay [--mutations N] [--seconds S] [--seed N] CORPUS [TARGET...]
//   fuzz_replay --extremes [one]
//
// N mutations of each input (50), or with --seconds as many as fit into S seconds for each target. A fault ends the program; the
// input is then in fuzz_fault.txt beside it, and the line before says which target, file, seed and number made it.
//
// --extremes: the targets of case lines and of calls on lines of extreme values (extreme_lines.h), of which each must be cheap:
// refused, or done within the memory of a small case. What it takes is counted in bytes that are asked for, which is the same on
// every machine. With `one`, without pairs of keys, for slow builds.

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <new>
#include <string>
#include <vector>

#include "conformance/catalogue/covering.h"
#include "conformance/tests/fuzz/extreme_lines.h"
#include "conformance/tests/fuzz/targets.h"
#include "golden/tests/random.h"

namespace {

using namespace assay::fuzz;
using assay::golden::Random;

constexpr unsigned kSecondsOfAnInput = 30;  // on a busy machine; most take less than a millisecond
constexpr rlim_t kMemory = rlim_t{4} << 30;
constexpr std::size_t kLongest = 1 << 16;

constexpr std::int64_t kBytesOfAnExtreme = std::int64_t{1} << 30;
std::atomic<std::int64_t> bytes_asked_for = 0;

std::string now_running;  // for the handler of signals
std::string input;

// Says which input was at work, and keeps it.
void on_fault(int signal) {
  const char* what = signal == SIGALRM ? "took too long: " : "ended the program: ";
  (void)!write(STDERR_FILENO, what, std::strlen(what));
  (void)!write(STDERR_FILENO, now_running.data(), now_running.size());
  (void)!write(STDERR_FILENO, "\n", 1);
  if (std::FILE* file = std::fopen("fuzz_fault.txt", "wb")) {
    std::fwrite(input.data(), 1, input.size(), file);
    std::fclose(file);
  }
  ::signal(signal, SIG_DFL);
  if (signal == SIGALRM) _exit(1);
  raise(signal);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::filesystem::path> files_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(folder)) files.push_back(each.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Where a word begins or ends.
std::size_t border(const std::string& text, Random& random) {
  const std::size_t from = random.below(text.size() + 1);
  const std::size_t found = text.find_first_of(" =,;:\n\"{}[]()|", from);
  return found == std::string::npos ? text.size() : found;
}

std::string mutated(std::string text, const std::string& other, Random& random) {
  constexpr const char* kWords[] = {"0",
                                    "-1",
                                    "1",
                                    "9223372036854775807",
                                    "-9223372036854775808",
                                    "18446744073709551616",
                                    "4294967296",
                                    "65535",
                                    "1e308",
                                    "-0.0",
                                    "nan",
                                    "inf",
                                    "1e-400",
                                    "=",
                                    ",",
                                    ";",
                                    "|",
                                    ":",
                                    "x",
                                    "\n",
                                    "\t",
                                    "\"",
                                    "\\",
                                    "{",
                                    "[",
                                    "}",
                                    "]",
                                    "(",
                                    ")",
                                    "\xff",
                                    "\xe2\x80\xae",
                                    " ",
                                    "#",
                                    "*",
                                    "/"};
  for (std::size_t left = 1 + random.below(4); left > 0; --left) {
    const std::size_t at = random.below(3) == 0 ? random.below(text.size() + 1) : border(text, random);
    switch (random.below(8)) {
      case 0:
        if (!text.empty()) text[at % text.size()] = static_cast<char>(text[at % text.size()] ^ (1 << random.below(8)));
        break;
      case 1: text.insert(at, random.one_of(kWords)); break;
      case 2: text.erase(at, 1 + random.below(24)); break;
      case 3: text.insert(at, text.substr(border(text, random), 1 + random.below(40))); break;
      case 4: text.insert(at, other.substr(border(other, random), 1 + random.below(60))); break;
      case 5: {  // a number becomes another one
        const std::size_t digit = text.find_first_of("0123456789", at);
        if (digit == std::string::npos) break;
        const std::size_t end = std::min(text.find_first_not_of("0123456789", digit), text.size());
        text.replace(digit, end - digit,
                     random.below(2) == 0 ? random.one_of(kWords) : std::to_string(random.next() >> random.below(64)));
        break;
      }
      case 6: text.resize(at); break;
      default: {  // a word becomes another one of the same input
        const std::size_t begin = border(text, random), length = 1 + random.below(20);
        text.replace(at, std::min(length, text.size() - at), text.substr(begin, length));
      }
    }
  }
  if (text.size() > kLongest) text.resize(kLongest);
  return text;
}

struct Options {
  std::int64_t mutations = 50;
  double seconds = 0;
  std::uint64_t seed = 1;
};

void run_one(const Target& target, const std::string& data, const std::string& what) {
  now_running = std::string(target.name) + ": " + what;
  input = data;
  alarm(kSecondsOfAnInput);
  target.run(input);
  alarm(0);
}

std::int64_t run_target(const Target& target, const std::filesystem::path& folder, const Options& options) {
  std::vector<std::string> corpus;
  const std::vector<std::filesystem::path> files = files_of(folder);
  for (const std::filesystem::path& file : files) corpus.push_back(text_of(file));
  std::int64_t runs = 0;
  for (std::size_t i = 0; i < files.size(); ++i, ++runs) run_one(target, corpus[i], files[i].filename().string());
  const auto begin = std::chrono::steady_clock::now();
  const auto has_time = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < options.seconds;
  };
  for (std::int64_t n = 0; options.seconds > 0 ? has_time() : n < options.mutations; ++n) {
    for (std::size_t i = 0; i < files.size(); ++i, ++runs) {
      Random random(options.seed * 1'000'003 + static_cast<std::uint64_t>(n) * 8191 + i);
      const std::string& other = corpus[random.below(corpus.size())];
      run_one(target, mutated(corpus[i], other, random),
              files[i].filename().string() + ", seed " + std::to_string(options.seed) + ", mutation " + std::to_string(n));
    }
  }
  return runs;
}

// Every number of every op is tried, and none may cost much.
int run_extremes(bool pairs) {
  std::map<std::string, std::int64_t> read;  // lines that parse, by op and key
  const std::vector<ExtremeLine> lines = extreme_lines(pairs);
  std::int64_t largest = 0;
  for (const ExtremeLine& each : lines) {
    std::int64_t& count = read[each.op + " " + each.key];
    count += assay::conformance::is_case_line(each.text);
    for (const char* const name : {"case_lines", "calls"}) {
      const std::int64_t before = bytes_asked_for.load();
      run_one(*find_target(name), each.text, each.text);
      const std::int64_t bytes = bytes_asked_for.load() - before;
      largest = std::max(largest, bytes);
      promise(bytes <= kBytesOfAnExtreme, "a line takes at most 2^30 bytes, not " + std::to_string(bytes), each.text);
    }
  }
  for (const auto& [key, count] : read) promise(count > 0, "an extreme value of it is a case line: " + key, "");
  std::printf("%zu lines of extreme values of %zu keys; at most %lld bytes\n", lines.size(), read.size(),
              static_cast<long long>(largest));
  return lines.empty();
}

}  // namespace

// Counts what is asked for. Sanitizers have allocators of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) {
  bytes_asked_for += static_cast<std::int64_t>(size);
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

int main(int argc, char** argv) {
  Options options;
  std::vector<std::string> words;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const bool has_value = word.starts_with("--") && word != "--extremes" && i + 1 < argc;
    if (has_value && word == "--mutations") {
      options.mutations = std::atoll(argv[++i]);
    } else if (has_value && word == "--seconds") {
      options.seconds = std::atof(argv[++i]);
    } else if (has_value && word == "--seed") {
      options.seed = static_cast<std::uint64_t>(std::atoll(argv[++i]));
    } else {
      words.push_back(word);
    }
  }
  const bool extremes = !words.empty() && words[0] == "--extremes";
  if (words.empty() || (extremes && words.size() > 1 && (words.size() > 2 || words[1] != "one")))
    return std::fprintf(stderr,
                        "usage: fuzz_replay [--mutations N] [--seconds S] [--seed N] CORPUS [TARGET...]\n"
                        "       fuzz_replay "
                        "--extremes [one]\n"),
           2;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const rlimit memory{kMemory, kMemory};  // an input that asks for more ends with std::bad_alloc
  setrlimit(RLIMIT_AS, &memory);
#endif
  for (const int each : {SIGALRM, SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS}) signal(each, on_fault);
  if (extremes) return run_extremes(words.size() == 1);
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (find_target(words[i]) == nullptr) return std::fprintf(stderr, "%s is no target\n", words[i].c_str()), 2;
  }
  for (const Target& target : targets()) {
    if (words.size() > 1 && std::find(words.begin() + 1, words.end(), target.name) == words.end()) continue;
    const std::int64_t runs = run_target(target, std::filesystem::path(words[0]) / target.name, options);
    std::printf("%s: %lld inputs\n", target.name, static_cast<long long>(runs));
    std::fflush(stdout);
    if (runs == 0) return std::fprintf(stderr, "%s: no corpus\n", target.name), 1;
  }
  return 0;
}
