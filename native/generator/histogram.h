// Delays, counted in classes that are a 32nd of their size wide. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace generator {

class Histogram {
 public:
  void Add(uint64_t us) {
    counts_[ClassOf(us)] += 1;
    total_ += 1;
    max_us_ = std::max(max_us_, us);
  }

  bool IsEmpty() const { return total_ == 0; }

  // The middle of the class that holds this part of all values; 0 when there are none.
  double Percentile(double part) const {
    uint64_t left = static_cast<uint64_t>(part * static_cast<double>(total_));
    for (size_t i = 0; i < counts_.size(); i += 1) {
      if (left < counts_[i]) return std::min(MiddleOf(i), static_cast<double>(max_us_)) / 1'000;
      left -= counts_[i];
    }
    return MaxMs();
  }

  double MaxMs() const { return static_cast<double>(max_us_) / 1'000; }

 private:
  static constexpr int kParts = 32;    // of an octave
  static constexpr int kOctaves = 24;  // 32 µs to nine minutes

  static size_t ClassOf(uint64_t us) {
    uint64_t octave = 0;
    while ((us >> octave) >= 2 * kParts) octave += 1;
    return std::min(static_cast<size_t>(octave * kParts + (us >> octave)), size_t{kParts * kOctaves - 1});
  }

  static double MiddleOf(size_t index) {
    if (index < 2 * kParts) return static_cast<double>(index);
    const size_t octave = index / kParts - 1;
    const size_t first = (index - octave * kParts) << octave;
    return static_cast<double>(first) + static_cast<double>(size_t{1} << octave) / 2;
  }

  std::array<uint32_t, kParts * kOctaves> counts_{};
  uint64_t total_ = 0;
  uint64_t max_us_ = 0;
};

}  // namespace generator
