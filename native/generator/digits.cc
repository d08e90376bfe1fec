#include "digits.h"

#include <algorithm>
#include <cstring>

namespace generator {
namespace {

constexpr int kPauseFrames = 5;
constexpr int kPressFrames = 5;    // 100 ms
constexpr int kRepeatedEnds = 2;   // RFC 4733 §2.5.1.4: the last packet is sent three times in all
constexpr int kVolume = 10;        // -10 dBm0
constexpr int kGuardFrames = 10;   // what is said until then may be what the key interrupted
constexpr int kSpeechFrames = 5;   // make an answer
constexpr int kToneFrames = 3;     // of the own tone end an answer
constexpr int kSilentFrames = 25;  // so does silence
constexpr int kAnswerFrames = 250;  // 5 s: then there is no answer
constexpr int kLongestFrames = 750;

}  // namespace

int EventOfDigit(char digit) {
  static constexpr char kKeys[] = "0123456789*#ABCD";
  const char* const found = digit == '\0' ? nullptr : std::strchr(kKeys, digit);
  return found == nullptr ? -1 : static_cast<int>(found - kKeys);
}

bool Digits::Next(uint32_t timestamp, EventPacket* packet) {
  if (next_ >= digits_.size() || phase_ == Phase::kDone) return false;
  frames_ += 1;
  switch (phase_) {
    case Phase::kPause:
      if (frames_ <= kPauseFrames) return false;
      phase_ = Phase::kPress;
      frames_ = 1;
      started_at_ = timestamp;
      Press(packet);
      return true;
    case Phase::kPress:
      Press(packet);
      return true;
    case Phase::kListen:
      GoOn();
      return false;
    case Phase::kDone:
      return false;
  }
  return false;
}

void Digits::Press(EventPacket* packet) {
  const int duration = std::min(frames_, kPressFrames) * kFrameSamples;
  const bool is_end = frames_ >= kPressFrames;
  packet->payload[0] = static_cast<uint8_t>(EventOfDigit(digits_[next_]));
  packet->payload[1] = static_cast<uint8_t>((is_end ? 0x80 : 0) | kVolume);
  packet->payload[2] = static_cast<uint8_t>(duration >> 8);
  packet->payload[3] = static_cast<uint8_t>(duration);
  packet->timestamp = started_at_;
  packet->is_first = frames_ == 1;
  if (frames_ < kPressFrames + kRepeatedEnds) return;
  phase_ = Phase::kListen;
  frames_ = speech_frames_ = tone_frames_ = silent_frames_ = 0;
}

void Digits::Hear(Heard heard) {
  if (phase_ != Phase::kListen || frames_ < kGuardFrames) return;
  if (heard == Heard::kSpeech) {
    speech_frames_ += 1;
    if (speech_frames_ == kSpeechFrames) answered_ += 1;
  }
  tone_frames_ = heard == Heard::kOwnTone ? tone_frames_ + 1 : 0;
  silent_frames_ = heard == Heard::kSilence ? silent_frames_ + 1 : 0;
}

// The next key is pressed when the answer to this one is over, so that no answer is counted twice.
void Digits::GoOn() {
  const bool is_answered = speech_frames_ >= kSpeechFrames;
  const bool is_over = is_answered ? tone_frames_ >= kToneFrames || silent_frames_ >= kSilentFrames : frames_ >= kAnswerFrames;
  if (!is_over && frames_ < kLongestFrames) return;
  next_ += 1;
  phase_ = next_ == digits_.size() ? Phase::kDone : Phase::kPause;
  frames_ = 0;
}

}  // namespace generator
