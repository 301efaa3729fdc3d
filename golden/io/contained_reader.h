#pragma once
// Reads fixture files of unknown origin: libhdf5 can crash, hang or allocate all memory on a damaged file, so it reads the
// file in a process of its own. Failures there become a FixtureError here.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "golden/io/fixture.h"
#include "golden/io/fixture_error.h"
#include "golden/io/reader.h"

namespace assay::golden {

// The limits of reading one file.
//
// Time: kReadSeconds, and one second for each kReadBytesPerSecond that the file occupies, until all its sizes are
// checked; then as much again for its tensors. A file of 15 MB takes 0.2 s, and one of 100,000 cases 6 s.
inline constexpr double kReadSeconds = 10;
inline constexpr double kReadBytesPerSecond = 16 << 20;
// Memory: of the reading process, kSpareAddressSpace beyond three times the tensors (half of the memory that the machine has
// left, where that is less). Of this one, the size of the tensors; together they may have ReadLimits::bytes, and no more than
// one part in kShareOfMemory of the memory that the machine has left: judging them takes several times as much.
inline constexpr std::int64_t kSpareAddressSpace = std::int64_t{1} << 30;
inline constexpr std::int64_t kShareOfMemory = 8;

struct Containment {
  ReadLimits limits;
  double seconds = kReadSeconds;
  // The file descriptor for stderr of the reading process, or -1 to discard it: libhdf5 and the C library report crashes there.
  int log = -1;
};

// read_fixture in a child process that ends with the call. Errors: those of read_fixture, and FixtureError if the child
// dies by a signal or ends otherwise without an answer, takes too long, or sends invalid data; the error names the
// object that the child worked on, if any. MachineError if there is no memory or process for a child, if the child ran out of
// memory or was killed, or if it failed in any way or took too long while this process has less than kSpareAddressSpace left
// (ulimit -v).
//
// The child is forked without exec, so it may be called from any thread; the child has no core dump, no output, loads no
// code, and (except under AddressSanitizer, whose shadow takes terabytes of address space) has the limit of address space
// given above. It ends by itself if this process dies.
Fixture read_fixture_contained(const std::filesystem::path& path, const Containment& containment = {},
                               LeftOut* left_out = nullptr);

struct WorkingOn;

// The same for many files one after another: the child is kept until it dies, and started again when it is needed.
// A file that corrupts the child without killing it can make a later one fail, so use this only for files that are
// equally trusted. Not for use by several threads at once.
class ReadingProcess {
 public:
  explicit ReadingProcess(Containment containment = {});
  ~ReadingProcess();
  ReadingProcess(const ReadingProcess&) = delete;
  ReadingProcess& operator=(const ReadingProcess&) = delete;

  Fixture read(const std::filesystem::path& path, LeftOut* left_out = nullptr);

  // The cases without their tensors: names, ops and attributes, at a small part of the time. What is wrong with tensors shows in read().
  Fixture outline(const std::filesystem::path& path);

  // The child that reads, or -1: none was started yet, or the last has ended.
  pid_t child() const { return child_; }

  // Ends the child, if there is one.
  void stop();

 private:
  void start();
  Fixture request(const std::filesystem::path& path, Extent extent, LeftOut* left_out);
  [[noreturn]] void fail_ended(const std::string& name);
  std::string object_at_work() const;

  Containment containment_;
  WorkingOn* working_on_ = nullptr;
  bool is_limited_ = false;          // this process may have little more address space (ulimit -v)
  bool is_short_of_memory_ = false;  // less was left for the child than it should have
  pid_t child_ = -1;
  int channel_ = -1;
};

}  // namespace assay::golden
