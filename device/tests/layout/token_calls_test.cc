// Calls of permute and unpermute that the device library refuses before anything is launched. Addresses are invented.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "device/layout/token_permutation.h"

namespace assay::device {
namespace {

template <class T = void>
T* address(std::uintptr_t value) {
  return reinterpret_cast<T*>(value);
}

struct Call {
  UnpermuteCall sum{{address<const std::int32_t>(0x1000), 7, 2, 20},
                    Format::bf16,
                    24,
                    address(0x2000),
                    address<const float>(0x3000),
                    TokenSums::f32,
                    address(0x4000),
                    address(0x5000),
                    address<std::uint32_t>(0x6000)};
  std::int64_t row_bytes = 48;
  const void* from = address(0x2001);  // any alignment
  void* to = address(0x4001);
};

std::string refusal(const std::function<void()>& make) {
  try {
    make();
    return "";
  } catch (const InvalidArgument& error) {
    return error.what();
  }
}

struct Refused {
  void (*spoil)(Call&);
  const char* says;  // how the sentence begins
  bool permute, unpermute;
};

TEST(token_calls, name_the_member) {
  constexpr std::int64_t kTwo62 = std::int64_t{1} << 62;
  const Refused all[] = {
      {[](Call& c) { c.sum.map.tokens = -1; }, "map.tokens is -1", true, true},
      {[](Call& c) { c.sum.map.topk = -2; }, "map.topk is -2", true, true},
      {[](Call& c) { c.sum.map.topk = kTwo62; }, "map.topk is 4611686018427387904", true, true},
      {[](Call& c) { c.sum.map.permuted_rows = -3; }, "map.permuted_rows is -3", true, true},
      {[](Call& c) { c.sum.map.rows = nullptr; }, "map.rows is null", true, true},
      {[](Call& c) { c.sum.map.rows = address<const std::int32_t>(0x1002); }, "map.rows is misaligned", true, true},
      {[](Call& c) { c.sum.workspace = nullptr; }, "workspace is null", true, true},
      {[](Call& c) { c.sum.workspace = address(0x5080); }, "workspace is misaligned", true, true},
      {[](Call& c) { c.sum.status = address<std::uint32_t>(0x6002); }, "status is misaligned", true, true},
      {[](Call& c) { c.row_bytes = -1; }, "row_bytes is -1", true, false},
      {[](Call& c) { c.row_bytes = kTwo62; }, "row_bytes is 4611686018427387904", true, false},
      {[](Call& c) { c.from = nullptr; }, "from is null", true, false},
      {[](Call& c) { c.to = nullptr; }, "to is null", true, false},
      {[](Call& c) { c.sum.type = Format::e4m3; }, "type is 3", false, true},
      {[](Call& c) { c.sum.sums = static_cast<TokenSums>(4); }, "sums is 4", false, true},
      {[](Call& c) { c.sum.columns = -1; }, "columns is -1", false, true},
      {[](Call& c) { c.sum.columns = kTwo62; }, "columns is 4611686018427387904", false, true},
      {[](Call& c) { c.sum.permuted = nullptr; }, "permuted is null", false, true},
      {[](Call& c) { c.sum.permuted = address(0x2001); }, "permuted is misaligned", false, true},
      {[](Call& c) { c.sum.x = nullptr; }, "x is null", false, true},
      {[](Call& c) { c.sum.type = Format::f32, c.sum.x = address(0x4002); }, "x is misaligned", false, true},
      {[](Call& c) { c.sum.weights = address<const float>(0x3002); }, "weights is misaligned", false, true},
  };
  for (const Refused& each : all) {
    Call call;
    each.spoil(call);
    if (each.permute) {
      const std::string said = refusal(
          [&] { permute_rows(call.sum.map, call.row_bytes, call.from, call.to, call.sum.workspace, call.sum.status, nullptr); });
      EXPECT_EQ(said.rfind(each.says, 0), 0u) << each.says << ": " << said;
      EXPECT_NE(said.find("expected"), std::string::npos) << said;
    }
    if (each.unpermute) {
      const std::string said = refusal([&] { unpermute(call.sum, nullptr); });
      EXPECT_EQ(said.rfind(each.says, 0), 0u) << each.says << ": " << said;
    }
  }
}

}  // namespace
}  // namespace assay::device
