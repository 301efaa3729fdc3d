// The entry of libFuzzer. ASSAY_FUZZ_TARGET names the target.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "conformance/tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const assay::fuzz::Target* const target = [] {
    const char* name = std::getenv("ASSAY_FUZZ_TARGET");
    const assay::fuzz::Target* found = assay::fuzz::find_target(name == nullptr ? "" : name);
    if (found != nullptr) return found;
    std::fprintf(stderr, "ASSAY_FUZZ_TARGET: expected one of");
    for (const assay::fuzz::Target& each : assay::fuzz::targets()) std::fprintf(stderr, " %s", each.name);
    std::fprintf(stderr, "\n");
    std::exit(2);
  }();
  target->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
