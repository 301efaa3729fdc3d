#include "conformance/backends/device/gemm_request.h"

#include <cstring>
#include <limits>
#include <optional>

#include "conformance/ops/named_plan.h"
#include "conformance/ops/words.h"
#include "device/gemm/plan_key.h"
#include "reference/layout/scale_shape.h"

namespace assay::conformance {
namespace {

template <class Value>
Value named(const Request& request, const std::string& attribute, std::optional<Value> (*parse)(std::string_view),
            const char* expected) {
  const std::string name = request.text(attribute);
  const auto value = parse(name);
  if (!value) throw InvalidArgument("attribute " + attribute, "'" + name + "'", expected);
  return *value;
}

std::int64_t elements_of(const TensorView& tensor) { return tensor.elements() * (tensor.type == Format::e2m1 ? 2 : 1); }

bool is_quantized(GemmKind kind) { return kind != GemmKind::bf16 && kind != GemmKind::f16; }

// How w is scaled; only the rows of w are known here.
Recipe weight_recipe(GemmKind kind, WeightBlock block) {
  switch (kind) {
    case GemmKind::mxfp8: return Recipe::mxfp8;
    case GemmKind::nvfp4: return Recipe::nvfp4;
    case GemmKind::fp8_block: return block == WeightBlock::b128x128 ? Recipe::block_128x128 : Recipe::block_1x128;
    default: return Recipe::tensor_current;
  }
}

// Before anything is launched, the constants in the workspace among it.
void require_type_of_kind(GemmKind kind, const TensorView& codes, const std::string& name) {
  const Format type = codes.type;
  const bool fits = kind == GemmKind::bf16    ? type == Format::bf16
                    : kind == GemmKind::f16   ? type == Format::f16
                    : kind == GemmKind::nvfp4 ? type == Format::e2m1
                                              : type == Format::e4m3 || type == Format::e5m2;
  if (!fits) throw InvalidArgument(name, describe(codes), "a type of kind " + std::string(assay::name_of(kind)));
}

// spec grouped-gemm-1.2, of the kind for which the architecture decides: the library, which does not know it, takes either.
void require_storage(const device::GroupedGemmCall& call, const std::string& architecture, bool columnwise, bool along_rows,
                     const std::string& name) {
  if (call.kind != GemmKind::fp8_per_tensor || (architecture != "sm89" && architecture != "sm90")) return;
  if (columnwise == along_rows) return;
  throw InvalidArgument("in/" + name + (columnwise ? "_columnwise_data" : "_rowwise_data"), "given",
                        std::string(along_rows ? "columnwise" : "rowwise") + " storage, which FP8 reads in layout " +
                            std::string(assay::name_of(call.layout)) + " on " + architecture);
}

// The tensor with the codes of an operand, in whichever storage it is given.
const TensorView& codes_of(const Request& request, const std::string& name, GemmKind kind, bool& columnwise) {
  columnwise = false;
  if (!is_quantized(kind)) return request.input(name);
  const TensorView* rowwise = request.find_input(name + "_rowwise_data");
  const TensorView* other = request.find_input(name + "_columnwise_data");
  if (rowwise != nullptr && other != nullptr)
    throw InvalidArgument("in/" + name + "_columnwise_data", "given", "one storage of " + name + ", not two");
  if (rowwise == nullptr && other == nullptr)
    throw InvalidArgument("in/" + name, "absent", name + "_rowwise_data or " + name + "_columnwise_data");
  columnwise = other != nullptr;
  return columnwise ? *other : *rowwise;
}

// Rows of a ragged operand, or -1 where its tensor does not show them.
std::int64_t rows_of(const Request& request, const std::string& name, GemmKind kind, std::int64_t width) {
  bool columnwise = false;
  const TensorView& codes = codes_of(request, name, kind, columnwise);
  if (width > 0) {
    const std::int64_t rows = elements_of(codes) / width;
    require(rows * width == elements_of(codes), "in/" + name, describe(codes), "rows of " + std::to_string(width) + " elements");
    return rows;
  }
  return codes.shape.size() == 2 && !columnwise ? codes.shape[0] : -1;
}

}  // namespace

Scalar::Scalar(const Request& request, const std::string& name, float absent, int groups) : absent_(absent), groups_(groups) {
  if (const TensorView* many = request.find_input(name, Format::f32, groups)) {
    data_ = many->data == nullptr ? unknown_address<float>() : static_cast<const float*>(many->data);
  } else {
    value_ = static_cast<float>(request.real_or(name, absent));
  }
}

void Scalar::reserve(Parts& parts, bool repeated) {
  if (data_ != nullptr || (is_default() && !repeated)) return;
  count_ = repeated ? std::max(groups_, 1) : 1;
  offset_ = parts.add(std::int64_t{count_} * 4);
}

const float* Scalar::bind(void* workspace, device::Stream stream) const {
  if (data_ != nullptr || count_ == 0) return data_;
  // Byte by byte over all values: a memset has its value with it, so that a captured one needs no host memory.
  auto* values = part<std::uint8_t>(workspace, offset_);
  std::uint8_t bytes[4];
  std::memcpy(bytes, &value_, sizeof bytes);
  for (int i = 0; i < 4; ++i) {
    device::check_cuda(cudaMemset2DAsync(values + i, 4, bytes[i], 1, static_cast<std::size_t>(count_), stream),
                       "set alpha or beta");
  }
  return reinterpret_cast<const float*>(values);
}

GemmRequest::GemmRequest(const Request& request)
    : splits_(request), alpha_(request, "alpha", 1, splits_.groups()), beta_(request, "beta", 0, splits_.groups()) {
  const auto kind = named<GemmKind>(request, "kind", gemm_kind_named, "bf16, f16, tensor, block, mxfp8 or nvfp4");
  const auto layout = named<GemmLayout>(request, "layout", gemm_layout_named, "TN, NN or NT");
  call_.kind = kind;
  call_.layout = layout;
  call_.N = request.integer("N");
  call_.K = request.integer("K");
  require(call_.N >= 0, "attribute N", call_.N, "0 or more");
  require(call_.K >= 0, "attribute K", call_.K, "0 or more");
  const std::string block = request.text_or("weight_block", "128x128");
  if (block != "1x128" && block != "128x128")
    throw InvalidArgument("attribute weight_block", "'" + block + "'", "1x128 or 128x128");
  call_.weight_block = block == "1x128" ? WeightBlock::b1x128 : WeightBlock::b128x128;
  call_.scale_layout = scale_layout_of(request);
  call_.split_accumulator = request.flag("split_accumulator");
  call_.d_type = request.format_or("dtype_d", Format::f32);
  const bool sm100_only = kind == GemmKind::mxfp8 || kind == GemmKind::nvfp4;
  architecture_ = request.text_or("arch", sm100_only ? "sm100" : "sm90");
  const std::string scaling = request.text_or("scaling", "per_group");
  if (scaling != "per_group" && scaling != "per_row_column")
    throw InvalidArgument("attribute scaling", "'" + scaling + "'", "per_group or per_row_column");
  call_.row_and_column_scales = scaling == "per_row_column";
  plan_ = named_plan(request);

  const std::int64_t groups = splits_.groups(), d_columns = layout == GemmLayout::TN ? call_.N : call_.K;
  const std::int64_t rows_x = layout == GemmLayout::NN ? -1 : rows_of(request, "x", kind, call_.K);
  const std::int64_t rows_dy = layout == GemmLayout::TN ? -1 : rows_of(request, "dy", kind, call_.N);
  if (rows_x >= 0 && rows_dy >= 0) require(rows_x == rows_dy, "rows of x", rows_x, "the rows of dy, " + std::to_string(rows_dy));
  const std::int64_t stated = splits_.stated_rows(), shown = std::max(rows_x, rows_dy);
  if (stated >= 0 && shown >= 0) require(shown == stated, "rows of x or dy", shown, std::to_string(stated));
  const std::int64_t rows = std::max({shown, stated, std::int64_t{0}});
  call_.rows = splits_.rows(rows);
  call_.places = splits_.places();
  if (layout != GemmLayout::NN) call_.x = operand(request, "x", call_.K, rows, false);
  if (layout != GemmLayout::TN) call_.dy = operand(request, "dy", call_.N, rows, false);
  if (layout != GemmLayout::NT) call_.w = operand(request, "w", call_.K, groups * call_.N, true);

  std::int64_t d_elements = 0;
  const std::int64_t d_rows = layout == GemmLayout::NT ? groups * call_.N : rows;
  require(!__builtin_mul_overflow(d_rows, d_columns, &d_elements), "rows of d", d_rows, "a size that fits in 64 bits");
  if (const TensorView* c = request.find_input("c", call_.d_type, d_elements)) {
    if (c->shape.size() == 2 && (c->shape[0] != d_rows || c->shape[1] != d_columns)) {
      throw InvalidArgument("in/c", describe(*c),
                            "the shape of d, [" + std::to_string(d_rows) + "," + std::to_string(d_columns) + "]");
    }
    call_.c = c->data;
  } else if (beta_.per_group() && d_elements > 0) {
    throw NotSupported("in/c is not given: whether the beta of each group is 0 is not known before the device reads it");
  } else if (!beta_.is_default() && d_elements > 0) {
    request.input("c");  // beta is not 0, so C must be there
  }
  if (const TensorView* bias = request.find_input("bias", call_.d_type, groups * call_.N)) {
    require(layout == GemmLayout::TN, "in/bias", "given", "none: only layout TN has a bias");
    call_.bias = bias->data;
    if (bias->data == nullptr && d_elements > 0) throw InvalidArgument("in/bias", "null", "device memory");
  }
  if (const TensorView* scale = request.find_input("d_scale", Format::f32, groups)) {
    call_.d_scale = static_cast<const float*>(splits_.address(*scale, unknown_address<void>()));
  }
  require(request.flag("bias") == (request.in.count("bias") != 0), "attribute bias", request.flag("bias") ? 1 : 0,
          "1 exactly when in/bias is given");
  request.refuse_unknown();
  refuse_other_outputs(request, {"d"});
  take_d(request, d_elements);
  call_.scalars_per_group = alpha_.per_group() || beta_.per_group();
  alpha_.reserve(parts_, call_.scalars_per_group);
  beta_.reserve(parts_, call_.scalars_per_group);
  if (!alpha_.is_default() || call_.scalars_per_group) call_.alpha = unknown_address<float>();
  if (!beta_.is_default() || call_.scalars_per_group) call_.beta = unknown_address<float>();
}

void GemmRequest::take_d(const Request& request, std::int64_t elements) {
  elements_ = elements;
  call_.d = request.output("d", call_.d_type, elements);
  wanted_ = call_.d != nullptr && elements > 0;
  if (call_.d == nullptr && elements > 0) {
    require(elements <= std::numeric_limits<std::int64_t>::max() / 8, "elements of d", elements, "a size that fits in 64 bits");
    call_.d = const_cast<void*>(unknown_address<void>());
    d_at_ = parts_.add(elements * (bits_of(call_.d_type) / 8));
  }
  const bool quantized = call_.d_type == Format::e4m3 || call_.d_type == Format::e5m2;
  if (quantized && elements > 0 && beta_.number().value_or(0) != 0)
    throw InvalidArgument("attribute beta", std::to_string(*beta_.number()), "0 with a D in FP8");
}

device::GemmOperand GemmRequest::operand(const Request& request, const std::string& name, std::int64_t width, std::int64_t rows,
                                         bool weight) {
  device::GemmOperand made;
  const TensorView& codes = codes_of(request, name, call_.kind, made.columnwise);
  const std::int64_t per_byte = codes.type == Format::e2m1 ? 2 : 1;
  // A matrix in the wrong orientation has the right number of elements.
  if (!made.columnwise && codes.shape.size() == 2 && codes.shape[1] * per_byte != width) {
    throw InvalidArgument("in/" + name, describe(codes), "rows of " + std::to_string(width) + " elements");
  }
  require(elements_of(codes) == rows * width, "in/" + name, describe(codes),
          std::to_string(rows) + " rows of " + std::to_string(width) + " elements");
  const bool fp4_weight = weight && call_.kind == GemmKind::mxfp8 && call_.layout == GemmLayout::TN && codes.type == Format::e2m1;
  if (!fp4_weight) require_type_of_kind(call_.kind, codes, "in/" + name);
  const bool along_rows = call_.layout == GemmLayout::NT || (weight && call_.layout == GemmLayout::NN);
  require_storage(call_, architecture_, made.columnwise, along_rows, name);
  made.type = codes.type;
  made.data = codes.data;
  if (weight) w_bytes_ = bytes_of(codes.type, elements_of(codes));
  if (!is_quantized(call_.kind)) return made;

  const std::string prefix = name + (made.columnwise ? "_columnwise_" : "_rowwise_");
  const Recipe recipe = weight_recipe(call_.kind, weight ? call_.weight_block : WeightBlock::b1x128);
  std::int64_t scales = -1;           // of ragged groups: the device alone knows
  if (call_.row_and_column_scales) {  // one for each line of the operand as the contraction sees it
    scales = along_rows ? splits_.groups() * width : width > 0 ? rows : -1;  // rows without elements may be others
  } else if (call_.kind == GemmKind::fp8_per_tensor) {
    scales = splits_.groups();
  } else if (weight) {
    const std::vector<std::int64_t> group_rows(static_cast<std::size_t>(splits_.groups()), call_.N);
    scales = scale_offsets(recipe, made.columnwise ? Direction::columnwise : Direction::rowwise, group_rows, width).back();
  } else if (call_.layout != GemmLayout::NT) {
    const std::vector<std::int64_t> matrices = splits_.scale_rows(rows);
    if (!matrices.empty()) scales = scale_offsets(recipe, Direction::rowwise, matrices, width).back();
  }
  const TensorView& scale_inv = request.input(prefix + "scale_inv", scale_format(recipe), scales);
  if (weight) w_scale_bytes_ = bytes_of(scale_inv.type, scale_inv.elements());
  made.scale_inv = splits_.address(scale_inv, unknown_address<void>());
  if (const TensorView* amax = request.find_input(prefix + "amax", Format::f32, splits_.groups())) {
    made.amax = static_cast<const float*>(splits_.address(*amax, unknown_address<void>()));
  }
  return made;
}

namespace {

// The parts of a buffer that has one for each group; none, if they do not begin at multiples of `alignment` bytes.
template <class Byte>
std::vector<Byte*> group_parts(Byte* whole, std::int64_t bytes, std::int64_t groups, std::int64_t alignment) {
  std::vector<Byte*> parts;
  if (reinterpret_cast<std::uintptr_t>(whole) % static_cast<std::uintptr_t>(alignment) != 0 || bytes % (alignment * groups) != 0)
    return parts;
  for (std::int64_t group = 0; group < groups; ++group) parts.push_back(whole + group * (bytes / groups));
  return parts;
}

}  // namespace

void GemmRequest::pass_lists() {
  const std::int64_t groups = call_.rows.groups, d_unit = bits_of(call_.d_type) / 8;
  Lists lists;
  if (call_.layout == GemmLayout::NT) {
    if (!wanted_ || call_.c != nullptr) return;
    lists.d = group_parts(static_cast<char*>(call_.d), elements_ * d_unit, groups, d_unit);
  } else if (w_bytes_ > 0) {
    lists.w = group_parts(static_cast<const char*>(call_.w.data), w_bytes_, groups, 16);
    if (w_scale_bytes_ > 0)
      lists.w_scale_inv = group_parts(static_cast<const char*>(call_.w.scale_inv), w_scale_bytes_, groups, 16);
    if (w_scale_bytes_ > 0 && lists.w_scale_inv.empty()) return;
  }
  if (lists.d.empty() && lists.w.empty()) return;
  lists_ = std::make_shared<const Lists>(std::move(lists));
  const auto as_list = [](const auto& parts) {
    return parts.empty() ? nullptr : reinterpret_cast<const void* const*>(parts.data());
  };
  if (!lists_->d.empty()) {
    call_.d = nullptr, call_.d_list = reinterpret_cast<void* const*>(lists_->d.data());
  } else {
    call_.w.data = call_.w.scale_inv = nullptr;
    call_.w.data_list = as_list(lists_->w), call_.w.scale_inv_list = as_list(lists_->w_scale_inv);
  }
}

device::GroupedGemmCall GemmRequest::bind(void* workspace, std::uint32_t* status, device::Stream stream) const {
  device::GroupedGemmCall ready = call_;
  splits_.bind(ready, status);
  for (device::GemmOperand* operand : {&ready.x, &ready.w, &ready.dy}) {  // scales of no rows: nothing is read
    if (operand->scale_inv == unknown_address<void>()) operand->scale_inv = status;
    if (operand->amax == unknown_address<void>()) operand->amax = reinterpret_cast<const float*>(status);
  }
  if (ready.d_scale == unknown_address<float>()) ready.d_scale = reinterpret_cast<const float*>(status);
  if (d_at_ >= 0) ready.d = part<void>(workspace, d_at_);
  ready.alpha = alpha_.bind(workspace, stream);
  ready.beta = beta_.bind(workspace, stream);
  ready.status = status;
  return ready;
}

PlanKey GemmRequest::key() const { return device::plan_key_of(call_, architecture_); }

}  // namespace assay::conformance
