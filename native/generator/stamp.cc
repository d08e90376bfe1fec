#include "stamp.h"

namespace generator {
namespace {

constexpr int kTimeGroups = 7;
constexpr int kSerialGroups = 4;
constexpr int kSlotGroups = 2;
constexpr int kProcessGroups = 2;
constexpr int kChecked = kTimeGroups + kSerialGroups + kSlotGroups + kProcessGroups;
constexpr int kCheckGroups = 2;
static_assert(kChecked + kCheckGroups == kStampBytes);

constexpr uint64_t kTimeMask = (uint64_t{1} << (6 * kTimeGroups)) - 1;

// FNV-1a over the groups, folded into twelve bits.
constexpr uint32_t CheckOf(const uint8_t* groups) {
  uint32_t hash = 2'166'136'261u;
  for (int i = 0; i < kChecked; i += 1) hash = (hash ^ groups[i]) * 16'777'619u;
  return (hash ^ (hash >> 12) ^ (hash >> 24)) & 0xfff;
}

constexpr bool IsCheckedBy(const uint8_t* stamp) {
  const uint32_t check = CheckOf(stamp);
  return (stamp[kChecked] & 0x3f) == (check & 0x3f) && (stamp[kChecked + 1] & 0x3f) == (check >> 6);
}

// Silence is one and the same code all the time.
constexpr bool IsAnySilenceAStamp() {
  for (int code = 0xc0; code <= 0xff; code += 1) {
    uint8_t silence[kStampBytes] = {};
    for (uint8_t& byte : silence) byte = static_cast<uint8_t>(code);
    if (IsCheckedBy(silence)) return true;
  }
  return false;
}
static_assert(!IsAnySilenceAStamp());

uint8_t* WriteGroups(uint8_t* target, uint64_t value, int groups) {
  for (int i = 0; i < groups; i += 1, value >>= 6) *target++ = static_cast<uint8_t>(0xc0 | (value & 0x3f));
  return target;
}

uint64_t ReadGroups(const uint8_t* source, int groups) {
  uint64_t value = 0;
  for (int i = groups - 1; i >= 0; i -= 1) value = (value << 6) | (source[i] & 0x3f);
  return value;
}

}  // namespace

void WriteStamp(uint8_t* target, const Stamp& stamp) {
  uint8_t* at = WriteGroups(target, stamp.sent_us & kTimeMask, kTimeGroups);
  at = WriteGroups(at, stamp.serial, kSerialGroups);
  at = WriteGroups(at, static_cast<uint64_t>(stamp.slot), kSlotGroups);
  at = WriteGroups(at, static_cast<uint64_t>(stamp.process), kProcessGroups);
  WriteGroups(at, CheckOf(target), kCheckGroups);
}

bool ReadStamp(const uint8_t* source, Stamp* stamp) {
  for (int i = 0; i < kStampBytes; i += 1)
    if (source[i] < 0xc0) return false;
  if (!IsCheckedBy(source)) return false;
  stamp->sent_us = ReadGroups(source, kTimeGroups);
  source += kTimeGroups;
  stamp->serial = static_cast<uint32_t>(ReadGroups(source, kSerialGroups));
  source += kSerialGroups;
  stamp->slot = static_cast<int>(ReadGroups(source, kSlotGroups));
  stamp->process = static_cast<int>(ReadGroups(source + kSlotGroups, kProcessGroups));
  return true;
}

int FindStamp(const uint8_t* source, int places, Stamp* stamp) {
  for (int at = 0; at < places; at += 1)
    if (ReadStamp(source + at, stamp)) return at;
  return -1;
}

uint64_t ElapsedUs(uint64_t from_us, uint64_t to_us) { return (to_us - from_us) & kTimeMask; }

}  // namespace generator
