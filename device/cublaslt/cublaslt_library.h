#pragma once
// libcublasLt, found at run time: the project compiles against older headers than the grouped entry points need.

#include <cstdint>
#include <string>

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

// The library of a process: the one passed to use(), else the file that ASSAY_CUBLASLT names, else libcublasLt.so.13 as the
// loader finds it. It does not change once loaded.
class CublasLtLibrary {
 public:
  // Errors: NotSupported, with the file and the loader's message; a later call tries again.
  static const CublasLtLibrary& get();
  // Loads this file, or takes a library that the program has loaded (`handle` of dlopen, `name` for messages), as the library
  // of the process. Does nothing if it already is.
  // Errors: InvalidArgument if another one is in use; NotSupported as get(), and the choice is then unchanged.
  static void use(const std::string& path);
  static void use(void* handle, const std::string& name);

  // Any file, to compare versions; it stays loaded. Errors: as get().
  explicit CublasLtLibrary(const std::string& path);
  CublasLtLibrary(void* handle, const std::string& name);

  const std::string& path() const { return path_; }
  int version() const { return version_; }  // cublasLtGetVersion: 131000 for 13.10.0
  std::string version_text() const;         // "13.10.0"
  bool has_grouped_layouts() const;         // the entry points of 13.2 and newer are there

  // Empty if this library has the path on this architecture; else one sentence: what is present, what is needed
  // (spec measured-2.1). Depends on kind, layout, types, scale layout and scalars of the call, not on memory or sizes.
  std::string missing(const GroupedGemmCall& call, int architecture) const;  // architecture: 90, 100, ...

  // Entry points as cublasLt.h declares them; the grouped ones are null in old libraries. Used by device/gemm only.
  struct EntryPoints;
  const EntryPoints& entry_points() const { return *entry_points_; }

 private:
  static const CublasLtLibrary& adopt(const std::string& path, void* handle);

  std::string path_;
  int version_ = 0;
  const EntryPoints* entry_points_ = nullptr;  // never freed, as the library is never closed
};

}  // namespace assay::device
