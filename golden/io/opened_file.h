#pragma once
// A fixture file held open for reading.

#include <sys/stat.h>

#include "golden/io/hdf5_handle.h"
#include "golden/io/read_context.h"

namespace assay::golden {

class OpenedFile {
 public:
  // Opens the file and sets its size in `context`. Errors: FixtureError unless it is a regular file with an HDF5 signature that
  // HDF5 opens.
  explicit OpenedFile(ReadContext& context);

  hid_t id() const { return file_.get(); }

  // Errors: FixtureError if the file has changed since it was opened, as far as size and times show: HDF5 reads
  // zeros past the end, so values of a file that became shorter would be read as zeros.
  void check_unchanged() const;

 private:
  struct stat state() const;

  ReadContext& context_;
  Handle file_;
  struct stat opened_ {};
};

}  // namespace assay::golden
