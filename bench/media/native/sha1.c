#include "sha1.h"

#include <string.h>

enum { BLOCK_BYTES = 64 };

static uint32_t rotated(uint32_t value, int bits) { return value << bits | value >> (32 - bits); }

static void add_block(uint32_t state[5], const uint8_t *block) {
  uint32_t word[80];
  for (int i = 0; i < 16; i += 1)
    word[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 | (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
  for (int i = 16; i < 80; i += 1) word[i] = rotated(word[i - 3] ^ word[i - 8] ^ word[i - 14] ^ word[i - 16], 1);
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
  for (int i = 0; i < 80; i += 1) {
    uint32_t mixed, constant;
    if (i < 20) mixed = (b & c) | (~b & d), constant = 0x5a827999;
    else if (i < 40) mixed = b ^ c ^ d, constant = 0x6ed9eba1;
    else if (i < 60) mixed = (b & c) | (b & d) | (c & d), constant = 0x8f1bbcdc;
    else mixed = b ^ c ^ d, constant = 0xca62c1d6;
    const uint32_t next = rotated(a, 5) + mixed + e + word[i] + constant;
    e = d;
    d = c;
    c = rotated(b, 30);
    b = a;
    a = next;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

void sha1(const uint8_t *message, size_t length, uint8_t digest[SHA1_BYTES]) {
  uint32_t state[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  uint8_t padded[2 * BLOCK_BYTES] = {0};
  memcpy(padded, message, length);
  padded[length] = 0x80;
  const size_t whole = length + 9 <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
  padded[whole - 2] = (uint8_t)(length * 8 >> 8);
  padded[whole - 1] = (uint8_t)(length * 8);
  for (size_t at = 0; at < whole; at += BLOCK_BYTES) add_block(state, padded + at);
  for (int i = 0; i < SHA1_BYTES; i += 1) digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
