// Faults of outputs and of memory, for every op of the table of tensors.

#include <bit>

#include "conformance/ops/tensor_schema.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/call_parts.h"

namespace assay::conformance {
namespace {

// An output after the call, and what it held before.
struct Written {
  const Request& request;
  const OutputView& view;
  const std::vector<std::byte>& before;

  std::byte* bytes() const { return static_cast<std::byte*>(view.data); }
  std::size_t size() const { return before.size(); }
  std::size_t element() const { return element_bytes(view.type); }
  std::size_t elements() const { return size() / element(); }
  std::size_t row() const { return view.shape.size() < 2 ? 1 : static_cast<std::size_t>(view.shape.back()); }

  void flip(std::size_t at) const { bytes()[at * element()] ^= std::byte{1}; }
  void leave_out(std::size_t first, std::size_t count) const {
    std::memcpy(bytes() + first * element(), before.data() + first * element(), count * element());
  }
  // The last element that the call wrote, as far as that shows; the last one of all otherwise.
  std::size_t last() const {
    std::size_t at = size();
    while (at > 0 && bytes()[at - 1] == before[at - 1]) --at;
    return at == 0 ? elements() - 1 : (at - 1) / element();
  }
  std::size_t first() const {
    std::size_t at = 0;
    while (at < size() && bytes()[at] == before[at]) ++at;
    return at == size() ? 0 : at / element();
  }
};

// The codes of a type with one meaning: all elements with the code `from` get `to`.
void replace_codes(const Written& written, std::uint32_t from, std::uint32_t to) {
  for (std::size_t i = 0; i < written.elements(); ++i) {
    std::byte* const at = written.bytes() + i * written.element();
    if (std::memcmp(at, &from, written.element()) == 0) std::memcpy(at, &to, written.element());
  }
}

struct Spoiling {
  const char* name;
  const char* says;
  void (*spoil)(const Written&);
  bool of_floats = false;  // not of whole numbers, which have one zero and no subnormals
};
constexpr Spoiling kSpoilings[] = {
    {"unwritten", "is not written", [](const Written& out) { out.leave_out(0, out.elements()); }},
    {"last_unwritten", "lacks its last element", [](const Written& out) { out.leave_out(out.last(), 1); }},
    {"first_unwritten", "lacks its first element", [](const Written& out) { out.leave_out(out.first(), 1); }},
    {"row_unwritten", "lacks its last row",
     [](const Written& out) {
       if (out.elements() >= out.row()) out.leave_out(out.elements() - out.row(), out.row());
     }},
    {"last_wrong", "has one wrong bit in its last element", [](const Written& out) { out.flip(out.last()); }},
    {"middle_wrong", "has one wrong bit in one element", [](const Written& out) { out.flip((out.first() + out.last()) / 2); }},
    {"zero_sign", "has +0 for -0", [](const Written& out) { replace_codes(out, 1u << (8 * out.element() - 1), 0); }, true},
    {"top_code", "has the code before it for the largest value of its type",
     [](const Written& out) {
       const std::uint32_t top = out.view.type == Format::e4m3   ? 0x7E
                                 : out.view.type == Format::e5m2 ? 0x7B
                                 : out.view.type == Format::e8m0 ? 0xFE
                                 : out.view.type == Format::bf16 ? 0x7F7F
                                 : out.view.type == Format::f16  ? 0x7BFF
                                                                 : 0x7F7FFFFF;
       replace_codes(out, top, top - 1);
     },
     true},
    {"least_code", "has 0 for its least subnormal", [](const Written& out) { replace_codes(out, 1, 0); }, true},
    {"subnormal", "has zeros for subnormal values",
     [](const Written& out) {
       const bool f16 = out.view.type == Format::f16, wide = out.view.type == Format::f32 || out.view.type == Format::bf16;
       for (std::size_t i = 0; i < out.elements() && (f16 || wide); ++i) {
         std::uint32_t code = 0;
         std::memcpy(&code, out.bytes() + i * out.element(), out.element());
         const std::uint32_t sign = 1u << (8 * out.element() - 1), least = f16 ? 0x400u : 1u << (8 * out.element() - 9);
         if ((code & ~sign) < least) code &= sign;
         std::memcpy(out.bytes() + i * out.element(), &code, out.element());
       }
     },
     true},
    {"beyond", "is written one byte beyond its end", [](const Written& out) { out.bytes()[out.size()] ^= std::byte{0x5A}; }},
    {"before", "is written one byte before its beginning", [](const Written& out) { out.bytes()[-1] ^= std::byte{0x5A}; }},
};

CallFault spoiled(const std::string& op, const std::string& name, const Spoiling& spoiling) {
  const auto changes = [name, &spoiling](Request& request) {
    const OutputView& view = request.out.at(name);
    const auto* bytes = static_cast<const std::byte*>(view.data);
    const std::vector<std::byte> before(bytes, bytes + view.bytes);
    answer(request, Layer::fast);
    spoiling.spoil({request, view, before});
  };
  const auto has = [op, name](const Request& request) {
    const auto found = request.out.find(name);
    return request.op() == op && found != request.out.end() && found->second.bytes > 0;
  };
  return {"call." + op + ".out." + name + "." + spoiling.name,
          "outputs",
          op + ": output " + name + " " + spoiling.says,
          false,
          has,
          [has, changes](Request& request) { has(request) ? changes(request) : answer(request, Layer::fast); }};
}

// A call that writes to what it only reads.
CallFault writes_input(const std::string& op, const std::string& name, bool last) {
  const auto has = [op, name](const Request& request) {
    const auto found = request.in.find(name);
    return request.op() == op && found != request.in.end() && found->second.bytes > 0 && request.out.count(name) == 0;
  };
  return {"call." + op + ".in." + name + (last ? ".last_overwritten" : ".overwritten"),
          "memory",
          op + ": the " + (last ? "last" : "first") + " byte of " + name + " is overwritten",
          false,
          has,
          [has, name, last](Request& request) {
            answer(request, Layer::fast);
            if (!has(request)) return;
            const TensorView& view = request.in.at(name);
            static_cast<std::byte*>(const_cast<void*>(view.data))[last ? view.bytes - 1 : 0] ^= std::byte{0x40};
          }};
}

}  // namespace

void add_output_faults(std::vector<CallFault>& to) {
  for (const OpTensors& op : tensor_schema()) {
    const std::string of(op.op);
    const bool whole_numbers = of.rfind("splits_to_offsets", 0) == 0;
    for (const auto& [name, schema] : by_name(op.out)) {
      for (const Spoiling& each : kSpoilings) {
        if (!each.of_floats || !whole_numbers) to.push_back(spoiled(of, name, each));
      }
    }
    for (const auto& [name, schema] : by_name(op.in)) {
      to.push_back(writes_input(of, name, false));
      to.push_back(writes_input(of, name, true));
    }
  }
}

}  // namespace assay::conformance
