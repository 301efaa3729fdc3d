#pragma once
// Messages between the reading process and its parent over a socket: numbers, texts and fixtures. Every size is checked
// before it is used.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "golden/io/fixture.h"
#include "golden/io/reader.h"

namespace assay::golden {

// The other side has ended, is too slow, or sends invalid messages.
struct ChannelClosed : std::runtime_error {
  ChannelClosed() : runtime_error("the other side has closed the channel") {}
};
struct ChannelTimeout : std::runtime_error {
  ChannelTimeout() : runtime_error("the other side takes too long") {}
};
struct ChannelNonsense : std::runtime_error {
  using runtime_error::runtime_error;
};

class Sender {
 public:
  explicit Sender(int socket) : socket_(socket) {}
  void number(std::uint64_t value);
  void text(std::string_view value);
  void tensor(Tensor tensor);  // by value: its memory is released once it is sent
  void fixture(Fixture fixture);
  void left_out(const LeftOut& left_out);
  void flush();

 private:
  void raw(const void* data, std::size_t size);
  void send_all(const char* data, std::size_t size);

  int socket_;
  std::string buffer_;
};

class Receiver {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Receiver(int socket, Clock::time_point deadline = Clock::time_point::max()) : socket_(socket), deadline_(deadline) {}
  void extend(Clock::time_point deadline) { deadline_ = deadline; }

  std::uint64_t number(std::uint64_t limit);
  std::string text(std::int64_t limit);
  // Errors: ChannelNonsense if it passes `limits`, its tensors need other than `bytes` together, or a name cannot be printed.
  Fixture fixture(const ReadLimits& limits, std::int64_t bytes);
  LeftOut left_out();

 private:
  void raw(void* data, std::size_t size);
  // The limits of what one fixture may still send.
  struct Room {
    std::int64_t bytes, text, objects;
  };
  std::string text_of(std::int64_t limit, std::int64_t& room, bool (*is_valid)(std::string_view));
  Tensor tensor(std::int64_t& room);
  Case one_case(const ReadLimits& limits, Room& room);

  int socket_;
  Clock::time_point deadline_;
  std::vector<char> buffer_;
  std::size_t taken_ = 0;  // of the buffer
};

}  // namespace assay::golden
