// The queries of a session: about a later call, the device, the backend's settings.

#include <algorithm>
#include <cstring>
#include <vector>

#include "conformance/backends/questions.h"
#include "conformance/worker/call.h"
#include "conformance/worker/session_call.h"

namespace assay::conformance::worker {

void Session::execute_question(Function function, Reader& command) {
  if (function == Function::device_info) {
    assay_device_info info = command.get<assay_device_info>();
    status_of(function, [&] { return table_->device_info(context_, &info); });
    return answer_.put(info);
  }
  if (function == Function::set_axis) {
    const std::string name = command.text(), value = command.text();
    return status_of(function, [&] { return table_->set_axis(context_, name.c_str(), value.c_str()); });
  }
  const OwnedCall made(command, sizes_);
  if (function == Function::supports) {
    status_of(function, [&] { return table_->supports(context_, &made.get()); });
  } else if (function == Function::numerics) {
    assay_numerics stated = command.get<assay_numerics>();
    status_of(function, [&] { return table_->numerics(context_, &made.get(), &stated); });
    answer_.put(stated);
  } else {
    std::int64_t bytes = 0;
    status_of(function, [&] { return table_->workspace_bytes(context_, &made.get(), &bytes); });
    answer_.put(bytes);
  }
}

namespace {

// Room for `capacity` items of `size` bytes, and two behind them that must stay as they are.
template <class Item>
class Room {
 public:
  Room(std::int32_t capacity, std::size_t size)
      : capacity_(static_cast<std::size_t>(capacity)), size_(size), words_((capacity_ + 2) * size / sizeof(std::uint64_t), 0) {
    for (std::size_t i = 0; i < capacity_; ++i) std::memcpy(bytes() + i * size, &size, sizeof size);  // struct_size comes first
    std::memset(bytes() + capacity_ * size, 0xCD, 2 * size);
  }
  // For the backend, whose own structures have the size.
  Item* items() { return capacity_ == 0 ? nullptr : reinterpret_cast<Item*>(words_.data()); }
  bool is_overrun() {
    const unsigned char* first = bytes() + capacity_ * size_;
    return std::any_of(first, first + 2 * size_, [](unsigned char each) { return each != 0xCD; });
  }
  // The first `count` as this build has them.
  std::vector<Item> given(std::int32_t count) {
    std::vector<Item> all = items_of<Item>(words_.data(), count, size_);
    for (Item& each : all) each.struct_size = sizeof each;
    return all;
  }

 private:
  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(words_.data()); }
  std::size_t capacity_, size_;
  std::vector<std::uint64_t> words_;
};

}  // namespace

void Session::execute_list(Function function, Reader& command) {
  const auto capacity = command.get<std::int32_t>();
  std::int32_t count = 0;
  const auto give = [&](auto& room) {
    if (room.is_overrun()) return note(Fault::overrun, function, std::to_string(capacity));
    answer_.put(count);
    const auto given = room.given(std::clamp(count, 0, capacity));
    answer_.put_bytes(given.data(), given.size() * sizeof given[0]);
  };
  if (function == Function::list_axes) {
    Room<assay_axis> room(capacity, sizes_.axis);
    status_of(function, [&] { return table_->list_axes(context_, room.items(), capacity, &count); });
    return give(room);
  }
  const OwnedCall made(command, sizes_);
  Room<assay_algorithm> room(capacity, sizes_.algorithm);
  status_of(function, [&] { return table_->list_algorithms(context_, &made.get(), room.items(), capacity, &count); });
  give(room);
}

// Each question has its own answer; none of them ends the batch, except for a device that is lost or a
// workspace that is still to be given.
void Session::execute_questions(Reader& command) {
  Questions questions;
  questions.sized = command.get<std::uint8_t>() != 0;
  questions.stated = command.get<assay_numerics>();
  const OwnedCall made(command, sizes_);
  ask_questions(*table_, context_, made.get(), questions, [&](Question question, CallResult& result, auto body) {
    if (fault_ != Fault::none && fault_ != Fault::float_mode) return;
    error_.clear();
    status_of(question == Question::supports   ? Function::supports
              : question == Question::numerics ? Function::numerics
                                               : Function::workspace_bytes,
              body);
    result = {true, status_, error_};
    over_ = over_ || status_ == ASSAY_DEVICE_LOST;
  });
  over_ = over_ || needs_workspace(questions);
  status_ = ASSAY_OK;
  error_.clear();
  for (const CallResult* each : {&questions.workspace_bytes, &questions.supports, &questions.numerics}) {
    answer_.put(static_cast<std::uint8_t>(each->made));
    answer_.put(each->status);
    answer_.put_text(each->error);
  }
  answer_.put(questions.bytes);
  answer_.put(questions.stated);
}

}  // namespace assay::conformance::worker
