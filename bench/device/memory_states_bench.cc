// The two states of the memory (docs/measured.md): how long the loads and stores of a quantization take (access_pattern.h), by their
// cache priorities and by what the card did before.
//
//   device_memory_states_bench [ROWSxCOLUMNS] [--out FILE]
//
// Each row is a pattern, each column what was done before: the median of three times, each the mean of 8 launches behind one that
// is not counted, in us, and the share of the rate of a copy of 4 GiB. FILE gets the same as JSON.

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "bench/device/access_pattern.h"
#include "bench/device/device_bench.h"

namespace assay::bench {
namespace {

constexpr std::int64_t kElsewhere = std::int64_t{1} << 30;  // bytes: more than any L2

struct Before {
  std::string name;
  std::function<void()> run;
};
struct Row {
  AccessPattern pattern;
  std::vector<double> us;
};

std::string name_of_pattern(const AccessPattern& pattern) {
  const auto name = [](CachePriority priority) { return priority == CachePriority::normal ? "normal" : "evict_first"; };
  return std::string(pattern.columns ? "both" : "rowwise") + ", tiles of " + std::to_string(pattern.tile_rows) + " x " +
         std::to_string(pattern.tile_columns) + ", loads " + name(pattern.loads) + ", stores " + name(pattern.stores);
}

std::vector<AccessPattern> patterns() {
  std::vector<AccessPattern> all;
  for (const CachePriority loads : {CachePriority::evict_first, CachePriority::normal}) {
    for (const CachePriority stores : {CachePriority::evict_first, CachePriority::normal}) {
      all.push_back({loads, stores, false, 128, 128});
      all.push_back({loads, stores, true, 128, 128});
    }
  }
  for (const CachePriority priority : {CachePriority::evict_first, CachePriority::normal}) {
    for (const int columns : {128, 256}) all.push_back({priority, priority, true, 256, columns});
  }
  return all;
}

void write_json(const std::string& path, std::int64_t rows, std::int64_t columns, double copy, const std::vector<Before>& before,
                const std::vector<Row>& measured) {
  std::ofstream out(path);
  out << "{\n \"rows\": " << rows << ",\n \"columns\": " << columns << ",\n \"copy_gb_per_s\": " << copy * 1e-9
      << ",\n \"before\": [";
  for (std::size_t i = 0; i < before.size(); ++i) out << (i == 0 ? "" : ", ") << '"' << before[i].name << '"';
  out << "],\n \"us\": {";
  for (std::size_t i = 0; i < measured.size(); ++i) {
    out << (i == 0 ? "\n" : ",\n") << "  \"" << name_of_pattern(measured[i].pattern) << "\": [";
    for (std::size_t k = 0; k < measured[i].us.size(); ++k) out << (k == 0 ? "" : ", ") << measured[i].us[k];
    out << "]";
  }
  out << "\n }\n}\n";
  if (!out.flush()) throw std::runtime_error("--out " + path + ": cannot be written");
}

void run(std::int64_t rows, std::int64_t columns, const std::string& path) {
  const std::int64_t elements = rows * columns;
  const DeviceBuffer x = normal_values(Format::bf16, elements), codes(2 * elements);
  const DeviceBuffer elsewhere = normal_values(Format::bf16, kElsewhere / 2), to(kElsewhere);
  const auto copy = [](const DeviceBuffer& target, const DeviceBuffer& source) {
    check(cudaMemcpyAsync(target.as(), source.as(), static_cast<std::size_t>(target.bytes()), cudaMemcpyDeviceToDevice, stream()),
          "cudaMemcpyAsync");
  };
  const auto fill = [](const DeviceBuffer& target) {
    check(cudaMemsetAsync(target.as(), 0, static_cast<std::size_t>(target.bytes()), stream()), "cudaMemsetAsync");
  };
  const std::vector<Before> before = {{"the codes were set", [&] { fill(codes); }},
                                      {"x was copied to the codes", [&] { copy(codes, x); }},
                                      {"other memory was set", [&] { fill(to); }},
                                      {"other memory was copied", [&] { copy(to, elsewhere); }},
                                      {"other memory was read", [&] { read_through(elsewhere.as(), kElsewhere, stream()); }}};
  const AccessedMemory memory = {x.as(), codes.as(), codes.as<char>() + elements, rows, columns};
  const double rate = copy_rate();

  std::printf("%lld x %lld, us and share of a copy (%.2f TB/s), after\n%-74s", static_cast<long long>(rows),
              static_cast<long long>(columns), rate * 1e-12, "");
  for (const Before& each : before) std::printf("  %s", each.name.c_str());
  std::printf("\n");
  std::vector<Row> measured;
  for (const AccessPattern& pattern : patterns()) {
    measured.push_back({pattern, {}});
    std::printf("%-74s", name_of_pattern(pattern).c_str());
    for (const Before& each : before) {
      std::vector<double> us;
      for (int repeat = 0; repeat < 3; ++repeat) {
        each.run();
        access(pattern, memory, stream());
        us.push_back(1e6 * seconds_per_launch(8, [&](int) { access(pattern, memory, stream()); }));
      }
      measured.back().us.push_back(median(us));
      std::printf("  %*.1f %.3f", static_cast<int>(each.name.size()) - 6, measured.back().us.back(),
                  static_cast<double>(pattern.bytes(elements)) / (measured.back().us.back() * 1e-6) / rate);
    }
    std::printf("\n");
  }
  if (!path.empty()) write_json(path, rows, columns, rate, before, measured);
}

int refuse(const std::string& why) {
  std::fprintf(stderr, "%s\nusage: device_memory_states_bench [ROWSxCOLUMNS] [--out FILE]\n", why.c_str());
  return 2;
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  long long rows = 32768, columns = 7168;
  std::string path;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    int end = 0;
    if (word == "--out" && i + 1 < argc) {
      path = argv[++i];
    } else if (std::sscanf(argv[i], "%lldx%lld%n", &rows, &columns, &end) != 2 || static_cast<std::size_t>(end) != word.size() ||
               rows < 256 || columns < 256 || rows > 65536 || columns > 65536 || rows % 256 != 0 || columns % 256 != 0) {
      return assay::bench::refuse(word + ": expected ROWSxCOLUMNS, multiples of 256 from 256 to 65536");
    }
  }
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
    std::fprintf(stderr, "no CUDA device: nothing was measured\n");
    return 9;
  }
  try {
    assay::bench::run(rows, columns, path);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
