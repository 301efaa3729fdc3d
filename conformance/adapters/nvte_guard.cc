// Calls a C function of TransformerEngine, and keeps what it throws: no exception passes through ctypes.
#include <cstddef>
#include <cstring>
#include <exception>

// `words`: 16 arguments that are integers or pointers, in their order; those behind the last one are not read. `real`: the one
// argument that is a float, if there is one, which has registers of its own. Returns 0, or 1 and the text in `error`.
extern "C" int guard_call(void* function, const long* words, float real, char* error, std::size_t size) {
  using Function =
      void (*)(long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, long, float);
  const auto keep = [&](const char* text) {
    std::strncpy(error, text, size - 1);
    return 1;
  };
  try {
    const long* w = words;
    reinterpret_cast<Function>(function)(w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9], w[10], w[11], w[12], w[13],
                                         w[14], w[15], real);
    return 0;
  } catch (const std::exception& thrown) {
    return keep(thrown.what());
  } catch (...) {
    return keep("an exception that is no std::exception");
  }
}
