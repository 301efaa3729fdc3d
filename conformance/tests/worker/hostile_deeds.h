#pragma once
// What hostile_backend.cc can do when it is called, other than answer.

#include <setjmp.h>

#include <atomic>
#include <functional>
#include <map>
#include <string>

namespace hostile {

extern std::string kind;              // text after WHAT@WHERE=; defined in hostile_backend.cc
extern jmp_buf earlier;               // where `jump` goes
extern std::atomic<bool> slow_close;  // close() waits

const std::map<std::string, std::function<void()>>& deeds();

}  // namespace hostile
