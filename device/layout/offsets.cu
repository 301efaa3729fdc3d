// Offsets of groups: prefix sums of splits, times a stride, in one launch for any number of outputs.
//
//   bound     latency: launch, one read, one scan, one write; the bytes are few
//   layout    up to 1024 values: one block, 4 consecutive values a thread, no more threads than values need; a warp scan by
//             shuffles, one barrier, and every thread adds up the warps before its own. More values: 512 threads that
//             first add everything up and then scan 2048 values a round
//   errors    the total is known to every thread before anyone writes; prefixes never fall, so the total times a stride is
//             the largest value and one comparison with `most_total` covers all outputs
//   matches   reference/layout/offsets.h

#include "device/layout/check_rows.h"
#include "device/layout/offsets.h"
#include "device/support/launch_check.h"

namespace assay::device {
namespace {

constexpr int kEach = 4;  // values of a thread
constexpr int kFewThreads = 256, kFew = kEach * kFewThreads;
constexpr int kManyThreads = 512;

struct Targets {
  int count;
  std::uint32_t int32;       // bit o: output o is int32
  std::uint32_t inclusive;   // bit o: output o has no leading zero
  std::int64_t most_total;   // the largest total that every output can hold
  void* values[kMaxOffsetsOutputs];
  std::int64_t stride[kMaxOffsetsOutputs];
};

// Values to be summed: splits, or products of two.
template <class Element, bool kProduct>
struct Source {
  const Element* first;
  const Element* last;  // kProduct only
  bool aligned;         // `first` lies on 16 bytes

  // The value, or 0 and its bits in `faults`.
  __device__ std::int64_t valid(std::int64_t value, std::int64_t i, unsigned& faults) const {
    if (value < 0) faults |= kStatusNegativeSplit;
    value = value < 0 ? 0 : value;
    if constexpr (kProduct) {
      const std::int64_t factor = last[i];
      if (factor < 0) {
        faults |= kStatusNegativeSplit;
        return 0;
      }
      const auto high = __umul64hi(static_cast<unsigned long long>(value), static_cast<unsigned long long>(factor));
      value *= factor;
      if (high != 0 || value < 0) {
        faults |= kStatusOverflow;
        return 0;
      }
    }
    return value;
  }

