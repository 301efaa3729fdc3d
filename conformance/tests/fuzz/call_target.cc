// Calls of the interface: a case line, whose call is then edited, line by line, and made. The reference answers with a status that
// backend.h has and touches nothing but the outputs of a call that it takes; both layers then give the same bytes.
//
//   quantize recipe=block_1x128 splits=5,0,17 K=136 seed=1
//   in 0 shape0 7              the first extent of the first input; also: rank, dtype, bytes, data (its place in memory)
//   out 1 twice                the second output once more; also: drop, null (its data), nameless
//   param 2 integer -3         also: kind, text WORD, drop, twice, nameless
//   call algorithm 4           also: struct_size, inputs, outputs, parameters (their counts), workspace, workspace_bytes
//   byte 300 255               contents of memory

#include <algorithm>
#include <charconv>
#include <cstring>
#include <deque>
#include <sstream>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/backends/call_layout.h"
#include "conformance/cases/case_schema.h"
#include "conformance/generate/generator.h"
#include "conformance/generate/work_limit.h"
#include "conformance/judge/call_runner.h"
#include "conformance/ops/answer.h"
#include "conformance/tests/fuzz/targets.h"
#include "reference/types/error.h"

namespace assay::fuzz {
namespace {

using namespace assay::conformance;

constexpr std::size_t kMemory = 1 << 16, kGap = 64;
constexpr std::int64_t kProducts = 1 << 14, kElements = 1 << 12, kWork = 1 << 16;
constexpr std::size_t kEdits = 30, kLongestLine = 1 << 16;

std::int64_t number(const std::string& word) {
  std::int64_t value = 0;
  std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// A call of a case in memory of its own, and changes to it.
class EditedCall {
 public:
  explicit EditedCall(const CaseLine& line) : problem_(generate(line)), memory_(kMemory, std::byte{0xa5}) {
    for (const auto& [name, value] : problem_.attributes) parameters_.push_back(parameter_of(name, value));
    for (const auto& [name, tensor] : problem_.in) {
      inputs_.push_back(place(tensor_of(name, tensor.type, tensor.shape)));
      if (inputs_.back().data != nullptr) std::memcpy(inputs_.back().data, tensor.bytes.data(), tensor.bytes.size());
    }
    specs_ = outputs_of(Request::read_only(problem_));
    for (const OutputSpec& each : specs_) outputs_.push_back(place(tensor_of(each.name, each.type, each.shape)));
    call_ = call_of_this_build();
    call_.op = problem_.op.c_str();
    call_.algorithm = -1;
  }

  bool fits() const { return end_ <= kMemory; }

  void edit(const std::string& text) {
    std::istringstream words(text);
    std::string part, index, what, value;
    words >> part >> index >> what >> value;
    const std::int64_t at = number(index);
    if (part == "in" || part == "out") {
      auto& list = part == "in" ? inputs_ : outputs_;
      if (at >= 0 && at < static_cast<std::int64_t>(list.size()))
        edit_tensor(list, static_cast<std::size_t>(at), what, number(value));
    } else if (part == "param") {
      if (at >= 0 && at < static_cast<std::int64_t>(parameters_.size()))
        edit_parameter(static_cast<std::size_t>(at), what, value);
    } else if (part == "call") {
      edit_call(index, number(what));
    } else if (part == "byte" && at >= 0 && at < static_cast<std::int64_t>(kMemory)) {
      memory_[static_cast<std::size_t>(at)] = static_cast<std::byte>(number(what));
    }
  }

  // Whether every tensor that the call shows to be whole is in memory of this: another would be read where there is none.
  bool is_in_memory() const {
    for (const auto* list : {&inputs_, &outputs_}) {
      for (const assay_tensor& each : *list) {
        const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data()), data = reinterpret_cast<std::uintptr_t>(each.data);
        if (each.data == nullptr || each.bytes <= 0) continue;
        if (data < begin || data > begin + kMemory || static_cast<std::uint64_t>(each.bytes) > begin + kMemory - data)
          return false;
      }
    }
    return true;
  }

  void make(std::string_view input) {
    finish();
    const std::vector<std::byte> before = memory_;
    std::vector<std::byte> answers[2];
    assay_status statuses[2];
    for (const int layer : {0, 1}) {
      memory_ = before;
      statuses[layer] = make_by(layer == 0 ? "layer=fast" : "layer=scalar", input);
      answers[layer] = memory_;
      if (statuses[layer] != ASSAY_OK) promise(memory_ == before, "a refused call changes no memory", input);
    }
    promise(statuses[0] == statuses[1], "both layers give one status", input);
    promise(answers[0] == answers[1], "both layers give the same bytes", input);
    for (std::size_t i = 0; i < kMemory; ++i)
      promise(answers[0][i] == before[i] || is_output(i), "a call writes to its outputs alone", input);
  }

 private:
  assay_tensor place(assay_tensor tensor) {
    const auto bytes = static_cast<std::size_t>(tensor.bytes);
    if (end_ + bytes + kGap > kMemory) {
      end_ = kMemory + 1;
      tensor.bytes = 0;
      return tensor;
    }
    tensor.data = bytes == 0 ? nullptr : memory_.data() + end_;
    end_ = (end_ + bytes + kGap) / kGap * kGap;
    return tensor;
  }

  void edit_tensor(std::vector<assay_tensor>& list, std::size_t at, const std::string& what, std::int64_t value) {
    assay_tensor& tensor = list[at];
    const auto place = static_cast<std::size_t>(static_cast<std::uint64_t>(value) % kMemory);
    if (what == "dtype") tensor.dtype = static_cast<assay_dtype>(value);
    if (what == "rank") tensor.rank = static_cast<std::int32_t>(value);
    if (what.size() == 6 && what.starts_with("shape") && what[5] >= '0' && what[5] <= '3') tensor.shape[what[5] - '0'] = value;
    if (what == "bytes") tensor.bytes = value;
    if (what == "data") tensor.data = memory_.data() + place;
    if (what == "null") tensor.data = nullptr;
    if (what == "nameless") tensor.name = nullptr;
    if (what == "twice") list.push_back(assay_tensor(tensor));
    if (what == "drop") list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void edit_parameter(std::size_t at, const std::string& what, const std::string& value) {
    assay_parameter& parameter = parameters_[at];
    if (what == "integer") parameter.kind = ASSAY_INTEGER, parameter.integer = number(value);
    if (what == "real") parameter.kind = ASSAY_REAL, parameter.real = static_cast<double>(number(value)) / 8;
    if (what == "text") parameter.kind = ASSAY_TEXT, parameter.text = texts_.emplace_back(value).c_str();
    if (what == "name") parameter.name = texts_.emplace_back(value).c_str();
    if (what == "kind") parameter.kind = static_cast<assay_parameter_kind>(number(value));
    if (what == "nameless") parameter.name = nullptr;
    if (what == "twice") parameters_.push_back(assay_parameter(parameter));
    if (what == "drop") parameters_.erase(parameters_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  void edit_call(const std::string& what, std::int64_t value) {
    if (what == "struct_size") call_.struct_size = std::min<std::size_t>(static_cast<std::uint64_t>(value), sizeof call_);
    if (what == "algorithm") call_.algorithm = value;
    if (what == "workspace_bytes") call_.workspace_bytes = std::min<std::int64_t>(value, kMemory);
    if (what == "workspace") call_.workspace = memory_.data() + static_cast<std::uint64_t>(value) % kMemory;
    if (what == "inputs") count_[0] = value;
    if (what == "outputs") count_[1] = value;
    if (what == "parameters") count_[2] = value;
  }

  // A count may be made smaller, negative or larger than any; one in between would promise elements that are not there.
  static std::int32_t count_of(std::size_t size, std::int64_t edited) {
    const auto count = static_cast<std::int32_t>(size);
    return edited < count || edited > 1024 ? static_cast<std::int32_t>(std::clamp<std::int64_t>(edited, INT32_MIN, INT32_MAX))
                                           : count;
  }

  void finish() {
    call_.parameters = parameters_.data(), call_.parameter_count = count_of(parameters_.size(), count_[2]);
    call_.inputs = inputs_.data(), call_.input_count = count_of(inputs_.size(), count_[0]);
    call_.outputs = outputs_.data(), call_.output_count = count_of(outputs_.size(), count_[1]);
  }

  assay_status make_by(const char* options, std::string_view input) {
    const assay_backend& table = *reference_backend();
    assay_context* context = nullptr;
    assay_stream* stream = nullptr;
    promise(table.open(options, &context) == ASSAY_OK && table.stream_create(context, &stream) == ASSAY_OK, "it opens", input);
    assay_numerics numerics{};
    numerics.struct_size = sizeof numerics;
    table.supports(context, &call_);
    table.numerics(context, &call_, &numerics);
    const assay_status status = table.execute(context, stream, &call_);
    const std::string why = table.last_error(context);
    const bool is_refusal = status == ASSAY_INVALID_ARGUMENT || status == ASSAY_NOT_SUPPORTED || status == ASSAY_OUT_OF_MEMORY;
    promise(status == ASSAY_OK || is_refusal, "a wrong call is refused: " + why, input);
    promise(status == ASSAY_OK || (!why.empty() && why.find('\n') == std::string::npos), "a refusal has one line: " + why, input);
    table.stream_destroy(context, stream);
    table.close(context);
    return status;
  }

  bool is_output(std::size_t byte) const {
    return std::any_of(outputs_.begin(), outputs_.end(), [&](const assay_tensor& each) {
      const auto data = static_cast<const std::byte*>(each.data);
      return data != nullptr && memory_.data() + byte >= data && memory_.data() + byte < data + each.bytes;
    });
  }

  Case problem_;
  std::vector<std::byte> memory_;
  std::size_t end_ = kGap;
  std::vector<OutputSpec> specs_;
  std::deque<std::string> texts_;
  std::vector<assay_parameter> parameters_;
  std::vector<assay_tensor> inputs_, outputs_;
  std::int64_t count_[3] = {INT32_MAX, INT32_MAX, INT32_MAX};
  assay_call call_{};
};

}  // namespace

void run_calls(std::string_view data) {
  std::istringstream text{std::string(data)};
  std::string first;
  std::getline(text, first);
  try {
    const CaseLine line = parse_case_line(first);
    if (to_text(line).size() > kLongestLine) return;
    const CaseCost cost = cost_of(line);
    if (line.op == "scenario" || cost.macs > kProducts || cost.elements > kElements) return;
    const WorkLimit limit(kWork);
    EditedCall call(line);
    std::string edit;
    for (std::size_t edits = 0; edits < kEdits && std::getline(text, edit); ++edits) call.edit(edit);
    if (call.fits() && call.is_in_memory()) call.make(data);
  } catch (const InvalidArgument&) {  // the first line
  } catch (const NotSupported&) {
  } catch (const std::bad_alloc&) {  // the tensors of the line; the backend itself reports this
  }
}

}  // namespace assay::fuzz
