#include "call.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace generator {
namespace {

constexpr uint64_t kFirstReportFrames = 25;   // half a second
constexpr uint64_t kReportFrames = 250;       // 5 s
constexpr uint64_t kHeardFrames = 10;         // 200 ms of the own tone
constexpr uint64_t kFramesPerSearch = 5;      // frames of speech between two looks for another slot's chord
constexpr int kOtherRun = 3;                  // looks that see the same chord, which no vowel does, or the same other slot's stamp
constexpr uint64_t kLongestDelayUs = 60'000'000;

// The own chord, cut within a frame, leaks into the tones beside its own: two that are neighbours (46 and 47) were seen as 46 and 48.
bool IsLeakOf(const Chord& own, const Chord& seen) {
  return own.high - own.low == 1 && seen.high - seen.low == 2 && (seen.low == own.low || seen.high == own.high);
}

void Write16(uint8_t* at, uint16_t value) {
  at[0] = static_cast<uint8_t>(value >> 8);
  at[1] = static_cast<uint8_t>(value);
}

void Write32(uint8_t* at, uint32_t value) {
  Write16(at, static_cast<uint16_t>(value >> 16));
  Write16(at + 2, static_cast<uint16_t>(value));
}

uint16_t Read16(const uint8_t* at) { return static_cast<uint16_t>(at[0] << 8 | at[1]); }
uint32_t Read32(const uint8_t* at) { return static_cast<uint32_t>(Read16(at)) << 16 | Read16(at + 2); }

// Where the payload of a packet that is RTP lies; false when its padding does not fit.
bool FindPayload(const uint8_t* packet, size_t length, size_t* start, size_t* end) {
  *start = static_cast<size_t>(kRtpHeaderSize) + 4 * static_cast<size_t>(packet[0] & 0x0f);
  if ((packet[0] & 0x10) != 0) *start += 4 + 4 * static_cast<size_t>(Read16(packet + *start + 2));
  *end = length;
  if ((packet[0] & 0x20) == 0) return true;
  const size_t padding = packet[length - 1];
  *end -= std::min(padding, length);
  return padding > 0 && *start <= *end;
}

}  // namespace

Call::Call(CallSettings settings, SrtpPointer send, SrtpPointer receive, uint64_t now_us)
    : settings_(std::move(settings)),
      chord_(ChordOf(settings_.slot)),
      frame_(FrameOf(settings_.law, chord_)),
      send_(std::move(send)),
      receive_(std::move(receive)),
      started_us_(now_us),
      digits_(settings_.digits),
      sequence_(settings_.first_sequence),
      timestamp_(settings_.first_timestamp) {}

size_t Call::NextPacket(uint8_t* packet, uint64_t now_us) {
  EventPacket event;
  const bool is_event = digits_.Next(timestamp_, &event);
  packet[0] = 0x80;
  Write16(packet + 2, sequence_);
  Write32(packet + 8, settings_.ssrc);
  payload_bytes_ = is_event ? Event(packet, event) : Audio(packet, now_us);
  sequence_ += 1;
  timestamp_ += kFrameSamples;
  int length = static_cast<int>(static_cast<size_t>(kRtpHeaderSize) + payload_bytes_);
  return srtp_protect(send_.get(), packet, &length) == srtp_err_status_ok ? static_cast<size_t>(length) : 0;
}

size_t Call::Audio(uint8_t* packet, uint64_t now_us) {
  packet[1] = static_cast<uint8_t>((serial_ == 0 ? 0x80 : 0) | static_cast<uint8_t>(settings_.law));
  Write32(packet + 4, timestamp_);
  serial_ = (serial_ + 1) & 0xffffff;
  std::memcpy(packet + kRtpHeaderSize, frame_.data(), frame_.size());
  WriteStamp(packet + kRtpHeaderSize, {now_us, serial_, settings_.slot, settings_.process});
  return frame_.size();
}