  // Values from, ..., from + 3; those at n and beyond are 0.
  __device__ void load(std::int64_t from, std::int64_t n, std::int64_t (&value)[kEach], unsigned& faults) const {
    if (aligned && from + kEach <= n) {
      if constexpr (sizeof(Element) == 8) {
        const longlong2 low = *reinterpret_cast<const longlong2*>(first + from);
        const longlong2 high = *reinterpret_cast<const longlong2*>(first + from + 2);
        value[0] = low.x, value[1] = low.y, value[2] = high.x, value[3] = high.y;
      } else {
        const int4 all = *reinterpret_cast<const int4*>(first + from);
        value[0] = all.x, value[1] = all.y, value[2] = all.z, value[3] = all.w;
      }
#pragma unroll
      for (int e = 0; e < kEach; ++e) value[e] = valid(value[e], from + e, faults);
    } else {
#pragma unroll
      for (int e = 0; e < kEach; ++e) value[e] = from + e < n ? valid(first[from + e], from + e, faults) : 0;
    }
  }
};

// Sum of two values of 0 or more; past int64 it is negative, which `signs` keeps.
__device__ std::int64_t add(std::int64_t a, std::int64_t b, std::int64_t& signs) {
  const auto sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  signs |= sum;
  return sum;
}

struct Scratch {
  std::int64_t of_warp[32];
  unsigned faults[32];
};

// Sums over the threads before this one and over all threads; `faults` becomes that of all. One barrier.
template <int kMostWarps>
__device__ void scan_block(std::int64_t own, Scratch& scratch, unsigned& faults, std::int64_t& before, std::int64_t& total) {
  constexpr unsigned kAll = 0xFFFFFFFFu;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  std::int64_t signs = own, through = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const std::int64_t lower = __shfl_up_sync(kAll, static_cast<long long>(through), step);
    if (lane >= step) through = add(through, lower, signs);
  }
  if (signs < 0) faults |= kStatusOverflow;
  faults = __reduce_or_sync(kAll, faults);
  if (lane == 31) {
    scratch.of_warp[warp] = through;
    scratch.faults[warp] = faults;
  }
  __syncthreads();
  before = through - own;
  total = 0;
  signs = 0;
  const int warps = static_cast<int>(blockDim.x) / 32;
#pragma unroll
  for (int w = 0; w < kMostWarps; ++w) {
    if (w == warp) before += total;
    if (w < warps) {
      total = add(total, scratch.of_warp[w], signs);
      faults |= scratch.faults[w];
    }
  }
  if (signs < 0) faults |= kStatusOverflow;
}

__device__ void store(const Targets& targets, int output, std::int64_t at, std::int64_t sum) {
  const std::int64_t value = sum * targets.stride[output];
  if ((targets.int32 >> output & 1) != 0) {
    static_cast<std::int32_t*>(targets.values[output])[at] = static_cast<std::int32_t>(value);
  } else {
    static_cast<std::int64_t*>(targets.values[output])[at] = value;
  }
}

// Stores what belongs to values from, ..., from + 3, the sum before them being `before`.
__device__ void store_each(const Targets& targets, std::int64_t from, std::int64_t n, const std::int64_t (&value)[kEach],
                           std::int64_t before) {
  for (int output = 0; output < targets.count; ++output) {
    const bool inclusive = (targets.inclusive >> output & 1) != 0;
    std::int64_t sum = before;
#pragma unroll
    for (int e = 0; e < kEach; ++e) {
      const std::int64_t through = sum + value[e];
      if (from + e < n) store(targets, output, from + e, inclusive ? through : sum);
      sum = through;
    }
  }
}

// The last value of every output with a leading zero.
__device__ void store_total(const Targets& targets, std::int64_t n, std::int64_t total) {
  for (int output = 0; output < targets.count; ++output) {
    if ((targets.inclusive >> output & 1) == 0) store(targets, output, n, total);
  }
}

__device__ bool stop(const Targets& targets, std::int64_t total, unsigned faults, std::uint32_t* status) {
  if (faults == 0 && total > targets.most_total) faults = kStatusOverflow;
  if (faults != 0 && threadIdx.x == 0 && status != nullptr) atomicOr(status, faults);
  return faults != 0;
}

template <class Values>
__global__ void __launch_bounds__(kFewThreads)
    offsets_of_few(const Values source, const int n, const __grid_constant__ Targets targets, std::uint32_t* status) {
  __shared__ Scratch scratch;
  const int from = static_cast<int>(threadIdx.x) * kEach;
  unsigned faults = 0;
  std::int64_t value[kEach], before, total, signs = 0;
  source.load(from, n, value, faults);
  const std::int64_t own = add(add(value[0], value[1], signs), add(value[2], value[3], signs), signs);
  if (signs < 0) faults |= kStatusOverflow;
  scan_block<kFewThreads / 32>(own, scratch, faults, before, total);
  if (stop(targets, total, faults, status)) return;
  store_each(targets, from, n, value, before);
  if (threadIdx.x == 0) store_total(targets, n, total);
}

template <class Values>
__global__ void __launch_bounds__(kManyThreads)
    offsets_of_many(const Values source, const std::int64_t n, const __grid_constant__ Targets targets, std::uint32_t* status) {
  __shared__ Scratch scratch;
  constexpr std::int64_t kRound = kEach * kManyThreads;
  unsigned faults = 0;
  std::int64_t value[kEach], before, total, own = 0, signs = 0;
  const std::int64_t first = static_cast<std::int64_t>(threadIdx.x) * kEach;
  for (std::int64_t from = first; from < n; from += kRound) {
    source.load(from, n, value, faults);
#pragma unroll
    for (int e = 0; e < kEach; ++e) own = add(own, value[e], signs);
  }
  if (signs < 0) faults |= kStatusOverflow;
  scan_block<kManyThreads / 32>(own, scratch, faults, before, total);
  if (stop(targets, total, faults, status)) return;

  std::int64_t done = 0;  // the sum of the rounds before
  for (std::int64_t round = 0; round < n; round += kRound) {
    std::int64_t of_round;
    source.load(round + first, n, value, faults);
    __syncthreads();  // nobody reads the scratch of the round before any more
    scan_block<kManyThreads / 32>(value[0] + value[1] + value[2] + value[3], scratch, faults, before, of_round);
    store_each(targets, round + first, n, value, done + before);
    done += of_round;
  }
  if (threadIdx.x == 0) store_total(targets, n, total);
}

template <class Element, bool kProduct>
void launch(const void* first, const void* last, int n, const Targets& targets, std::uint32_t* status, Stream stream) {
  Source<Element, kProduct> source{static_cast<const Element*>(first), static_cast<const Element*>(last), false};
  source.aligned = reinterpret_cast<std::uintptr_t>(first) % 16 == 0;
  if (n <= kFew) {
    const int threads = n <= 32 * kEach ? 32 : (n + 32 * kEach - 1) / (32 * kEach) * 32;
    offsets_of_few<<<1, threads, 0, stream>>>(source, n, targets, status);
  } else {
    offsets_of_many<<<1, kManyThreads, 0, stream>>>(source, std::int64_t{n}, targets, status);
  }
  check_launch("splits_to_offsets");
}

Targets targets_of(std::span<const OffsetsOutput> outputs) {
  Targets targets{};
  targets.count = static_cast<int>(outputs.size());
  targets.most_total = INT64_MAX;
  for (int o = 0; o < targets.count; ++o) {
    const OffsetsOutput& output = outputs[static_cast<std::size_t>(o)];
    targets.values[o] = output.values;
    targets.stride[o] = output.stride;
    targets.int32 |= static_cast<std::uint32_t>(output.is_int32) << o;
    targets.inclusive |= static_cast<std::uint32_t>(!output.leading_zero) << o;
    if (output.stride > 0) {
      const std::int64_t most = (output.is_int32 ? std::int64_t{INT32_MAX} : INT64_MAX) / output.stride;
      if (most < targets.most_total) targets.most_total = most;
    }
  }
  return targets;
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
  const OffsetsOutput output{stride, true, false, offsets};
  launch<std::int64_t, false>(splits, nullptr, groups, targets_of({&output, 1}), status, stream);
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
  const Targets targets = targets_of(outputs);
  if (splits_are_int32) {
    launch<std::int32_t, false>(splits, nullptr, groups, targets, status, stream);
  } else {
    launch<std::int64_t, false>(splits, nullptr, groups, targets, status, stream);
  }
}

void splits_to_offsets_2d(const void* first, const void* last, bool are_int32, int groups, void* offsets, std::uint32_t* status,
                          Stream stream) {
  check_input(first, are_int32, groups, "first");
  check_input(last, are_int32, groups, "last");
  require_pointer(offsets, "offsets", are_int32 ? 4 : 8);
  const OffsetsOutput output{1, true, are_int32, offsets};
  if (are_int32) {
    launch<std::int32_t, true>(first, last, groups, targets_of({&output, 1}), status, stream);
  } else {
    launch<std::int64_t, true>(first, last, groups, targets_of({&output, 1}), status, stream);
  }
}

}  // namespace assay::device
