// One call: its packets out, what it makes of packets in, and its figures. Knows no sockets; times are given.
#pragma once

#include <string>

#include "../srtp.h"
#include "audio.h"
#include "digits.h"
#include "histogram.h"
#include "reception.h"
#include "rtcp.h"
#include "stamp.h"

namespace generator {

constexpr size_t kMaxPacketBytes = 2'048;
constexpr uint64_t kFrameUs = 20'000;

struct Times {
  uint64_t monotonic_us;
  uint64_t unix_us;
};

struct CallSettings {
  int slot;
  int process;
  Law law;
  int telephone_event;  // payload type, or -1
  std::string digits;
  // Differ from those of the slot's earlier calls: they have the same key.
  uint32_t ssrc;
  uint16_t first_sequence;
  uint32_t first_timestamp;
};

enum class Verdict { kHeard, kSilent, kWrong };

class Call {
 public:
  Call(CallSettings settings, SrtpPointer send, SrtpPointer receive, uint64_t now_us);

  // The next packet, encrypted, in `packet` (kMaxPacketBytes, aligned to 4); 0 when it cannot be made.
  size_t NextPacket(uint8_t* packet, uint64_t now_us);
  // `was_sent` tells whether the system took it.
  void Sent(bool was_sent);
  // RTCP is due after this packet.
  bool IsReportDue() const;
  size_t NextReport(uint8_t* packet, const Times& now);

  // A packet from the call's far end. False when it is not authentic; the packet is then as it was.
  bool TakeRtp(uint8_t* packet, size_t length, uint64_t arrival_us, Histogram* second, Histogram* total);
  bool TakeRtcp(uint8_t* packet, size_t length, const Times& now);
  void Reject() { rejected_ += 1; }
  void MeetStranger() { strangers_ += 1; }

  // What the kernel threw away because we were too slow: our own loss.
  void SetDropped(uint64_t dropped) { dropped_ = dropped; }

  const CallSettings& settings() const { return settings_; }
  uint64_t started_us() const { return started_us_; }
  uint64_t sent() const { return sent_; }
  uint64_t unsent() const { return unsent_; }
  const Reception& reception() const { return reception_; }
  uint64_t Lost() const;
  uint64_t duplicates() const { return duplicates_; }
  uint64_t rejected() const { return rejected_; }
  uint64_t strangers() const { return strangers_; }
  uint64_t dropped() const { return dropped_; }
  const Histogram& delays() const { return delays_; }
  // False when nothing was expected, so that nothing can be said.
  bool OpinionScore(double* mos) const;
  Verdict verdict() const;
  const Digits& digits() const { return digits_; }
  uint64_t rtcp_received() const { return rtcp_received_; }
  bool RemoteLost(int32_t* lost) const;
  bool RoundTripMs(double* ms) const;

 private:
  size_t Audio(uint8_t* packet, uint64_t now_us);
  size_t Event(uint8_t* packet, const EventPacket& event);
  void Listen(const uint8_t* payload, size_t length, uint16_t sequence, uint64_t arrival_us, Histogram* second, Histogram* total);
  bool TakeStamp(const uint8_t* payload, bool follows, uint64_t arrival_us, Histogram* second, Histogram* total);
  void HearOtherStamp(const Stamp& stamp);
  Heard HearFrame(const uint8_t* payload, bool is_stamped);

  const CallSettings settings_;
  const Chord chord_;
  const Frame frame_;
  SrtpPointer send_;
  SrtpPointer receive_;
  const uint64_t started_us_;
  Digits digits_;

  uint16_t sequence_;
  uint32_t timestamp_;
  uint32_t serial_ = 0;
  size_t payload_bytes_ = 0;
  uint64_t sent_ = 0;
  uint64_t unsent_ = 0;
  uint64_t octets_ = 0;

  Reception reception_;
  uint64_t duplicates_ = 0;
  uint64_t rejected_ = 0;
  uint64_t strangers_ = 0;
  uint64_t dropped_ = 0;
  Histogram delays_;

  // The end of the last frame and this one: a stamp may lie across both, where the far side's frames begin elsewhere than ours.
  uint8_t window_[kStampBytes - 1 + kFrameSamples] = {};
  uint16_t last_sequence_ = 0;
  int stamp_at_ = kStampBytes - 1;
  uint64_t own_frames_ = 0;
  bool is_wrong_ = false;
  int other_stamps_ = 0;
  int other_slot_ = 0;
  int other_process_ = 0;
  uint64_t other_frames_ = 0;
  Chord other_chord_{0, 0};
  int other_run_ = 0;

  LastSenderReport last_sender_report_;
  uint64_t rtcp_received_ = 0;
  bool has_block_ = false;
  int32_t remote_lost_ = 0;
  double round_trip_ms_ = -1;
};

}  // namespace generator
