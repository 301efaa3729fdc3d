// Catalogued faults of offsets, of the order of scales, and of permuted rows.

#include <stdexcept>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/fault_parts.h"

namespace assay::conformance {
namespace {

bool is_offsets(const Request& request) { return request.op().rfind("splits_to_offsets", 0) == 0; }

std::int64_t groups_of(const Request& request) {
  return request.in.at(request.in.count("splits") != 0 ? "splits" : "first").elements();
}

// Carries the request out and changes each of its arrays of offsets. `values` has a leading 0 if it has one more than there are groups.
Perform changed_offsets(std::function<void(std::vector<std::int64_t>& values, std::int64_t groups)> change) {
  return [=](Request& request) {
    answer(request, Layer::fast);
    for (const auto& [name, view] : request.out) {
      std::vector<std::int64_t> values;
      for (std::int64_t i = 0; i < view.elements(); ++i)
        values.push_back(view.type == Format::i64 ? at<std::int64_t>(view.data, i) : at<std::int32_t>(view.data, i));
      change(values, groups_of(request));
      for (std::int64_t i = 0; i < view.elements(); ++i) {
        const std::int64_t value = values[static_cast<std::size_t>(i)];
        view.type == Format::i64 ? put(view.data, i, value) : put(view.data, i, static_cast<std::int32_t>(value));
      }
    }
  };
}

constexpr std::size_t kChunk = 256;  // groups that a block of a scan has

void lose_carry(std::vector<std::int64_t>& values, std::int64_t groups) {
  const std::vector<std::int64_t> right = values;
  const std::size_t leading = values.size() - static_cast<std::size_t>(groups);
  for (std::size_t i = kChunk + leading; i < values.size(); ++i)
    values[i] -= right[(i - leading) / kChunk * kChunk + leading - 1];
}
void carry_one_early(std::vector<std::int64_t>& values, std::int64_t groups) {
  const std::vector<std::int64_t> right = values;
  const std::size_t leading = values.size() - static_cast<std::size_t>(groups);
  for (std::size_t i = kChunk + leading; i < values.size(); ++i) {
    const std::size_t end = (i - leading) / kChunk * kChunk + leading - 1;
    values[i] -= right[end] - right[end - 1];
  }
}
void exchange_leading_zero(std::vector<std::int64_t>& values, std::int64_t groups) {
  if (values.size() > static_cast<std::size_t>(groups)) {
    for (std::size_t i = 0; i + 1 < values.size(); ++i) values[i] = values[i + 1];
  } else {
    for (std::size_t i = values.size(); i-- > 1;) values[i] = values[i - 1];
    if (!values.empty()) values[0] = 0;
  }
}
void without_barrier(std::vector<std::int64_t>& values, std::int64_t) {
  for (std::size_t i = 63; i < values.size(); i += 64) values[i] = values[i - 1];
}

void add_offset_faults(std::vector<CallFault>& to) {
  const When no_groups = [](const Request& request) { return is_offsets(request) && groups_of(request) == 0; };
  add_fault(to, "leading_zero", "offsets have no leading zero, and inclusive ones have one", is_offsets,
            changed_offsets(exchange_leading_zero));
  add_fault(to, "carry_lost", "the carry between chunks of 256 groups is lost", is_offsets, changed_offsets(lose_carry));
  add_fault(to, "carry_one_early", "the carry between chunks of 256 groups is that of one group earlier", is_offsets,
            changed_offsets(carry_one_early));
  add_fault(to, "offsets_in_32_bits", "offsets are computed in 32 bits", is_offsets,
            changed_offsets([](std::vector<std::int64_t>& values, std::int64_t) {
              for (std::int64_t& value : values) value = static_cast<std::int32_t>(value);
            }));
  add_fault(to, "scan_without_barrier", "a barrier of the scan is taken out: the last of 64 groups is read before it is added",
            is_offsets, changed_offsets(without_barrier));
  add_fault(to, "no_groups_unwritten", "without groups no offset is written", no_groups, [](Request&) {});
  add_fault(to, "no_groups_refused", "no groups are refused", no_groups, [](Request&) { throw std::runtime_error("no groups"); });
  add_fault(
      to, "stride_twice", "the stride multiplies twice",
      [](const Request& request) { return is_offsets(request) && request.integer_or("stride", 1) > 1; },
      [](Request& request) {
        ChangedCall changed(request);
        std::int64_t stride = request.integer("stride");
        if (!__builtin_mul_overflow(stride, stride, &stride)) changed.request.attributes["stride"] = stride;
        changed.carry_out(request);
      });
  add_fault(to, "padded_extent", "offsets are multiplied by the padded extent, a multiple of 128", is_offsets,
            [](Request& request) {
              ChangedCall changed(request);
              if (const std::int64_t stride = request.integer_or("stride", 1); stride > 1 && stride < 1 << 30)
                changed.request.attributes["stride"] = (stride + 127) / 128 * 128;
              if (request.in.count("last") != 0) {
                std::vector<std::byte>& last = changed.input("last");
                const bool wide = request.in.at("last").type == Format::i64;
                for (std::int64_t g = 0; g < groups_of(request); ++g)
                  wide ? put(last.data(), g, (at<std::int64_t>(last.data(), g) + 127) / 128 * 128)
                       : put(last.data(), g, (at<std::int32_t>(last.data(), g) + 127) / 128 * 128);
              }
              changed.carry_out(request);
            });
  add_fault(
      to, "splits_read_as_64_bits", "splits of 32 bits are read in steps of 64",
      [](const Request& request) { return request.in.count("splits") != 0 && request.in.at("splits").type == Format::i32; },
      [](Request& request) {
        ChangedCall changed(request);
        const std::vector<std::byte> given = bytes_of(request.in.at("splits"));
        std::vector<std::byte>& splits = changed.input("splits");
        const auto groups = static_cast<std::int64_t>(given.size()) / 4;
        for (std::int64_t g = 0; g < groups; ++g)
          put(splits.data(), g, 2 * g < groups ? at<std::int32_t>(given.data(), 2 * g) : 0);
        changed.carry_out(request);
      });
}

// A changed row_map.
Perform with_rows(void (*change)(std::vector<std::byte>& map, std::int64_t tokens, std::int64_t choices)) {
  return [change](Request& request) {
    ChangedCall changed(request);
    const TensorView& map = request.in.at("row_map");
    change(changed.input("row_map"), map.shape[0], map.shape[1]);
    changed.carry_out(request);
  };
}

void add_row_faults(std::vector<CallFault>& to) {
  const When rows = has_input("row_map");
  add_fault(
      to, "dropped_choice_taken", "a choice that is dropped takes the row of the choice before it", rows, [](Request& request) {
        // Twice the same row in one map is no map: the token's other row is taken for both in a call of its own.
        if (request.op() == "permute") {
          answer(request, Layer::fast);
          const TensorView& map = request.in.at("row_map");
          const OutputView* out = has_output("permuted")(request) ? &request.out.at("permuted") : nullptr;
          for (std::int64_t i = 0; out != nullptr && i < map.elements(); ++i) {
            if (at<std::int32_t>(map.data, i) >= 0) continue;
            const std::int64_t row = out->bytes / out->shape[0], from = request.in.at("x").bytes / request.in.at("x").shape[0];
            std::memcpy(out->data, static_cast<const std::byte*>(request.in.at("x").data) + i / map.shape[1] * from,
                        static_cast<std::size_t>(row));
          }
          return;
        }
        ChangedCall changed(request);
        std::vector<std::byte>& map = changed.input("row_map");
        std::vector<std::byte> free(static_cast<std::size_t>(request.in.at("permuted").shape[0]));
        for (std::size_t i = 0; i < map.size() / 4; ++i) {
          if (const std::int32_t row = at<std::int32_t>(map.data(), static_cast<std::int64_t>(i)); row >= 0)
            free[static_cast<std::size_t>(row)] = std::byte{1};
        }
        for (std::size_t i = 0; i < map.size() / 4; ++i) {
          const auto spare = std::find(free.begin(), free.end(), std::byte{0});
          if (at<std::int32_t>(map.data(), static_cast<std::int64_t>(i)) >= 0 || spare == free.end()) continue;
          put(map.data(), static_cast<std::int64_t>(i), static_cast<std::int32_t>(spare - free.begin()));
          *spare = std::byte{1};
        }
        changed.carry_out(request);
      });
  add_fault(to, "tokens_exchanged", "the rows of two tokens are exchanged", rows,
            with_rows([](std::vector<std::byte>& map, std::int64_t tokens, std::int64_t choices) {
              if (tokens >= 2) std::swap_ranges(map.begin(), map.begin() + choices * 4, map.begin() + choices * 4);
            }));
  add_fault(to, "scales_of_next_token", "each token has the scales of the one before it",
            both(is_op("permute"), has_input("scale_inv")), [](Request& request) {
              ChangedCall changed(request);
              const TensorView& view = request.in.at("scale_inv");
              std::vector<std::byte>& scales = changed.input("scale_inv");
              const auto row = static_cast<std::size_t>(view.bytes / view.shape[0]);
              std::memmove(scales.data() + row, scales.data(), scales.size() - row);
              changed.carry_out(request);
            });
  add_fault(to, "rows_between_experts_cleared", "rows between the experts are cleared",
            both(is_op("permute"), has_output("permuted")), [](Request& request) {
              const OutputView& view = request.out.at("permuted");
              std::vector<bool> named(static_cast<std::size_t>(view.shape[0]));
              const TensorView& map = request.in.at("row_map");
              answer(request, Layer::fast);
              for (std::int64_t i = 0; i < map.elements(); ++i) {
                if (at<std::int32_t>(map.data, i) >= 0) named[static_cast<std::size_t>(at<std::int32_t>(map.data, i))] = true;
              }
              const std::int64_t row = view.bytes / view.shape[0];
              for (std::size_t r = 0; r < named.size(); ++r) {
                if (!named[r])
                  std::memset(static_cast<std::byte*>(view.data) + static_cast<std::int64_t>(r) * row, 0,
                              static_cast<std::size_t>(row));
              }
            });
}

}  // namespace

void add_index_faults(std::vector<CallFault>& to) {
  add_offset_faults(to);
  add_row_faults(to);
  add_fault(to, "swizzle_of_ragged_tile", "the swizzled scales of the last tile of rows lie 16 bytes out",
            both(is_op("swizzle"), has_output("swizzled")), [](Request& request) {
              answer(request, Layer::fast);
              const OutputView& view = request.out.at("swizzled");
              auto* const tile = static_cast<std::byte*>(view.data) + view.bytes - 512;
              std::rotate(tile, tile + 16, tile + 512);
            });
}

}  // namespace assay::conformance
