// Calls a C function of a library that throws, and keeps what it threw.
#include <cstring>
#include <exception>
extern "C" int guard_call(void* function, const long* a, float f, char* error, size_t size) {
  using Function = void (*)(long, long, long, long, long, long, long, long, long, long, long, long, float);
  try {
    reinterpret_cast<Function>(function)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], f);
    return 0;
  } catch (const std::exception& thrown) {
    std::strncpy(error, thrown.what(), size - 1);
    return 1;
  } catch (...) {
    return 2;
  }
}
