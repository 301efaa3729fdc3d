// The reference as a shared library that breaks one rule, which its options name: "WHAT@WHERE", for the one case
// of run_hostile.h that kTarget describes, and "WHAT@WHERE!" for every case. WHERE is a function of the interface, or `load`, `entry` and
// `unload`, which HOSTILE names in the environment, or `algorithm`: execute() with the only listed algorithm. The other deeds are
// in hostile_deeds.cc, and those about answers are:
//
//   answer@FUNCTION=KIND   what the function answers: see answers() below

#include <setjmp.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/tests/worker/hostile_deeds.h"

namespace hostile {
std::string kind;  // before Library, which reads it from the environment
}  // namespace hostile

namespace {

using hostile::deeds, hostile::earlier, hostile::kind, hostile::slow_close;

const assay_backend& honest() { return *assay::conformance::reference_backend(); }

std::string deed, place, error;
bool marked = false;  // the last call that was shown to us was that of the case in question
bool always = false;

bool is_target(const assay_call& call) {
  if (call.op == nullptr || call.inputs == nullptr) return false;  // calls that are wrong on purpose
  return call.op == std::string("splits_to_offsets_2d") && call.input_count > 0 && call.inputs[0].dtype == ASSAY_I64;
}

// Does the deed, if this is its place.
void at(const char* where) {
  if (place != where || (!marked && !always)) return;
  if (const auto found = deeds().find(deed); found != deeds().end()) found->second();
}
bool answers(const char* where, const char* what) {
  return deed == "answer" && place == where && kind == what && (marked || always);
}

void read_options(const std::string& text) {
  const std::size_t sign = text.find('@');
  if (sign == std::string::npos) return;
  deed = text.substr(0, sign);
  place = text.substr(sign + 1);
  always = place.ends_with('!');
  if (always) place.pop_back();
  if (const std::size_t equals = place.find('='); equals != std::string::npos) {
    kind = place.substr(equals + 1);
    place.resize(equals);
  }
  if (place == "load" || place == "entry" || place == "unload" || place == "open" || place == "close") always = true;
}

template <std::size_t size>
void fill(char (&text)[size]) {
  std::memset(text, 'x', size);
}

assay_status question(const char* where, const assay_call* call) {
  if (call == nullptr) return ASSAY_INVALID_ARGUMENT;
  marked = is_target(*call);
  at(where);
  if (answers(where, "77")) return static_cast<assay_status>(77);
  if (answers(where, "-1")) return static_cast<assay_status>(-1);
  if (answers(where, "lost")) return ASSAY_DEVICE_LOST;
  if (answers(where, "failed")) return error = "because \xff\xfe \x1b[31mred", ASSAY_FAILED;
  if (place == "last_error" && (marked || always)) return ASSAY_FAILED;
  return ASSAY_OK;
}

// The algorithm that is listed where the deed belongs to it alone.
constexpr std::int64_t kAlgorithm = 7;
const assay_call& without_algorithm(const assay_call& call) {
  static assay_call plain;
  if (place != "algorithm" || call.algorithm != kAlgorithm) return call;
  plain = call;
  plain.algorithm = -1;
  return plain;
}

assay_status allocate(assay_context* context, std::int64_t bytes, void** data) {
  at("allocate");
  static void* first = nullptr;
  const assay_status status = honest().allocate(context, bytes, data);
  if (answers("allocate", "null")) *data = nullptr;
  if (answers("allocate", "misaligned")) *data = static_cast<char*>(*data) + 8;
  if (answers("allocate", "wild")) *data = reinterpret_cast<void*>(std::uintptr_t{0xdead} << 32);
  if (answers("allocate", "overlap")) {
    if (first == nullptr) first = honest().allocate(context, std::int64_t{64} << 20, &first) == ASSAY_OK ? first : nullptr;
    *data = first;
  }
  return status;
}

assay_status numerics(assay_context* context, const assay_call* call, assay_numerics* stated) {
  const assay_status asked = question("numerics", call);
  if (asked != ASSAY_OK) return asked;
  const assay_status status = honest().numerics(context, call, stated);
  if (answers("numerics", "zero_sign")) stated->keeps_zero_sign = 7;
  if (answers("numerics", "deterministic")) stated->deterministic = -2;
  if (answers("numerics", "unit")) fill(stated->unit);
  if (answers("numerics", "plan")) fill(stated->plan);
  return status;
}

assay_status workspace_bytes(assay_context* context, const assay_call* call, std::int64_t* bytes) {
  const assay_status asked = question("workspace_bytes", call);
  if (asked != ASSAY_OK) return asked;
  const assay_status status = honest().workspace_bytes(context, call, bytes);
  if (answers("workspace_bytes", "negative")) *bytes = -1;
  return status;
}

assay_status execute(assay_context* context, assay_stream* stream, const assay_call* call) {
  static const bool noted = [] {  // the process that carries cases out
    if (place == "pid") std::ofstream(kind) << getpid() << std::flush;
    return true;
  }();
  static_cast<void>(noted);
  const assay_status asked = question("execute", call);
  if (asked != ASSAY_OK) return asked;
  if (call->algorithm == kAlgorithm) at("algorithm");
  return honest().execute(context, stream, &without_algorithm(*call));
}

assay_status supports(assay_context* context, const assay_call* call) {
  const assay_status asked = question("supports", call);
  if (asked != ASSAY_OK) return asked;
  if (deed == "jump" && marked && setjmp(earlier) != 0) return ASSAY_OK;  // from execute(), long after it has returned
  return honest().supports(context, &without_algorithm(*call));
}

const char* last_error(assay_context* context) {
  at("last_error");
  if (answers("last_error", "null")) return nullptr;
  if (answers("last_error", "endless")) {
    static const std::vector<char> text(1 << 20, 'x');
    return text.data();
  }
  return error.empty() ? honest().last_error(context) : error.c_str();
}

assay_status list_axes(assay_context*, assay_axis* axes, std::int32_t capacity, std::int32_t* count) {
  at("list_axes");
  *count = place == "list_axes" || place == "algorithm" ? 1 : 0;
  if (answers("list_axes", "negative")) *count = -3;
  if (answers("list_axes", "many")) *count = 2'000'000'000;
  if (capacity < 1) return ASSAY_OK;
  std::strcpy(axes[0].name, "size");
  std::strcpy(axes[0].values, "1 2");
  if (answers("list_axes", "name")) fill(axes[0].name);
  if (answers("list_axes", "overrun")) fill(axes[1].name);
  return ASSAY_OK;
}

assay_status list_algorithms(assay_context*, const assay_call* call, assay_algorithm* algorithms, std::int32_t capacity,
                             std::int32_t* count) {
  if (call == nullptr) return ASSAY_INVALID_ARGUMENT;
  marked = is_target(*call);
  at("list_algorithms");
  *count = 1;
  if (answers("list_algorithms", "negative")) *count = -3;
  if (answers("list_algorithms", "many")) *count = 2'000'000'000;
  if (capacity < 1) return ASSAY_OK;
  if (place == "algorithm") std::strcpy(algorithms[0].description, "the only one");
  algorithms[0].id = place == "algorithm" ? kAlgorithm : -1;
  if (answers("list_algorithms", "description")) fill(algorithms[0].description);
  return ASSAY_OK;
}

// Constructed after everything above when the library is loaded, and destroyed before it.
struct Library {
  Library() {
    const char* text = std::getenv("HOSTILE");
    if (text != nullptr) read_options(text);
    at("load");
  }
  ~Library() { at("unload"); }
} library;

assay_backend make_table() {
  assay_backend table = honest();
  table.name = "hostile";
  table.open = [](const char* options, assay_context** context) {
    read_options(options);
    at("open");
    return honest().open("", context);
  };
  table.close = [](assay_context* context) {
    at("close");
    if (slow_close) std::this_thread::sleep_for(std::chrono::milliseconds(200));
    honest().close(context);
  };
  table.device_info = [](assay_context* context, assay_device_info* info) {
    at("device_info");
    const assay_status status = honest().device_info(context, info);
    if (answers("device_info", "name")) fill(info->name);
    if (answers("device_info", "utf8")) std::strcpy(info->name, "device \xff\xfe");
    return status;
  };
  table.release = [](assay_context* context, void* data) {
    at("release");
    honest().release(context, data);
  };
  table.copy_to_device = [](assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
    at("copy_to_device");
    return honest().copy_to_device(context, stream, to, from, bytes);
  };
  table.copy_to_host = [](assay_context* context, assay_stream* stream, void* to, const void* from, std::int64_t bytes) {
    at("copy_to_host");
    return honest().copy_to_host(context, stream, to, from, bytes);
  };
  table.fill = [](assay_context* context, assay_stream* stream, void* to, std::uint8_t value, std::int64_t bytes) {
    at("fill");
    return honest().fill(context, stream, to, value, bytes);
  };
  table.stream_create = [](assay_context* context, assay_stream** stream) {
    at("stream_create");
    return honest().stream_create(context, stream);
  };
  table.stream_destroy = [](assay_context* context, assay_stream* stream) {
    at("stream_destroy");
    honest().stream_destroy(context, stream);
    marked = false;
  };
  table.synchronize = [](assay_context* context, assay_stream* stream, std::int64_t timeout) {
    at("synchronize");
    if (answers("synchronize", "lost")) return ASSAY_DEVICE_LOST;
    return honest().synchronize(context, stream, timeout);
  };
  table.allocate = allocate;
  table.supports = supports;
  table.numerics = numerics;
  table.workspace_bytes = workspace_bytes;
  table.execute = execute;
  table.last_error = last_error;
  table.list_axes = list_axes;
  table.set_axis = [](assay_context*, const char*, const char*) { return ASSAY_OK; };
  table.list_algorithms = list_algorithms;
  return table;
}

}  // namespace

extern "C" const assay_backend* assay_backend_v1(void) {
  at("entry");
  static const assay_backend table = make_table();
  return &table;
}
