#ifndef BENCH_STAMP_H
#define BENCH_STAMP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What a frame of the benchmark carries in its audio: when its speaker sent it, which one it is, and when the bot wrote it. A group of six bits
 * is a byte from 0x80 to 0xbf, which µ-law passes through linear samples unchanged (0x7f, the negative zero, would not).
 */
enum {
  FRAME_BYTES = 160,
  FRAME_US = 20000,
  STAMP_SILENCE = 0xff,
  /* As people speak: two seconds of words, one of silence. */
  ROUND_FRAMES = 150,
  WORD_FRAMES = 100,
};

typedef struct {
  /* On the monotonic clock, modulo 2^42: 50 days. */
  int64_t sent_us;
  uint32_t serial;
  int64_t said_us;
} Stamp;

/* From one moment until another, both of which may have been read from a stamp; below 0 if the other one is earlier. */
int64_t elapsed_us(int64_t from_us, int64_t to_us);

/* Whether the frame of this serial number is part of a word. */
bool is_word(uint32_t serial);

/* Before the first frame of a speaker with this number: not all of them pause at once. */
uint32_t first_serial(int index);

/*
 * Fills a frame with a sound and its speaker's stamp, or with silence. Until a bot has written its own time there, the frame was
 * said when it was sent.
 */
void write_frame(uint8_t *frame, uint32_t serial, int64_t sent_us);

/* The bot's own time in a frame. */
void write_said(uint8_t *frame, int64_t said_us);

/* False for silence. */
bool read_stamp(const uint8_t *frame, Stamp *stamp);

/* A stretch of time whose frames count. */
typedef struct {
  int64_t from_us;
  int64_t to_us;
} Window;

bool is_within(const Window *window, int64_t us);

#endif
