#include "conformance/judge/calls/wrong_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "reference/types/format.h"

namespace assay::conformance {
namespace {

using Tensors = std::vector<assay_tensor> CallParts::*;

// Another type of the same width.
assay_dtype other_type(assay_dtype type) {
  switch (type) {
    case ASSAY_F32: return ASSAY_I32;
    case ASSAY_I32: return ASSAY_F32;
    case ASSAY_BF16: return ASSAY_F16;
    case ASSAY_F16: return ASSAY_BF16;
    case ASSAY_E4M3: return ASSAY_E8M0;
    default: return ASSAY_E4M3;
  }
}

std::int64_t element_bytes(const assay_tensor& tensor) {
  return tensor.dtype == ASSAY_E2M1 ? 1 : bits_of(static_cast<Format>(tensor.dtype)) / 8;
}

void* moved(void* data, std::int64_t bytes) {
  return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes));
}

// The extent of an axis becomes another one, and the bytes follow.
void resize(assay_tensor& tensor, int axis, std::int64_t extent) {
  tensor.bytes = tensor.bytes / tensor.shape[axis] * extent;
  tensor.shape[axis] = extent;
}

// The ways to make one tensor wrong.
class WrongTensor {
 public:
  WrongTensor(const assay_call& right, bool is_output, std::size_t at, std::vector<WrongCall>& all)
      : right_(right),
        tensor_(is_output ? right.outputs[at] : right.inputs[at]),
        list_(is_output ? &CallParts::outputs : &CallParts::inputs),
        is_output_(is_output),
        at_(at),
        name_(fmt::format("{} {}", is_output ? "output" : "input", tensor_.name)),
        all_(all) {}

  void add_structure();
  void add_memory();
  void add_type();
  void add_shapes();
  void add_overlaps();

 private:
  using Change = std::function<void(assay_tensor&)>;
  void add(const std::string& fault, const Change& change, Decides decides = Decides::always_wrong,
           Refusal refusal = Refusal::invalid_argument) {
    const auto on_call = [list = list_, at = at_, change](CallParts& parts) { change((parts.*list)[at]); };
    all_.push_back({name_, fault, name_ + " " + fault, on_call, decides, refusal});
  }
  void add_overlap(const char* folder, const assay_tensor& other);

  const assay_call& right_;
  const assay_tensor& tensor_;
  Tensors list_;
  bool is_output_;
  std::size_t at_;
  std::string name_;
  std::vector<WrongCall>& all_;
};

void WrongTensor::add_structure() {
  add("without a name", [](assay_tensor& each) { each.name = nullptr; });
  all_.push_back({name_, "given twice", name_ + " given twice",
                  [list = list_, at = at_](CallParts& parts) { (parts.*list).push_back((parts.*list)[at]); }});
  for (const int type : {-1, 99})
    add(fmt::format("of type {}", type), [=](assay_tensor& each) { each.dtype = static_cast<assay_dtype>(type); });
  for (const int rank : {-1, 5}) add(fmt::format("of rank {}", rank), [=](assay_tensor& each) { each.rank = rank; });
  add("of a negative extent", [](assay_tensor& each) {
    each.shape[0] = -each.shape[0] - 1;
    each.bytes = -each.bytes - 1;
  });
  add("of 2^80 elements", [](assay_tensor& each) {
    each.rank = 2;
    each.shape[0] = each.shape[1] = std::int64_t{1} << 40;
  });
}

void WrongTensor::add_memory() {
  for (const std::int64_t more : {-8, 8})
    add(fmt::format("of 8 bytes {} than its shape takes", more < 0 ? "fewer" : "more"),
        [=](assay_tensor& each) { each.bytes += more; });
  if (tensor_.bytes == 0) return;
  add("without memory", [](assay_tensor& each) { each.data = nullptr; });
  if (element_bytes(tensor_) > 1) add("one byte past its address", [](assay_tensor& each) { each.data = moved(each.data, 1); });
}

void WrongTensor::add_type() {
  add(
      "of another type", [](assay_tensor& each) { each.dtype = other_type(each.dtype); }, Decides::reference, Refusal::either);
}

void WrongTensor::add_shapes() {
  const auto add_shape = [&](const std::string& fault, const Change& change) {
    add(fault, change, Decides::schema, Refusal::either);
  };
  if (tensor_.rank < 4) {
    add_shape("with an extent of 1 more", [](assay_tensor& each) { each.shape[each.rank++] = 1; });
  }
  if (tensor_.rank == 2) {
    add_shape("in one extent", [](assay_tensor& each) {
      each.shape[0] *= each.shape[1];
      each.rank = 1;
    });
    add_shape("with its extents exchanged", [](assay_tensor& each) { std::swap(each.shape[0], each.shape[1]); });
  }
  static constexpr const char* kNames[] = {"row", "column"};
  for (int axis = 0; axis < std::min(tensor_.rank, 2); ++axis) {
    const std::int64_t extent = tensor_.shape[axis];
    if (tensor_.bytes == 0) continue;
    add_shape(fmt::format("of one {} more", kNames[axis]), [=](assay_tensor& each) { resize(each, axis, extent + 1); });
    if (extent > 1)
      add_shape(fmt::format("of one {} fewer", kNames[axis]), [=](assay_tensor& each) { resize(each, axis, extent - 1); });
    add_shape(fmt::format("of no {}", kNames[axis]), [=](assay_tensor& each) {
      each.shape[axis] = each.bytes = 0;
      each.data = nullptr;
    });
  }
}

void WrongTensor::add_overlap(const char* folder, const assay_tensor& other) {
  if (&other == &tensor_ || other.bytes == 0) return;
  const auto add_at = [&](const char* where, void* to) {
    const auto change = [list = list_, at = at_, to](CallParts& parts) { (parts.*list)[at].data = to; };
    all_.push_back({name_, fmt::format("{} of another tensor", where),
                    fmt::format("{} {} of {} {}", name_, where, folder, other.name), change});
  };
  add_at("at the address", other.data);
  // Its first bytes on the last of the other, and its last on the first: at multiples of its own elements.
  const std::int64_t size = element_bytes(tensor_), last = (other.bytes - 1) / size * size;
  add_at("on the end", moved(other.data, last));
  add_at("on the start", moved(other.data, size - tensor_.bytes));
}

void WrongTensor::add_overlaps() {
  if (!is_output_ || tensor_.bytes == 0) return;
  for (std::int32_t i = 0; i < right_.input_count; ++i) add_overlap("input", right_.inputs[i]);
  for (std::int32_t i = 0; i < right_.output_count; ++i) add_overlap("output", right_.outputs[i]);
}

}  // namespace

void add_wrong_tensors(const assay_call& right, std::vector<WrongCall>& all) {
  for (const bool is_output : {false, true}) {
    const std::int32_t count = is_output ? right.output_count : right.input_count;
    for (std::int32_t i = 0; i < count; ++i) {
      WrongTensor tensor(right, is_output, static_cast<std::size_t>(i), all);
      tensor.add_structure();
      tensor.add_memory();
      tensor.add_type();
      tensor.add_shapes();
      tensor.add_overlaps();
    }
  }
}

}  // namespace assay::conformance
