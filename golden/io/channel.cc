#include "golden/io/channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "golden/io/stored_type.h"
#include "golden/io/utf8.h"
#include "reference/types/error.h"
#include "reference/types/tensor.h"

namespace assay::golden {
namespace {

constexpr std::size_t kBuffer = 1 << 16;
constexpr std::uint64_t kEnd = 0x646e652079617373;  // after a fixture: the message is complete
constexpr std::uint64_t kAttributeKinds = 3;

}  // namespace

// ---- sending

void Sender::send_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(socket_, data, size, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) throw ChannelClosed();
    data += sent;
    size -= static_cast<std::size_t>(sent);
  }
}

void Sender::flush() {
  send_all(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void Sender::raw(const void* data, std::size_t size) {
  if (buffer_.size() + size > kBuffer) flush();
  if (size > kBuffer) {
    send_all(static_cast<const char*>(data), size);
  } else if (size > 0) {
    buffer_.append(static_cast<const char*>(data), size);
  }
}

void Sender::number(std::uint64_t value) { raw(&value, sizeof value); }

void Sender::text(std::string_view value) {
  number(value.size());
  raw(value.data(), value.size());
}

void Sender::tensor(Tensor tensor) {
  number(static_cast<std::uint64_t>(tensor.type));
  number(tensor.shape.size());
  for (const std::int64_t extent : tensor.shape) number(static_cast<std::uint64_t>(extent));
  raw(tensor.bytes.data(), tensor.bytes.size());
}

void Sender::fixture(Fixture fixture) {
  number(static_cast<std::uint64_t>(fixture.schema));
  text(fixture.provenance);
  number(fixture.cases.size());
  for (Case& each : fixture.cases) {
    text(each.name);
    text(each.op);
    number(each.attributes.size());
    for (const auto& [name, value] : each.attributes) {
      text(name);
      number(value.index());
      if (const auto* integer = std::get_if<std::int64_t>(&value)) number(static_cast<std::uint64_t>(*integer));
      if (const auto* real = std::get_if<double>(&value)) number(std::bit_cast<std::uint64_t>(*real));
      if (const auto* words = std::get_if<std::string>(&value)) text(*words);
    }
    for (auto* side : {&each.in, &each.out}) {
      number(side->size());
      for (auto& [name, stored] : *side) {
        text(name);
        tensor(std::move(stored));
      }
    }
  }
  number(kEnd);
  flush();
}

void Sender::left_out(const LeftOut& left_out) {
  number(static_cast<std::uint64_t>(left_out.count));
  number(left_out.named.size());
  for (const std::string& each : left_out.named) text(each);
}

// ---- receiving

void Receiver::raw(void* data, std::size_t size) {
  char* to = static_cast<char*>(data);
  while (size > 0) {
    if (taken_ < buffer_.size()) {
      const std::size_t count = std::min(size, buffer_.size() - taken_);
      std::memcpy(to, buffer_.data() + taken_, count);
      taken_ += count;
      to += count;
      size -= count;
      continue;
    }
    int milliseconds = -1;
    if (deadline_ != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now()).count();
      if (left <= 0) throw ChannelTimeout();
      milliseconds = static_cast<int>(std::min<std::int64_t>(left, 1'000'000));
    }
    pollfd ready{socket_, POLLIN, 0};
    const int events = ::poll(&ready, 1, milliseconds);
    if (events < 0 && errno != EINTR) throw ChannelClosed();
    if (events <= 0) continue;  // the deadline is checked again

    // Large pieces are read directly to their destination.
    const bool direct = size >= kBuffer;
    if (!direct) buffer_.resize(kBuffer);
    const ssize_t got = ::recv(socket_, direct ? to : buffer_.data(), direct ? size : kBuffer, 0);
    if (!direct) {
      buffer_.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
      taken_ = 0;
    }
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) throw ChannelClosed();
    if (direct) {
      to += got;
      size -= static_cast<std::size_t>(got);
    }
  }
}

