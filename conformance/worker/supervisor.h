#pragma once
// A worker is two processes: the supervisor, which runs no foreign code, and its child, which serves. The supervisor adopts every process
// that the child starts, in any session, and ends all of them after the child or the judge has ended in any way.

#include <sys/types.h>

#include <vector>

namespace assay::conformance::worker {

// Forks this process, which must have one thread. Returns in the child, which ends if the supervisor does. The supervisor waits for
// the child or for the end of the judge, which closes the other end of `life`; it ends every process below it, and then as the
// child did.
void fork_supervisor(int life);

// Children of this process, by /proc.
std::vector<pid_t> children();
// Ends a child of this process, and waits for that for a limited time.
void end_child(pid_t id);

}  // namespace assay::conformance::worker
