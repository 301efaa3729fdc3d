#include "conformance/selftest/hunt/mutant_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <span>

#include "conformance/backends/backend_handle.h"
#include "conformance/report/run_header.h"
#include "golden/io/sha256.h"

namespace assay::conformance {
namespace {

[[noreturn]] void refuse_library(const std::string& text) { throw BackendError(ASSAY_INVALID_ARGUMENT, text); }

const assay_points::Library* load_mutants(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::exists(path, none))
    refuse_library(path + ": no such file: expected the library of mutants (build the target assay_mutants)");
  void* const handle = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) refuse_library(fmt::format("{}: cannot be loaded: {}", path, dlerror()));
  using Entry = const assay_points::Library* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, "assay_mutant_library"));
  if (entry == nullptr) refuse_library(path + ": no library of mutants: it has no function assay_mutant_library");
  const assay_points::Library* const found = entry();
  if (found->size != static_cast<std::int32_t>(sizeof(assay_points::Library)))
    refuse_library(fmt::format("{}: of another build: its table has {} bytes, expected {} (build the target assay_mutants)", path,
                               found->size, sizeof(assay_points::Library)));
  if (std::strcmp(found->build, build_commit()) != 0)
    refuse_library(fmt::format("{}: of another build: commit {}, this program is of {} (build the target assay_mutants)", path,
                               found->build, build_commit()));
  return found;
}

}  // namespace

MutantLibrary::MutantLibrary(const std::string& path) : path_(path), functions_(load_mutants(path)) {
  golden::Sha256 sum;
  for (std::int32_t i = 0; i < functions_->count; ++i) {
    const assay_points::MutantRow& row = functions_->mutants[i];
    if (row.id == nullptr) continue;
    Mutant made{i, row.id, row.family, row.says, row.benign, row.base < 0 ? i : row.base, row.times};
    const std::string text = fmt::format("{}\t{}\t{}\n", made.id, made.family, made.benign);
    sum.update(std::as_bytes(std::span(text)));
    mutants_.push_back(std::move(made));
  }
  digest_ = golden::hex_of(sum.digest());
}

std::string mutant_library_beside_program() {
  std::error_code none;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", none);
  return (program.parent_path() / "assay_mutants.so").string();
}

}  // namespace assay::conformance
