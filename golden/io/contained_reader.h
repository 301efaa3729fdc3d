#pragma once
// Reads fixture files of unknown origin: libhdf5 can crash, hang or ask for all memory on a damaged file, so it gets to
// see the file in a process of its own. What goes wrong there becomes a FixtureError here.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "golden/io/fixture.h"
#include "golden/io/fixture_error.h"
#include "golden/io/reader.h"

namespace assay::golden {

struct Containment {
  ReadLimits limits;
  // Wall-clock seconds, and one more for each 16 MiB of the file, until every claim of it is checked; then as many
  // seconds again, and one more for each 16 MiB of tensors. A file of 15 MB takes 0.2.
  double seconds = 10;
  // Where stderr of the reading process goes, or -1 for nowhere: libhdf5 and the C library write about crashes there.
  int log = -1;
};

// read_fixture in a child process that ends with the call. Errors: those of read_fixture, and FixtureError if the child
// dies by a signal or ends otherwise without an answer, takes too long, or sends what is no fixture.
//
// The child is forked without exec, so it may be called from any thread; the child has no core dump, no output, and
// (except under AddressSanitizer, whose shadow takes terabytes of address space) 1 GiB of address space beyond what
// this process has and three times what the tensors need. It ends by itself if this process dies.
Fixture read_fixture_contained(const std::filesystem::path& path, const Containment& containment = {});

// The same for many files one after another: the child is kept until it dies, and started anew when it is needed.
// A file that corrupts the child without killing it can make a later one fail, so this is for files that are all
// suspect to the same degree. Not for use by several threads at once.
class ReadingProcess {
 public:
  explicit ReadingProcess(Containment containment = {}) : containment_(std::move(containment)) {}
  ~ReadingProcess() { stop(); }
  ReadingProcess(const ReadingProcess&) = delete;
  ReadingProcess& operator=(const ReadingProcess&) = delete;

  Fixture read(const std::filesystem::path& path);

  // The child that reads, or -1: none was started yet, or the last has ended.
  pid_t child() const { return child_; }

  // Ends the child, if there is one.
  void stop();

 private:
  void start();
  std::string how_it_ended();

  Containment containment_;
  pid_t child_ = -1;
  int channel_ = -1;
};

}  // namespace assay::golden
