#include "golden/io/hdf5_handle.h"

#include <cstdlib>
#include <exception>

namespace assay::golden {
namespace {

herr_t keep_first(unsigned, const H5E_error2_t* error, void* reason) {
  try {
    std::string& text = *static_cast<std::string*>(reason);
    if (text.empty() && error->desc != nullptr) text = error->desc;
    return 0;
  } catch (const std::exception&) {
    return -1;  // an exception must not pass through C code
  }
}

herr_t note_memory(unsigned, const H5E_error2_t* error, void* lacked) {
  // Filters do not say why they failed: zlib, for one, takes memory itself.
  *static_cast<bool*>(lacked) |= error->maj_num == H5E_RESOURCE || error->maj_num == H5E_PLINE;
  return 0;
}

}  // namespace

void load_no_plug_ins() {
  static bool done = false;
  if (done) return;
  done = true;
  // Read by later versions when the library starts, regardless of later calls.
  for (const char* name : {"HDF5_PLUGIN_PRELOAD", "HDF5_VOL_CONNECTOR", "HDF5_DRIVER"}) {
    if (std::getenv(name) != nullptr) ::unsetenv(name);
  }
  H5PLset_loading_state(0);
}

std::mutex& hdf5_mutex() {
  static std::mutex mutex;
  return mutex;
}

std::string hdf5_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &reason);
  return reason.empty() ? "HDF5 gives no reason" : reason;
}

bool hdf5_lacked_memory() {
  bool lacked = false;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_memory, &lacked);
  return lacked;
}

}  // namespace assay::golden
