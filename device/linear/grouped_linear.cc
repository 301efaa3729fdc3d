#include "device/linear/grouped_linear.h"

#include <algorithm>
#include <utility>

#include "device/linear/grouped_linear_start.h"
#include "device/linear/prepared_step.h"
#include "device/support/call_checks.h"

namespace assay::device {
namespace {

// Where forward takes its weights from: spec grouped-linear-2.2, as in reference/linear/microbatch.h.
WeightUse use_of(const GroupedLinearForward& call) {
  if (call.skip_weight_update != nullptr) return WeightUse::by_flag;
  if (!call.is_first_microbatch.has_value()) return WeightUse::fresh;
  return *call.is_first_microbatch ? WeightUse::renewed : WeightUse::kept;
}

bool adds_to_main_grad(const GroupedLinearOptions& options, const GroupedLinearForward& call) {
  if (!options.fuse_accumulation || options.overwrite_main_grad) return false;
  return call.skip_weight_update != nullptr || !call.is_first_microbatch.value_or(false);
}

void merge(LinearReport& into, const LinearReport& other) {
  const auto quantized = [](LinearReport::Quantized& a, const LinearReport::Quantized& b) {
    a.calls += b.calls;
    a.rowwise |= b.rowwise;
    a.columnwise |= b.columnwise;
  };
  const auto product = [](LinearReport::Product& a, const LinearReport::Product& b) {
    if (b.ran) a = b;
  };
  quantized(into.x, other.x);
  quantized(into.dy, other.dy);
  quantized(into.w, other.w);
  if (other.dbias != DbiasRoute::none) into.dbias = other.dbias;
  product(into.forward, other.forward);
  product(into.dgrad, other.dgrad);
  product(into.wgrad, other.wgrad);
}

}  // namespace

void GroupedLinear::give_path(LinearPath& path, GemmLayout layout, Stream stream) {
  if (path.path == GemmPath::cublaslt) workspaces().give(path.settings, stream, layout, options_.groups);
}

// ---- Forward ---------------------------------------------------------------------------------------------------------

int GroupedLinear::in_flight() const {
  return static_cast<int>(
      std::count_if(microbatches_.begin(), microbatches_.end(), [](const Microbatch& m) { return m.state != State::free; }));
}

const CublasLtAlgorithm* GroupedLinear::known_algorithm(const AlgorithmKey& key, const CublasLtAlgorithm* pinned) const {
  if (pinned != nullptr || options_.path.path != GemmPath::cublaslt) return pinned;
  const auto found = algorithms_.find(key);
  return found == algorithms_.end() ? nullptr : &found->second;
}

void GroupedLinear::learn_algorithm(const AlgorithmKey& key, const LinearReport::Product& product) {
  if (!product.ran || product.path != GemmPath::cublaslt) return;
  constexpr std::size_t kMaxRemembered = 256;  // with more row counts than that, the heuristic is called each time
  if (algorithms_.size() < kMaxRemembered) algorithms_.emplace(key, product.algorithm);
}

void GroupedLinear::check_forward(const GroupedLinearForward& call, WeightUse use, bool capturing) const {
  const GroupedLinearOptions& o = options_;
  require(call.rows.groups == o.groups, "rows.groups", call.rows.groups, "the groups of this layer, " + std::to_string(o.groups));
  require(call.rows.capacity <= o.rows_capacity, "rows.capacity", call.rows.capacity,
          "at most the " + std::to_string(o.rows_capacity) + " that there is room for: reserve()");
  if (o.groups != 1) require_pointer(call.rows.splits, "rows.splits", static_cast<std::uintptr_t>(call.rows.split_bytes()));
  check_rows(call.rows);
  if (call.bias_list != nullptr) require_null(call.bias, "bias", "there is bias_list");
  for (int t = 0; call.bias_list != nullptr && t < o.groups && o.N != 0; ++t) {
    require_pointer(call.bias_list[t], "bias_list[" + std::to_string(t) + "]", 2);
  }
  check_alignment(call.skip_weight_update, "skip_weight_update", alignof(float));
  if (!quantizes(o.config)) return;
  if (use == WeightUse::fresh) {
    require(o.fresh_weights, "is_first_microbatch", "not given", "true or false, as options.fresh_weights is off");
  } else {
    const char* const argument = use == WeightUse::by_flag ? "skip_weight_update" : "is_first_microbatch";
    require(o.cache_weights, argument, "given", "nothing, as options.cache_weights is off");
  }
  if (use == WeightUse::renewed && o.dgrad) {
    for (std::size_t i = 0; i < microbatches_.size(); ++i) {
      const bool reads_cache = microbatches_[i].state == State::forwarded && microbatches_[i].weights != WeightUse::fresh;
      require(!reads_cache, "is_first_microbatch", "true",
              "false or the backward of microbatch " + std::to_string(i) + " first, whose dgrad reads the cached weights");
    }
  }
  if (use == WeightUse::kept) {
    const bool filled = cache_filled_ || (capturing && cache_filled_by_graph_);
    require(filled, "is_first_microbatch", "false",
            cache_filled_by_graph_ ? "note_cache_filled() before it, once a graph that renews the cache has been replayed"
                                   : "true before it: no weights are cached yet");
    require(call.w_amax == nullptr, "w_amax", "a pointer", "null where w is not quantized");
  }
}

LinearWeightsCall GroupedLinear::weights_call(const GroupedLinearForward& call, WeightUse use) const {
  LinearWeightsCall weights = start<LinearWeightsCall>(call.rows);
  weights.w = call.w;
  weights.w_scale = call.w_scale;
  weights.w_amax = call.w_amax;
  weights.noop = use == WeightUse::by_flag ? call.skip_weight_update : nullptr;
  give(weights, weights_space_);
  return weights;
}

void GroupedLinear::note_cache_filled() {
  require(cache_filled_by_graph_, "weights", "in no captured forward", "a captured forward with is_first_microbatch before");
  cache_filled_ = true;
}

GroupedLinearForwardResult GroupedLinear::forward(const GroupedLinearForward& call, Stream stream) {
  const GroupedLinearOptions& o = options_;
  const DeviceScope on = begin(stream);
  const bool capturing = memory_.capture_of(stream) != 0;
  GroupedLinearForwardResult result;
  result.weights = use_of(call);
  check_forward(call, result.weights, capturing);
  const bool keeps = call.keep && (o.dgrad || o.wgrad);
  const auto place =
      std::find_if(microbatches_.begin(), microbatches_.end(), [](const Microbatch& m) { return m.state == State::free; });
  if (keeps && place == microbatches_.end()) {
    require(false, "microbatches in flight", in_flight(), "fewer than options.microbatches, " + std::to_string(o.microbatches));
  }

  const QuantizedStorage& codes = result.weights != WeightUse::fresh ? cache_ : keeps ? place->fresh : fresh_;
  LinearForwardCall step = start<LinearForwardCall>(call.rows);
  step.x = call.x;
  step.w = call.w;
  step.cache = quantizes(o.config) ? &codes : nullptr;
  step.bias = call.bias_list != nullptr ? bias_ : call.bias;
  step.x_scale = call.x_scale;
  step.x_amax = call.x_amax;
  if (keeps && o.wgrad) step.x_columnwise = place->x;
  step.y = call.y;
  give(step, forward_space_);
  give_path(step.path, GemmLayout::TN, stream);
  const AlgorithmKey key{GemmLayout::TN, call.rows.capacity, false, call.w.list != nullptr};
  step.path.forward.algorithm = known_algorithm(key, o.path.forward.algorithm);
  PreparedStep product(step, kernels_), quantization;
  LinearWeightsCall weights;
  const bool renews = quantizes(o.config) && result.weights != WeightUse::kept;
  if (renews) {
    weights = weights_call(call, result.weights);
    weights.cache = codes;
    quantization = PreparedStep(weights, kernels_);
  }

  if (renews) merge(result.report, quantization.launch(stream));
  if (renews && result.weights != WeightUse::fresh) (capturing ? cache_filled_by_graph_ : cache_filled_) = true;
  const bool has_splits = call.rows.splits != nullptr;
  if (keeps && has_splits) kernels_.copy(place->splits, call.rows.splits, call.rows.split_bytes() * o.groups, stream);
  if (call.bias_list != nullptr) kernels_.gather(call.bias_list, o.groups, 2 * o.N, bias_, stream);
  merge(result.report, product.launch(stream));
  learn_algorithm(key, result.report.forward);
  if (!keeps) return result;

  place->state = State::forwarded;
  place->rows = call.rows;
  if (has_splits) place->rows.splits = place->splits;
  place->weights = result.weights;
  place->accumulate = adds_to_main_grad(o, call);
  if (!quantizes(o.config)) {
    place->x_given = call.x;
    place->w = call.w;
    if (call.w.list != nullptr) place->w_list.assign(call.w.list, call.w.list + o.groups);
  }
  result.microbatch = static_cast<int>(place - microbatches_.begin());
  return result;
}

// ---- Backward --------------------------------------------------------------------------------------------------------

GroupedLinear::Microbatch& GroupedLinear::at(int microbatch, State state) {
  const bool there =
      microbatch >= 0 && microbatch < options_.microbatches && microbatches_[static_cast<std::size_t>(microbatch)].state == state;
  require(there, "microbatch", microbatch, "one whose forward has run and whose backward has not");
  return microbatches_[static_cast<std::size_t>(microbatch)];
}

void GroupedLinear::check_backward(const GroupedLinearBackward& call) const {
  const GroupedLinearOptions& o = options_;
  if (!o.dgrad) require_null(call.dx, "dx", "options.dgrad is off");
  if (!o.wgrad) {
    require_null(call.dw, "dw", "options.wgrad is off");
    require_null(call.dw_list, "dw_list", "options.wgrad is off");
  }
  if (call.dw_list != nullptr) require_null(call.dw, "dw", "there is dw_list");
  if (call.dbias_list != nullptr) require_null(call.dbias, "dbias", "there is dbias_list");
  for (int t = 0; call.dbias_list != nullptr && t < o.groups && o.N != 0; ++t) {
    require_pointer(call.dbias_list[t], "dbias_list[" + std::to_string(t) + "]", 2);
  }
}

LinearDgradCall GroupedLinear::dgrad_call(const GroupedLinearBackward& call, const Microbatch& of,
                                          const QuantizedDirection& dy_columnwise, void* dbias, Stream stream) {
  LinearDgradCall dgrad = start<LinearDgradCall>(of.rows);
  dgrad.dy = call.dy;
  dgrad.w = of.w;
  if (of.w.list != nullptr) dgrad.w.list = of.w_list.data();
  dgrad.cache = !quantizes(options_.config) ? nullptr : of.weights == WeightUse::fresh ? &of.fresh : &cache_;
  dgrad.dy_scale = call.dy_scale;
  dgrad.dy_amax = call.dy_amax;
  dgrad.dy_columnwise = dy_columnwise;
  dgrad.dbias = dbias;
  dgrad.dx = call.dx;
  dgrad.path.dgrad.algorithm = known_algorithm(dgrad_key(of), options_.path.dgrad.algorithm);
  give(dgrad, dgrad_space_);
  give_path(dgrad.path, GemmLayout::NN, stream);
  return dgrad;
}

// Stores what backward_dw() needs and the caller may change.
void GroupedLinear::defer(const GroupedLinearBackward& call, Microbatch& of, Stream stream) {
  const GroupedLinearOptions& o = options_;
  if (!quantizes(o.config)) {
    kernels_.copy(of.x_copy, of.x_given, 2 * of.rows.capacity * o.K, stream);
    kernels_.copy(of.dy_copy, call.dy, 2 * of.rows.capacity * o.N, stream);
  }
  of.dw = call.dw;
  of.dw_list.clear();
  if (call.dw_list != nullptr) of.dw_list.assign(call.dw_list, call.dw_list + o.groups);
  of.dw_is_list = call.dw_list != nullptr;
  of.state = State::deferred;
  deferred_.push_back(call.microbatch);
}

GroupedLinearBackwardResult GroupedLinear::backward(const GroupedLinearBackward& call, Stream stream) {
  const DeviceScope on = begin(stream);
  const GroupedLinearOptions& o = options_;
  Microbatch& of = at(call.microbatch, State::forwarded);
  const bool wants_dw = call.dw != nullptr || call.dw_list != nullptr, wants_dx = call.dx != nullptr;
  check_backward(call);
  void* const dbias = call.dbias_list != nullptr ? dbias_ : call.dbias;
  const bool quantized = quantizes(o.config);
  const QuantizedDirection dy_columnwise = !quantized || !wants_dw ? QuantizedDirection{} : o.defer_wgrad ? of.dy : dy_;

  GroupedLinearBackwardResult result;
  result.accumulated = wants_dw && of.accumulate;
  result.deferred = wants_dw && o.defer_wgrad;

  LinearDgradCall dgrad;
  LinearGradientCall gradient = start<LinearGradientCall>(of.rows);
  LinearDbiasCall sums = start<LinearDbiasCall>(of.rows);
  PreparedStep first;  // reads dy
  if (wants_dx) {
    dgrad = dgrad_call(call, of, dy_columnwise, dbias, stream);
    first = PreparedStep(dgrad, kernels_);
  } else if (wants_dw && quantized) {
    gradient.dy = call.dy;
    gradient.dy_scale = call.dy_scale;
    gradient.dy_amax = call.dy_amax;
    gradient.dy_columnwise = dy_columnwise;
    gradient.dbias = dbias;
    give(gradient, gradient_space_);
    first = PreparedStep(gradient, kernels_);
  } else if (dbias != nullptr) {
    sums.dy = call.dy;
    sums.dbias = dbias;
    give(sums, gradient_space_);
    first = PreparedStep(sums, kernels_);
  }

  // A deferred wgrad is checked now too, as if it ran now.
  const bool copies = result.deferred && !quantized;
  if (copies && of.rows.capacity != 0 && o.N != 0) require_pointer(call.dy, "dy", 16);
  LinearWgradCall wgrad;
  PreparedStep second;
  if (wants_dw) {
    const AlgorithmKey key{GemmLayout::NT, of.rows.capacity, of.accumulate, call.dw_list != nullptr};
    wgrad = wgrad_call(of, dy_columnwise, copies ? of.dy_copy : call.dy, copies ? of.x_copy : of.x_given);
    wgrad.dw = call.dw;
    wgrad.dw_list = call.dw_list;
    if (!result.deferred) give_path(wgrad.path, GemmLayout::NT, stream);
    wgrad.path.wgrad.algorithm = known_algorithm(key, o.path.wgrad.algorithm);
    second = PreparedStep(wgrad, kernels_);
    learn_algorithm(key, second.product());
  }

  merge(result.report, first.launch(stream));
  if (wants_dx) learn_algorithm(dgrad_key(of), result.report.dgrad);
  if (call.dbias_list != nullptr) kernels_.scatter(dbias_, call.dbias_list, o.groups, 2 * o.N, stream);
  if (result.deferred) {
    defer(call, of, stream);
  } else {
    merge(result.report, second.launch(stream));
    of.state = State::free;
  }
  return result;
}

LinearWgradCall GroupedLinear::wgrad_call(const Microbatch& of, const QuantizedDirection& dy, const void* plain_dy,
                                          const void* plain_x) const {
  LinearWgradCall call = start<LinearWgradCall>(of.rows);
  call.x_columnwise = of.x;
  call.dy_columnwise = dy;
  if (!quantizes(options_.config)) {
    call.x = plain_x;
    call.dy = plain_dy;
  }
  call.dw_type = options_.dw_type;
  call.accumulate = of.accumulate;
  give(call, wgrad_space_);
  return call;
}

LinearReport GroupedLinear::backward_dw(Stream stream) {
  const DeviceScope on = begin(stream);
  require(!deferred_.empty(), "pending", pending(), "a weight gradient that was deferred and has not run yet");
  Microbatch& of = microbatches_[static_cast<std::size_t>(deferred_.front())];
  LinearWgradCall call = wgrad_call(of, of.dy, of.dy_copy, of.x_copy);
  call.dw = of.dw;
  if (of.dw_is_list) call.dw_list = of.dw_list.data();
  const AlgorithmKey key{GemmLayout::NT, of.rows.capacity, of.accumulate, of.dw_is_list};
  give_path(call.path, GemmLayout::NT, stream);
  call.path.wgrad.algorithm = known_algorithm(key, options_.path.wgrad.algorithm);
  const LinearReport report = linear_wgrad(call, stream, kernels_);
  of.state = State::free;  // only now: work that failed is not lost
  deferred_.pop_front();
  return report;
}

void GroupedLinear::drop(int microbatch) { at(microbatch, State::forwarded).state = State::free; }

}  // namespace assay::device
