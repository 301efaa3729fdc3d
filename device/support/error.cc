#include "device/support/error.h"

namespace assay::device {

std::string describe_status(std::uint32_t status) {
  if (status == kStatusOk) return "ok";
  constexpr struct {
    std::uint32_t bit;
    const char* name;
  } kNames[] = {
      {kStatusNegativeSplit, "negative_split"},
      {kStatusSplitsExceedRows, "splits_exceed_rows"},
      {kStatusOverflow, "overflow"},
      {kStatusOddPackedExtent, "odd_packed_extent"},
      {kStatusUnalignedRows, "unaligned_rows"},
      {kStatusInvalidIndex, "invalid_index"},
      {kStatusWrongBeta, "wrong_beta"},
      {kStatusOtherScales, "other_scales"},
  };
  std::string text;
  const auto say = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const auto& [bit, name] : kNames) {
    if ((status & bit) != 0) say(name);
    status &= ~bit;
  }
  if (status != 0) say("unknown bits " + std::to_string(status));
  return text;
}

}  // namespace assay::device
