#include "golden/io/hdf5_handle.h"

#include <exception>

namespace assay::golden {
namespace {

herr_t keep_first(unsigned, const H5E_error2_t* error, void* reason) {
  try {
    std::string& text = *static_cast<std::string*>(reason);
    if (text.empty() && error->desc != nullptr) text = error->desc;
    return 0;
  } catch (const std::exception&) {
    return -1;  // no exception may pass through C
  }
}

}  // namespace

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  return reason.empty() ? "HDF5 gives no reason" : reason;
}

}  // namespace assay::golden
