#include "device/cublaslt/cublaslt_library.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "device/cublaslt/entry_points.h"
#include "device/gemm/grouped_gemm_names.h"
#include "device/layout/check_columns.h"

namespace assay::device {
namespace {

std::string text_of_version(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." + std::to_string(version % 100);
}

std::string file_to_load() {
  const char* named = std::getenv("ASSAY_CUBLASLT");
  return named != nullptr && *named != '\0' ? named : "libcublasLt.so.13";
}

void* loaded(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library != nullptr) return library;
  const char* reason = dlerror();
  throw NotSupported("cuBLASLt could not be loaded from " + path + " (" + (reason == nullptr ? "no reason given" : reason) +
                     "): name the library by ASSAY_CUBLASLT or CublasLtLibrary::use()");
}

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(dlsym(library, name));
}

template <class Function>
void find_or_throw(void* library, const std::string& path, const char* name, Function*& function) {
  find(library, name, function);
  if (function == nullptr) throw NotSupported(path + " has no " + name + ": expected libcublasLt of CUDA 13");
}

// A call in words: "grouped GEMM of block-scaled FP8".
std::string described(GemmKind kind) {
  switch (kind) {
    case GemmKind::bf16: return "grouped GEMM of bf16";
    case GemmKind::f16: return "grouped GEMM of f16";
    case GemmKind::fp8_per_tensor: return "grouped GEMM of FP8 with one scale per tensor";
    case GemmKind::fp8_block: return "grouped GEMM of block-scaled FP8";
    case GemmKind::mxfp8: return "grouped GEMM of MXFP8";
    default: return "grouped GEMM of NVFP4";
  }
}

// The first version that has the kind on an architecture that has it.
int first_version(GemmKind kind, bool hopper) {
  switch (kind) {
    case GemmKind::fp8_per_tensor: return hopper ? 130500 : 130300;
    case GemmKind::mxfp8: return 130300;
    case GemmKind::nvfp4:
    case GemmKind::fp8_block: return 130400;
    default: return hopper ? 130400 : 130300;
  }
}

}  // namespace

CublasLtLibrary::CublasLtLibrary(const std::string& path) : CublasLtLibrary(loaded(path), path) {}

CublasLtLibrary::CublasLtLibrary(void* library, const std::string& name) : path_(name) {
  const std::string& path = name;
  auto made = std::make_unique<EntryPoints>();
  EntryPoints* const found = made.get();
  find_or_throw(library, path, "cublasLtGetVersion", found->version);
  find_or_throw(library, path, "cublasLtGetStatusName", found->status_name);
  find_or_throw(library, path, "cublasLtCreate", found->create);
  find_or_throw(library, path, "cublasLtMatmulDescCreate", found->product_create);
  find_or_throw(library, path, "cublasLtMatmulDescDestroy", found->product_destroy);
  find_or_throw(library, path, "cublasLtMatmulDescSetAttribute", found->product_set);
  find_or_throw(library, path, "cublasLtMatrixLayoutDestroy", found->layout_destroy);
  find_or_throw(library, path, "cublasLtMatmulPreferenceCreate", found->preference_create);
  find_or_throw(library, path, "cublasLtMatmulPreferenceDestroy", found->preference_destroy);
  find_or_throw(library, path, "cublasLtMatmulPreferenceSetAttribute", found->preference_set);
  find_or_throw(library, path, "cublasLtMatmulAlgoGetHeuristic", found->heuristic);
  find_or_throw(library, path, "cublasLtMatmulAlgoConfigGetAttribute", found->algorithm_get);
  find_or_throw(library, path, "cublasLtMatmulAlgoConfigSetAttribute", found->algorithm_set);
  find_or_throw(library, path, "cublasLtMatmulAlgoCheck", found->algorithm_check);
  find_or_throw(library, path, "cublasLtMatmul", found->matmul);
  find(library, "cublasLtGroupedMatrixLayoutCreate", found->grouped_layout_create);
  entry_points_ = made.release();
  version_ = static_cast<int>(found->version());
}

namespace {

std::atomic<const CublasLtLibrary*> in_use = nullptr;  // never destroyed

}  // namespace