std::uint64_t Receiver::number(std::uint64_t limit) {
  std::uint64_t value = 0;
  raw(&value, sizeof value);
  if (value > limit) throw ChannelNonsense("a number past its limit");
  return value;
}

std::string Receiver::text(std::int64_t limit) {
  std::string value(number(static_cast<std::uint64_t>(limit)), '\0');
  raw(value.data(), value.size());
  return value;
}

Tensor Receiver::tensor(std::int64_t& room) {
  const auto type = static_cast<Format>(number(static_cast<std::uint64_t>(Format::i64)));
  if (!dtype_named(name_of(type))) throw ChannelNonsense("a tensor of no known type");
  std::vector<std::int64_t> shape(number(8));
  for (std::int64_t& extent : shape) extent = static_cast<std::int64_t>(number(INT64_MAX));
  std::int64_t bytes = 0;
  try {
    if (__builtin_mul_overflow(element_count(shape), stored_bytes(type), &bytes)) bytes = INT64_MAX;
  } catch (const InvalidArgument&) {
    bytes = INT64_MAX;
  }
  if (bytes > room) throw ChannelNonsense("more tensors than were announced");
  room -= bytes;
  Tensor made = make_tensor(type, std::move(shape));
  raw(made.bytes.data(), made.bytes.size());
  return made;
}

std::string Receiver::text_of(std::int64_t limit, std::int64_t& room, bool (*is_valid)(std::string_view)) {
  std::string value = text(std::min(limit, room));
  room -= static_cast<std::int64_t>(value.size());
  if (!is_valid(value)) throw ChannelNonsense("an invalid text");
  return value;
}

Case Receiver::one_case(const ReadLimits& limits, Room& room) {
  const auto name = [&] { return text_of(limits.text, room.text, is_printable_utf8); };
  Case made;
  made.name = name();
  made.op = name();
  for (std::uint64_t left = number(static_cast<std::uint64_t>(limits.attributes)); left > 0; --left) {
    std::string key = name();
    Attribute value;
    switch (number(kAttributeKinds - 1)) {
      case 0: value = static_cast<std::int64_t>(number(UINT64_MAX)); break;
      case 1: value = std::bit_cast<double>(number(UINT64_MAX)); break;
      default: value = text_of(limits.text, room.text, is_utf8_text);
    }
    made.attributes.emplace(std::move(key), std::move(value));
  }
  for (auto* side : {&made.in, &made.out}) {
    for (std::uint64_t left = number(static_cast<std::uint64_t>(room.objects)); left > 0; --left) {
      if (--room.objects < 0) throw ChannelNonsense("more objects than the limit");
      std::string key = name();
      side->emplace(std::move(key), tensor(room.bytes));
    }
  }
  return made;
}

Fixture Receiver::fixture(const ReadLimits& limits, std::int64_t bytes) {
  Room room{bytes, limits.all_text, limits.objects};
  Fixture made;
  made.schema = static_cast<std::int64_t>(number(static_cast<std::uint64_t>(kNewestSchema)));
  made.provenance = text_of(limits.text, room.text, is_utf8_text);
  for (std::uint64_t left = number(static_cast<std::uint64_t>(limits.objects)); left > 0; --left) {
    made.cases.push_back(one_case(limits, room));
  }
  if (number(UINT64_MAX) != kEnd || room.bytes != 0) throw ChannelNonsense("no end of the fixture");
  return made;
}

LeftOut Receiver::left_out() {
  constexpr std::int64_t kLongestLine = 1000;
  LeftOut made;
  made.count = static_cast<std::int64_t>(number(INT64_MAX));
  for (std::uint64_t left = number(LeftOut::kMaxNamed); left > 0; --left) {
    std::int64_t room = kLongestLine;
    made.named.push_back(text_of(kLongestLine, room, is_printable_utf8));
  }
  return made;
}

}  // namespace assay::golden
