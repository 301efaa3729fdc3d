// Offsets of groups: prefix sums of splits, times a stride, in one launch for any number of outputs.
//
//   bound     latency: launch, one read, one scan, one write; the bytes are few
//   layout    a block an output, so that eight take the time of one; each block reads and scans everything. Up to 1024
//             values: a thread per value, sums in 32 bits (of products in 64), a warp scan by shuffles and one barrier, none
//             for up to 32 values. From SM90 on it is launched while the kernel before it ends, and waits for its results
//   errors    n values of at most limit / n cannot have a sum past `limit`. All threads vote, beside the scan, whether a value
//             is larger; then, and past 1024 values, the block starts again with 64 bits and every check. Prefixes never
//             decrease, so the total times a stride is the largest offset: one comparison with the total covers all outputs,
//             and every thread knows it before any thread writes
//   matches   reference/layout/offsets.h

#include <limits>
#include <type_traits>

#include "device/layout/check_rows.h"
#include "device/layout/offsets.h"
#include "device/support/call_device.h"
#include "device/support/early_launch.cuh"
#include "device/support/launch.cuh"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

constexpr unsigned kAllLanes = 0xFFFFFFFFu;
constexpr int kFew = 1024;         // values of the short way
constexpr int kManyThreads = 512;  // of a block with more values
constexpr int kEach = 4;           // values of a thread in a round of the long way

struct Output {
  void* after;  // for the prefix through value 0; a leading zero lies before it
  std::int64_t stride;
};

// Arguments of a launch. The short way reads the first 48 bytes, which are one line of the constant cache.
template <class Element, class Sum_, int kMaxOutputs>
struct Call {
  using Sum = Sum_;  // of the short way
  static constexpr int kOutputs = kMaxOutputs;
  const Element* first;
  const Element* last;  // of products; null otherwise
  int n;
  Sum short_value;      // no n values up to this have a sum past Sum
  Sum short_total;      // the largest total, within Sum, that every output can hold
  std::uint32_t kinds;  // bit o: output o is int32; bit 16 + o: it has a leading zero
  Output output[kMaxOutputs];
  std::int64_t max_total;  // the largest total that every output can hold
  std::uint32_t* status;

  __device__ unsigned own_output() const { return kOutputs == 1 ? 0 : blockIdx.x; }
  __device__ bool is_int32(unsigned o) const { return (kinds >> o & 1) != 0; }
  __device__ bool has_leading_zero(unsigned o) const { return (kinds >> (16 + o) & 1) != 0; }
};
static_assert(kMaxOffsetsOutputs <= 16);

__device__ void store(const Output& output, bool is_int32, std::int64_t at, std::int64_t sum) {
  const std::int64_t offset = sum * output.stride;
  if (is_int32) {
    static_cast<std::int32_t*>(output.after)[at] = static_cast<std::int32_t>(offset);
  } else {
    static_cast<std::int64_t*>(output.after)[at] = offset;
  }
}

// ---- the long way: 64 bits, any values, all faults reported --------------------------------------------------------------

// Sum of two values of 0 or more; past int64 it is negative, which `signs` keeps.
__device__ std::int64_t add(std::int64_t a, std::int64_t b, std::int64_t& signs) {
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  signs |= sum;
  return sum;
}

// Value i, 0 from n on. An invalid one is 0 and sets its bits in `faults`.
template <bool kProduct, class Call>
__device__ std::int64_t value_at(const Call& call, std::int64_t i, unsigned& faults) {
  if (i >= call.n) return 0;
  const std::int64_t value = call.first[i];
  if constexpr (!kProduct) {
    if (value < 0) faults |= kStatusNegativeSplit;
    return value < 0 ? 0 : value;
  } else {
    const std::int64_t factor = call.last[i];
    if (value < 0 || factor < 0) {
      faults |= kStatusNegativeSplit;
      return 0;
    }
    const auto high = __umul64hi(static_cast<unsigned long long>(value), static_cast<unsigned long long>(factor));
    const std::int64_t product = value * factor;
    if (high != 0 || product < 0) {
      faults |= kStatusOverflow;
      return 0;
    }
    return product;
  }
}

struct Scratch {
  std::int64_t of_warp[32];
  unsigned faults[32];
};

