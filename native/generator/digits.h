// Presses keys by telephone-events (RFC 4733), one at a time, and listens whether each is answered by speech. Pure.
#pragma once

#include <cstdint>
#include <string>

#include "audio.h"

namespace generator {

constexpr int kEventBytes = 4;
constexpr size_t kMaxDigits = 32;

// The event code of a key (RFC 4733 §3.2), or -1.
int EventOfDigit(char digit);

struct EventPacket {
  uint8_t payload[kEventBytes];
  uint32_t timestamp;
  bool is_first;
};

class Digits {
 public:
  explicit Digits(std::string digits) : digits_(std::move(digits)) {}

  // To be asked for each frame that is sent: true when it is an event and not audio.
  bool Next(uint32_t timestamp, EventPacket* packet);
  // A frame that came back.
  void Hear(Heard heard);

  const std::string& digits() const { return digits_; }
  int answered() const { return answered_; }

 private:
  enum class Phase { kPause, kPress, kListen, kDone };
  void Press(EventPacket* packet);
  void GoOn();

  std::string digits_;
  size_t next_ = 0;
  int answered_ = 0;
  Phase phase_ = Phase::kPause;
  int frames_ = 0;  // of the phase so far
  uint32_t started_at_ = 0;
  int speech_frames_ = 0;
  int tone_frames_ = 0;
  int silent_frames_ = 0;
};

}  // namespace generator
