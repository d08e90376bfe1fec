#ifndef BENCH_RECEIVERS_H
#define BENCH_RECEIVERS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * When a caller would hear what comes over the wire: a receiver with a fixed buffer of 40 ms, and the adaptive one of libspeexdsp, which
 * Trunkline's authors have no part in. Both play by the timestamps of RTP and are fed with the times at which the kernel got the datagrams.
 */
typedef struct Receivers Receivers;

typedef struct {
  int64_t arrival_us;
  uint32_t timestamp;
  bool has_marker;
  /* Not silence. */
  bool is_word;
  /* When the bot wrote the frame, on the monotonic clock; -1: the frame does not count. */
  int64_t said_us;
} Arrival;

/* Of all calls. Delays are from the bot's writing to the first sample played. */
typedef struct {
  uint64_t played;
  uint64_t late;
  double delays_us;
} Played;

/* Ends the process when there is no memory. */
Receivers *receivers_open(void);

/* Hears one packet, and adds what is played. Returns whether it was sent late: over 10 ms behind the earliest of the last second or two. */
bool receivers_hear(Receivers *receivers, const Arrival *arrival, Played *fixed, Played *adaptive);

/* Plays what is still to be played before this moment of the monotonic clock. */
void receivers_play(Receivers *receivers, int64_t until_us, Played *adaptive);

#endif
