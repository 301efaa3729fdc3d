#pragma once
// The vendor's quantization, to be timed beside that of this library: the C library of TransformerEngine (2.20), which the
// environment variable ASSAY_TRANSFORMER_ENGINE names. It is loaded at run time, and its few entry points that are used are
// declared in transformer_engine.cc: no header of it is needed.
//
// Only block scaling, without dbias, for groups whose rows are multiples of 128: the vendor's kernel for groups takes no others.

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/device/device_bench.h"
#include "device/quantize/quantize.h"

namespace assay::bench {

class TransformerEngine {
 public:
  // The library that the environment names, loaded once per process; null where it names none. Errors: std::runtime_error, with
  // the loader's message or the missing entry point.
  static const TransformerEngine* get();

  struct EntryPoints;
  const EntryPoints& entry_points() const { return *entry_points_; }

 private:
  explicit TransformerEngine(const char* path);
  const EntryPoints* entry_points_;  // never freed, as the library is never closed
};

// How the groups of a matrix are passed to the vendor.
enum class VendorRoute {
  ragged,  // one call; rows of the groups are read on the device, from offsets that were written before
  alike,   // one call; groups of equal rows, which the host knows
  each,    // a call per group
  whole,   // one call; all rows as one tensor: other columnwise bytes than those of groups
};
const char* name_of(VendorRoute route);

// Outputs of a quantization in the layout of device::QuantizeOutput, filled with 0xA5.
struct QuantizedBuffers {
  DeviceBuffer rowwise_data, columnwise_data, rowwise_scale_inv, columnwise_scale_inv;

  QuantizedBuffers(const device::QuantizeCall& call, const std::vector<std::int64_t>& splits);
  QuantizeOutput output() const;
};

// A quantization by the vendor, ready to be launched. `call`: as device::quantize() takes it; its outputs are written, and its
// workspace, splits and status are not used. `splits`: rows of its groups, on the host, which sum to its capacity.
// Errors: std::exception of the vendor's, or std::invalid_argument.
class VendorQuantization {
 public:
  VendorQuantization(const TransformerEngine& library, const device::QuantizeCall& call, const std::vector<std::int64_t>& splits,
                     VendorRoute route);
  VendorQuantization(VendorQuantization&&) noexcept;
  ~VendorQuantization();
  void launch(cudaStream_t stream) const;

 private:
  struct Handles;
  std::unique_ptr<Handles> handles_;
};

// The fastest of the routes with the codes of device::quantize(), every byte compared.
struct VendorChoice {
  VendorRoute route = VendorRoute::whole;
  double seconds = 0;       // of a launch, a node of a graph
  bool same_scales = true;  // the scales are equal too, so that a product may read the outputs
};
// Errors: std::runtime_error if no route gives these codes, with the difference of each; those of the vendor.
VendorChoice choose_route(const TransformerEngine& library, const device::QuantizeCall& call,
                          const std::vector<std::int64_t>& splits);

}  // namespace assay::bench