// Sums over the threads before this one and over all threads; `faults` becomes that of all. One barrier.
__device__ void scan_block(std::int64_t own, Scratch& scratch, unsigned& faults, std::int64_t& before, std::int64_t& total) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::int64_t signs = own, through = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int64_t lower = __shfl_up_sync(kAllLanes, static_cast<long long>(through), step);
    if (lane >= step) through = add(through, lower, signs);
  }
  if (signs < 0) faults |= kStatusOverflow;
  faults = __reduce_or_sync(kAllLanes, faults);
  if (lane == 31) {
    scratch.of_warp[warp] = through;
    scratch.faults[warp] = faults;
  }
  __syncthreads();
  before = through - own;
  total = 0;
  signs = 0;
  const int warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll 1
  for (int w = 0; w < warps; ++w) {
    if (w == warp) before += total;
    total = add(total, scratch.of_warp[w], signs);
    faults |= scratch.faults[w];
  }
  if (signs < 0) faults |= kStatusOverflow;
}

template <bool kProduct, class Call>
__device__ void offsets_with_checks(const Call& call, unsigned o, Scratch& scratch) {
  const std::int64_t n = call.n, a_round = kEach * static_cast<std::int64_t>(blockDim.x);
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kEach;
  unsigned faults = 0;
  std::int64_t value[kEach], before, total, own = 0, signs = 0;
#pragma unroll 1
  for (std::int64_t from = first; from < n; from += a_round) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) own = add(own, value_at<kProduct>(call, from + e, faults), signs);
  }
  if (signs < 0) faults |= kStatusOverflow;
  scan_block(own, scratch, faults, before, total);
  if (faults == 0 && total > call.max_total) faults = kStatusOverflow;
  if (faults != 0) {
    if (threadIdx.x == 0 && o == 0 && call.status != nullptr) atomicOr(call.status, faults);
    return;
  }

  const Output output = call.output[o];
  if (output.after == nullptr) return;  // without outputs the splits are checked
  std::int64_t done = 0;                // the sum of the rounds before
#pragma unroll 1
  for (std::int64_t round = 0; round < n; round += a_round) {
#pragma unroll
    for (int e = 0; e < kEach; ++e) value[e] = value_at<kProduct>(call, round + first + e, faults);
    std::int64_t of_round;
    __syncthreads();  // no thread reads the scratch of the round before any more
    scan_block(value[0] + value[1] + value[2] + value[3], scratch, faults, before, of_round);
    std::int64_t sum = done + before;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      sum += value[e];
      if (round + first + e < n) store(output, call.is_int32(o), round + first + e, sum);
    }
    done += of_round;
  }
  if (threadIdx.x == 0 && call.has_leading_zero(o)) store(output, call.is_int32(o), -1, 0);
}

template <bool kProduct, class Call>
__global__ void __launch_bounds__(kManyThreads) offsets_of_many(const __grid_constant__ Call call) {
  __shared__ Scratch scratch;
  offsets_with_checks<kProduct>(call, call.own_output(), scratch);
}

// ---- the short way -------------------------------------------------------------------------------------------------------

// The largest of the values that were read. Negative ones have high bits.
template <class Sum>
struct Seen {
  std::uint32_t high = 0;
  Sum largest = 0;
  __device__ bool beyond(Sum limit) const { return high != 0 || largest > limit; }
};

// Value i, 0 from n on; of a value past 32 bits, or a product of such, only the low part.
template <bool kProduct, class Call, class Sum>
__device__ Sum short_value_at(const Call& call, int i, Seen<Sum>& seen) {
  std::uint64_t value = 0;
  if (i < call.n) value = static_cast<std::uint64_t>(std::int64_t{call.first[i]});
  seen.high |= static_cast<std::uint32_t>(value >> 32);
  if constexpr (kProduct) {
    std::uint64_t factor = 0;
    if (i < call.n) factor = static_cast<std::uint64_t>(std::int64_t{call.last[i]});
    seen.high |= static_cast<std::uint32_t>(factor >> 32);
    value = static_cast<std::uint64_t>(static_cast<std::uint32_t>(value)) * static_cast<std::uint32_t>(factor);
  }
  seen.largest = max(seen.largest, static_cast<Sum>(value));
  return static_cast<Sum>(value);
}