size_t Call::Event(uint8_t* packet, const EventPacket& event) {
  packet[1] = static_cast<uint8_t>((event.is_first ? 0x80 : 0) | settings_.telephone_event);
  Write32(packet + 4, event.timestamp);
  std::memcpy(packet + kRtpHeaderSize, event.payload, kEventBytes);
  return kEventBytes;
}

void Call::Sent(bool was_sent) {
  if (!was_sent) {
    unsent_ += 1;
    return;
  }
  sent_ += 1;
  octets_ += payload_bytes_;
}

bool Call::IsReportDue() const { return sent_ % kReportFrames == kFirstReportFrames; }

size_t Call::NextReport(uint8_t* packet, const Times& now) {
  ReceptionReport reception;
  const bool has_reception = reception_.TakeReport(&reception);
  const SenderFigures sent = {settings_.ssrc, static_cast<uint32_t>(sent_), static_cast<uint32_t>(octets_), timestamp_ - kFrameSamples};
  int length = static_cast<int>(
      WriteReport(packet, sent, NtpOf(now.unix_us), has_reception ? &reception : nullptr, last_sender_report_, now.monotonic_us));
  return srtp_protect_rtcp(send_.get(), packet, &length) == srtp_err_status_ok ? static_cast<size_t>(length) : 0;
}

bool Call::TakeRtp(uint8_t* packet, size_t length, uint64_t arrival_us, Histogram* second, Histogram* total) {
  int size = static_cast<int>(length);
  if (size < kRtpHeaderSize + kRtpTrailerSize || !IsRtp(packet, size - kRtpTrailerSize)) return false;
  const srtp_err_status_t status = srtp_unprotect(receive_.get(), packet, &size);
  if (status == srtp_err_status_replay_fail) {
    duplicates_ += 1;
    return true;
  }
  size_t start = 0;
  size_t end = 0;
  if (status != srtp_err_status_ok || !FindPayload(packet, static_cast<size_t>(size), &start, &end)) return false;
  const int payload_type = packet[1] & 0x7f;
  const bool is_audio = payload_type == static_cast<int>(settings_.law);
  const uint16_t sequence = Read16(packet + 2);
  if (!reception_.Take(Read32(packet + 8), sequence, Read32(packet + 4), payload_type != settings_.telephone_event, arrival_us)) return false;
  if (is_audio) Listen(packet + start, end - start, sequence, arrival_us, second, total);
  return true;
}

void Call::Listen(const uint8_t* payload, size_t length, uint16_t sequence, uint64_t arrival_us, Histogram* second, Histogram* total) {
  const bool follows = static_cast<uint16_t>(last_sequence_ + 1) == sequence;
  last_sequence_ = sequence;
  for (size_t at = 0; at + kFrameSamples <= length; at += kFrameSamples) {
    const bool is_stamped = TakeStamp(payload + at, follows || at > 0, arrival_us, second, total);
    digits_.Hear(HearFrame(payload + at, is_stamped));
  }
}

bool Call::TakeStamp(const uint8_t* payload, bool follows, uint64_t arrival_us, Histogram* second, Histogram* total) {
  constexpr int kTail = kStampBytes - 1;
  if (follows) {
    std::memmove(window_, window_ + kFrameSamples, kTail);
  } else {
    std::memset(window_, 0, kTail);
  }
  std::memcpy(window_ + kTail, payload, kFrameSamples);
  Stamp stamp;
  if (!ReadStamp(window_ + stamp_at_, &stamp)) {
    const int found = FindStamp(window_, kFrameSamples, &stamp);
    if (found < 0) return false;
    stamp_at_ = found;
  }
  const uint64_t delay_us = ElapsedUs(stamp.sent_us, arrival_us);
  if (delay_us > kLongestDelayUs) return false;
  if (stamp.slot != settings_.slot || stamp.process != settings_.process) {
    HearOtherStamp(stamp);
    return false;
  }
  delays_.Add(delay_us);
  second->Add(delay_us);
  total->Add(delay_us);
  return true;
}

