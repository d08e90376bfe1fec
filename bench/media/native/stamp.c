#include "stamp.h"

#include <string.h>

enum { TIME_GROUPS = 7, SERIAL_GROUPS = 4, SENT_AT = 0, SERIAL_AT = TIME_GROUPS, SAID_AT = TIME_GROUPS + SERIAL_GROUPS, LOUD = 0xd0 };

static const int64_t WRAP_US = (int64_t)1 << (6 * TIME_GROUPS);

static void write_groups(uint8_t *at, int groups, uint64_t value) {
  for (int i = 0; i < groups; i += 1) at[i] = (uint8_t)(0x80 | (value >> (6 * i) & 63));
}

static uint64_t read_groups(const uint8_t *at, int groups) {
  uint64_t value = 0;
  for (int i = 0; i < groups; i += 1) value |= (uint64_t)(at[i] & 63) << (6 * i);
  return value;
}

int64_t elapsed_us(int64_t from_us, int64_t to_us) {
  const int64_t us = (to_us - from_us) & (WRAP_US - 1);
  return us < WRAP_US / 2 ? us : us - WRAP_US;
}

uint32_t first_serial(int index) { return (uint32_t)index * 47 % ROUND_FRAMES; }

bool is_word(uint32_t serial) { return serial % ROUND_FRAMES < WORD_FRAMES; }

void write_said(uint8_t *frame, int64_t said_us) { write_groups(frame + SAID_AT, TIME_GROUPS, (uint64_t)said_us); }

void write_frame(uint8_t *frame, uint32_t serial, int64_t sent_us) {
  memset(frame, is_word(serial) ? LOUD : STAMP_SILENCE, FRAME_BYTES);
  if (!is_word(serial)) return;
  write_groups(frame + SENT_AT, TIME_GROUPS, (uint64_t)sent_us);
  write_groups(frame + SERIAL_AT, SERIAL_GROUPS, serial);
  write_said(frame, sent_us);
}

bool read_stamp(const uint8_t *frame, Stamp *stamp) {
  for (int i = 0; i < SAID_AT; i += 1)
    if ((frame[i] & 0xc0) != 0x80) return false;
  stamp->sent_us = (int64_t)read_groups(frame + SENT_AT, TIME_GROUPS);
  stamp->serial = (uint32_t)read_groups(frame + SERIAL_AT, SERIAL_GROUPS);
  stamp->said_us = (int64_t)read_groups(frame + SAID_AT, TIME_GROUPS);
  return true;
}

bool is_within(const Window *window, int64_t us) {
  const int64_t since_us = elapsed_us(window->from_us, us);
  return since_us >= 0 && since_us < window->to_us - window->from_us;
}
