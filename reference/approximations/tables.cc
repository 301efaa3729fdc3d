#include "reference/approximations/tables.h"

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <vector>

// The files of golden/approximations, put into the library by the assembler.
#define ASSAY_EMBED(name)                                                                                   \
  asm(".pushsection .rodata\n.balign 16\nassay_" #name "_begin:\n.incbin \"" ASSAY_APPROXIMATIONS "/" #name \
      ".sm90.gz\"\nassay_" #name                                                                            \
      "_end:\n.byte 0\n.popsection\n"                                                                       \
      ".hidden assay_" #name "_begin\n.global assay_" #name                                                 \
      "_begin\n"                                                                                            \
      ".hidden assay_" #name "_end\n.global assay_" #name "_end\n");                                        \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char assay_##name##_begin[], assay_##name##_end[]
ASSAY_EMBED(rcp);
ASSAY_EMBED(rsqrt);
ASSAY_EMBED(ex2);
ASSAY_EMBED(negative_ex2);
ASSAY_EMBED(tanh);

namespace assay {
namespace {

// The table of `count` results in `file`, a gzip file: the first result as u32, then the difference of each result from the one
// before as i16, all with the low byte first.
std::vector<std::uint32_t> expand(const char* name, const unsigned char* begin, const unsigned char* end, std::size_t count) {
  std::vector<unsigned char> bytes(2 * count + 2);
  z_stream stream = {};
  stream.next_in = const_cast<unsigned char*>(begin);  // zlib reads it only
  stream.avail_in = static_cast<uInt>(end - begin);
  stream.next_out = bytes.data();
  stream.avail_out = static_cast<uInt>(bytes.size());
  const int gzip = 16 + MAX_WBITS;
  const int status = inflateInit2(&stream, gzip) == Z_OK ? inflate(&stream, Z_FINISH) : Z_MEM_ERROR;
  inflateEnd(&stream);
  if (status != Z_STREAM_END || stream.avail_out != 0) {
    throw std::runtime_error(std::string("the table of ") + name + " in this build is damaged: zlib status " +
                             std::to_string(status) + ", " + std::to_string(stream.avail_out) + " bytes missing");
  }
  std::vector<std::uint32_t> table(count);
  const auto byte = [&](std::size_t at) { return static_cast<std::uint32_t>(bytes[at]); };
  table[0] = byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  for (std::size_t i = 1; i < count; ++i) {
    const auto difference = static_cast<std::int16_t>(byte(2 * i + 2) | byte(2 * i + 3) << 8);
    table[i] = table[i - 1] + static_cast<std::uint32_t>(static_cast<std::int32_t>(difference));
  }
  return table;
}

constexpr std::size_t kMantissas = std::size_t{1} << 23;

constexpr std::size_t tanh_entries() {
  std::size_t entries = 0;
  for (const int bits : kTanhBits) entries += std::size_t{1} << bits;
  return entries;
}

}  // namespace

std::span<const std::uint32_t> rcp_table() {
  static const std::vector<std::uint32_t> table = expand("rcp", assay_rcp_begin, assay_rcp_end, kMantissas);
  return table;
}

std::span<const std::uint32_t> rsqrt_table() {
  static const std::vector<std::uint32_t> table = expand("rsqrt", assay_rsqrt_begin, assay_rsqrt_end, 2 * kMantissas);
  return table;
}

std::span<const std::uint32_t> ex2_table() {
  static const std::vector<std::uint32_t> table = expand("ex2", assay_ex2_begin, assay_ex2_end, kMantissas);
  return table;
}

std::span<const std::uint32_t> negative_ex2_table() {
  static const std::vector<std::uint32_t> table =
      expand("ex2 below 0", assay_negative_ex2_begin, assay_negative_ex2_end, kMantissas);
  return table;
}

std::span<const std::uint32_t> tanh_table() {
  static const std::vector<std::uint32_t> table = expand("tanh", assay_tanh_begin, assay_tanh_end, tanh_entries());
  return table;
}

}  // namespace assay
