// The deeds of hostile_backend.cc: how its process ends, hangs, throws, changes its state or starts other processes.

#include "conformance/tests/worker/hostile_deeds.h"

#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <thread>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace hostile {

jmp_buf earlier;
std::atomic<bool> slow_close = false;

namespace {

__attribute__((noinline)) int overflow(volatile char* before) {
  volatile char here[4096];
  here[0] = before == nullptr ? 0 : before[0];
  return here[0] == 1 ? 0 : overflow(here) + here[0];
}

void wait_for_ever() {
  for (;;) std::this_thread::sleep_for(std::chrono::seconds(1));
}

// All memory that this process shares with other processes.
void each_shared_piece(const std::function<void(char*, std::size_t)>& take) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    if (line.find("assay-worker") == std::string::npos) continue;
    unsigned long long first = 0, last = 0;
    std::sscanf(line.c_str(), "%llx-%llx", &first, &last);
    take(reinterpret_cast<char*>(first), last - first);
  }
}

void scribble() {
  each_shared_piece([](char* first, std::size_t bytes) { std::memset(first, 0xff, std::min(bytes, std::size_t{6} << 20)); });
}

void hog() {
  for (;;) {
    auto* piece = static_cast<char*>(std::malloc(std::size_t{64} << 20));
    std::memset(piece, 1, std::size_t{64} << 20);
  }
}

cpu_set_t processors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) std::abort();
  return set;
}

const cpu_set_t processors_at_load = processors();

// Chooses a processor for the calling thread, and aborts where the choice of an earlier call, or the mask that the process
// started with, has changed, or if new threads do not inherit it.
void choose_processor() {
  static cpu_set_t expected = processors_at_load;
  const cpu_set_t now = processors();
  if (!CPU_EQUAL(&now, &expected)) std::abort();
  std::thread([&] {
    const cpu_set_t there = processors();
    if (!CPU_EQUAL(&there, &expected)) std::abort();
  }).join();
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(last, &now)) --last;
  CPU_ZERO(&expected);
  CPU_SET(last, &expected);
  if (sched_setaffinity(0, sizeof expected, &expected) != 0) std::abort();
}

}  // namespace

