#include "reception.h"

#include <algorithm>
#include <cstdlib>

namespace generator {
namespace {

constexpr size_t kMaxSources = 16;
constexpr int kTicksPerMs = 8;

}  // namespace

Reception::Source* Reception::SourceOf(uint32_t ssrc, uint16_t sequence) {
  for (Source& source : sources_)
    if (source.ssrc == ssrc) return &source;
  if (sources_.size() == kMaxSources) return nullptr;
  // One round up: what came before the first packet has numbers too.
  const int64_t first = 65'536 + sequence;
  sources_.push_back({ssrc, first, first - 1, 0, false, 0, 0, 0, 0});
  return &sources_.back();
}

bool Reception::Take(uint32_t ssrc, uint16_t sequence, uint32_t timestamp, bool has_media_time, uint64_t arrival_us) {
  Source* const source = SourceOf(ssrc, sequence);
  if (source == nullptr) return false;
  latest_ = static_cast<size_t>(source - sources_.data());
  const int64_t extended = source->highest + static_cast<int16_t>(sequence - static_cast<uint16_t>(source->highest));
  if (extended <= source->highest) out_of_order_ += 1;
  source->highest = std::max(source->highest, extended);
  source->lowest = std::min(source->lowest, extended);
  source->received += 1;
  if (!has_media_time) return true;
  // A.8, with the arrival in timestamp units.
  const uint32_t transit = static_cast<uint32_t>(arrival_us * kTicksPerMs / 1'000) - timestamp;
  if (source->has_transit) {
    const double difference = std::abs(static_cast<double>(static_cast<int32_t>(transit - source->transit)));
    source->jitter_ticks += (difference - source->jitter_ticks) / 16;
  }
  source->has_transit = true;
  source->transit = transit;
  return true;
}

uint64_t Reception::received() const {
  uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.received;
  return sum;
}

uint64_t Reception::expected() const {
  uint64_t sum = 0;
  for (const Source& source : sources_) sum += source.Expected();
  return sum;
}

double Reception::JitterMs() const { return sources_.empty() ? 0 : sources_[latest_].jitter_ticks / kTicksPerMs; }

bool Reception::TakeReport(ReceptionReport* report) {
  if (sources_.empty()) return false;
  Source& source = sources_[latest_];
  const uint64_t expected = source.Expected();
  const int64_t lost = static_cast<int64_t>(expected) - static_cast<int64_t>(source.received);
  const int64_t expected_now = static_cast<int64_t>(expected - source.expected_before);
  const int64_t lost_now = expected_now - static_cast<int64_t>(source.received - source.received_before);
  source.expected_before = expected;
  source.received_before = source.received;
  report->ssrc = source.ssrc;
  report->fraction_lost = static_cast<uint8_t>(expected_now == 0 || lost_now <= 0 ? 0 : std::min<int64_t>(255, lost_now * 256 / expected_now));
  report->cumulative_lost = static_cast<int32_t>(std::min<int64_t>(0x7fffff, lost));
  report->extended_highest = static_cast<uint32_t>(source.highest - 65'536);
  report->jitter_ticks = static_cast<uint32_t>(source.jitter_ticks);
  return true;
}

}  // namespace generator
