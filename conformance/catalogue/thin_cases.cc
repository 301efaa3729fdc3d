// The part of the catalogue in which one length is long and the others are at most 8, or the least that a kind takes: a path for
// products of a vector, for long and thin matrices, is chosen there.

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kThinLengths[] = {2064, 2072, 2080, 4112};
constexpr std::int64_t kThin[] = {8, 1, 4, 7, 2, 3};

// Turns through lengths that are long or thin.
class Turn {
 public:
  std::string long_one() { return show(kThinLengths[long_++ % std::size(kThinLengths)]); }
  std::string thin() { return show(kThin[thin_++ % std::size(kThin)]); }
  const char* of(const std::vector<const char*>& words) { return words[word_++ % words.size()]; }

 private:
  std::size_t long_ = 0, thin_ = 0, word_ = 0;
};

// The rows of the one group, N and K, of which `which` is long.
std::string product(int which, bool by_16, Turn& turn) {
  std::string sizes[3];
  for (int i = 0; i < 3; ++i) sizes[i] = i == which ? by_16 ? "2064" : turn.long_one() : by_16 ? "16" : turn.thin();
  return " splits=" + sizes[0] + " N=" + sizes[1] + " K=" + sizes[2];
}

}  // namespace

std::vector<CaseLine> thin_lines() {
  SeededLines lines(96000);
  Turn turn;
  for (int which = 0; which < 3; ++which) {
    for (const char* kind : {"bf16", "f16", "fp8_per_tensor", "fp8_block", "mxfp8", "nvfp4"}) {
      const bool by_16 = kind == std::string("mxfp8") || kind == std::string("nvfp4");
      for (const char* layout : {"TN", "NN", "NT"}) {
        lines.add(std::string("grouped_gemm kind=") + kind + " layout=" + layout + product(which, by_16, turn) +
                  turn.of({" d_type=f32", "", " d_type=f16 beta=1"}));
      }
    }
    for (const char* op : {"linear_forward", "linear_dgrad", "linear_wgrad"}) {
      lines.add(std::string(op) +
                turn.of({" recipe=none", " recipe=tensor_current", " recipe=fp8_block", " recipe=tensor_delayed"}) + " bias=1" +
                product(which, false, turn));
    }
  }
  for (const bool rows : {true, false}) {
    const std::string first = rows ? " R=" : " K=", second = rows ? " K=" : " R=";
    for (const char* recipe : {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"}) {
      const bool packed = recipe == std::string("nvfp4");
      for (const char* op :
           {"quantize recipe=", "dequantize direction=rowwise recipe=", "dequantize direction=columnwise recipe="}) {
        lines.add(op + std::string(recipe) + first + turn.long_one() + second + (packed ? "2" : turn.thin()));
      }
      for (const char* op : {"swizzle recipe=", "unswizzle recipe="}) {
        if (packed || recipe == std::string("mxfp8"))
          lines.add(op + std::string(recipe) + first + turn.long_one() + second + turn.thin());
      }
    }
    lines.add(std::string("grouped_dbias") + (rows ? " splits=" : " K=") + turn.long_one() + (rows ? " K=" : " splits=") +
              turn.thin());
    lines.add(std::string("delayed_update") + (rows ? " tensors=" : " length=") + turn.long_one() +
              (rows ? " length=" : " tensors=") + turn.thin());
  }
  return lines.take();
}

}  // namespace assay::conformance