const std::map<std::string, std::function<void()>>& deeds() {
  // clang-format off
  static const std::map<std::string, std::function<void()>> all = {
      {"exit", [] { std::exit(0); }},
      {"_exit", [] { _exit(3); }},
      {"quick_exit", [] { std::quick_exit(0); }},
      {"abort", [] { std::abort(); }},
      {"affinity", choose_processor},
      {"segv", [] { *static_cast<volatile int*>(nullptr) = 1; }},
      {"kill", [] { kill(getpid(), SIGKILL); }},
      {"term", [] { kill(getpid(), SIGTERM); }},
      {"pipe", [] { raise(SIGPIPE); }},
      {"group", [] { kill(0, SIGKILL); }},
      {"fpe", [] { raise(SIGFPE); }},
      {"overflow", [] { overflow(nullptr); }},
      {"hog", hog},
      {"hang", wait_for_ever},
      {"spin", [] {
         volatile bool more = true;
         while (more) {
         }
       }},
      {"stop", [] { raise(SIGSTOP); }},
      {"end_thread", [] { pthread_exit(nullptr); }},
      {"deaf_hang", [] {
         sigset_t set;
         sigfillset(&set);
         sigprocmask(SIG_SETMASK, &set, nullptr);
         wait_for_ever();
       }},
      {"throw", [] { throw std::runtime_error("out of the interface \xff"); }},
      {"throw_int", [] { throw 7; }},
      {"jump", [] { longjmp(earlier, 1); }},
      {"scribble", [] {  // until the end: later writes of the process itself must not repair it
         std::thread([] { for (;;) scribble(); }).detach();
         std::this_thread::sleep_for(std::chrono::milliseconds(20));
       }},
      {"terminate", [] { std::terminate(); }},
#if defined(__x86_64__)
    // clang-format on
    {"ftz", [] { _mm_setcsr(_mm_getcsr() | 0x8000); }},
    {"daz", [] { _mm_setcsr(_mm_getcsr() | 0x0040); }},
    {"traps", [] { _mm_setcsr(_mm_getcsr() & ~0x0080u); }},
    {"x87",
     [] {
       const std::uint16_t word = 0x027F;
       __asm__ volatile("fldcw %0" : : "m"(word));
     }},
#endif
    {"round", [] { std::fesetround(FE_UPWARD); }},
    // Changes that stay within the process and are no fault.
    {"close_all",
     [] {
       for (int i = 0; i < 64; ++i) close(i);
     }},
    {"environment",
     [] {
       clearenv();
       if (chdir("/") != 0) std::abort();
       umask(0777);
       setlocale(LC_ALL, "de_DE.UTF-8");
     }},
    {"limits",
     [] {
       const rlimit none{0, 0};
       setrlimit(RLIMIT_NOFILE, &none);
       setrlimit(RLIMIT_FSIZE, &none);
     }},
    {"deaf",
     [] {
       sigset_t set;
       sigfillset(&set);
       sigprocmask(SIG_SETMASK, &set, nullptr);
       for (int i = 1; i < 32; ++i) signal(i, SIG_IGN);
     }},
    {"children",
     [] {
       for (int i = 0; i < 3; ++i) {
         if (fork() == 0) wait_for_ever();
       }
     }},
    {"daemon",
     [] {  // in a session of its own, with a child in another one
       if (fork() != 0) return;
       setsid();
       if (fork() == 0) setsid();
       std::ofstream(kind, std::ios::app) << getpid() << std::endl;
       wait_for_ever();
     }},
    {"print",
     [] {
       for (int i = 0; i < 3000; ++i) std::printf("PASS everything, I promise \xff\x1b[31m\n");
       std::fflush(stdout);
     }},
    {"print_segv",
     [] {
       std::fprintf(stderr, "assertion failed: tile < tiles\n");
       *static_cast<volatile int*>(nullptr) = 1;
     }},
    {"thread_segv",
     [] {
       slow_close = true;  // or the process may be gone before
       std::thread([] {
         std::this_thread::sleep_for(std::chrono::milliseconds(2));
         *static_cast<volatile int*>(nullptr) = 1;
       }).detach();
     }},
    {"exec", [] { execl("/bin/true", "true", nullptr); }},
    {"exec_sleep",
     [] {  // as another program, in another session
       setsid();
       execl("/bin/sleep", "sleep", "1000", nullptr);
     }},
    {"handled_segv",
     [] {
       signal(SIGSEGV, [](int) { _exit(0); });
       *static_cast<volatile int*>(nullptr) = 1;
     }},
    {"handled_for_ever",
     [] {  // the fault occurs again each time
       signal(SIGSEGV, [](int) {});
       *static_cast<volatile int*>(nullptr) = 1;
     }},
    {"unmap", [] { each_shared_piece([](char* first, std::size_t bytes) { munmap(first, bytes); }); }},
    // The parent process runs no code of this library, and ends the processes that were started.
    {"leave_parent",
     [] {
       prctl(PR_SET_PDEATHSIG, 0);
       setsid();
       kill(getppid(), SIGKILL);
       wait_for_ever();
     }},
    {"stop_parent",
     [] {
       kill(getppid(), SIGSTOP);
       wait_for_ever();
     }},
    {"stop_parent_exit",
     [] {
       kill(getppid(), SIGSTOP);
       _exit(0);
     }},
    {"child_answers",
     [] {  // in this one's place
       if (fork() != 0) _exit(0);
       setsid();
     }},
    {"both_answer", [] { fork(); }},
    {"close_for_ever",
     [] {
       std::thread([] {
         for (;;) {
           for (int i = 0; i < 256; ++i) close(i);
         }
       }).detach();
       std::this_thread::sleep_for(std::chrono::milliseconds(20));
     }},
    {"address_space",
     [] {
       const rlimit little{1 << 20, 1 << 20};
       setrlimit(RLIMIT_AS, &little);
       setrlimit(RLIMIT_STACK, &little);
     }},
    {"thread_exit", [] { std::thread([] { std::exit(0); }).join(); }},
  };
  return all;
}

}  // namespace hostile
