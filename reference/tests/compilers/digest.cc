// Prints digests of the reference's answers, one line each: conversions over a regular sample of all f32, every code back, and
// every output of generated cases of every op, from both layers. Two programs that were linked with the reference of two
// compilers must print the same (compare.cmake).

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "conformance/catalogue/catalogue.h"
#include "conformance/generate/generator.h"
#include "conformance/ops/answer.h"
#include "reference/formats/encode.h"
#include "reference/types/tensor.h"

namespace assay::conformance {
namespace {

// Costs above which a case is left out, and above which the scalar layer is: the whole takes seconds.
constexpr std::int64_t kMaxMacs = 4'000'000, kMaxElements = 100'000, kMaxScalarMacs = 300'000, kMaxScalarElements = 20'000;

class Digest {  // FNV-1a
 public:
  void add(std::span<const std::byte> bytes) {
    for (const std::byte byte : bytes) value_ = (value_ ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3;
  }
  void print(const std::string& what) const {
    std::printf("%016llx %s\n", static_cast<unsigned long long>(value_), what.c_str());
  }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325;
};

// The codes of every 1021st f32, a prime, so that every sign, exponent and low bits of all kinds occur.
template <class Code>
void print_conversions(Format format) {
  constexpr std::uint64_t kStep = 1021;
  std::vector<float> values(4096), back;
  std::vector<Code> codes(values.size());
  Digest encoded;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += kStep * values.size()) {
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(first + kStep * i));
    encode(format, values, codes);
    encoded.add(std::as_bytes(std::span(codes)));
  }
  encoded.print("encode " + std::string(name_of(format)));
  codes.resize(std::size_t{1} << (8 * sizeof(Code)));
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<Code>(i);
  back.resize(codes.size());
  decode(format, codes, back);
  Digest decoded;
  decoded.add(std::as_bytes(std::span(back)));
  decoded.print("decode " + std::string(name_of(format)));
}

void print_case(const CaseLine& line, Layer layer) {
  Case asked = generate(line);
  for (const OutputSpec& spec : outputs_of(Request::of(asked))) {
    Tensor tensor = make_tensor(spec.type, spec.shape);
    std::fill(tensor.bytes.begin(), tensor.bytes.end(), std::byte{0xA5});
    asked.out.emplace(spec.name, std::move(tensor));
  }
  answer(Request::of(asked), layer);
  Digest digest;
  for (const auto& [name, tensor] : asked.out) {
    digest.add(std::as_bytes(std::span(name)));
    digest.add(tensor.bytes);
  }
  digest.print((layer == Layer::fast ? "fast " : "scalar ") + to_text(line));
}

void print_everything() {
  for (const Format format : {Format::e4m3, Format::e5m2, Format::e2m1, Format::e8m0, Format::e4m3_fnuz, Format::e5m2_fnuz,
                              Format::e3m2, Format::e2m3}) {
    print_conversions<std::uint8_t>(format);
  }
  for (const Format format : {Format::bf16, Format::f16}) print_conversions<std::uint16_t>(format);
  const std::vector<std::string_view> ops = known_ops();
  for (const CaseLine& line : catalogue(Profile::standard)) {
    if (std::find(ops.begin(), ops.end(), line.op) == ops.end()) continue;  // a scenario is many cases
    const CaseCost cost = cost_of(line);
    if (cost.macs > kMaxMacs || cost.elements > kMaxElements) continue;
    print_case(line, Layer::fast);
    if (cost.macs <= kMaxScalarMacs && cost.elements <= kMaxScalarElements) print_case(line, Layer::scalar);
  }
}

}  // namespace
}  // namespace assay::conformance

int main() { assay::conformance::print_everything(); }
