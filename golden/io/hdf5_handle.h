#pragma once
// HDF5 identifiers that close themselves, and the library's message when a call fails.

#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace assay::golden {

// Held around every use of HDF5, which is not safe for threads in every build, and around fork, so that a child never
// inherits the library in the middle of a call.
std::mutex& hdf5_mutex();

// Makes the library load no code: no filter of a plug-in (HDF5_PLUGIN_PATH, and the folder that is searched without it), no
// connector, no driver. Called by QuietHdf5; the caller holds the mutex.
void load_no_plug_ins();

// Keeps the library from printing its error stack while it lives, and from loading code ever after.
class QuietHdf5 {
 public:
  QuietHdf5() {
    load_no_plug_ins();
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~QuietHdf5() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;

 private:
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};

// The innermost message of the last failed call, such as "truncated file: eof = 96, ...".
std::string hdf5_reason();

// True if the last failed call failed for want of memory, or may have.
bool hdf5_lacked_memory();

class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  explicit operator bool() const { return id_ >= 0; }
  hid_t get() const { return id_; }

  // Closes now and returns whether that succeeded.
  bool close() { return close_(std::exchange(id_, -1)) >= 0; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

}  // namespace assay::golden
