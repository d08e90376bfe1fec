#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>
#include <time.h>

/* The machine's monotonic clock in microseconds: the same in all processes, and the one of Node.js's process.hrtime. */
static inline int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* What must be added to the wall clock for the monotonic one, in microseconds. The kernel stamps datagrams by the former. */
static inline int64_t wall_to_monotonic_us(void) {
  struct timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  return now_us() - ((int64_t)wall.tv_sec * 1000000 + wall.tv_nsec / 1000);
}

#endif
