#include "receivers.h"

#include <speex/speex_jitter.h>
#include <stdlib.h>

#include "orders.h"
#include "stamp.h"

enum {
  SAMPLE_US = 125,
  FRAME_SAMPLES = 160,
  FIXED_US = 40000,
  /*
   * After so long without a word the fixed receiver starts anew, as at a marker (RFC 3551 §4.1): alike for those who send silence in pauses and
   * for those who send nothing.
   */
  SPURT_GAP_US = 200000,
  LATE_US = 10000,
  /* About a second: the earliest of this block and the one before is what lateness is held against. */
  BLOCK_PACKETS = 50,
};

struct Receivers {
  bool has_begun;
  bool has_spurt;
  int64_t last_word_us;
  /* A packet's timestamp, and when the fixed receiver plays it. */
  uint32_t base_timestamp;
  int64_t base_us;
  int packets;
  int64_t earliest_us;
  int64_t earliest_before_us;
  JitterBuffer *adaptive;
  /* When the adaptive receiver plays its next 20 ms. */
  int64_t tick_us;
};

Receivers *receivers_open(void) {
  Receivers *receivers = calloc(1, sizeof *receivers);
  if (receivers == NULL) fail("calloc");
  receivers->adaptive = jitter_buffer_init(FRAME_SAMPLES);
  return receivers;
}

static void begin_spurt(Receivers *receivers, const Arrival *arrival) {
  receivers->base_timestamp = arrival->timestamp;
  receivers->base_us = arrival->arrival_us + FIXED_US;
  receivers->packets = 0;
  receivers->earliest_us = receivers->earliest_before_us = INT64_MAX;
}

static int64_t fixed_play_us(const Receivers *receivers, uint32_t timestamp) {
  return receivers->base_us + (int64_t)(int32_t)(timestamp - receivers->base_timestamp) * SAMPLE_US;
}

static void hear_fixed(const Receivers *receivers, const Arrival *arrival, Played *fixed) {
  if (arrival->said_us < 0) return;
  const int64_t play_us = fixed_play_us(receivers, arrival->timestamp);
  if (arrival->arrival_us > play_us) {
    fixed->late += 1;
    return;
  }
  fixed->played += 1;
  fixed->delays_us += (double)elapsed_us(arrival->said_us, play_us);
}

static bool is_late(Receivers *receivers, const Arrival *arrival) {
  const int64_t behind_us = arrival->arrival_us - fixed_play_us(receivers, arrival->timestamp);
  if (receivers->packets == BLOCK_PACKETS) {
    receivers->packets = 0;
    receivers->earliest_before_us = receivers->earliest_us;
    receivers->earliest_us = INT64_MAX;
  }
  receivers->packets += 1;
  if (behind_us < receivers->earliest_us) receivers->earliest_us = behind_us;
  const int64_t earliest_us =
      receivers->earliest_us < receivers->earliest_before_us ? receivers->earliest_us : receivers->earliest_before_us;
  return behind_us > earliest_us + LATE_US;
}

/* What was put in and never comes out was late. */
void receivers_play(Receivers *receivers, int64_t until_us, Played *adaptive) {
  if (!receivers->has_begun) return;
  for (; receivers->tick_us <= until_us; receivers->tick_us += FRAME_US) {
    int64_t said_us = -1;
    spx_int32_t offset = 0;
    JitterBufferPacket packet = {.data = (char *)&said_us, .len = sizeof said_us};
    const int result = jitter_buffer_get(receivers->adaptive, &packet, FRAME_SAMPLES, &offset);
    jitter_buffer_tick(receivers->adaptive);
    if (result != JITTER_BUFFER_OK || said_us < 0) continue;
    adaptive->played += 1;
    adaptive->late -= 1;
    adaptive->delays_us += (double)elapsed_us(said_us, receivers->tick_us + (int64_t)offset * SAMPLE_US);
  }
}

static void hear_adaptive(Receivers *receivers, const Arrival *arrival, Played *adaptive) {
  receivers_play(receivers, arrival->arrival_us, adaptive);
  int64_t said_us = arrival->said_us;
  JitterBufferPacket packet = {.data = (char *)&said_us, .len = sizeof said_us, .timestamp = arrival->timestamp, .span = FRAME_SAMPLES};
  jitter_buffer_put(receivers->adaptive, &packet);
  /* Taken off again when it is played. */
  if (said_us >= 0) adaptive->late += 1;
}

bool receivers_hear(Receivers *receivers, const Arrival *arrival, Played *fixed, Played *adaptive) {
  if (!receivers->has_begun) receivers->tick_us = arrival->arrival_us;
  receivers->has_begun = true;
  hear_adaptive(receivers, arrival, adaptive);
  if (!arrival->is_word) return false;
  const bool is_pause_over = arrival->arrival_us - receivers->last_word_us > SPURT_GAP_US;
  if (!receivers->has_spurt || arrival->has_marker || is_pause_over) begin_spurt(receivers, arrival);
  receivers->has_spurt = true;
  receivers->last_word_us = arrival->arrival_us;
  hear_fixed(receivers, arrival, fixed);
  return is_late(receivers, arrival);
}
