#pragma once
// Ctrl-C ends a run between two cases: what was found is still printed and written. A second one ends the program at once.

namespace assay::conformance {

// From here on SIGINT, SIGTERM and SIGHUP are such an interrupt. A second one counts from half a second after the first:
// timeout(1) sends its signal to the program and to its process group, which makes two at the same time.
void catch_interrupts();

bool interrupted();

// From catch_interrupts() on, writing to a pipe without a reader, or beyond the allowed size of a file, is an error of that
// write alone, so that the other files are written. This ends the program by SIGPIPE, as it would have ended then.
[[noreturn]] void end_by_broken_pipe();

}  // namespace assay::conformance
