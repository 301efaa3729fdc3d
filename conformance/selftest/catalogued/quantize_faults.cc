// Catalogued faults of quantization: of groups, directions and storage, and of the sums of a bias gradient.

#include <algorithm>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/fault_parts.h"
#include "reference/formats/bf16.h"

namespace assay::conformance {
namespace {

bool is_quantize(const Request& request) { return request.op() == "quantize"; }
bool is_plain(const Request& request) { return request.attributes.count("activation") == 0; }
bool has_splits(const Request& request) {
  const auto found = request.in.find("splits");
  return found != request.in.end() && found->second.type == Format::i64 && found->second.bytes > 0;
}

// Carries the request out and spoils an output.
using SpoilBytes = std::function<void(Request&, const std::vector<std::byte>& before)>;
Perform spoil(std::string name, SpoilBytes change) {
  return [=](Request& request) {
    const std::vector<std::byte> before = bytes_of(request.out.at(name));
    answer(request, Layer::fast);
    change(request, before);
  };
}
void restore(const OutputView& view, const std::vector<std::byte>& before) {
  std::memcpy(view.data, before.data(), before.size());
}

Perform without_attributes(std::vector<std::string> names) {
  return [=](Request& request) {
    ChangedCall changed(request);
    for (const std::string& name : names) changed.request.attributes.erase(name);
    changed.carry_out(request);
  };
}

// The last group that has rows takes the last row of the one before it that has.
void begin_early(Request& request) {
  ChangedCall changed(request);
  std::vector<std::byte>& splits = changed.input("splits");
  std::vector<std::int64_t> filled;
  for (std::int64_t g = 0; g < static_cast<std::int64_t>(splits.size()) / 8; ++g) {
    if (at<std::int64_t>(splits.data(), g) > 0) filled.push_back(g);
  }
  if (filled.size() >= 2) {
    const std::int64_t last = filled.back(), other = filled[filled.size() - 2];
    put(splits.data(), last, at<std::int64_t>(splits.data(), last) + 1);
    put(splits.data(), other, at<std::int64_t>(splits.data(), other) - 1);
  }
  changed.carry_out(request);
}

// columnwise_data of a ragged matrix, transposed as one.
void transpose_as_one(Request& request, const std::vector<std::byte>& before) {
  const OutputView& view = request.out.at("columnwise_data");
  const std::vector<std::byte> right = bytes_of(view);
  restore(view, before);
  const std::int64_t rows = request.in.at("x").shape[0], columns = rows == 0 ? 0 : view.elements() / rows;
  if (view.type == Format::e2m1 || static_cast<std::int64_t>(right.size()) != rows * columns) return;
  std::int64_t first = 0;
  for (const std::int64_t split : request.splits()) {
    for (std::int64_t k = 0; k < columns; ++k)
      std::memcpy(static_cast<std::byte*>(view.data) + k * rows + first, right.data() + first * columns + k * split,
                  static_cast<std::size_t>(split));
    first += split;
  }
}

Perform copy_between(std::string from, std::string to) {
  return [=](Request& request) {
    answer(request, Layer::fast);
    const OutputView &source = request.out.at(from), &target = request.out.at(to);
    std::memcpy(target.data, source.data, static_cast<std::size_t>(std::min(source.bytes, target.bytes)));
  };
}

void as_other_block(Request& request) {
  answer(request, Layer::fast);
  NewCall other("quantize");
  other.request.attributes = request.attributes;
  other.request.attributes["recipe"] = std::string(request.text("recipe") == "block_1x128" ? "block_128x128" : "block_1x128");
  other.request.in = request.in;
  const auto& made = other.carry_out();
  const OutputView& view = request.out.at("rowwise_data");
  if (made.at("rowwise_data").size() == static_cast<std::size_t>(view.bytes))
    std::memcpy(view.data, made.at("rowwise_data").data(), made.at("rowwise_data").size());
}

Perform replace_bytes(std::string name, std::uint8_t from, std::uint8_t to) {
  return [=](Request& request) {
    answer(request, Layer::fast);
    const OutputView& view = request.out.at(name);
    auto* bytes = static_cast<std::uint8_t*>(view.data);
    std::replace(bytes, bytes + view.bytes, from, to);
  };
}

// NaN of x become 0.
void lose_nan(Request& request) {
  ChangedCall changed(request);
  const Format type = request.in.at("x").type;
  std::vector<std::byte>& x = changed.input("x");
  const auto count = static_cast<std::int64_t>(x.size() / element_bytes(type));
  for (std::int64_t i = 0; i < count; ++i) {
    if (type == Format::f32 && at<float>(x.data(), i) != at<float>(x.data(), i)) put(x.data(), i, 0.0f);
    if (type != Format::f32) {
      const unsigned code = at<std::uint16_t>(x.data(), i) & 0x7fffu;
      if (code > (type == Format::bf16 ? 0x7f80u : 0x7c00u)) put(x.data(), i, std::uint16_t{0});
    }
  }
  changed.carry_out(request);
}

// The scales that come out where the last row of each group holds the larger of its values and those of the row behind it.
void take_in_next_row(Request& request) {
  ChangedCall changed(request);
  const TensorView& view = request.in.at("x");
  std::vector<std::byte>& x = changed.input("x");
  std::vector<std::byte>& scales = changed.output("columnwise_scale_inv");
  const std::int64_t columns = view.shape[1];
  std::int64_t end = 0;
  for (const std::int64_t split : request.splits()) {
    end += split;
    if (split == 0 || end == view.shape[0] || view.type == Format::f32) continue;
    for (std::int64_t k = 0; k < columns; ++k) {
      const auto next = at<std::uint16_t>(view.data, end * columns + k);
      if ((next & 0x7fff) > (at<std::uint16_t>(x.data(), (end - 1) * columns + k) & 0x7fff))
        put(x.data(), (end - 1) * columns + k, next);
    }
  }
  changed.request.out = {{"columnwise_scale_inv", changed.request.out.at("columnwise_scale_inv")}};
  answer(changed.request, Layer::fast);
  answer(request, Layer::fast);
  if (!scales.empty()) std::memcpy(request.out.at("columnwise_scale_inv").data, scales.data(), scales.size());
}

void add_storage_faults(std::vector<CallFault>& to) {
  const When columns = both(is_quantize, has_output("columnwise_data"));
  add_fault(to, "group_begins_early", "the last group begins one row early, so that its first block straddles two groups",
            has_splits, begin_early);
  add_fault(to, "amax_over_group_end", "the last block of a group takes in the first row of the next group",
            both(both(both(is_quantize, is_plain), has_output("columnwise_scale_inv")), has_splits), take_in_next_row);
  add_fault(to, "transposed_as_one", "the columnwise storage of a ragged matrix is transposed as one matrix",
            both(columns, has_splits), spoil("columnwise_data", transpose_as_one));
  add_fault(to, "columnwise_scales_from_rowwise", "the columnwise scales are those of the rows",
            both(both(is_quantize, has_output("columnwise_scale_inv")), has_output("rowwise_scale_inv")),
            copy_between("rowwise_scale_inv", "columnwise_scale_inv"));
  add_fault(to, "columnwise_codes_from_rowwise", "the columnwise storage holds the bytes of the rowwise one",
            both(columns, has_output("rowwise_data")), copy_between("rowwise_data", "columnwise_data"));
  add_fault(to, "other_block_shape", "blocks of 1x128 and of 128x128 are taken for each other",
            both(either(is_op_of("quantize", "recipe", "block_1x128"), is_op_of("quantize", "recipe", "block_128x128")),
                 has_output("rowwise_data")),
            as_other_block);
  add_fault(to, "columnwise_offsets_of_own", "the columnwise storage of the groups has offsets of its own: 16 bytes too far",
            both(columns, has_splits), spoil("columnwise_data", [](Request& request, const auto&) {
              const OutputView& view = request.out.at("columnwise_data");
              if (view.bytes > 16)
                std::memmove(static_cast<std::byte*>(view.data) + 16, view.data, static_cast<std::size_t>(view.bytes - 16));
            }));
  add_fault(to, "scales_stay_compact", "scales stay in compact order where swizzled ones are asked for",
            is_op_of("quantize", "scale_layout", "swizzled"), without_attributes({"scale_layout"}));
  const When swizzled = both(is_op_of("quantize", "scale_layout", "swizzled"), has_output("rowwise_scale_inv"));
  add_fault(to, "scale_padding_unwritten", "the padding of swizzled scales is not written", swizzled,
            spoil("rowwise_scale_inv", [](Request& request, const auto& before) {
              const OutputView& view = request.out.at("rowwise_scale_inv");
              for (std::size_t i = 0; i < before.size(); ++i) {
                if (at<std::uint8_t>(view.data, static_cast<std::int64_t>(i)) == 0)
                  put(view.data, static_cast<std::int64_t>(i), before[i]);
              }
            }));
  add_fault(to, "scale_padding_not_zero", "the padding of swizzled scales holds ones", swizzled,
            replace_bytes("rowwise_scale_inv", 0, 0x7F));
  add_fault(
      to, "nvfp4_scales_zero", "the NVFP4 scales are all zero",
      both(is_op_of("quantize", "recipe", "nvfp4"), either(has_output("rowwise_scale_inv"), has_output("columnwise_scale_inv"))),
      [](Request& request) {
        answer(request, Layer::fast);
        for (const char* name : {"rowwise_scale_inv", "columnwise_scale_inv"}) {
          if (has_output(name)(request))
            std::memset(request.out.at(name).data, 0, static_cast<std::size_t>(request.out.at(name).bytes));
        }
      });
  add_fault(to, "nvfp4_scales_nan", "the largest NVFP4 block scale is NaN",
            both(is_op_of("quantize", "recipe", "nvfp4"), has_output("rowwise_scale_inv")),
            replace_bytes("rowwise_scale_inv", 0x7E, 0x7F));
  add_fault(to, "nvfp4_nan_at_zero_scale", "a block scale of NVFP4 that underflows to zero is NaN",
            both(is_op_of("quantize", "recipe", "nvfp4"), has_output("rowwise_scale_inv")),
            replace_bytes("rowwise_scale_inv", 0, 0x7F));
  add_fault(to, "nan_lost", "NaN of x are lost", both(is_quantize, has_input("x")), lose_nan);
  add_fault(
      to, "f16_as_bf16", "x in f16 is read as bf16",
      [](const Request& request) {
        return has_input("x")(request) && request.in.at("x").type == Format::f16 && request.op().rfind("quantize", 0) == 0;
      },
      [](Request& request) {
        ChangedCall changed(request);
        changed.request.in.at("x").type = Format::bf16;
        changed.carry_out(request);
      });
  add_fault(to, "amax_past_end", "the index of a group's amax or scale goes one past the end",
            both(is_quantize, either(has_output("amax"), has_output("rowwise_scale_inv"))), [](Request& request) {
              answer(request, Layer::fast);
              const OutputView& view = request.out.at(has_output("amax")(request) ? "amax" : "rowwise_scale_inv");
              static_cast<std::byte*>(view.data)[view.bytes] ^= std::byte{0x5A};
            });
}

// The bias gradient of dequantized values.
void sum_quantized(Request& request) {
  answer(request, Layer::fast);
  const std::string name = is_quantize(request) ? "x" : "dy";
  NewCall codes("quantize"), values("dequantize");
  codes.request.attributes["recipe"] = std::string("block_1x128");
  codes.request.in["x"] = request.in.at(name);
  const auto& made = codes.carry_out();
  const auto tensor = [&](const char* of) {
    const OutputView& view = codes.request.out.at(of);
    return TensorView{view.type, view.shape, made.at(of).data(), view.bytes};
  };
  values.request.attributes = {{"recipe", std::string("block_1x128")},
                               {"otype", std::string("e4m3")},
                               {"R", request.in.at(name).shape[0]},
                               {"K", request.in.at(name).shape[1]},
                               {"dtype_d", std::string(name_of(request.in.at(name).type))}};
  values.request.in = {{"rowwise_data", tensor("rowwise_data")}, {"rowwise_scale_inv", tensor("rowwise_scale_inv")}};
  const auto& rounded = values.carry_out();
  ChangedCall sums(request);
  sums.replace(name, rounded.at("x"));
  sums.request.out = {{"dbias", request.out.at("dbias")}};
  answer(sums.request, Layer::fast);
}

// The same sums for every group: those of all rows.
void sum_all_groups(Request& request) {
  answer(request, Layer::fast);
  const std::string name = request.in.count("dy") != 0 ? "dy" : "x";
  std::int64_t rows = 0;
  for (const std::int64_t split : request.splits()) rows += split;
  NewCall sums("grouped_dbias");
  sums.request.in["dy"] = request.in.at(name);
  sums.request.in["splits"] = {Format::i64, {1}, &rows, 8};
  const auto& made = sums.carry_out();
  const OutputView& view = request.out.at("dbias");
  const std::int64_t columns = view.shape.back();
  for (std::int64_t e = 0; e < view.elements(); ++e) {
    const float sum = at<float>(made.at("dbias").data(), e % columns);
    if (view.type == Format::f32) put(view.data, e, sum);
    if (view.type == Format::bf16) put(view.data, e, scalar::encode_bf16(sum));
  }
}

// Every partial sum is rounded to bf16.
void sum_in_16_bits(Request& request) {
  answer(request, Layer::fast);
  const OutputView& view = request.out.at("dbias");
  const TensorView& dy = request.in.at("dy");
  const std::int64_t columns = view.shape.back();
  std::int64_t row = 0, group = 0;
  for (const std::int64_t split : request.splits()) {
    for (std::int64_t k = 0; k < columns && split > 0 && request.in.count("dbias") == 0; ++k) {
      float sum = 0;
      for (std::int64_t r = row; r < row + split; ++r) {
        const float value = dy.type == Format::f32 ? at<float>(dy.data, r * columns + k)
                                                   : scalar::decode_bf16(at<std::uint16_t>(dy.data, r * columns + k));
        sum = scalar::decode_bf16(scalar::encode_bf16(sum + value));
      }
      put(view.data, group * columns + k, sum);
    }
    row += split;
    ++group;
  }
}

void add_sum_faults(std::vector<CallFault>& to) {
  const When sums = has_output("dbias");
  const When direct = [](const Request& request) {
    return has_output("dbias")(request) && request.op() == "grouped_dbias" && request.in.at("dy").type != Format::f16;
  };
  const When alone = both(sums, either(is_op("linear_wgrad"), is_quantize));
  add_fault(
      to, "dbias_of_quantized", "the bias gradient is the sum of quantized values",
      both(sums,
           [](const Request& request) { return request.op() != "grouped_dbias" && request.text_or("recipe", "none") != "none"; }),
      sum_quantized);
  add_fault(to, "dbias_over_all_groups", "every group has the bias gradient of all rows", both(sums, has_splits), sum_all_groups);
  add_fault(to, "dbias_missing_without_dgrad", "there is no bias gradient where the input gradient is not asked for", alone,
            spoil("dbias", [](Request& request, const auto& before) { restore(request.out.at("dbias"), before); }));
  add_fault(
      to, "dbias_zero_without_dgrad", "the bias gradient is zero where the input gradient is not asked for", alone,
      spoil("dbias", [](Request& request, const auto& before) { std::memset(request.out.at("dbias").data, 0, before.size()); }));
  add_fault(to, "dbias_lost_when_put_off", "the bias gradient is lost where the weight gradient is put off",
            both(sums, [](const Request& request) { return request.op() == "linear_wgrad" && request.flag("deferred"); }),
            spoil("dbias", [](Request& request, const auto& before) { restore(request.out.at("dbias"), before); }));
  add_fault(to, "dbias_in_16_bits", "the bias gradient is summed in bf16", direct, sum_in_16_bits);
  add_fault(to, "dbias_of_empty_group_unwritten", "the bias gradient of a group without rows is not written",
            both(sums, has_splits), spoil("dbias", [](Request& request, const auto& before) {
              const OutputView& view = request.out.at("dbias");
              const std::vector<std::int64_t> splits = request.splits();
              const std::size_t row = before.size() / splits.size();
              for (std::size_t g = 0; g < splits.size(); ++g) {
                if (splits[g] == 0) std::memcpy(static_cast<std::byte*>(view.data) + g * row, before.data() + g * row, row);
              }
            }));
  add_fault(to, "dbias_onto_old", "the accumulator of the bias gradient is not cleared",
            both(direct, [](const Request& request) { return request.in.count("dbias") == 0; }),
            spoil("dbias", [](Request& request, const auto& before) {
              const OutputView& view = request.out.at("dbias");
              for (std::int64_t e = 0; e < view.elements(); ++e)
                put(view.data, e, at<float>(view.data, e) + at<float>(before.data(), e));
            }));
  add_fault(to, "eps_ignored", "epsilon is ignored", is_quantize, without_attributes({"eps"}));
  add_fault(to, "options_lost_with_dbias", "powers of two and epsilon do not reach the call with a bias gradient",
            both(sums, is_quantize), without_attributes({"pow2", "eps"}));
}

}  // namespace

void add_quantize_faults(std::vector<CallFault>& to) {
  add_storage_faults(to);
  add_sum_faults(to);
}

}  // namespace assay::conformance