// The check has twelve bits: of quiet speech, and of a stamp that a splice cut, one in some thousand passes, and never twice as the same slot's.
void Call::HearOtherStamp(const Stamp& stamp) {
  const bool is_same = other_stamps_ > 0 && stamp.slot == other_slot_ && stamp.process == other_process_;
  other_stamps_ = is_same ? other_stamps_ + 1 : 1;
  other_slot_ = stamp.slot;
  other_process_ = stamp.process;
  if (other_stamps_ >= kOtherRun) is_wrong_ = true;
}

Heard Call::HearFrame(const uint8_t* payload, bool is_stamped) {
  // As we sent it: nothing needs to be computed.
  if (is_stamped && std::memcmp(payload + kStampBytes, frame_.data() + kStampBytes, kFrameSamples - kStampBytes) == 0) {
    own_frames_ += 1;
    return Heard::kOwnTone;
  }
  Chord other{0, 0};
  const bool looks = other_frames_ % kFramesPerSearch == 0;
  const Heard heard = Judge(settings_.law, payload, chord_, looks, &other);
  if (heard == Heard::kOwnTone) own_frames_ += 1;
  if (heard != Heard::kSpeech && heard != Heard::kOtherTone) return heard;
  other_frames_ += 1;
  if (!looks) return heard;
  const bool is_other = heard == Heard::kOtherTone && !IsLeakOf(chord_, other);
  other_run_ = is_other && other == other_chord_ ? other_run_ + 1 : is_other ? 1 : 0;
  other_chord_ = other;
  if (other_run_ >= kOtherRun) is_wrong_ = true;
  return heard;
}

bool Call::TakeRtcp(uint8_t* packet, size_t length, const Times& now) {
  int size = static_cast<int>(length);
  if (size < 8 + kRtcpTrailerSize || packet[0] >> 6 != 2) return false;
  if (srtp_unprotect_rtcp(receive_.get(), packet, &size) != srtp_err_status_ok) return false;
  ReportsOfUs reports;
  if (!ReadReports(packet, static_cast<size_t>(size), settings_.ssrc, &reports)) return false;
  rtcp_received_ += 1;
  if (reports.has_sender_report) last_sender_report_ = {reports.sender_ssrc, reports.sender_middle, now.monotonic_us};
  if (!reports.has_block) return true;
  has_block_ = true;
  remote_lost_ = reports.cumulative_lost;
  if (reports.last_sender_report == 0) return true;
  const uint32_t round_trip = MiddleOf(NtpOf(now.unix_us)) - reports.last_sender_report - reports.delay_since;
  // A clock that was set in between makes it negative.
  if (round_trip < 0x8000'0000) round_trip_ms_ = round_trip * 1'000.0 / 65'536;
  return true;
}

uint64_t Call::Lost() const {
  const uint64_t missing = reception_.expected() - reception_.received();
  return missing - std::min(missing, dropped_);
}

// The E-model of ITU-T G.107 with defaults for all but loss and delay, as in src/rtp/mos.ts. Half of the way there and back is one way.
bool Call::OpinionScore(double* mos) const {
  const uint64_t expected = reception_.expected();
  if (expected == 0) return false;
  const double percent = 100.0 * static_cast<double>(Lost()) / static_cast<double>(expected);
  const double delay_ms = delays_.Percentile(0.5) / 2;
  const double r = 93.2 - 0.024 * delay_ms - 0.11 * std::max(0.0, delay_ms - 177.3) - 95 * percent / (percent + 25.1);
  *mos = r <= 0 ? 1 : std::max(1.0, 1 + 0.035 * r + r * (r - 60) * (100 - r) * 7e-6);
  return true;
}

Verdict Call::verdict() const {
  if (is_wrong_) return Verdict::kWrong;
  return own_frames_ >= kHeardFrames ? Verdict::kHeard : Verdict::kSilent;
}

bool Call::RemoteLost(int32_t* lost) const {
  *lost = remote_lost_;
  return has_block_;
}

bool Call::RoundTripMs(double* ms) const {
  *ms = round_trip_ms_;
  return round_trip_ms_ >= 0;
}

}  // namespace generator
