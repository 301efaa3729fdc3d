#pragma once
// A graph of calls as a load, and the current device as a card (two_regimes.h).

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/device/board.h"
#include "bench/device/device_bench.h"

namespace assay::bench {

// One call is one replay.
class GraphLoad {
 public:
  explicit GraphLoad(const GraphOf& graph) : graph_(graph), seconds_(graph.seconds_per_node() * graph.nodes()) {}
  GraphLoad(const GraphLoad&) = delete;
  ~GraphLoad() {
    for (const Piece& each : idle_) destroy(each);
    for (const Piece& each : begun_) destroy(each);
  }

  double seconds() const { return seconds_; }

  void begin(int calls) {
    Piece piece;
    if (idle_.empty()) {
      for (cudaEvent_t& event : piece.events) check(cudaEventCreate(&event), "cudaEventCreate");
    } else {
      piece = idle_.back();
      idle_.pop_back();
    }
    piece.calls = calls;
    check(cudaEventRecord(piece.events[0], stream()), "cudaEventRecord");
    for (int i = 0; i < calls; ++i) graph_.launch();
    check(cudaEventRecord(piece.events[1], stream()), "cudaEventRecord");
    begun_.push_back(piece);
  }

  double end() {
    const Piece piece = begun_.front();
    begun_.pop_front();
    idle_.push_back(piece);
    float milliseconds = 0;
    check(cudaEventSynchronize(piece.events[1]), "cudaEventSynchronize");
    check(cudaEventElapsedTime(&milliseconds, piece.events[0], piece.events[1]), "cudaEventElapsedTime");
    return milliseconds * 1e-3 / piece.calls;
  }

 private:
  struct Piece {
    std::array<cudaEvent_t, 2> events{};
    int calls = 0;
  };
  static void destroy(const Piece& piece) {
    for (const cudaEvent_t event : piece.events) cudaEventDestroy(event);
  }

  const GraphOf& graph_;
  double seconds_;
  std::deque<Piece> begun_;
  std::vector<Piece> idle_;
};

class DeviceCard {
 public:
  // Errors: as of Board.
  DeviceCard() : board_(bus_id()) {}
  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
  void rest(double seconds) const { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); }
  Board::Reading read() const { return board_.read(); }

 private:
  static std::string bus_id() {
    int device = 0;
    char text[32] = {};
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaDeviceGetPCIBusId(text, sizeof text, device), "cudaDeviceGetPCIBusId");
    return text;
  }
  Board board_;
};

}  // namespace assay::bench
