// The sound of a call: a chord of the slot's own, in G.711, and what is heard of what comes back. Pure.
#pragma once

#include <array>
#include <cstdint>

namespace generator {

constexpr int kFrameSamples = 160;  // 20 ms at 8 kHz; a byte a sample
using Frame = std::array<uint8_t, kFrameSamples>;

// The static payload types of RFC 3551 §6.
enum class Law : uint8_t { kMu = 0, kA = 8 };

enum class Heard { kOwnTone, kOtherTone, kSpeech, kSilence };

// The two tones of a slot, as multiples of 50 Hz: each of them has whole periods in a frame, so that all frames of a slot are one.
struct Chord {
  int low;
  int high;
  bool operator==(const Chord& other) const { return low == other.low && high == other.high; }
};

constexpr int kLowestTone = 8;    // 400 Hz
constexpr int kHighestTone = 64;  // 3,200 Hz
constexpr int kTones = kHighestTone - kLowestTone + 1;
constexpr int kChords = kTones * (kTones - 1) / 2;

// Slots further apart than kChords share a chord.
Chord ChordOf(int slot);

Frame FrameOf(Law law, const Chord& chord);

// What a whole frame of G.711 is to the slot with this chord. `other` is set where it is a chord of another.
Heard Judge(Law law, const uint8_t* payload, const Chord& own, bool looks_for_others, Chord* other);

}  // namespace generator
