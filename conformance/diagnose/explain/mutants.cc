#include "conformance/diagnose/explain/mutants.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/selftest/point_state.h"
#include "conformance/support/forked.h"
#include "reference/types/error.h"

namespace assay::conformance::explaining {
namespace {

using assay_points::Library;
using assay_points::MutantRow;

constexpr unsigned kSecondsOfOne = 20, kSecondsOfRecord = 120;
constexpr int kMostProcesses = 16;

const Library* open_library(const std::string& file) {
  // The library stays loaded, as its texts are used.
  void* const held = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  require(held != nullptr, "the library of mutants", file, "a library that can be loaded");
  using Entry = const Library* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(held, "assay_mutant_library"));
  require(entry != nullptr, "the library of mutants", file, "a library that has assay_mutant_library");
  const Library* const library = entry();
  require(library->size == static_cast<std::int32_t>(sizeof(Library)), "the library of mutants", file, "one of this build");
  return library;
}

// The failed call, made again on memory of this process.
class Call {
 public:
  explicit Call(const Failure& failure) : failure_(failure) {
    for (const auto& [name, value] : failure.call().attributes) {
      assay_parameter made{name.c_str(), ASSAY_TEXT, 0, 0, nullptr};
      if (const auto* integer = std::get_if<std::int64_t>(&value)) {
        made.kind = ASSAY_INTEGER, made.integer = *integer;
      } else if (const auto* real = std::get_if<double>(&value)) {
        made.kind = ASSAY_REAL, made.real = *real;
      } else {
        made.text = std::get<std::string>(value).c_str();
      }
      parameters_.push_back(made);
    }
    for (const auto& [name, tensor] : failure.call().in) {
      void* const data = tensor.bytes.empty() ? nullptr : const_cast<std::byte*>(tensor.bytes.data());
      inputs_.push_back(tensor_of(name, tensor.type, tensor.shape, data, tensor.bytes.size()));
    }
    for (const FailedOutput& output : failure.outputs()) {
      places_.push_back(bytes_);
      bytes_ += (output.want.bytes.size() + 255) / 256 * 256 + kGuard;
    }
  }

  std::size_t output_bytes() const { return bytes_; }

  // Outputs go to `to`, over the poison. Never returns: the process ends, with 0 where the call succeeded.
  [[noreturn]] void make(const Library& library, std::byte* to, unsigned seconds) const {
    std::signal(SIGALRM, SIG_DFL);
    std::signal(SIGINT, SIG_DFL);
    alarm(seconds);
    std::memset(to, failure_.poison(), bytes_);
    std::vector<assay_tensor> outputs;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      const FailedOutput& output = failure_.outputs()[i];
      const std::size_t bytes = output.want.bytes.size();
      outputs.push_back(
          tensor_of(output.name, output.want.type, output.want.shape, bytes == 0 ? nullptr : to + places_[i], bytes));
    }
    assay_call call{};
    call.struct_size = sizeof call;
    call.op = failure_.call().op.c_str();
    call.parameters = parameters_.data(), call.parameter_count = static_cast<std::int32_t>(parameters_.size());
    call.inputs = inputs_.data(), call.input_count = static_cast<std::int32_t>(inputs_.size());
    call.outputs = outputs.data(), call.output_count = static_cast<std::int32_t>(outputs.size());
    call.algorithm = -1;
    call.parameter_size = sizeof(assay_parameter), call.tensor_size = sizeof(assay_tensor);
    assay_context* context = nullptr;
    assay_stream* stream = nullptr;
    const assay_backend& table = *library.table;
    const bool made = table.open("", &context) == ASSAY_OK && table.stream_create(context, &stream) == ASSAY_OK &&
                      table.execute(context, stream, &call) == ASSAY_OK;
    _exit(made ? 0 : 1);
  }

  void read(const std::byte* from, Outputs& outputs) const {
    for (std::size_t i = 0; i < places_.size(); ++i) {
      Tensor& tensor = outputs.at(failure_.outputs()[i].name);
      std::memcpy(tensor.bytes.data(), from + places_[i], tensor.bytes.size());
    }
  }

