#include "rtcp.h"

#include <cstdio>
#include <cstring>

namespace generator {
namespace {

constexpr uint8_t kSenderReport = 200;
constexpr uint8_t kReceiverReport = 201;
constexpr uint8_t kSourceDescription = 202;
constexpr uint8_t kCname = 1;
constexpr uint64_t kSecondsFrom1900To1970 = 2'208'988'800;
constexpr size_t kHeaderBytes = 8;  // with the SSRC
constexpr size_t kSenderBytes = 20;
constexpr size_t kBlockBytes = 24;

uint8_t* Write32(uint8_t* at, uint64_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) *at++ = static_cast<uint8_t>(value >> shift);
  return at;
}

uint32_t Read32(const uint8_t* at) {
  return static_cast<uint32_t>(at[0]) << 24 | static_cast<uint32_t>(at[1]) << 16 | static_cast<uint32_t>(at[2]) << 8 | at[3];
}

// §6.4.1: its length is known when it is written.
uint8_t* WriteHeader(uint8_t* at, size_t count, uint8_t type, size_t bytes) {
  *at++ = static_cast<uint8_t>(0x80 | count);
  *at++ = type;
  const size_t words = bytes / 4 - 1;
  *at++ = static_cast<uint8_t>(words >> 8);
  *at++ = static_cast<uint8_t>(words);
  return at;
}

uint8_t* WriteBlock(uint8_t* at, const ReceptionReport& reception, const LastSenderReport& last, uint64_t now_us) {
  const bool has_last = last.middle != 0 && last.ssrc == reception.ssrc;
  at = Write32(at, reception.ssrc);
  at = Write32(at, static_cast<uint32_t>(reception.fraction_lost) << 24 | (static_cast<uint32_t>(reception.cumulative_lost) & 0xffffff));
  at = Write32(at, reception.extended_highest);
  at = Write32(at, reception.jitter_ticks);
  at = Write32(at, has_last ? last.middle : 0);
  return Write32(at, has_last ? (now_us - last.arrival_us) * 65'536 / 1'000'000 : 0);
}

uint8_t* WriteCname(uint8_t* at, uint32_t ssrc) {
  char name[16];
  const int length = std::snprintf(name, sizeof name, "%08x", ssrc);
  uint8_t* const start = at;
  at = Write32(at + 4, ssrc);
  *at++ = kCname;
  *at++ = static_cast<uint8_t>(length);
  std::memcpy(at, name, static_cast<size_t>(length));
  at += length;
  // §6.5: the list of items ends with a zero, on a 32-bit boundary.
  do *at++ = 0;
  while ((at - start) % 4 != 0);
  WriteHeader(start, 1, kSourceDescription, static_cast<size_t>(at - start));
  return at;
}

void ReadBlocks(const uint8_t* block, size_t count, uint32_t ssrc, ReportsOfUs* reports) {
  for (; count > 0; count -= 1, block += kBlockBytes) {
    if (Read32(block) != ssrc) continue;
    reports->has_block = true;
    // A 24-bit signed number.
    reports->cumulative_lost = static_cast<int32_t>(Read32(block + 4) << 8) >> 8;
    reports->last_sender_report = Read32(block + 16);
    reports->delay_since = Read32(block + 20);
  }
}

}  // namespace

uint64_t NtpOf(uint64_t unix_us) {
  return (unix_us / 1'000'000 + kSecondsFrom1900To1970) << 32 | (unix_us % 1'000'000 << 32) / 1'000'000;
}

size_t WriteReport(uint8_t* target, const SenderFigures& sent, uint64_t ntp, const ReceptionReport* reception, const LastSenderReport& last,
                   uint64_t now_us) {
  const size_t blocks = reception == nullptr ? 0 : 1;
  uint8_t* at = WriteHeader(target, blocks, kSenderReport, kHeaderBytes + kSenderBytes + blocks * kBlockBytes);
  at = Write32(at, sent.ssrc);
  at = Write32(Write32(at, ntp >> 32), ntp);
  at = Write32(at, sent.timestamp);
  at = Write32(Write32(at, sent.packets), sent.octets);
  if (reception != nullptr) at = WriteBlock(at, *reception, last, now_us);
  at = WriteCname(at, sent.ssrc);
  return static_cast<size_t>(at - target);
}

bool ReadReports(const uint8_t* bytes, size_t length, uint32_t ssrc, ReportsOfUs* reports) {
  *reports = {};
  for (size_t at = 0; at < length;) {
    if (length - at < 4 || bytes[at] >> 6 != 2) return false;
    const size_t size = 4 * (static_cast<size_t>(bytes[at + 2] << 8 | bytes[at + 3]) + 1);
    if (size > length - at) return false;
    const uint8_t type = bytes[at + 1];
    const bool is_sender = type == kSenderReport;
    if (is_sender || type == kReceiverReport) {
      const size_t count = bytes[at] & 0x1f;
      const size_t first = kHeaderBytes + (is_sender ? kSenderBytes : 0);
      if (size < first + count * kBlockBytes) return false;
      if (is_sender) {
        reports->has_sender_report = true;
        reports->sender_ssrc = Read32(bytes + at + 4);
        reports->sender_middle = Read32(bytes + at + 10);
      }
      ReadBlocks(bytes + at + first, count, ssrc, reports);
    }
    at += size;
  }
  return length > 0;
}

}  // namespace generator
