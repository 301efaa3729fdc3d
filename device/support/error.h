#pragma once
// Errors that the host detects before a launch, and the status word for those that only the device detects.

#include <cstdint>
#include <stdexcept>
#include <string>

namespace assay::device {

// An invalid call: what() names the argument, its value and what was expected. Nothing was launched.
class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A path that this device or build lacks; what() names what is needed. Nothing was launched.
class NotSupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// CUDA returned an error for a launch or a query.
class CudaError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Faults in values in device memory, mostly split sizes. A kernel that detects one writes no output (but for kStatusOtherScales) and
// sets bits of the caller's status word (one uint32 in device memory, cleared by the caller; null: faults are not reported,
// and still nothing is written).
enum Status : std::uint32_t {
  kStatusOk = 0,
  kStatusNegativeSplit = 1u << 0,     // fewer rows than none: also a value of psum before the start of its group
  kStatusSplitsExceedRows = 1u << 1,  // the splits sum to more rows than the buffer has; a group has more than its place
  kStatusOverflow = 1u << 2,          // an offset does not fit its type
  kStatusOddPackedExtent = 1u << 3,   // NVFP4 codes are packed two per byte along a direction with an odd extent
  kStatusUnalignedRows = 1u << 4,     // rows of a group are not a multiple of the number that the caller promised
  kStatusInvalidIndex = 1u << 5,  // an entry of m_indices or of a row map that names no group or row, or stands where none may
  kStatusWrongBeta = 1u << 6,     // beta is not 0 with a D in FP8, or not 1 where D is added onto C in memory
  kStatusOtherScales =
      1u << 7,  // a block scale that BF16 cannot hold, where the caller promised powers of two. D has been written
};

// "splits_exceed_rows, overflow", or "ok".
std::string describe_status(std::uint32_t status);

}  // namespace assay::device
