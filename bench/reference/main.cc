// Runs the benchmarks of the reference. Exit codes: 0; 2 for wrong usage; 4 where nothing has the words given.

#include <benchmark/benchmark.h>

#include "bench/command_line.h"

int main(int argc, char** argv) {
  try {
    assay::bench::CommandLine line(argc, argv);
    line.initialize();
    const int code = line.run();
    benchmark::Shutdown();
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argv[0], error.what());
    return 2;
  }
}
