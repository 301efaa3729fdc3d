#pragma once
// Shared by all parts of the reader: the file's name for errors, the limits, and how much text may still be read.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "golden/io/fixture_error.h"
#include "golden/io/reader.h"

namespace assay::golden {

class ReadContext {
 public:
  ReadContext(std::string path, const ReadLimits& limits, const std::function<void(std::string_view)>& begins)
      : path_(std::move(path)), limits_(limits), begins_(begins), text_left_(limits.all_text) {}

  const std::string& path() const { return path_; }
  const ReadLimits& limits() const { return limits_; }

  // Bytes of the file, 2^50 at most.
  std::int64_t file_size() const { return file_size_; }
  void set_file_size(std::int64_t bytes) { file_size_ = bytes; }

  // Called before HDF5 works on an object, so that the object can be named if HDF5 crashes on it.
  void begin(std::string_view object) const {
    if (begins_) begins_(object);
  }

  // Counts names and strings. Errors: FixtureError once they are more than the limit.
  void take_text(std::string_view object, std::size_t bytes) {
    text_left_ -= static_cast<std::int64_t>(bytes);
    if (text_left_ < 0) {
      fail(object,
           "brings names and strings of this file to more than the limit of " + std::to_string(limits_.all_text) + " bytes");
    }
  }

  [[noreturn]] void fail(std::string_view object, std::string_view reason) const { throw FixtureError(path_, object, reason); }
  // For a call that HDF5 refused.
  [[noreturn]] void fail_hdf5(std::string_view object, std::string_view what) const;

 private:
  const std::string path_;
  const ReadLimits limits_;
  const std::function<void(std::string_view)>& begins_;
  std::int64_t file_size_ = 0;
  std::int64_t text_left_;
};

}  // namespace assay::golden
