// What is written: a JSON object a line, in a buffer that waits for its reader.
#pragma once

#include <string>
#include <vector>

#include "call.h"

namespace generator {

struct ReadySlot {
  int slot;
  uint16_t port;
  std::string key;
};

// Sums over calls that have ended.
struct Totals {
  uint64_t calls = 0;
  uint64_t sent = 0;
  uint64_t unsent = 0;
  uint64_t received = 0;
  uint64_t expected = 0;
  uint64_t lost = 0;
  uint64_t out_of_order = 0;
  uint64_t duplicates = 0;
  uint64_t rejected = 0;
  uint64_t strangers = 0;
  uint64_t dropped = 0;
  uint64_t digits = 0;
  uint64_t digits_answered = 0;
  uint64_t rtcp_received = 0;
  uint64_t heard = 0;
  uint64_t silent = 0;
  uint64_t wrong = 0;
  double jitter_ms_sum = 0;
  uint64_t scored = 0;
  double mos_sum = 0;
  double mos_min = 0;

  void Add(const Call& call);
};

struct SecondFigures {
  size_t calls;
  uint64_t sent;
  uint64_t received;
  uint64_t lost;
  uint64_t dropped;
  double late_ms;
  double jitter_ms;
};

class Report {
 public:
  void Ready(const std::vector<ReadySlot>& slots);
  void Second(const SecondFigures& figures, const Histogram& delays);
  void CallEnded(const Call& call, uint64_t now_us);
  void Total(const Totals& totals, const Histogram& delays, double late_ms);
  void Error(const std::string& text);

  // Writes what the reader takes at this moment, or all. False when there is no reader any more.
  bool Flush(bool waits);

 private:
  std::string waiting_;
};

}  // namespace generator