// Inclusive, over the lanes of a warp.
template <class Sum>
__device__ Sum scan_warp(Sum through) {
  const unsigned lane = threadIdx.x % 32;
#pragma unroll
  for (unsigned step = 1; step < 32; step *= 2) {
    const Sum lower = __shfl_up_sync(kAllLanes, through, step);
    if (lane >= step) through += lower;
  }
  return through;
}

// Of all lanes; `through` is the scan. 32 bits need not wait for it.
__device__ std::uint32_t sum_warp(std::uint32_t own, std::uint32_t) { return __reduce_add_sync(kAllLanes, own); }
__device__ unsigned long long sum_warp(unsigned long long, unsigned long long through) {
  return __shfl_sync(kAllLanes, through, 31);
}

// Sums over the warps before this one, and over all warps; lane w holds that of warp w.
__device__ void sum_warps(std::uint32_t of_lane, unsigned warp, std::uint32_t& before, std::uint32_t& total) {
  before = __reduce_add_sync(kAllLanes, threadIdx.x % 32 < warp ? of_lane : 0);
  total = __reduce_add_sync(kAllLanes, of_lane);
}
__device__ void sum_warps(unsigned long long of_lane, unsigned warp, unsigned long long& before, unsigned long long& total) {
  const unsigned long long through = scan_warp(of_lane);
  before = __shfl_sync(kAllLanes, through - of_lane, static_cast<int>(warp));
  total = __shfl_sync(kAllLanes, through, 31);
}

// Launched early, the kernel lets the next one start early too, and reads nothing before the preceding kernels have finished.
__device__ void wait_for_work_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// A thread per value.
template <bool kProduct, bool kOneWarp, class Call>
__global__ void __launch_bounds__(kOneWarp ? 32 : kFew) offsets_of_few(const __grid_constant__ Call call) {
  using Sum = typename Call::Sum;
  __shared__ Scratch scratch;
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int i = static_cast<int>(threadIdx.x);
  Seen<Sum> seen;
  wait_for_work_before();
  const Sum own = short_value_at<kProduct>(call, i, seen);
  Sum through = scan_warp(own), total = sum_warp(own, through);
  bool odd;
  if constexpr (kOneWarp) {
    odd = __any_sync(kAllLanes, seen.beyond(call.short_value)) != 0;
  } else {
    __shared__ Sum of_warp[32];
    if (lane == 0) of_warp[warp] = total;
    odd = __syncthreads_or(seen.beyond(call.short_value)) != 0;
    Sum before;
    sum_warps(lane < blockDim.x / 32 ? of_warp[lane] : 0, warp, before, total);
    through += before;
  }
  if (odd || total > call.short_total) {
    offsets_with_checks<kProduct>(call, call.own_output(), scratch);
    return;
  }
  const unsigned o = call.own_output();
  const Output output = call.output[o];
  if (Call::kOutputs > 1 && output.after == nullptr) return;
  if (i < call.n) store(output, call.is_int32(o), i, static_cast<std::int64_t>(through));
  if (i == 0 && call.has_leading_zero(o)) store(output, call.is_int32(o), -1, 0);
}

template <bool kProduct, class Call>
void launch_few(const Call& call, int outputs, Stream stream) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(outputs));
  config.blockDim = dim3(static_cast<unsigned>(call.n <= 32 ? 32 : (call.n + 31) / 32 * 32));
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = device_launches_early() ? 1 : 0;
  check_cuda(call.n <= 32 ? cudaLaunchKernelEx(&config, offsets_of_few<kProduct, true, Call>, call)
                          : cudaLaunchKernelEx(&config, offsets_of_few<kProduct, false, Call>, call),
             "splits_to_offsets");
}

// ---- the calls -----------------------------------------------------------------------------------------------------------

