// Offsets, bias gradients, dequantization and delayed scaling.

#include <cmath>

#include "conformance/tests/explain/planted_faults.h"
#include "reference/formats/bf16.h"

// Tables, one row per line.
// clang-format off

namespace assay::conformance::planted_faults {
namespace {

float bf16(float value) { return scalar::decode_bf16(scalar::encode_bf16(value)); }

}  // namespace

const std::vector<Fault>& other_faults() {
  static const std::vector<Fault> faults{
      {"inclusive for exclusive", "table of faults, A9", "splits_to_offsets splits=3,9,5,27,127,14,29 stride=3",
       [](Case& call, const Case*) { auto* offsets = call.out.at("offsets").as<std::int64_t>(); const std::int64_t count = call.out.at("offsets").elements(); for (std::int64_t i = 0; i + 1 < count; ++i) offsets[i] = offsets[i + 1]; },
       {{"1 further on"}}},
      {"the carry between chunks lost", "table of faults, B1", "splits_to_offsets splits=zipf(300,65536,3)",
       [](Case& call, const Case*) { auto* offsets = call.out.at("offsets").as<std::int64_t>(); const std::int64_t lost = offsets[256]; for (std::int64_t i = 257; i <= 300; ++i) offsets[i] -= lost; },
       {{"added", "from index 257 on"}, {"added", "from index 2"}, {"anew every 256 groups: no carry"}}},
      {"the stride left out", "table of faults, B3", "splits_to_offsets splits=3,9,5,27,127,14,29 stride=7168",
       [](Case& call, const Case*) { auto* offsets = call.out.at("offsets").as<std::int64_t>(); for (std::int64_t i = 0; i < call.out.at("offsets").elements(); ++i) offsets[i] /= 7168; },
       {{"stride=1"}}},
      {"the bias gradient rounded to 16 bits", "table of faults, A15", "grouped_dbias x_type=f32 splits=20,0,70 K=40 seed=35",
       [](Case& call, const Case*) { auto* dbias = call.out.at("dbias").as<float>(); for (std::int64_t i = 0; i < call.out.at("dbias").elements(); ++i) dbias[i] = bf16(dbias[i]); },
       {{"rounded to bf16 on the way"}, {"bf16"}}},
      {"the scale of the block before", "an index off by one", "dequantize recipe=block_1x128 splits=9,0,20 K=272 seed=36",
       [](Case& call, const Case*) {
         Case right = call;
         call.out["x"] = redone(right, "x", [](Case& of) {
           for (auto& [name, tensor] : of.in) {
             if (!name.ends_with("scale_inv")) continue;
             // [k-block][row], rows padded to 4, group after group.
             float* scales = tensor.as<float>();
             for (const std::int64_t padded : {12, 20}) {
               for (std::int64_t block = 2; block >= 1; --block) std::copy_n(scales + (block - 1) * padded, padded, scales + block * padded);
               scales += 3 * padded;
             }
           }
         });
       },
       {{"scale", "before"}, {"scale", "previous"}}},
      {"the latest amax in place of the largest", "table of faults, delayed scaling", "delayed_update tensors=33 length=16 seed=37",
       [](Case& call, const Case*) {
         const Case right = call;
         for (auto& [name, tensor] : call.out) tensor = redone(right, name, [](Case& of) { of.attributes["algorithm"] = std::string("most_recent"); });
       },
       {{"algorithm=most_recent"}}},
  };
  return faults;
}

}  // namespace assay::conformance::planted_faults
