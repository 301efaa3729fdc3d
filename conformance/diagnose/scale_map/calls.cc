#include "conformance/diagnose/scale_map/calls.h"

#include <fmt/format.h>

#include <cstring>

#include "conformance/backends/call_layout.h"
#include "conformance/judge/call_runner.h"
#include "reference/support/parallel.h"

namespace assay::conformance {
namespace {

std::uint8_t one_of(Format type) { return type == Format::e5m2 ? 0x3C : 0x38; }

[[noreturn]] void trouble(assay_status status, const std::string& text) {
  const bool machine = status == ASSAY_OUT_OF_MEMORY;
  throw CallTrouble{status == ASSAY_TIMEOUT ? Verdict::unfinished : machine ? Verdict::machine_failed : Verdict::failed, text};
}

}  // namespace

ScaleCalls::ScaleCalls(Backend& backend, const MappedProduct& product, const ScaleMapOptions& options)
    : backend_(backend), product_(product), options_(options), stream_(backend) {
  for (const auto& [name, value] : product.attributes) parameters_.push_back(parameter_of(name, value));
  add_input("splits", Format::i64, {static_cast<std::int64_t>(product.splits.size())}).write(product.splits.data());
  moving_ = &add_input(product.rows_data, product.rows_type, product.rows_shape);
  moved_.assign(static_cast<std::size_t>(moving_->bytes()), std::byte{0});
  add_input(product.columns_data, product.columns_type, product.columns_shape).fill(one_of(product.columns_type));
  for (const ScaleArray* array : {&product.rows, &product.columns}) {
    Scales& scales = array->of_columns ? columns_ : rows_;
    const std::int64_t elements = array->elements();
    scales.host.resize(static_cast<std::size_t>(kBefore + elements + kBehind));
    scales.buffer = &buffers_.emplace_back(backend_, stream_.handle, "in/" + array->tensor,
                                           static_cast<std::int64_t>(scales.host.size()) * 4);
    inputs_.push_back(tensor_of(array->tensor, Format::f32, {elements}));
    if (elements > 0) inputs_.back().data = static_cast<float*>(scales.buffer->data()) + kBefore;
  }
  output_ = tensor_of(d_name_, Format::f32, {product.d_rows, product.d_columns});
  d_ = &buffers_.emplace_back(backend_, stream_.handle, "d", output_.bytes);
  output_.data = d_->data();
  call_ = call_of_this_build();
  call_.op = op_.c_str();
  call_.parameters = parameters_.data();
  call_.parameter_count = static_cast<std::int32_t>(parameters_.size());
  call_.inputs = inputs_.data();
  call_.input_count = static_cast<std::int32_t>(inputs_.size());
  call_.outputs = &output_;
  call_.output_count = 1;
  call_.algorithm = options.algorithm;
  const std::int64_t workspace = workspace_bytes_of(backend_, call_, workspace_fault_);
  if (workspace > 0) {
    workspace_ = &buffers_.emplace_back(backend_, stream_.handle, "workspace", workspace);
    call_.workspace = workspace_->data();
    call_.workspace_bytes = workspace;
  }
  wait("wait for the inputs");
}

void ScaleCalls::open() {
  look_at(false);
  const assay_status supported = backend_.table().supports(backend_.context(), &call_);
  const std::string why = supported == ASSAY_OK ? "" : backend_.last_error();
  if (supported == ASSAY_NOT_SUPPORTED) {
    const assay_status called = backend_.table().execute(backend_.context(), stream_.handle, &call_);
    wait("wait for a call that was declared absent");
    if (called == ASSAY_NOT_SUPPORTED)
      throw CallTrouble{Verdict::not_run, why.empty() ? "the backend declares this absent and gives no reason" : why};
    throw CallTrouble{Verdict::unproven_skip,
                      fmt::format("declared absent, but the call returned '{}' (reason given: {})", name_of(called), why)};
  }
  if (supported != ASSAY_OK) trouble(supported, fmt::format("supports() returned '{}': {}", name_of(supported), why));
  if (!workspace_fault_.empty()) throw CallTrouble{Verdict::failed, workspace_fault_};
}

void ScaleCalls::look_at(bool of_columns) {
  for (const bool columns : {false, true}) {
    Scales& scales = columns ? columns_ : rows_;
    for (std::size_t i = 0; i < scales.host.size(); ++i) {
      scales.host[i] = columns == of_columns ? value_of(static_cast<std::int64_t>(i) - kBefore) : 1.0f;
    }
    scales.buffer->write(scales.host.data());
  }
  wait("wait for the scales");
}

const std::vector<std::byte>& ScaleCalls::ask(std::int64_t block) {
  put(block, static_cast<std::byte>(one_of(product_.rows_type)));
  moving_->write(moved_.data());
  d_->fill(0xff);
  if (workspace_ != nullptr) workspace_->fill(0xff);
  wait("wait for the inputs");
  put(block, std::byte{0});
  const assay_status called = backend_.table().execute(backend_.context(), stream_.handle, &call_);
  const std::string why = called == ASSAY_OK ? "" : backend_.last_error();
  const assay_status waited = backend_.table().synchronize(backend_.context(), stream_.handle, options_.timeout_ms);
  if (waited == ASSAY_TIMEOUT) backend_.give_up();
  const assay_status status = waited != ASSAY_OK ? waited : called;
  if (status == ASSAY_TIMEOUT) trouble(status, fmt::format("returned 'timeout': not finished after {} ms", options_.timeout_ms));
  if (status != ASSAY_OK) {
    trouble(status, fmt::format("returned '{}': {}", name_of(status), waited != ASSAY_OK ? backend_.last_error() : why));
  }
  for (const GuardedBuffer& buffer : buffers_) {
    if (const std::string damage = buffer.damage(); !damage.empty()) throw CallTrouble{Verdict::failed, "memory: " + damage};
  }
  d_->read(read_);
  return read_;
}

void ScaleCalls::require_scales_kept() {
  for (const Scales* scales : {&rows_, &columns_}) {
    const auto change = scales->buffer->change_from(reinterpret_cast<const std::byte*>(scales->host.data()));
    if (!change) continue;
    throw CallTrouble{Verdict::failed, fmt::format("memory: {}: changed by the call, at scale {}", scales->buffer->label(),
                                                   change->at / 4 - kBefore)};
  }
}

GuardedBuffer& ScaleCalls::add_input(const std::string& name, Format type, const std::vector<std::int64_t>& shape) {
  inputs_.push_back(tensor_of(names_.emplace_back(name), type, shape));
  GuardedBuffer& buffer = buffers_.emplace_back(backend_, stream_.handle, "in/" + name, inputs_.back().bytes);
  inputs_.back().data = buffer.data();
  return buffer;
}

void ScaleCalls::wait(const char* what) {
  backend_.check(backend_.table().synchronize(backend_.context(), stream_.handle, options_.timeout_ms), what);
}

void ScaleCalls::put(std::int64_t block, std::byte code) {
  for (const MappedGroup& group : product_.groups) {
    if (group.tile_rows == 0 || block >= group.blocks()) continue;
    const auto count = static_cast<std::size_t>(products_in(group, block));
    parallel_for(group.m, 512, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::memset(moved_.data() + group.data_offset + i * group.depth + block * kBlock, static_cast<int>(code), count);
      }
    });
  }
}

}  // namespace assay::conformance
