#pragma once
// libcublasLt, found at run time: the project compiles against older headers than the grouped entry points need.

#include <cstdint>
#include <string>

#include "device/gemm/grouped_gemm.h"

namespace assay::device {

// The library that ASSAY_CUBLASLT names, or libcublasLt.so.13 where the loader finds it. Loaded once a process.
class CublasLtLibrary {
 public:
  // Errors: NotSupported, naming the file and what the loader said. Asked again, it answers the same.
  static const CublasLtLibrary& get();

  // Any file, for those who compare versions; it stays loaded. Errors: as get().
  explicit CublasLtLibrary(const std::string& path);

  const std::string& path() const { return path_; }
  int version() const { return version_; }  // cublasLtGetVersion: 131000 for 13.10.0
  std::string version_text() const;         // "13.10.0"
  bool has_grouped_layouts() const;         // the entry points of 13.2 and newer are there

  // Empty if this library on this architecture ("sm90") has the path; else one sentence: what is there, what it needs
  // (h200.md section 4). Looks at kind, layout, types, scale layout and scalars of the call, at no memory and no size.
  std::string missing(const GroupedGemmCall& call, int architecture) const;  // architecture: 90, 100, ...

  // Entry points as cublasLt.h declares them; the grouped ones are null in old libraries. Used by device/gemm only.
  struct EntryPoints;
  const EntryPoints& entry_points() const { return *entry_points_; }

 private:
  std::string path_;
  int version_ = 0;
  const EntryPoints* entry_points_ = nullptr;  // never freed, as the library is never closed
};

}  // namespace assay::device
