// What the sequence numbers and timestamps of the packets that came say (RFC 3550 A.1, A.3, A.8). Duplicates never get here: the replay
// list of SRTP has them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace generator {

// RFC 3550 §6.4.1, of the source that was heard last.
struct ReceptionReport {
  uint32_t ssrc;
  uint8_t fraction_lost;
  int32_t cumulative_lost;
  uint32_t extended_highest;
  uint32_t jitter_ticks;
};

class Reception {
 public:
  // False when there are more sources than a call ever has.
  bool Take(uint32_t ssrc, uint16_t sequence, uint32_t timestamp, bool has_media_time, uint64_t arrival_us);

  uint64_t received() const;
  uint64_t expected() const;
  uint64_t out_of_order() const { return out_of_order_; }
  double JitterMs() const;

  // False when nothing was heard. The next fraction lost counts from here.
  bool TakeReport(ReceptionReport* report);

 private:
  struct Source {
    uint32_t ssrc;
    int64_t lowest;
    int64_t highest;
    uint64_t received;
    bool has_transit;
    uint32_t transit;
    double jitter_ticks;
    uint64_t expected_before;
    uint64_t received_before;
    uint64_t Expected() const { return static_cast<uint64_t>(highest - lowest + 1); }
  };
  Source* SourceOf(uint32_t ssrc, uint16_t sequence);

  std::vector<Source> sources_;
  size_t latest_ = 0;
  uint64_t out_of_order_ = 0;
};

}  // namespace generator
