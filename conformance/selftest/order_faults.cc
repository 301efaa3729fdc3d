// What a library drops that a host backend can show: memory that is not cleared, a result that is not waited for, work of the call before.
// For every output of every op.

#include <map>
#include <memory>

#include "conformance/ops/tensor_schema.h"
#include "conformance/selftest/call_fault_lists.h"
#include "conformance/selftest/catalogued/fault_parts.h"
#include "reference/formats/bf16.h"

namespace assay::conformance {
namespace {

struct Done {
  const OutputView& view;
  const std::vector<std::byte>& before;  // what the output held
  const std::vector<std::byte>* earlier =
      nullptr;  // what the call before left in an output of this name, if that had as many bytes

  std::byte* bytes() const { return static_cast<std::byte*>(view.data); }
  std::size_t size() const { return before.size(); }
};

// A value as f32; types of whole numbers and codes have none.
bool is_wide(Format type) { return type == Format::f32 || type == Format::bf16; }
float value_at(const void* data, Format type, std::int64_t i) {
  return type == Format::f32 ? at<float>(data, i) : scalar::decode_bf16(at<std::uint16_t>(data, i));
}
void put_value(void* data, Format type, std::int64_t i, float value) {
  type == Format::f32 ? put(data, i, value) : put(data, i, scalar::encode_bf16(value));
}

// Only what the call wrote: elsewhere `before` and the output agree.
void add_old(const Done& done) {
  if (!is_wide(done.view.type)) return;
  const auto size = static_cast<std::int64_t>(element_bytes(done.view.type));
  for (std::int64_t i = 0; i < done.view.elements(); ++i) {
    if (std::memcmp(done.bytes() + i * size, done.before.data() + i * size, static_cast<std::size_t>(size)) == 0) continue;
    put_value(done.bytes(), done.view.type, i,
              value_at(done.bytes(), done.view.type, i) + value_at(done.before.data(), done.view.type, i));
  }
}
void keep_larger(const Done& done) {
  if (!is_wide(done.view.type) || done.earlier == nullptr) return;
  for (std::int64_t i = 0; i < done.view.elements(); ++i) {
    if (value_at(done.earlier->data(), done.view.type, i) > value_at(done.bytes(), done.view.type, i))
      put_value(done.bytes(), done.view.type, i, value_at(done.earlier->data(), done.view.type, i));
  }
}
void keep_last(const Done& done) {
  if (done.earlier == nullptr) return;
  const std::size_t part = (done.size() + 3) / 4;
  std::memcpy(done.bytes() + done.size() - part, done.earlier->data() + done.size() - part, part);
}
void keep_all(const Done& done) {
  if (done.earlier != nullptr) std::memcpy(done.bytes(), done.earlier->data(), done.size());
}
void leave_last(const Done& done) {
  const std::size_t part = (done.size() + 3) / 4;
  std::memcpy(done.bytes() + done.size() - part, done.before.data() + done.size() - part, part);
}

struct Order {
  const char* name;
  const char* says;
  void (*spoil)(const Done&);
};
constexpr Order kOrders[] = {
    {"not_cleared", "is added to memory that was not cleared", add_old},
    {"largest_of_calls", "is not reset between calls: the larger of the value and that of the call before", keep_larger},
    {"last_part_of_call_before", "has a last quarter that is the work of the call before", keep_last},
    {"call_before", "is read before the call has written it: the work of the call before", keep_all},
    {"last_part_not_waited_for", "lacks its last quarter: the part of the kernel that writes it is not waited for", leave_last},
};

CallFault out_of_order(const std::string& op, const std::string& name, const Order& order) {
  const auto earlier = std::make_shared<Kept<std::vector<std::byte>>>();
  const auto has = [op, name](const Request& request) { return request.op() == op && has_output(name)(request); };
  return {"order." + op + "." + name + "." + order.name,
          "order",
          op + ": output " + name + " " + order.says,
          false,
          has,
          [=, &order](Request& request) {
            if (!has(request)) return answer(request, Layer::fast);
            const OutputView& view = request.out.at(name);
            const std::vector<std::byte> before = bytes_of(view);
            answer(request, Layer::fast);
            const std::vector<std::byte> right = bytes_of(view);
            std::vector<std::byte>& kept = earlier->now();
            order.spoil({view, before, kept.size() == right.size() ? &kept : nullptr});
            kept = right;
          }};
}

// The half of a row, of an input, that a barrier would have waited for: the second half is what the first is.
CallFault without_barrier(const std::string& op, const std::string& name) {
  const auto has = [op, name](const Request& request) {
    const auto found = request.in.find(name);
    return request.op() == op && found != request.in.end() && found->second.bytes > 0 && found->second.shape.size() == 2 &&
           found->second.shape[1] > 1;
  };
  return {"order." + op + ".in." + name + ".stage_not_waited_for",
          "order",
          op + ": the second half of each row of " + name + " is not waited for: the buffer still holds the first",
          false,
          has,
          [=](Request& request) {
            if (!has(request)) return answer(request, Layer::fast);
            ChangedCall changed(request);
            std::vector<std::byte>& bytes = changed.input(name);
            const std::size_t row = bytes.size() / static_cast<std::size_t>(request.in.at(name).shape[0]),
                              size = element_bytes(request.in.at(name).type);
            const std::size_t half = row / size / 2 * size;
            for (std::size_t at = 0; at < bytes.size(); at += row)
              std::memcpy(bytes.data() + at + row - half, bytes.data() + at, half);
            changed.carry_out(request);
          }};
}

}  // namespace

void add_order_faults(std::vector<CallFault>& to) {
  for (const OpTensors& op : tensor_schema()) {
    const std::string of(op.op);
    for (const auto& [name, schema] : by_name(op.out)) {
      for (const Order& order : kOrders) {
        const bool sums = order.spoil == add_old || order.spoil == keep_larger;
        const bool codes = name.find("data") != std::string::npos || name.find("offsets") == 0 || name.find("swizzled") == 0 ||
                           name == "compact" || name.find("permuted") == 0;
        if (!sums || !codes) to.push_back(out_of_order(of, name, order));
      }
    }
    for (const auto& [name, schema] : by_name(op.in)) {
      if (schema->shape.find(',') != std::string::npos) to.push_back(without_barrier(of, name));
    }
  }
}

}  // namespace assay::conformance
