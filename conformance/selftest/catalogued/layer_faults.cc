// Catalogued faults of a layer's paths: the skip flag, its recipe, what it refuses.

#include <stdexcept>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/product_parts.h"

namespace assay::conformance {
namespace {

bool has_splits(const Request& request) { return has_input("splits")(request) && request.in.at("splits").type == Format::i64; }

// A call whose skip flag is taken for another.
Perform with_flag(float (*flag)(float)) {
  return [flag](Request& request) {
    ChangedCall changed(request);
    std::vector<std::byte>& noop = changed.input("noop");
    put(noop.data(), 0, flag(at<float>(noop.data(), 0)));
    changed.carry_out(request);
  };
}

// Under a skip, outputs whose name has the word are renewed all the same.
Perform torn(std::string word) {
  return [word](Request& request) {
    const bool skips = at<float>(request.in.at("noop").data, 0) == 1.0f;
    ChangedCall renewed(request);
    std::map<std::string, std::vector<std::byte>*> made;
    if (skips) {
      for (const auto& [name, view] : request.out) made[name] = &renewed.output(name);
      put(renewed.input("noop").data(), 0, 0.0f);
      answer(renewed.request, Layer::fast);
    }
    answer(request, Layer::fast);
    for (const auto& [name, bytes] : made) {
      if (name.find(word) != std::string::npos && !bytes->empty())
        std::memcpy(request.out.at(name).data, bytes->data(), bytes->size());
    }
  };
}

void add_flag_faults(std::vector<CallFault>& to) {
  const When flagged = has_input("noop");
  add_fault(to, "flag_ignored", "the skip flag is ignored", flagged, with_flag([](float) { return 0.0f; }));
  add_fault(to, "flag_inverted", "the skip flag is inverted", flagged,
            with_flag([](float flag) { return flag == 1.0f ? 0.0f : 1.0f; }));
  add_fault(to, "any_flag_skips", "any flag but 0 skips", flagged, with_flag([](float flag) { return flag != 0 ? 1.0f : 0.0f; }));
  add_fault(to, "torn_skip_scales", "a skip keeps the data and renews the scales", flagged, torn("scale_inv"));
  add_fault(to, "torn_skip_columnwise", "a skip keeps the rowwise storage and renews the columnwise one", flagged,
            torn("columnwise"));
  add_fault(to, "torn_skip_dbias", "under a skip the bias gradient is summed from what was not written", flagged, torn("dbias"));
  add_fault(to, "weight_cache_bypassed", "the layer ignores its weight cache", both(flagged, is_op("linear_forward")),
            with_flag([](float) { return 0.0f; }));
  add_fault(to, "weight_cache_of_first_group", "every group has the cached weights of the first group",
            both(flagged, is_op("linear_forward")), [](Request& request) {
              ChangedCall changed(request);
              const std::size_t groups = request.splits().size();
              std::vector<std::byte>& data = changed.input("w_rowwise_data");
              const std::size_t size = groups == 0 ? 0 : data.size() / groups;
              for (std::size_t g = 1; g < groups; ++g) std::memcpy(data.data() + g * size, data.data(), size);
              changed.carry_out(request);
            });
}

// The scales of the rowwise storage of x where wgrad reads those of the columnwise one.
void with_rowwise_scales(Request& request) {
  NewCall codes("quantize");
  codes.request.attributes["recipe"] = std::string("block_1x128");
  codes.request.attributes["pow2"] = std::int64_t{1};
  codes.request.in = {{"x", request.in.at("x")}, {"splits", request.in.at("splits")}};
  const std::vector<std::byte>& scales = codes.carry_out().at("rowwise_scale_inv");
  carry_out_changed(request, [&](ChangedProduct& product) {
    const auto* base = static_cast<const std::byte*>(product.operand(Side::columns).scale_inv);
    product.rescale(Side::columns, [&](const GroupView&, std::int64_t, std::int64_t, const std::byte* old, std::byte* to) {
      const auto at = static_cast<std::size_t>(old - base);
      if (at + sizeof(float) <= scales.size()) std::memcpy(to, scales.data() + at, sizeof(float));
    });
  });
}

void add_recipe_faults(std::vector<CallFault>& to) {
  const When layer = [](const Request& request) {
    return request.op().rfind("linear_", 0) == 0 && request.in.count("noop") == 0;
  };
  add_fault(to, "recipe_taken_for_another", "a layer takes its recipe for another", layer, [](Request& request) {
    ChangedCall changed(request);
    changed.request.attributes["recipe"] = std::string(request.text("recipe") == "tensor_current" ? "block" : "tensor_current");
    for (const char* name : {"x_scale", "w_scale", "dy_scale"}) changed.request.in.erase(name);
    changed.carry_out(request);
  });
  add_fault(
      to, "backward_on_other_path", "backward takes the 16-bit path although forward took a quantized one",
      [](const Request& request) { return request.op() == "linear_dgrad" || request.op() == "linear_wgrad"; },
      [](Request& request) {
        ChangedCall changed(request);
        changed.request.attributes["recipe"] = std::string("none");
        for (const char* name : {"x_scale", "w_scale", "dy_scale"}) changed.request.in.erase(name);
        for (const char* name : {"otype", "grad_otype", "pow2", "eps", "sign_mask"}) changed.request.attributes.erase(name);
        changed.carry_out(request);
      });
  add_fault(to, "columnwise_storage_left_out", "wgrad reads the rowwise scales of x, because there is no columnwise storage",
            both(is_op_of("linear_wgrad", "recipe", "block"), has_output("dw")), with_rowwise_scales);
  add_fault(to, "fails_on_empty_group", "a group without rows is refused", has_splits, [](Request& request) {
    for (const std::int64_t split : request.splits()) {
      if (split == 0) throw std::runtime_error("an empty group");
    }
    answer(request, Layer::fast);
  });
  add_fault(
      to, "fails_on_rows_not_4", "a product with rows that are no multiple of 4 ends with an illegal instruction",
      [](const Request& request) { return has_product(request) && has_splits(request); },
      [](Request& request) {
        for (const std::int64_t split : request.splits()) {
          if (split % 4 != 0) throw std::runtime_error("an illegal instruction");
        }
        answer(request, Layer::fast);
      });
  CallFault& path = add_fault(
      to, "path_of_other_architecture", "a path that the device lacks is declared absent and carried out all the same",
      [](const Request& request) { return request.text_or("kind", "") == "mxfp8" || request.text_or("kind", "") == "nvfp4"; },
      [](Request& request) { answer(request, Layer::fast); });
  path.question = [](Request& request) {
    if (request.text_or("kind", "") == "mxfp8" || request.text_or("kind", "") == "nvfp4") throw NotSupported("needs SM100");
  };
}

}  // namespace

void add_layer_faults(std::vector<CallFault>& to) {
  add_flag_faults(to);
  add_recipe_faults(to);
}

}  // namespace assay::conformance
