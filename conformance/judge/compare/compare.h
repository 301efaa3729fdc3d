#pragma once
// One produced tensor against the expected one, by bits, under the rules of the fixture schema:
//
//   elements in use          equal bits; NaN equals NaN in f32, bf16 and f16; the codes (FP8, e2m1) of +0 and -0 are
//                            equal when the case says zero_sign=free
//   swizzled padding         0
//   compact padding, rows    not compared; when what was there before the call is known, they must still hold it
//   beyond the splits
//
// A difference is reported with its places, distances and the pattern of the wrong values, so that its cause can be found.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/judge/compare/wrong_map.h"
#include "conformance/ops/output_map.h"
#include "golden/io/fixture.h"

namespace assay::conformance {

// The same call over other contents of the outputs: distinguishes an element that is not written from one that only looks so.
struct OtherRun {
  const Tensor* produced = nullptr;
  const Tensor* before = nullptr;
};

struct CompareOptions {
  bool zero_sign_free = false;
  const Tensor* before = nullptr;  // the output's contents before the call, if known
  // One byte for each byte of the tensor: 0 where nothing may be written. Empty: the map decides. An element counts as
  // written if any of its bytes does; compact padding that counts as written is not compared. Needs `before`.
  std::span<const std::uint8_t> written = {};
  OtherRun other = {};            // if there was one; needs `before`
  bool hints = true;              // false: the difference alone, without hints
  bool scales_are_wrong = false;  // the scales of these codes, which cannot be right then
};

// Distances between wrong and expected codes, in units in the last place: 1, 2, 3-4, 5-8, ... and those without a distance.
struct UlpHistogram {
  std::vector<std::int64_t> buckets;  // buckets[b] counts distances in (2^(b-1), 2^b]
  std::int64_t zero_sign = 0;         // +0 against -0
  std::int64_t special = 0;           // NaN or infinity on one side
  std::int64_t total() const;
};

struct Difference {
  std::string output;            // "rowwise_data e4m3 [255,512]"
  std::int64_t count = 0;        // elements that differ
  std::int64_t total = 0;        // elements that were looked at
  std::int64_t in_use = 0;       // of `count`: elements of groups, no padding
  std::int64_t overwritten = 0;  // of `count`: padding or rows beyond the splits that should have been left alone
  // The first that differs.
  std::int64_t first_element = 0;
  std::string first_place;  // "group 1, row 5, column 60"
  std::uint64_t got = 0, want = 0;
  std::string got_text, want_text;  // "0x81 (-0.001953125)"
  std::string where;                // "groups 1,3; rows 0-127; columns 128-255; tiles 128x128 (0,1)"
  bool has_ulp = false;
  UlpHistogram ulp;
  std::vector<WrongMap> maps;      // of the first groups with wrong elements
  std::uint64_t digest = 0;        // of the places and values of all wrong elements
  std::vector<std::string> hints;  // most telling first

  explicit operator bool() const { return count != 0; }
};

// Errors (InvalidArgument): tensors of different type or shape; `before`, `written` or a tensor of `other` of another size; one
// tensor of `other` without the other.
Difference compare(const Case& problem, const std::string& name, const Tensor& expected, const Tensor& produced,
                   const CompareOptions& options = {});

// Nothing may have been written: every element must keep its previous bits, NaN payloads included.
Difference compare_untouched(const Case& problem, const std::string& name, const Tensor& before, const Tensor& after);

// True when the case says zero_sign=free.
bool zero_sign_free(const Case& problem);

// What a failure prints: the case, the first mismatch, how many and where, distances, hints and the command that
// reproduces it. Lines of at most 100 columns, except the command. Ends with a newline.
std::string failure_text(std::string_view case_line, const Difference& difference, std::string_view repro_command);

// Its parts: the text about one output, and the frame around one or several of these or around another fault.
std::string difference_text(const Difference& difference);
std::string failure_text(std::string_view case_line, std::string_view body, std::string_view repro_command);

// "0x81 (-0.001953125)": bits in hex and the value they stand for.
std::string show_element(Format type, std::uint64_t bits);

}  // namespace assay::conformance
