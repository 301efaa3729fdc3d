// The table of spec tensor-core-2.1. To add an architecture, add rows.

#include "reference/arithmetic/tensor_core.h"

namespace assay {
namespace {

constexpr Format kHalf[] = {Format::bf16, Format::f16};
constexpr Format kF16[] = {Format::f16};
constexpr Format kTf32[] = {Format::f32};
constexpr Format kFp8[] = {Format::e4m3, Format::e5m2};
constexpr Format kFp8Fp4[] = {Format::e4m3, Format::e5m2, Format::e2m1};
constexpr Format kFp4[] = {Format::e2m1};

constexpr auto f32 = Accumulator::f32_truncated;
constexpr auto fp22 = Accumulator::e8m13_truncated;
constexpr auto f16 = Accumulator::f16_nearest;
constexpr auto plain = StepScaling::none;
constexpr auto native = Execution::native;
constexpr auto emulated = Execution::emulated_fp8;

constexpr std::string_view kMeasured =
    "whole grouped GEMMs of cuBLASLt 13.10 on an H200 predicted in every word (docs/measured.md)";
constexpr std::string_view kAmpere = "published A100/A2 outputs reproduced; MMA-Sim 2.1.1; arXiv 2512.07004";
constexpr std::string_view kAda = "published Ada and L40S outputs reproduced; MMA-Sim 2.1.1; arXiv 2512.07004";
constexpr std::string_view kHopper = "published H100/H200 outputs reproduced; MMA-Sim 2.1.1; arXiv 2512.07004";
constexpr std::string_view kHopperTf32 =
    "published H100/H200 outputs use 4 products; 8 products: MMA-Sim 2.1.1, arXiv 2512.07004";
constexpr std::string_view kDisputed =
    "MMA-Sim 2.1.1; arXiv 2512.07004 has no floor here, which changes no result: products are multiples of 2^-32";
constexpr std::string_view kEmulated =
    "instruction sequence read from compiled code; published H100/H200 and B200 outputs reproduced";
constexpr std::string_view kB200 = "published B200 outputs reproduced; MMA-Sim 2.1.1";
constexpr std::string_view kSimulator = "MMA-Sim 2.1.1 only: no public hardware output";
constexpr std::string_view kF8f6f4 = "MMA-Sim 2.1.1; DeepGEMM issue 176 finds 25 bits";
constexpr std::string_view kFp4Evidence = "MMA-Sim 2.1.1; DeepGEMM issue 176 finds 34 to 37 bits";
constexpr std::string_view kGb202 = "MMA-Sim 2.1.1; compiled code shows a native instruction";
constexpr std::string_view kRtxBlackwell =
    "MMA-Sim 2.1.1; the RTX PRO 6000 model of arXiv 2512.07004 is that of the B200; no public hardware output";

//   name                         arch     instruction                               operands  L   F  accumulator floor  scaling execution measured evidence
// clang-format off
constexpr TensorCoreUnit kUnits[] = {
    {"sm80.mma.f16",              "sm80",  "mma.sync bf16/f16 -> f32",               kHalf,    8,  24, f32,  -132, plain, native, false, kAmpere},
    {"sm80.mma.f16.to_f16",       "sm80",  "mma.sync f16 -> f16",                    kF16,     8,  24, f16,  -20,  plain, native, false, kAmpere},
    {"sm80.mma.tf32",             "sm80",  "mma.sync tf32 -> f32",                   kTf32,    4,  24, f32,  -132, plain, native, false, "MMA-Sim 2.1.1; arXiv 2512.07004"},

    {"sm89.mma.f16",              "sm89",  "mma.sync bf16/f16 -> f32",               kHalf,    8,  24, f32,  -132, plain, native, false, kAda},
    {"sm89.mma.f16.to_f16",       "sm89",  "mma.sync f16 -> f16",                    kF16,     8,  24, f16,  -20,  plain, native, false, kAda},
    {"sm89.mma.fp8",              "sm89",  "mma.sync e4m3/e5m2 -> f32",              kFp8,     16, 13, fp22, -132, plain, native, false, kAda},
    {"sm89.mma.fp8.to_f16",       "sm89",  "mma.sync e4m3/e5m2 -> f16",              kFp8,     16, 13, f16,  -20,  plain, native, false, kAda},

    {"sm90.wgmma.f16",            "sm90",  "wgmma bf16/f16 -> f32",                  kHalf,    16, 25, f32,  -133, plain, native, true,  kMeasured},
    {"sm90.wgmma.f16.to_f16",     "sm90",  "wgmma f16 -> f16",                       kF16,     16, 25, f16,  -21,  plain, native, false, kHopper},
    {"sm90.wgmma.tf32",           "sm90",  "wgmma tf32 -> f32",                      kTf32,    8,  25, f32,  -133, plain, native, false, kHopperTf32},
    {"sm90.wgmma.fp8",            "sm90",  "wgmma e4m3/e5m2 -> f32",                 kFp8,     32, 13, fp22, -133, plain, native, true,  kMeasured},
    {"sm90.wgmma.fp8.to_f16",     "sm90",  "wgmma e4m3/e5m2 -> f16",                 kFp8,     32, 13, f16,  -21,  plain, native, false, kDisputed},
    {"sm90.mma.f16",              "sm90",  "mma.sync.m16n8k16 bf16/f16 -> f32",      kHalf,    16, 25, f32,  -133, plain, native, false, kHopper},
    {"sm90.mma.f16.to_f16",       "sm90",  "mma.sync.m16n8k16 f16 -> f16",           kF16,     16, 25, f16,  -21,  plain, native, false, kHopper},
    {"sm90.mma.f16.k8",           "sm90",  "mma.sync.m16n8k8 bf16/f16 -> f32",       kHalf,    8,  25, f32,  -133, plain, native, false, kHopper},
    {"sm90.mma.tf32",             "sm90",  "mma.sync.m16n8k8 tf32 -> f32",           kTf32,    8,  25, f32,  -133, plain, native, false, kHopperTf32},
    {"sm90.mma.tf32.k4",          "sm90",  "mma.sync.m16n8k4 tf32 -> f32",           kTf32,    4,  25, f32,  -133, plain, native, false, kHopper},
    {"sm90.mma.fp8",              "sm90",  "mma.sync e4m3/e5m2 -> f32",              kFp8,     32, 25, f32,  -133, plain, emulated, false, kEmulated},
    {"sm90.mma.fp8.to_f16",       "sm90",  "mma.sync e4m3/e5m2 -> f16",              kFp8,     32, 25, f16,  -21,  plain, emulated, false, kEmulated},

    {"sm100.mma.f16",             "sm100", "mma.sync bf16/f16 -> f32",               kHalf,    16, 25, f32,  -133, plain, native, false, kB200},
    {"sm100.mma.f16.to_f16",      "sm100", "mma.sync f16 -> f16",                    kF16,     16, 25, f16,  -21,  plain, native, false, kB200},
    {"sm100.mma.tf32",            "sm100", "mma.sync tf32 -> f32",                   kTf32,    8,  25, f32,  -133, plain, native, false, kB200},
    {"sm100.mma.fp8",             "sm100", "mma.sync e4m3/e5m2 -> f32",              kFp8,     32, 25, f32,  -133, plain, emulated, false, kEmulated},
    {"sm100.mma.fp8.to_f16",      "sm100", "mma.sync e4m3/e5m2 -> f16",              kFp8,     32, 25, f16,  -21,  plain, emulated, false, kEmulated},
    {"sm100.tcgen05.f16",         "sm100", "tcgen05 kind::f16 -> f32",               kHalf,    16, 25, f32,  -133, plain, native, false, kSimulator},
    {"sm100.tcgen05.f16.to_f16",  "sm100", "tcgen05 kind::f16 -> f16",               kF16,     16, 25, f16,  -21,  plain, native, false, kSimulator},
    {"sm100.tcgen05.tf32",        "sm100", "tcgen05 kind::tf32 -> f32",              kTf32,    8,  25, f32,  -133, plain, native, false, kSimulator},
    {"sm100.tcgen05.f8f6f4",      "sm100", "tcgen05 kind::f8f6f4 -> f32",            kFp8Fp4,  32, 25, f32,  -133, plain, native, false, kF8f6f4},
    {"sm100.tcgen05.f8f6f4.to_f16", "sm100", "tcgen05 kind::f8f6f4 -> f16",          kFp8Fp4,  32, 25, f16,  -21,  plain, native, false, kF8f6f4},
    {"sm100.tcgen05.mxf8f6f4",    "sm100", "tcgen05 kind::mxf8f6f4, e8m0 per 32",    kFp8Fp4,  32, 25, f32,  -133, StepScaling::e8m0_per_32, native, false, kSimulator},
    {"sm100.tcgen05.mxf4nvf4",    "sm100", "tcgen05 kind::mxf4nvf4, e4m3 per 16",    kFp4,     64, 35, f32,  -139, StepScaling::e4m3_per_16, native, false, kFp4Evidence},

    {"sm120.mma.f16",             "sm120", "mma.sync bf16/f16 -> f32",               kHalf,    16, 25, f32,  -133, plain, native, false, kRtxBlackwell},
    {"sm120.mma.fp8",             "sm120", "mma.sync kind::f8f6f4 -> f32",           kFp8Fp4,  32, 25, f32,  -133, plain, native, false, kGb202},
    {"sm120.mma.fp8.to_f16",      "sm120", "mma.sync kind::f8f6f4 -> f16",           kFp8Fp4,  32, 25, f16,  -21,  plain, native, false, kGb202},
    {"sm120.mma.mxf8f6f4",        "sm120", "mma.sync kind::mxf8f6f4, e8m0 per 32",   kFp8Fp4,  32, 25, f32,  -133, StepScaling::e8m0_per_32, native, false, kGb202},
    {"sm120.mma.mxf4nvf4",        "sm120", "mma.sync kind::mxf4nvf4, e4m3 per 16",   kFp4,     64, 35, f32,  -139, StepScaling::e4m3_per_16, native, false, kGb202},
};
// clang-format on

}  // namespace

std::span<const TensorCoreUnit> tensor_core_units() { return kUnits; }

const TensorCoreUnit* find_tensor_core_unit(std::string_view name) {
  for (const TensorCoreUnit& unit : kUnits) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace assay
