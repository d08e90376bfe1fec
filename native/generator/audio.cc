#include "audio.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace generator {
namespace {

constexpr double kAmplitude = 4'000;      // of each of the two tones: -12 dBFS together at most
constexpr float kSilentRms = 200;         // -44 dBFS
constexpr float kOwnShare = 0.5f;         // of the frame's energy; a stamp takes away a tenth, a sample left out some
constexpr float kOwnPart = 0.1f;          // of each of the two: another slot may have one of them
constexpr float kChordShare = 0.65f;      // two tones, less what a stamp takes away where both are loudest
constexpr float kMaxPowerRatio = 4;       // between the two, which are sent equally loud
constexpr int kMuLawBias = 0x84;
constexpr int kClip = 32'635;

int BitLength(int value) {
  int bits = 0;
  for (; value > 0; value >>= 1) bits += 1;
  return bits;
}

// ITU-T G.711, as in src/rtp/codec/g711.ts.
uint8_t MuLawCode(int sample) {
  const int sign = sample < 0 ? 0x80 : 0;
  const int magnitude = std::min(std::abs(sample) + kMuLawBias, kClip);
  const int exponent = std::max(0, BitLength(magnitude) - 8);
  return static_cast<uint8_t>(~(sign | (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f)));
}

int MuLawSample(uint8_t byte) {
  const int code = ~byte & 0xff;
  const int magnitude = ((((code & 0x0f) << 3) + kMuLawBias) << ((code >> 4) & 0x07)) - kMuLawBias;
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

uint8_t ALawCode(int sample) {
  const int sign = sample >= 0 ? 0x80 : 0;
  const int magnitude = std::min(std::abs(sample), kClip);
  const int exponent = std::max(0, BitLength(magnitude) - 8);
  const int code = magnitude < 256 ? magnitude >> 4 : (exponent << 4) | ((magnitude >> (exponent + 3)) & 0x0f);
  return static_cast<uint8_t>(code ^ sign ^ 0x55);
}

int ALawSample(uint8_t byte) {
  const int code = byte ^ 0x55;
  const int exponent = (code >> 4) & 0x07;
  const int mantissa = ((code & 0x0f) << 4) + 8;
  const int magnitude = exponent == 0 ? mantissa : (mantissa + 0x100) << (exponent - 1);
  return (code & 0x80) != 0 ? magnitude : -magnitude;
}

int SampleOf(Law law, uint8_t byte) { return law == Law::kMu ? MuLawSample(byte) : ALawSample(byte); }
uint8_t CodeOf(Law law, int sample) { return law == Law::kMu ? MuLawCode(sample) : ALawCode(sample); }

using DecodeTable = std::array<float, 256>;

const DecodeTable& TableOf(Law law) {
  const auto make = [](Law of) {
    DecodeTable table{};
    for (int byte = 0; byte < 256; byte += 1) table[static_cast<size_t>(byte)] = static_cast<float>(SampleOf(of, static_cast<uint8_t>(byte)));
    return table;
  };
  static const DecodeTable mu = make(Law::kMu);
  static const DecodeTable a = make(Law::kA);
  return law == Law::kMu ? mu : a;
}

double Angle(int tone) { return 2 * M_PI * tone / kFrameSamples; }

using Samples = std::array<float, kFrameSamples>;
// Some more than there are tones, so that all are computed side by side.
constexpr size_t kBins = 72;
using Bins = std::array<float, kBins>;

const Bins& Coefficients() {
  static const Bins coefficients = [] {
    Bins made{};
    for (size_t tone = 0; tone < kBins; tone += 1) made[tone] = static_cast<float>(2 * std::cos(Angle(static_cast<int>(tone))));
    return made;
  }();
  return coefficients;
}

// Goertzel: the energy that the frame has at one of its tones.
float EnergyAt(const Samples& samples, int tone) {
  const float coefficient = Coefficients()[static_cast<size_t>(tone)];
  float last = 0;
  float before = 0;
  for (const float sample : samples) {
    const float next = sample + coefficient * last - before;
    before = last;
    last = next;
  }
  return (last * last + before * before - coefficient * last * before) * 2 / kFrameSamples;
}

// The same of all tones: tone by tone in the inner loop, which the compiler makes vectors of.
Bins Energies(const Samples& samples) {
  const Bins& coefficients = Coefficients();
  Bins last{};
  Bins before{};
  for (const float sample : samples) {
    for (size_t tone = 0; tone < kBins; tone += 1) {
      const float next = sample + coefficients[tone] * last[tone] - before[tone];
      before[tone] = last[tone];
      last[tone] = next;
    }
  }
  for (size_t tone = 0; tone < kBins; tone += 1)
    last[tone] = (last[tone] * last[tone] + before[tone] * before[tone] - coefficients[tone] * last[tone] * before[tone]) * 2 / kFrameSamples;
  return last;
}

// True when the frame is two of our tones, equally loud, and little else.
bool FindChord(const Samples& samples, float energy, Chord* found) {
  const Bins energies = Energies(samples);
  float strongest = 0;
  float second = 0;
  int strongest_tone = 0;
  int second_tone = 0;
  for (int tone = kLowestTone; tone <= kHighestTone; tone += 1) {
    const float at = energies[static_cast<size_t>(tone)];
    if (at > strongest) {
      second = strongest;
      second_tone = strongest_tone;
      strongest = at;
      strongest_tone = tone;
    } else if (at > second) {
      second = at;
      second_tone = tone;
    }
  }
  if (strongest + second < kChordShare * energy || strongest > kMaxPowerRatio * second) return false;
  *found = {std::min(strongest_tone, second_tone), std::max(strongest_tone, second_tone)};
  return true;
}

}  // namespace

Chord ChordOf(int slot) {
  int rest = slot % kChords;
  // All pairs of neighbours, then all that are two tones apart, and so on.
  int gap = 1;
  for (; rest >= kTones - gap; gap += 1) rest -= kTones - gap;
  return {kLowestTone + rest, kLowestTone + rest + gap};
}

Frame FrameOf(Law law, const Chord& chord) {
  Frame frame{};
  for (int i = 0; i < kFrameSamples; i += 1) {
    const double sample = kAmplitude * (std::sin(Angle(chord.low) * i) + std::sin(Angle(chord.high) * i));
    // Through the samples once more: µ-law's negative zero would come back as the positive one.
    frame[static_cast<size_t>(i)] = CodeOf(law, SampleOf(law, CodeOf(law, static_cast<int>(std::lround(sample)))));
  }
  return frame;
}

Heard Judge(Law law, const uint8_t* payload, const Chord& own, bool looks_for_others, Chord* other) {
  const DecodeTable& table = TableOf(law);
  Samples samples;
  float energy = 0;
  for (size_t i = 0; i < samples.size(); i += 1) {
    samples[i] = table[payload[i]];
    energy += samples[i] * samples[i];
  }
  if (energy < kSilentRms * kSilentRms * kFrameSamples) return Heard::kSilence;
  const float low = EnergyAt(samples, own.low);
  const float high = EnergyAt(samples, own.high);
  if (low + high > kOwnShare * energy && std::min(low, high) > kOwnPart * energy) return Heard::kOwnTone;
  if (looks_for_others && FindChord(samples, energy, other)) return *other == own ? Heard::kOwnTone : Heard::kOtherTone;
  return Heard::kSpeech;
}

}  // namespace generator
