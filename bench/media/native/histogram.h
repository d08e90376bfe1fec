#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { HISTOGRAM_STEP_US = 20, HISTOGRAM_STEPS = 250000 };

/* Delays from 0 to 5 s in steps of 20 µs; what is longer counts as 5 s. */
typedef struct {
  uint64_t count;
  int64_t most_us;
  uint32_t steps[HISTOGRAM_STEPS];
} Histogram;

static inline void histogram_clear(Histogram *histogram) { memset(histogram, 0, sizeof *histogram); }

static inline void histogram_add(Histogram *histogram, int64_t us) {
  const int64_t step = us / HISTOGRAM_STEP_US;
  histogram->steps[step < 0 ? 0 : step >= HISTOGRAM_STEPS ? HISTOGRAM_STEPS - 1 : step] += 1;
  histogram->count += 1;
  if (us > histogram->most_us) histogram->most_us = us;
}

/* Milliseconds, below which the given share of the delays lies; NaN without any. */
static inline double histogram_ms(const Histogram *histogram, double share) {
  const uint64_t rank = (uint64_t)(share * (double)histogram->count);
  uint64_t below = 0;
  for (int step = 0; step < HISTOGRAM_STEPS; step += 1) {
    below += histogram->steps[step];
    if (below > rank) return (step + 0.5) * HISTOGRAM_STEP_US / 1000.0;
  }
  return 0.0 / 0.0;
}

/* As words of an answer: name, then p50, p99, p99.9 and the longest in milliseconds. */
static inline void histogram_print(const char *name, const Histogram *histogram) {
  printf(" %s %.3f %.3f %.3f %.3f", name, histogram_ms(histogram, 0.5), histogram_ms(histogram, 0.99), histogram_ms(histogram, 0.999),
         (double)histogram->most_us / 1000.0);
}

#endif
