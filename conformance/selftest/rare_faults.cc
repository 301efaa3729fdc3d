// Faults that show seldom: in one place of a large output, in one replay, in one code or exponent. For every output of every op.

#include <algorithm>

#include "conformance/ops/output_map.h"
#include "conformance/ops/tensor_schema.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/call_parts.h"

namespace assay::conformance {
namespace {

constexpr std::int64_t kNone = -1;

// What the map of an output is made from: attributes, shapes, and the contents of what says where groups lie.
Case case_of(const Request& request) {
  Case made;
  made.op = request.op();
  made.attributes = request.attributes;
  for (const auto& [name, view] : request.in) {
    Tensor& tensor = made.in[name];
    tensor.type = view.type;
    tensor.shape = view.shape;
    if (name != "splits" && name != "psum" && name != "m_indices") continue;
    const auto* from = static_cast<const std::byte*>(view.data);
    tensor.bytes.assign(from, from + view.bytes);
  }
  return made;
}

// The rows of the call: those of its first matrix.
std::int64_t rows_of(const Request& request) {
  std::int64_t most = 0;
  for (const auto& [name, view] : request.in) {
    if (view.shape.size() == 2 && name.rfind("w", 0) != 0) most = std::max(most, view.shape[0]);
  }
  return most;
}

// Each of these: the element that is wrong, or kNone.
std::int64_t last_element(const Request&, const std::string&, const OutputView& view) { return view.elements() - 1; }

std::int64_t of_group_65(const Request& request, const std::string& name, const OutputView& view) {
  if (request.op().rfind("splits_to_offsets", 0) == 0) return view.elements() > 66 ? 66 : kNone;
  const OutputMap map = map_output(case_of(request), name, {view.type, view.shape, {}});
  for (const Segment& segment : map.segments) {
    if (segment.group < 65 || segment.used_rows <= 0 || segment.used_columns <= 0) continue;
    const std::int64_t at = segment.first + offset_of(segment, {segment.used_rows - 1, segment.used_columns - 1});
    return view.type == Format::e2m1 ? at / 2 : at;
  }
  if (request.op() != "quantize_by_rule" || request.in.count("splits") == 0 || request.in.at("splits").type != Format::i64)
    return kNone;
  // Outputs without a map: values of each row or group.
  std::int64_t group = 0, row = 0;
  const std::vector<std::int64_t> splits = request.splits();
  if (splits.size() <= 65) return kNone;
  for (; group < 65; ++group) row += splits[static_cast<std::size_t>(group)];
  const std::int64_t rows = request.in.at("x").shape[0], groups = static_cast<std::int64_t>(splits.size());
  if (rows == 0 || view.elements() < groups) return kNone;
  return view.elements() == groups ? group : row < rows ? row * (view.elements() / rows) : kNone;
}

std::int64_t above_1000_rows(const Request& request, const std::string&, const OutputView& view) {
  return rows_of(request) > 1000 ? view.elements() - 1 : kNone;
}

std::int64_t of_row_1001(const Request&, const std::string&, const OutputView& view) {
  return view.shape.size() == 2 && view.shape[0] > 1001 && view.shape[1] > 0 ? 1001 * view.shape[1] : kNone;
}

std::int64_t of_2_to_20(const Request&, const std::string&, const OutputView& view) {
  return view.elements() > (1 << 20) ? 1 << 20 : kNone;
}

// The first element behind 132 tiles of 128 x 128, as many as an H100 carries out at a time.
std::int64_t of_second_wave(const Request&, const std::string&, const OutputView& view) {
  if (view.shape.size() != 2 || view.shape[1] == 0) return view.elements() > 132 * 128 * 128 ? 132 * 128 * 128 : kNone;
  const std::int64_t across = (view.shape[1] + 127) / 128, row = 132 / across * 128, column = 132 % across * 128;
  return row < view.shape[0] ? row * view.shape[1] + column : kNone;
}

struct Place {
  const char* name;
  const char* says;
  std::int64_t (*element)(const Request&, const std::string&, const OutputView&);
  bool third = false;
};
constexpr Place kPlaces[] = {
    {"third_wrong", "has one wrong bit in its last element, in the third call only", last_element, true},
    {"group_65_wrong", "has one wrong bit from group 65 on", of_group_65},
    {"above_1000_wrong", "has one wrong bit in its last element if there are more than 1000 rows", above_1000_rows},
    {"row_1000_wrong", "has one wrong bit beyond row 1000", of_row_1001},
    {"2_to_20_wrong", "has one wrong bit in element 2^20", of_2_to_20},
    {"second_wave_wrong", "has one wrong bit behind the first 132 tiles of 128 x 128", of_second_wave},
};

CallFault wrong_place(const std::string& op, const std::string& name, const Place& place) {
  const auto element = [op, name, &place](const Request& request) {
    const auto found = request.out.find(name);
    return request.op() != op || found == request.out.end() || found->second.bytes == 0
               ? kNone
               : place.element(request, name, found->second);
  };
  return {"call." + op + ".out." + name + "." + place.name,
          "rare",
          op + ": output " + name + " " + place.says,
          false,
          [element](const Request& request) { return element(request) != kNone; },
          [element, name, &place](Request& request) {
            const std::int64_t at = element(request);
            answer(request, Layer::fast);
            if (at == kNone || (place.third && calls_since_question() != 3)) return;
            const OutputView& view = request.out.at(name);
            static_cast<std::byte*>(view.data)[at * static_cast<std::int64_t>(element_bytes(view.type))] ^= std::byte{1};
          }};
}

// The bits of an element.
std::uint64_t code_at(const OutputView& view, std::int64_t i) {
  std::uint64_t code = 0;
  const std::size_t size = element_bytes(view.type);
  std::memcpy(&code, static_cast<const std::byte*>(view.data) + i * static_cast<std::int64_t>(size), size);
  return code;
}
void flip(const OutputView& view, std::int64_t i) {
  static_cast<std::byte*>(view.data)[i * static_cast<std::int64_t>(element_bytes(view.type))] ^= std::byte{1};
}

// One code of 256.
bool is_the_code(const OutputView& view, std::uint64_t code) { return element_bytes(view.type) == 1 && code == 0x35; }
// One exponent: that of 2^-27 in f32 and bf16, of 2^-12 in f16, of 2^-3 in e4m3 and e5m2.
bool is_the_exponent(const OutputView& view, std::uint64_t code) {
  switch (view.type) {
    case Format::f32: return (code >> 23 & 255) == 100;
    case Format::bf16: return (code >> 7 & 255) == 100;
    case Format::f16: return (code >> 10 & 31) == 3;
    case Format::e4m3: return (code >> 3 & 15) == 4;
    case Format::e5m2: return (code >> 2 & 31) == 12;
    default: return false;
  }
}

CallFault wrong_codes(const std::string& op, const std::string& name, const char* kind, const char* says,
                      bool (*is_wrong)(const OutputView&, std::uint64_t)) {
  const auto has = [op, name](const Request& request) {
    const auto found = request.out.find(name);
    return request.op() == op && found != request.out.end() && found->second.bytes > 0 && found->second.type != Format::i64 &&
           found->second.type != Format::i32;
  };
  return {"call." + op + ".out." + name + "." + kind,
          "rare",
          op + ": output " + name + " " + says,
          false,
          has,
          [has, name, is_wrong](Request& request) {
            answer(request, Layer::fast);
            if (!has(request)) return;
            const OutputView& view = request.out.at(name);
            for (std::int64_t i = 0; i < view.elements(); ++i) {
              if (is_wrong(view, code_at(view, i))) flip(view, i);
            }
          }};
}

// Whether some call can have the place: groups need splits, rows a matrix, and what is one value a group, block or row is never so many.
bool can_be(const OpTensors& op, const TensorSchema& output, const Place& place) {
  const bool matrix = output.shape.find(',') != std::string::npos, offsets = op.op.starts_with("splits_to_offsets");
  const auto has = [&](auto meant) { return std::any_of(op.in.begin(), op.in.end(), meant); };
  if (place.element == of_group_65) return offsets || has([](const TensorSchema& each) { return each.name == "splits"; });
  if (place.element == above_1000_rows)
    return has([](const TensorSchema& each) { return each.shape.find(',') != std::string::npos; });
  if (place.element == of_row_1001) return matrix;
  if (place.element != of_2_to_20 && place.element != of_second_wave) return true;
  if (output.name == "permuted_scale_inv") return false;
  return matrix || offsets || output.shape.find_first_of("*(S") != std::string::npos;
}
// Whether an output may hold codes of 8 bits.
bool has_codes(const TensorSchema& output) { return output.type != "f32"; }

}  // namespace

void add_rare_faults(std::vector<CallFault>& to) {
  for (const OpTensors& op : tensor_schema()) {
    const std::string of(op.op);
    for (const auto& [name, schema] : by_name(op.out)) {
      for (const Place& place : kPlaces) {
        if (can_be(op, *schema, place)) to.push_back(wrong_place(of, name, place));
      }
      if (of.rfind("splits_to_offsets", 0) == 0) continue;
      if (has_codes(*schema)) to.push_back(wrong_codes(of, name, "one_code", "has a wrong bit in one code of 256", is_the_code));
      to.push_back(wrong_codes(of, name, "one_exponent", "has a wrong bit in elements of one exponent", is_the_exponent));
    }
  }
}

}  // namespace assay::conformance
