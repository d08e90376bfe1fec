// RTCP compounds (RFC 3550 §6): a sender report with a report block and a CNAME, and what the other side's reports say of us. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reception.h"

namespace generator {

constexpr size_t kMaxReportBytes = 128;

struct SenderFigures {
  uint32_t ssrc;
  uint32_t packets;
  uint32_t octets;
  uint32_t timestamp;
};

// The other side's last sender report, as a report block names it.
struct LastSenderReport {
  uint32_t ssrc = 0;
  uint32_t middle = 0;  // of its NTP timestamp; 0: none came
  uint64_t arrival_us = 0;
};

struct ReportsOfUs {
  bool has_sender_report = false;
  uint32_t sender_ssrc = 0;
  uint32_t sender_middle = 0;
  bool has_block = false;
  int32_t cumulative_lost = 0;
  uint32_t last_sender_report = 0;
  uint32_t delay_since = 0;
};

// Seconds since 1900 and their fraction, of a time in microseconds since 1970.
uint64_t NtpOf(uint64_t unix_us);
constexpr uint32_t MiddleOf(uint64_t ntp) { return static_cast<uint32_t>(ntp >> 16); }

// Returns the length; `reception` is null when nothing was heard.
size_t WriteReport(uint8_t* target, const SenderFigures& sent, uint64_t ntp, const ReceptionReport* reception, const LastSenderReport& last,
                   uint64_t now_us);

// False when it is no compound packet. Only blocks about `ssrc` count.
bool ReadReports(const uint8_t* bytes, size_t length, uint32_t ssrc, ReportsOfUs* reports);

}  // namespace generator
