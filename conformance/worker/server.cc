#include "conformance/worker/server.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/backends/built_in.h"
#include "conformance/worker/process.h"
#include "conformance/worker/row_files.h"
#include "conformance/worker/session.h"
#include "conformance/worker/supervisor.h"
#include "conformance/worker/visible_device.h"
#include "reference/support/sanitized.h"

namespace assay::conformance::worker {
namespace {

LoadBackend loader = nullptr;

// Bytes of memory that the system could still give.
std::uint64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  std::uint64_t kilobytes = 0;
  while (file >> word) {
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Nothing of what a backend does may reach further than its process.
void confine(bool limit_memory) {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  std::ofstream("/proc/self/oom_score_adj") << 1000;  // where memory runs out, this process ends and not the judge
  if (limit_memory && !kHasShadowMemory) {
    const std::uint64_t available = available_memory();
    const auto most = static_cast<rlim_t>(available / 4 * 3);
    const rlimit data{most, most};
    if (available > 0) setrlimit(RLIMIT_DATA, &data);
  }
}

// Ends the process group once the judge's end of the pipe is closed, which the system does when the judge ends in any way. The
// supervisor does so too, and first: here is what is left if a backend has stopped it.
void end_with_judge() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  std::thread([] {
    char byte = 0;
    while (read(kLifeDescriptor, &byte, 1) != 0) {
      if (fcntl(kLifeDescriptor, F_GETFD) < 0) return;  // closed by the backend: the supervisor is left
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    kill(0, SIGKILL);
  }).detach();
  sigset_t none;
  sigemptyset(&none);
  pthread_sigmask(SIG_SETMASK, &none, nullptr);
}

[[noreturn]] void serve(Channel& channel, Loaded& loaded) {
  try {
    Session(channel, loaded).serve();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the worker cannot go on: %s\n", error.what());
    std::abort();
  }
}

}  // namespace

void load_backends_with(LoadBackend load) { loader = load; }
LoadBackend backend_loader() { return loader; }

// Words: the judge's process number, the number of channels, "limited" or "unlimited" memory.
std::optional<int> serve_as_worker(int argc, char** argv) {
  offer_this_program();
  const bool only_devices = argc == 4 && std::strcmp(argv[3], kDevices) == 0;
  const bool only_findings = only_devices || (argc == 4 && std::strcmp(argv[3], kFindings) == 0);
  if ((argc != 5 && !only_findings) || std::strcmp(argv[1], kWorkerVerb) != 0) return std::nullopt;
  if (only_findings) prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != static_cast<pid_t>(std::strtol(argv[2], nullptr, 10))) return 1;  // it has ended already
  if (only_findings) {
    for (const std::string& line : only_devices ? device_findings() : cublaslt_findings()) std::printf("%s\n", line.c_str());
    return 0;
  }
  const auto channels = static_cast<std::size_t>(std::strtoul(argv[3], nullptr, 10));
  try {
    use_row_files(kUnitRows, {});
    use_row_files(kPresetRows, {});
  } catch (const std::exception& error) {  // a file that has changed since the judge read it
    std::fprintf(stderr, "the worker cannot start: %s\n", error.what());
    return 1;
  }
  fork_supervisor(kLifeDescriptor);
  confine(std::strcmp(argv[4], kForeign) == 0);
  fcntl(kMemoryDescriptor, F_SETFD, FD_CLOEXEC);
  fcntl(kLifeDescriptor, F_SETFD, FD_CLOEXEC);
  void* memory =
      mmap(nullptr, channels * sizeof(Channel), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, kMemoryDescriptor, 0);
  if (channels == 0 || memory == MAP_FAILED) return 1;
  close(kMemoryDescriptor);
  madvise(memory, channels * sizeof(Channel), MADV_DONTFORK);  // a child of the backend does not answer in this one's place
  end_with_judge();
  auto* all = static_cast<Channel*>(memory);
  static Loaded loaded;
  for (std::size_t i = 1; i < channels; ++i) std::thread([channel = all + i] { serve(*channel, loaded); }).detach();
  serve(all[0], loaded);
}

}  // namespace assay::conformance::worker