 private:
  static assay_tensor tensor_of(const std::string& name, Format type, const std::vector<std::int64_t>& shape, void* data,
                                std::size_t bytes) {
    assay_tensor made{};
    made.name = name.c_str();
    made.dtype = static_cast<assay_dtype>(type);
    made.rank = static_cast<std::int32_t>(shape.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(shape.size(), 4); ++i) made.shape[i] = shape[i];
    made.data = data;
    made.bytes = static_cast<std::int64_t>(bytes);
    return made;
  }

  const Failure& failure_;
  std::vector<assay_parameter> parameters_;
  std::vector<assay_tensor> inputs_;
  std::vector<std::size_t> places_;  // of each output in the shared memory
  // Some mutants write beside an output, and the library looks there while effects are recorded.
  static constexpr std::size_t kGuard = 256;
  std::size_t bytes_ = kGuard;
};

// A process that makes the call; it does not come back. 0: no process can be made.
template <class Body>
int child_for(Body body) {
  try {
    const int child = make_child(0);
    if (child == 0) body();
    return child;
  } catch (const ProcessError&) {
    return 0;
  }
}

std::byte* bytes_of(const ForkedMemory& memory) { return static_cast<std::byte*>(memory.data()); }

// Mutants that make a difference to the call, those of calls first.
std::vector<std::int32_t> effective(const Library& library, const Call& call) {
  const ForkedArray<std::uint8_t> flags(static_cast<std::size_t>(library.count));
  const ForkedMemory outputs(call.output_bytes());
  const int child = child_for([&] {
    library.record(flags.begin(), nullptr);
    call.make(library, bytes_of(outputs), kSecondsOfRecord);
  });
  if (child == 0 || !ended_well(child)) return {};
  std::vector<std::int32_t> chosen;
  for (const bool of_calls : {true, false}) {
    for (std::int32_t i = 0; i < library.count; ++i) {
      const MutantRow& row = library.mutants[i];
      if (row.id == nullptr || row.benign || row.base >= 0 || flags[static_cast<std::size_t>(i)] == 0) continue;
      if ((std::strcmp(row.family, "points") != 0) == of_calls) chosen.push_back(i);
    }
  }
  return chosen;
}

}  // namespace

std::int64_t propose_mutants(const Failure& failure, const std::string& file, const std::function<bool()>& ended,
                             const Propose& propose) {
  const Library& library = *open_library(file);
  setenv("ASSAY_THREADS", "1", 1);  // the library's own pool, in each process that is forked
  unsetenv("ASSAY_MUTANT");
  const Call call(failure);
  const std::vector<std::int32_t> mutants = effective(library, call);
  const auto processes = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostProcesses);
  std::deque<ForkedMemory> memory;
  for (int i = 0; i < processes; ++i) memory.emplace_back(call.output_bytes());
  // In groups of as many as there are processes, so that the order of proposals is that of the mutants.
  std::size_t next = 0;
  while (next < mutants.size() && !ended()) {
    std::vector<int> children;
    const std::size_t first = next;
    for (; next < mutants.size() && children.size() < memory.size(); ++next) {
      children.push_back(child_for([&] {
        library.select(mutants[next]);
        call.make(library, bytes_of(memory[next - first]), kSecondsOfOne);
      }));
    }
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (children[i] == 0 || !ended_well(children[i])) continue;
      const MutantRow& row = library.mutants[mutants[first + i]];
      const bool point = std::strcmp(row.family, "points") == 0;
      Candidate candidate{(point ? "as if the reference had a mistake at " : "as if in ") + std::string(row.says),
                          point ? 40 : 30};
      candidate.has_regions = false;
      candidate.all = [&](Outputs& outputs) {
        call.read(bytes_of(memory[i]), outputs);
        return true;
      };
      propose(std::move(candidate));
    }
  }
  return static_cast<std::int64_t>(mutants.size() - next);
}

}  // namespace assay::conformance::explaining
