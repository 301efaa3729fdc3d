// In place of the library of mutated kernels, for the test of the program that plants them: the reference, with one mutant of each way
// to end. Every point is reached by every quantization. In the environment: with STAND_IN_OPENS it does not open; each call takes
// STAND_IN_TAKES milliseconds more; with STAND_IN_FAILS quantizations to 8 bits fail the device while they are noted, and those to 4 are
// wrong.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "conformance/backends/built_in.h"
#include "device/tests/mutants/on_device/library.h"

namespace assay::mutants {
namespace {

const MutantRow kMutants[] = {
    {"device/a/right.cu", 1, "right point 1", "nothing"},     {"device/a/wrong.cu", 2, "wrong point 1", "a byte"},
    {"device/b/crash.cu", 3, "crash point 1", "ends"},        {"device/b/lasting.cu", 4, "lasting point 1", "wrong from now on"},
    {"device/b/unreached.cu", 5, "unreached point 1", "any"}, {"device/b/stuck.cu", 6, "stuck point 1", "does not end"},
};
enum { kRight, kWrong, kCrash, kLasting, kUnreached, kStuck };

int planted = kNone;
bool reached = false, lasts = false, failed = false;

bool choose(int number) {
  planted = number;
  lasts = lasts || number == kLasting;
  return true;
}

bool take_reached(std::uint8_t* all) {
  if (failed) return false;
  for (int m = 0; m < 6; ++m) all[m] |= reached && m != kUnreached ? 1 : 0;
  reached = false;
  return true;
}

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  const assay_status status = conformance::reference_backend()->execute(context, stream, call);
  if (std::string(call->op) != "quantize") return status;
  reached = true;
  if (const char* const takes = std::getenv("STAND_IN_TAKES"); takes != nullptr)
    std::this_thread::sleep_for(std::chrono::milliseconds(std::atoi(takes)));
  if (std::getenv("STAND_IN_FAILS") != nullptr && planted == kRecords) {
    bool four_bits = false;
    for (std::int32_t i = 0; i < call->output_count; ++i) four_bits = four_bits || call->outputs[i].dtype == ASSAY_E2M1;
    failed = !four_bits;
    if (four_bits && call->outputs[0].data != nullptr) *static_cast<unsigned char*>(call->outputs[0].data) ^= 1;
  }
  if (planted == kCrash) std::abort();
  if (planted == kStuck) std::this_thread::sleep_for(std::chrono::hours(1));
  if (planted == kWrong || lasts) {
    const assay_tensor& out = call->outputs[0];
    if (out.data != nullptr) *static_cast<unsigned char*>(out.data) ^= 1;
  }
  return status;
}

const assay_backend& table() {
  static const assay_backend made = [] {
    assay_backend table = *conformance::reference_backend();
    table.open = [](const char*, assay_context** context) {
      if (std::getenv("STAND_IN_OPENS") != nullptr) std::this_thread::sleep_for(std::chrono::hours(1));
      return conformance::reference_backend()->open("", context);
    };
    table.execute = execute;
    table.device_info = [](assay_context* context, assay_device_info* info) {
      const assay_status status = conformance::reference_backend()->device_info(context, info);
      const char* const threads = std::getenv("ASSAY_THREADS");
      std::snprintf(info->name, sizeof info->name, "stand-in, threads=%s", threads == nullptr ? "all" : threads);
      return status;
    };
    return table;
  }();
  return made;
}

}  // namespace
}  // namespace assay::mutants

extern "C" __attribute__((visibility("default"))) const assay::mutants::Library* assay_device_mutants() {
  using namespace assay::mutants;
  static const Library library{
      sizeof(Library), 6, kMutants, choose, take_reached, &table(), [] { return "the stand-in has failed"; }};
  return &library;
}
