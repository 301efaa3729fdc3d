#pragma once
// The library's descriptors of a grouped product. Internal to this folder.

#include "device/cublaslt/cublaslt_gemm.h"
#include "device/cublaslt/group_setup.h"
#include "device/cublaslt/library_device.h"

namespace assay::device::cublaslt {

// A descriptor of the library, destroyed with its owner.
class Owned {
 public:
  explicit Owned(int (*destroy)(Descriptor)) : destroy_(destroy) {}
  ~Owned() {
    if (descriptor_ != nullptr) destroy_(descriptor_);
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  Descriptor* address() { return &descriptor_; }
  Descriptor get() const { return descriptor_; }

 private:
  int (*destroy_)(Descriptor);
  Descriptor descriptor_ = nullptr;
};

struct Product {
  Owned product, a, b, c, d;

  explicit Product(const CublasLtLibrary::EntryPoints& entry)
      : product(entry.product_destroy),
        a(entry.layout_destroy),
        b(entry.layout_destroy),
        c(entry.layout_destroy),
        d(entry.layout_destroy) {}
};

// Block scaling has no fast accumulation (spec grouped-linear-1.3), and only FP8 has it at all.
bool fast_accumulation(const GroupedGemmCall& call);

// Fills `product` with the descriptors of a call whose groups `arrays` describe. Errors: NotSupported, CudaError.
void describe(const CublasLtLibrary& library, const Device& device, const GroupedGemmCall& call, const CublasLtSettings& settings,
              CublasLtRoute route, const GroupArrays& arrays, Product& product);

}  // namespace assay::device::cublaslt