template <class Element, bool kProduct, int kMaxOutputs>
void launch(const void* first, const void* last, int n, std::span<const OffsetsOutput> outputs, std::uint32_t* status,
            Stream stream) {
  using Sum = std::conditional_t<kProduct, unsigned long long, std::uint32_t>;
  constexpr Sum kMaxSum = std::numeric_limits<Sum>::max();
  Call<Element, Sum, kMaxOutputs> call{};
  call.first = static_cast<const Element*>(first);
  call.last = static_cast<const Element*>(last);
  call.n = n;
  call.short_value = kMaxSum / static_cast<Sum>(n == 0 ? 1 : n);
  call.status = status;
  call.max_total = INT64_MAX;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const OffsetsOutput& output = outputs[o];
    const std::int64_t bytes = output.is_int32 ? 4 : 8;
    call.output[o] = {static_cast<char*>(output.values) + (output.leading_zero ? bytes : 0), output.stride};
    call.kinds |= (output.is_int32 ? 1u : 0u) << o | (output.leading_zero ? 0x10000u : 0u) << o;
    if (output.stride > 0) {
      const std::int64_t limit = (output.is_int32 ? std::int64_t{INT32_MAX} : INT64_MAX) / output.stride;
      if (limit < call.max_total) call.max_total = limit;
    }
  }
  call.short_total = static_cast<std::uint64_t>(call.max_total) < kMaxSum ? static_cast<Sum>(call.max_total) : kMaxSum;

  const int blocks = outputs.empty() ? 1 : static_cast<int>(outputs.size());
  if (n <= kFew) {
    launch_few<kProduct>(call, blocks, stream);
  } else {
    launch_kernel("offsets_of_many", offsets_of_many<kProduct, Call<Element, Sum, kMaxOutputs>>, blocks, kManyThreads, 0, stream,
                  call);
  }
}

template <bool kProduct>
void launch(const void* first, const void* last, bool are_int32, int n, std::span<const OffsetsOutput> outputs,
            std::uint32_t* status, Stream stream) {
  if (outputs.size() == 1) {  // the block's output lies at a fixed place, next to what else it reads
    are_int32 ? launch<std::int32_t, kProduct, 1>(first, last, n, outputs, status, stream)
              : launch<std::int64_t, kProduct, 1>(first, last, n, outputs, status, stream);
  } else {
    are_int32 ? launch<std::int32_t, kProduct, kMaxOffsetsOutputs>(first, last, n, outputs, status, stream)
              : launch<std::int64_t, kProduct, kMaxOffsetsOutputs>(first, last, n, outputs, status, stream);
  }
}

void check_input(const void* values, bool are_int32, int groups, const char* name) {
  require(groups >= 0, "groups", groups, "a value of at least 0");
  if (groups > 0) require_pointer(values, name, are_int32 ? 4 : 8);
}

}  // namespace

void splits_to_offsets(const std::int64_t* splits, int groups, std::int64_t stride, std::int64_t* offsets, std::uint32_t* status,
                       Stream stream) {
  check_input(splits, false, groups, "splits");
  require(stride >= 1, "stride", stride, "a value of at least 1");
  require_pointer(offsets, "offsets", 8);
  const CallDevice device(stream, {{"splits", splits}, {"offsets", offsets}, {"status", status}});
  const OffsetsOutput output{stride, true, false, offsets};
  launch<false>(splits, nullptr, false, groups, {&output, 1}, status, stream);
}

void splits_to_offsets_multi(const void* splits, bool splits_are_int32, int groups, std::span<const OffsetsOutput> outputs,
                             std::uint32_t* status, Stream stream) {
  check_input(splits, splits_are_int32, groups, "splits");
  require(outputs.size() <= kMaxOffsetsOutputs, "outputs.size()", static_cast<std::int64_t>(outputs.size()),
          "at most " + std::to_string(kMaxOffsetsOutputs));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const std::string name = "outputs[" + std::to_string(o) + "]";
    require(outputs[o].stride >= 0, name + ".stride", outputs[o].stride, "a value of at least 0");
    if (groups > 0 || outputs[o].leading_zero) require_pointer(outputs[o].values, name + ".values", outputs[o].is_int32 ? 4 : 8);
  }
  const CallDevice device(
      stream, {{"splits", splits}, {"outputs[0].values", outputs.empty() ? nullptr : outputs[0].values}, {"status", status}});
  launch<false>(splits, nullptr, splits_are_int32, groups, outputs, status, stream);
}

void splits_to_offsets_2d(const void* first, const void* last, bool are_int32, int groups, void* offsets, std::uint32_t* status,
                          Stream stream) {
  check_input(first, are_int32, groups, "first");
  check_input(last, are_int32, groups, "last");
  require_pointer(offsets, "offsets", are_int32 ? 4 : 8);
  const CallDevice device(stream, {{"first", first}, {"last", last}, {"offsets", offsets}, {"status", status}});
  const OffsetsOutput output{1, true, are_int32, offsets};
  launch<true>(first, last, are_int32, groups, {&output, 1}, status, stream);
}

}  // namespace assay::device