// `path` empty: the library in use, else the default. With a handle the library is already loaded.
const CublasLtLibrary& CublasLtLibrary::adopt(const std::string& path, void* handle) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  const CublasLtLibrary* library = in_use.load();
  if (library != nullptr && !path.empty() && library->path() != path) {
    throw InvalidArgument("library is " + path + ": expected " + library->path() + ", which is in use already");
  }
  if (library == nullptr) {
    library = handle != nullptr ? new CublasLtLibrary(handle, path) : new CublasLtLibrary(path.empty() ? file_to_load() : path);
    in_use.store(library);
  }
  return *library;
}

const CublasLtLibrary& CublasLtLibrary::get() {
  const CublasLtLibrary* const library = in_use.load();
  return library != nullptr ? *library : adopt("", nullptr);
}

void CublasLtLibrary::use(const std::string& path) {
  if (path.empty()) throw InvalidArgument("path is empty: expected a file, as dlopen takes it");
  adopt(path, nullptr);
}

void CublasLtLibrary::use(void* handle, const std::string& name) {
  if (handle == nullptr) throw InvalidArgument("handle is null: expected one of dlopen");
  if (name.empty()) throw InvalidArgument("name is empty: expected what messages call the library");
  adopt(name, handle);
}

std::string CublasLtLibrary::version_text() const { return text_of_version(version_); }

bool CublasLtLibrary::has_grouped_layouts() const { return entry_points_->grouped_layout_create != nullptr; }

std::string CublasLtLibrary::missing(const GroupedGemmCall& call, int architecture) const {
  const std::string what = described(call.kind), here = "SM" + std::to_string(architecture);
  const bool hopper = architecture / 10 == 9;
  const bool blackwell = architecture >= 100 && architecture <= 110;

  if (!hopper && !blackwell) {
    return what + " through cuBLASLt needs SM90 or SM100 to SM110; the device is " + here;
  }
  if (call.kind == GemmKind::fp8_block && architecture != 90) {
    return what + " through cuBLASLt exists on SM90 only, where f32 scales are applied between products; the device is " + here +
           ", whose block scaling is MXFP8: quantize with recipe mxfp8 there";
  }
  if ((call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4) && !blackwell) {
    return what + " through cuBLASLt needs SM100 to SM110, whose tensor cores apply block scales; the device is " + here;
  }
  const int needed = first_version(call.kind, hopper);
  if (version_ < needed || !has_grouped_layouts()) {
    return what + " on " + here + " needs cuBLASLt " + text_of_version(needed) + " or newer; " + path_ + " is " + version_text() +
           (has_grouped_layouts() ? "" : ", which has no grouped layouts");
  }
  if (call.places.layout != GroupedLayout::splits) {
    return what + " through cuBLASLt needs groups that follow one another (emulated_grouped_gemm() takes other places)";
  }
  if (const std::string columns = aligned_columns_missing(what + " through cuBLASLt", call.column_alignment); !columns.empty()) {
    return columns;
  }
  if (call.scalars_per_group && !blackwell) {
    return "alpha and beta for each group need SM100 to SM110; the device is " + here + ", where one pair serves the call";
  }
  if (call.row_and_column_scales) {
    return what + " through cuBLASLt has one scale for each group and operand here; the call has one for each row and column";
  }
  if (call.kind == GemmKind::mxfp8 && call.layout == GemmLayout::TN && call.w.type == Format::e2m1) {
    return what + " through cuBLASLt has weights in FP8 here; w is e2m1";
  }
  if (call.d_type == Format::e4m3 || call.d_type == Format::e5m2) {
    return what + " into " + format_name(call.d_type) + " is not called of cuBLASLt here: D is f32, bf16 or f16";
  }
  const bool f16_refused = call.kind == GemmKind::bf16 || call.kind == GemmKind::nvfp4;
  if ((f16_refused && call.d_type == Format::f16) || (call.kind == GemmKind::f16 && call.d_type == Format::bf16)) {
    return what + " into " + format_name(call.d_type) + " is not in cuBLASLt (" + version_text() + "); it needs an output of " +
           (call.kind == GemmKind::f16 ? "f16 or f32" : "bf16 or f32");
  }
  if ((call.kind == GemmKind::mxfp8 || call.kind == GemmKind::nvfp4) && call.scale_layout != ScaleLayout::swizzled) {
    return what + " through cuBLASLt needs swizzled scales; scale_layout is compact";
  }
  return "";
}

}  // namespace assay::device
