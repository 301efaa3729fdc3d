// The part of the catalogue in which outputs are left out. An output that is absent is not requested: each is requested alone, beside
// every option of its op, and beside lengths at which another kernel may take over.

#include "conformance/catalogue/catalogue_parts.h"
#include "conformance/catalogue/covering.h"
#include "reference/types/error.h"

namespace assay::conformance {
namespace {

constexpr const char* kQuantizedAlone[] = {"tensor_current", "tensor_delayed", "block_1x128", "block_128x128", "mxfp8", "nvfp4"};
const Axis kParts{"outputs=codes", "outputs=scale_inv", "outputs=scale", "outputs=amax", "outputs=dbias dbias=1"};
const Axis kDirections{"direction=both", "direction=rowwise", "direction=columnwise"};

void parts_of_quantize(SeededLines& lines) {
  const Axis shape{"R=32 K=48", "splits=16,0,34,2 K=48", "splits=16,34,0 K=48", "splits=16,34 K=48", "splits=3x0 K=48"};
  const std::vector<Axis> common{kDirections,    {"x_type=f32", "x_type=bf16", "x_type=f16"},  {"", "dbias=1"},
                                 {"", "noop=0"}, {"", "zero_sign=positive", "zero_sign=free"}, {"extra_rows=2", ""}};
  const Axis layout{"scale_layout=swizzled", ""}, square{"", "two_dimensional=1"}, codes{"", "otype=e5m2"};
  for (const std::string recipe : kQuantizedAlone) {
    std::vector<Axis> axes{shape};
    if (recipe == "nvfp4") {  // what excludes most comes first
      axes.insert(axes.end(), {{"hadamard=1", "hadamard=1 sign_mask=45576", ""},
                               {"four_over_six=mae e4m3_max=256", "four_over_six=mse", ""},
                               square,
                               {"stochastic=1", ""},
                               {"amax=given", "amax=misfit", "amax=apart", ""},
                               layout});
    }
    axes.insert(axes.end(), common.begin(), common.end());
    if (recipe == "mxfp8") axes.insert(axes.end(), {codes, layout, square});
    if (recipe != "mxfp8" && recipe != "nvfp4") axes.insert(axes.end(), {codes, {"", "pow2=1"}, {"eps=0.01", ""}});
    for (const std::string& part : kParts) {
      const std::string prefix = "quantize recipe=" + recipe + " " + part;
      if (!is_case_line(prefix + " R=16 K=16")) continue;
      lines.add_each(prefix, axes);
      lines.add(prefix + " splits=16,32 K=48 noop=1");
    }
  }
}

void parts_of_layers(SeededLines& lines) {
  const std::vector<Axis> common{
      {"recipe=fp8_block splits=16,0,32 N=32 K=16", "recipe=tensor_current splits=16,32,0 N=16 K=32",
       "recipe=tensor_delayed splits=16,16 N=32 K=16", "recipe=mxfp8 splits=3x0 N=32 K=16",
       "recipe=nvfp4 splits=32,0,16 N=16 K=32", "recipe=none splits=16,0,16 N=32 K=16", "recipe=nvfp4 splits=16,32 N=16 K=32"},
      {"", "extra_rows=16"},
      {"x_type=f16", "x_type=bf16"},
      {"", "otype=e5m2"},
      {"", "pow2=0", "pow2=1"},
      {"", "eps=0.5"},
      {"", "sign_mask=45576"}};
  const auto add = [&](const std::string& prefix, const std::vector<Axis>& more) {
    std::vector<Axis> axes = common;
    axes.insert(axes.end(), more.begin(), more.end());
    lines.add_each(prefix, axes);
  };
  const Axis gradients{"", "grad_otype=e5m2"}, results{"d_type=f32", "d_type=bf16", "d_type=f16"};
  for (const char* part : {"y", "w_rowwise_data", "w_rowwise_scale_inv", "w_rowwise_amax"}) {
    add(std::string("linear_forward noop=0 outputs=") + part, {{"", "bias=1"}});
    const std::string nvfp4 = std::string("linear_forward recipe=nvfp4 outputs=") + part;
    for (const char* rest : {" noop=1 splits=16,0,32", " noop=0.5 splits=16,32,0", " noop=0 splits=3x0"})
      lines.add(nvfp4 + rest + " N=32 K=16");
  }
  for (const char* part : {"dx", "dbias"}) add(std::string("linear_dgrad bias=1 outputs=") + part, {gradients});
  for (const char* part : {"dw", "dbias"})
    add(std::string("linear_wgrad bias=1 outputs=") + part, {gradients, results, {"", "accumulate=1"}, {"", "deferred=1"}});
}

void parts_of_small_ops(SeededLines& lines) {
  for (const char* part : {"amax_history", "scale"}) {
    lines.add_each(
        std::string("delayed_update tensors=33 length=3 outputs=") + part,
        {{"", "algorithm=most_recent"}, {"", "bulk=0"}, {"", "otype=e5m2"}, {"", "margin=3", "margin=-2"}, {"", "reduced=1"}});
  }
  lines.add("delayed_update tensors=1040 length=3 outputs=scale");
  lines.add("delayed_update tensors=3 length=1040 outputs=amax_history");
}

// Each beside large lengths, with another direction from line to line; and in graphs whose data change.
void long_parts(SeededLines& lines) {
  std::size_t turn = 0;
  for (const char* recipe : kQuantizedAlone) {
    for (const std::string& part : kParts) {
      const std::string prefix = std::string("quantize recipe=") + recipe + " " + part;
      if (!is_case_line(prefix + " R=16 K=16")) continue;
      for (const char* shape : {" splits=1040,0,16 K=16 ", " splits=16 K=1040 ", " splits=66x16 K=16 "}) {
        lines.add(prefix + shape + kDirections[turn++ % kDirections.size()]);
      }
      if (turn % 2 == 0) lines.add(prefix + " splits=16,0,32 K=48 replay=3:data,splits");
    }
  }
  for (const char* step :
       {"linear_dgrad bias=1 outputs=dx", "linear_dgrad bias=1 outputs=dbias", "linear_wgrad bias=1 outputs=dw",
        "linear_wgrad bias=1 outputs=dbias", "linear_forward noop=0 outputs=y", "linear_forward noop=0 outputs=w_rowwise_data"}) {
    constexpr const char* kLayers[] = {" recipe=tensor_delayed", " recipe=fp8_block", " recipe=nvfp4"};
    lines.add(std::string(step) + kLayers[turn % 3] + " splits=66x16 N=16 K=16");
    lines.add(std::string(step) + kLayers[(turn + 1) % 3] + " splits=16,0,32 N=32 K=48 replay=3:data,splits");
    if (std::string(step).ends_with("dbias")) lines.add(std::string(step) + " recipe=none splits=1040,0,16 N=144 K=16");
    ++turn;
  }
}

// Offsets have no seed.
void offsets_apart(std::vector<CaseLine>& lines) {
  for (const char* outputs :
       {"1:i64:absent,3:i32,5:i64", "1:i64,3:i32:absent,5:i64:inclusive", "7:i32:inclusive,2:i64,4:i32:inclusive:absent",
        "1:i32:absent,1:i64:absent,1:i32:inclusive", "9:i64,1:i64:inclusive:absent"}) {
    for (const char* rest : {" x_type=i32 splits=5,0,7,1,0", " x_type=i64 splits=5,0,7,1,0", " splits=1030x1,0,2"}) {
      lines.push_back(parse_case_line(std::string("splits_to_offsets_multi outputs=") + outputs + rest));
    }
  }
}

}  // namespace

std::vector<CaseLine> output_lines() {
  SeededLines lines(90000);
  parts_of_quantize(lines);
  parts_of_layers(lines);
  parts_of_small_ops(lines);
  long_parts(lines);
  std::vector<CaseLine> made = lines.take();
  offsets_apart(made);
  return made;
}

}  // namespace assay::conformance
