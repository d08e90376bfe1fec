#include "base64.h"

static const char ALPHABET[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t base64_encode(char *text, const uint8_t *bytes, size_t length) {
  size_t written = 0;
  for (size_t i = 0; i < length; i += 3) {
    const size_t left = length - i;
    const uint32_t bits = (uint32_t)bytes[i] << 16 | (left > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) | (left > 2 ? bytes[i + 2] : 0);
    text[written] = ALPHABET[bits >> 18];
    text[written + 1] = ALPHABET[bits >> 12 & 63];
    text[written + 2] = left > 1 ? ALPHABET[bits >> 6 & 63] : '=';
    text[written + 3] = left > 2 ? ALPHABET[bits & 63] : '=';
    written += 4;
  }
  return written;
}

/* One more than the value of each character; 0 for what is none. */
static const uint8_t *values(void) {
  static uint8_t table[256];
  if (table['A'] == 0)
    for (int i = 0; i < 64; i += 1) table[(uint8_t)ALPHABET[i]] = (uint8_t)(i + 1);
  return table;
}

size_t base64_decode(uint8_t *bytes, size_t room, const char *text, size_t length) {
  const uint8_t *value = values();
  size_t written = 0;
  uint32_t bits = 0;
  int count = 0;
  for (size_t i = 0; i < length && written < room; i += 1) {
    const uint8_t next = value[(uint8_t)text[i]];
    if (next == 0) break;
    bits = bits << 6 | (uint32_t)(next - 1);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes[written] = (uint8_t)(bits >> count);
    written += 1;
  }
  return written;
}
