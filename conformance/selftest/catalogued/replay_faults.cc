// Catalogued faults of what is kept from one call to the next: captures, replays, workspaces, set-up memory, microbatches.

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "conformance/selftest/catalogued/catalogued_faults.h"
#include "conformance/selftest/catalogued/fault_parts.h"

namespace assay::conformance {
namespace {

using Tensors = std::map<std::string, std::vector<std::byte>>;

bool always(const Request&) { return true; }
bool has_rows_in_groups(const Request& request) {
  return request.in.count("splits") + request.in.count("psum") + request.in.count("m_indices") != 0;
}

Tensors inputs_of(const Request& request) {
  Tensors made;
  for (const auto& [name, view] : request.in) made[name] = bytes_of(view);
  return made;
}

// Inputs of which `meant` holds are those of an earlier call that wrote to the same memory: the first, or the one before.
Perform with_earlier(std::function<bool(const std::string&)> meant, bool first) {
  const auto kept = std::make_shared<Kept<std::map<const void*, Tensors>>>();
  return [=](Request& request) {
    Tensors& earlier = kept->now()[address_of(request)];
    const Tensors given = inputs_of(request);
    ChangedCall changed(request);
    for (const auto& [name, bytes] : earlier) {
      if (meant(name) && request.in.count(name) != 0 && given.at(name).size() == bytes.size() && !bytes.empty())
        changed.replace(name, bytes);
    }
    changed.carry_out(request);
    if (!first || earlier.empty()) earlier = given;
  };
}

// From the second call on that writes to the same memory, or in the second alone, `later` in place of the right call.
Perform from_second(std::function<void(Request&)> later, bool second_only = false) {
  const auto turns = std::make_shared<Turns>();
  return [=](Request& request) {
    const int turn = turns->of(request);
    second_only ? (turn == 2 ? later(request) : answer(request, Layer::fast))
    : turn >= 2 ? later(request)
                : answer(request, Layer::fast);
  };
}

void flip_last(Request& request) {
  answer(request, Layer::fast);
  for (const auto& [name, view] : request.out) {
    if (view.bytes == 0) continue;
    static_cast<std::byte*>(view.data)[view.bytes - static_cast<std::int64_t>(element_bytes(view.type))] ^= std::byte{1};
    static_cast<std::byte*>(view.data)[0] ^= std::byte{1};
    return;
  }
}

// The last group of the product is wrong.
void spoil_last_group(Request& request) {
  answer(request, Layer::fast);
  const OutputView& view = request.out.at(product_output(request.op()));
  if (view.bytes > 0) static_cast<std::byte*>(view.data)[view.bytes - 1] ^= std::byte{0x10};
}

void without_rows(Request& request) {
  ChangedCall changed(request);
  if (has_input("splits")(request)) {
    std::vector<std::byte>& splits = changed.input("splits");
    std::fill(splits.begin(), splits.end(), std::byte{0});
  }
  changed.carry_out(request);
}

void add_captured(std::vector<CallFault>& to) {
  const auto any_of = [](std::vector<std::string> names) {
    return [names = std::move(names)](const std::string& name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
  };
  add_fault(to, "splits_of_capture", "the splits are those of the capture, or were read on the host", has_rows_in_groups,
            with_earlier(any_of({"splits", "psum", "m_indices"}), true));
  add_fault(to, "flag_of_capture", "the skip flag is that of the capture for ever", has_input("noop"),
            with_earlier(any_of({"noop"}), true));
  add_fault(to, "weights_of_capture", "the weights of a group are copies that are made once", has_input("w"),
            with_earlier(any_of({"w"}), true));
  add_fault(to, "operands_of_call_before",
            "an operand is that of the call before: a tensor map or a quantized tensor that was not renewed", always,
            with_earlier([](const std::string& name) { return name.rfind("x", 0) == 0 || name.rfind("dy", 0) == 0; }, false));
  add_fault(to, "nothing_in_replays", "what was captured is not carried out by later replays", always,
            from_second([](Request&) {}));
  add_fault(to, "second_replay_stops", "the second replay does not come to its end", always,
            from_second([](Request&) { throw std::runtime_error("the graph did not come to its end"); }, true));
  add_fault(to, "second_replay_differs", "the second replay gives other bits than eager calls do", always,
            from_second(flip_last, true));
  add_fault(to, "memory_of_capture", "memory that was taken under the capture holds something else in the second replay", always,
            from_second(flip_last));
  add_fault(to, "set_up_given_back", "set-up memory is given back after the capture: later launches find no rows in it",
            has_rows_in_groups, from_second(without_rows));
  CallFault& early = add_fault(to, "carried_out_under_capture", "the call is carried out when it is captured or asked about",
                               always, [](Request& request) { answer(request, Layer::fast); });
  early.question = [](Request& request) {
    for (const auto& [name, view] : request.out) {
      if (view.data == nullptr && view.bytes > 0) return;
    }
    answer(request, Layer::fast);
  };
  CallFault& refused = add_fault(to, "fails_under_capture", "a host array or an allocation ends the capture", always,
                                 [](Request& request) { answer(request, Layer::fast); });
  refused.question = [](Request&) {
    if (questions_in_a_row() >= 2) throw std::runtime_error("not permitted while a stream is captured");
  };
}

// Rows that an earlier call of this case wrote and this one must not are written.
void add_tails(std::vector<CallFault>& to) {
  const auto most = std::make_shared<Kept<std::map<const void*, std::int64_t>>>();
  add_fault(
      to, "tail_of_earlier_splits", "rows behind the last group that an earlier call had are written again",
      [](const Request& request) { return has_product(request) && layout_of(request) != "NT" && has_input("splits")(request); },
      [most](Request& request) {
        answer(request, Layer::fast);
        std::int64_t rows = 0;
        for (const std::int64_t split : request.splits()) rows += split;
        std::int64_t& before = most->now()[address_of(request)];
        const OutputView& view = request.out.at(product_output(request.op()));
        const std::int64_t row = view.shape[0] == 0 ? 0 : view.bytes / view.shape[0];
        if (before > rows)
          std::memset(static_cast<std::byte*>(view.data) + rows * row, 0, static_cast<std::size_t>((before - rows) * row));
        before = std::max(before, rows);
      });
  const auto bytes = std::make_shared<Kept<std::vector<std::byte>>>();
  add_fault(to, "wgrad_reads_returned_memory",
            "wgrad reads an operand whose memory was given back, and holds an output of the call before", always,
            [bytes](Request& request) {
              ChangedCall changed(request);
              if (request.op() == "linear_wgrad" && has_input("x")(request)) {
                std::vector<std::byte>& x = changed.input("x");
                std::copy_n(bytes->now().begin(), std::min(x.size(), bytes->now().size()), x.begin());
              }
              changed.carry_out(request);
              bytes->now().clear();
              if (request.op() != "linear_wgrad" && has_product(request))
                bytes->now() = bytes_of(request.out.at(product_output(request.op())));
            });
  add_fault(to, "metadata_overwritten", "a copy in flight overwrites the size of the last group from the second call on",
            has_input("splits"), from_second([](Request& request) {
              ChangedCall changed(request);
              std::vector<std::byte>& splits = changed.input("splits");
              std::fill(splits.end() - static_cast<std::ptrdiff_t>(element_bytes(request.in.at("splits").type)), splits.end(),
                        std::byte{0});
              changed.carry_out(request);
            }));
}

void add_workspaces(std::vector<CallFault>& to) {
  const When product = has_product;
  const auto before = std::make_shared<Kept<std::pair<std::string, Format>>>();  // layout and type of D of the product before
  const auto turns = std::make_shared<Turns>();
  add_fault(to, "workspace_of_other_layout",
            "one workspace for all layouts: from the second replay on, wgrad behind dgrad spoils its last group", product,
            [=](Request& request) {
              const bool behind = layout_of(request) == "NT" && before->now().first == "NN" && turns->of(request) >= 2;
              behind ? spoil_last_group(request) : answer(request, Layer::fast);
              before->now() = {layout_of(request), Format::f32};
            });
  const auto type = std::make_shared<Kept<std::pair<std::string, Format>>>();
  add_fault(to, "workspace_by_output_type",
            "the slot of the workspace is chosen by the type of D, and wgrad meets what dgrad left there", product,
            [=](Request& request) {
              const Format own = request.out.at(product_output(request.op())).type;
              const bool behind = type->now().first == "NN" && layout_of(request) == "NT";
              behind ? spoil_last_group(request) : answer(request, Layer::fast);
              type->now() = {layout_of(request), own};
            });
  add_fault(
      to, "workspace_of_replay_before", "a workspace must not hold what the replay before left there",
      [](const Request& request) { return has_product(request) && layout_of(request) == "NT"; }, from_second(spoil_last_group));
}

// The set-up of a call, found by op and group count alone: another layer's, if that was captured later.
void add_set_up(std::vector<CallFault>& to) {
  const auto set_up = std::make_shared<std::map<std::string, std::map<std::string, TensorView>>>();
  const auto key = [](const Request& request) {
    return request.op() + layout_of(request) +
           std::to_string(request.in.count("splits") == 0 ? 0 : request.in.at("splits").elements());
  };
  CallFault& shared = add_fault(to, "set_up_by_group_count",
                                "set-up memory is found by the group count alone: two layers write into each other's", always,
                                [=](Request& request) {
                                  ChangedCall changed(request);
                                  const auto found = set_up->find(key(request));
                                  if (found != set_up->end()) {
                                    for (const auto& [name, view] : found->second) {
                                      const auto own = changed.request.in.find(name);
                                      if (own != changed.request.in.end() && own->second.bytes == view.bytes)
                                        own->second.data = view.data;
                                    }
                                  }
                                  changed.carry_out(request);
                                });
  shared.question = [=](Request& request) {
    for (const auto& [name, view] : request.in) {
      if (view.data == nullptr && view.bytes > 0) return;
    }
    (*set_up)[key(request)] = request.in;
  };
  const auto cache = std::make_shared<Kept<std::pair<const void*, std::vector<std::byte>>>>();
  add_fault(
      to, "weight_cache_of_other_layer", "a layer finds the cached weights of the layer before",
      [](const Request& request) { return request.op() == "linear_forward" && has_input("noop")(request); },
      [=](Request& request) {
        const std::vector<std::byte> own = bytes_of(request.in.at("w_rowwise_data"));
        ChangedCall changed(request);
        auto& [address, other] = cache->now();
        if (address != nullptr && address != address_of(request) && other.size() == own.size())
          changed.replace("w_rowwise_data", other);
        changed.carry_out(request);
        cache->now() = {address_of(request), own};
      });
  add_fault(to, "cache_never_renewed", "a weight cache is renewed the first time alone", has_input("noop"),
            from_second([](Request& request) {
              ChangedCall changed(request);
              put(changed.input("noop").data(), 0, 1.0f);
              changed.carry_out(request);
            }));
  const auto skipped = std::make_shared<Kept<bool>>();
  add_fault(to, "flag_stays_set", "a skip flag that was set once stays set", has_input("noop"), [=](Request& request) {
    ChangedCall changed(request);
    std::vector<std::byte>& noop = changed.input("noop");
    skipped->now() = skipped->now() || at<float>(noop.data(), 0) == 1.0f;
    if (skipped->now()) put(noop.data(), 0, 1.0f);
    changed.carry_out(request);
  });
}

// Gradients that were put off are carried out in the opposite order: the second call of a pair adds its own first.
void add_microbatches(std::vector<CallFault>& to) {
  struct Before {
    Tensors in;
    std::vector<std::byte> made;
  };
  const auto kept = std::make_shared<Kept<Before>>();
  const auto sums = [](const Request& request) {
    return request.op() == "linear_wgrad" || (request.op() == "grouped_gemm" && layout_of(request) == "NT");
  };
  add_fault(
      to, "microbatches_backwards", "microbatches that were put off are carried out in the opposite order", sums,
      [=](Request& request) {
        const std::string addend = request.op() == "linear_wgrad" ? "main_grad" : "c", output = product_output(request.op());
        Before& before = kept->now();
        const Tensors given = inputs_of(request);
        const bool follows = given.count(addend) != 0 && before.made == given.at(addend) && !before.made.empty();
        answer(request, Layer::fast);
        // The call before overwrites: carried out last, nothing of this one is left.
        if (follows && before.in.count(addend) == 0) {
          std::memcpy(request.out.at(output).data, before.made.data(), before.made.size());
        } else if (follows) {
          ChangedCall own(request), other(request);
          std::vector<std::byte>& partial = own.output(output);
          std::vector<std::byte>& start = own.input(addend);
          std::copy(before.in.at(addend).begin(), before.in.at(addend).end(), start.begin());
          own.request.out = {{output, own.request.out.at(output)}};
          answer(own.request, Layer::fast);
          for (const auto& [name, bytes] : before.in) {
            if (other.request.in.count(name) != 0 && other.request.in.at(name).bytes == static_cast<std::int64_t>(bytes.size()))
              std::copy(bytes.begin(), bytes.end(), other.input(name).begin());
          }
          std::copy(partial.begin(), partial.end(), other.input(addend).begin());
          other.request.out = {{output, request.out.at(output)}};
          answer(other.request, Layer::fast);
        }
        before = {given, bytes_of(request.out.at(output))};
      });
  add_fault(to, "every_other_call_differs", "results differ from call to call: every other one has a wrong bit", always,
            [turns = std::make_shared<Turns>()](Request& request) {
              turns->of(request) % 2 == 0 ? flip_last(request) : answer(request, Layer::fast);
            });
}

}  // namespace

void add_replay_faults(std::vector<CallFault>& to) {
  add_captured(to);
  add_tails(to);
  add_workspaces(to);
  add_set_up(to);
  add_microbatches(to);
}

}  // namespace assay::conformance
