// What a packet carries in its first samples: when it was sent, which one it is, and whose. Six bits a byte, in codes 0xc0 to 0xff: quiet
// positive samples in both laws, which come through linear samples unchanged (µ-law's 0x7f, the negative zero, would not). Pure.
#pragma once

#include <cstdint>

namespace generator {

struct Stamp {
  uint64_t sent_us;  // of the monotonic clock; 42 bits
  uint32_t serial;   // 24 bits
  int slot;          // 12 bits
  int process;       // 12 bits at random: other generators have the same slots
};

constexpr int kStampBytes = 17;

void WriteStamp(uint8_t* target, const Stamp& stamp);

// False when there is none at this very place.
bool ReadStamp(const uint8_t* source, Stamp* stamp);

// The first place among `places` at which a stamp stands, or -1. Reads source[0, places + kStampBytes - 1).
int FindStamp(const uint8_t* source, int places, Stamp* stamp);

// The time from one moment of 42 bits to another.
uint64_t ElapsedUs(uint64_t from_us, uint64_t to_us);

}  // namespace generator
