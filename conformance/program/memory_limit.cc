#include "conformance/program/memory_limit.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string_view>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "conformance/report/exit_code.h"

namespace assay::conformance {
namespace {

// The C++ library calls this when there is no memory even for an exception.
[[noreturn]] void end_without_exception() {
  if (std::current_exception() != nullptr) std::abort();
  constexpr std::string_view kText = "assay: out of memory\n";
  if (::write(STDERR_FILENO, kText.data(), kText.size()) < 0) ::_exit(static_cast<int>(ExitCode::machine_failed));
  ::_exit(static_cast<int>(ExitCode::machine_failed));
}

// Before static objects are constructed: they need memory too.
[[gnu::constructor(101)]] void prepare_for_termination() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) std::set_terminate(end_without_exception);
}

}  // namespace

void prepare_for_memory_limit() {
#if defined(__GLIBC__)
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ::mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace assay::conformance
