#ifndef BENCH_SHA1_H
#define BENCH_SHA1_H

#include <stddef.h>
#include <stdint.h>

enum { SHA1_BYTES = 20 };

/* Of at most 119 bytes (RFC 3174), as a WebSocket's handshake needs it. */
void sha1(const uint8_t *message, size_t length, uint8_t digest[SHA1_BYTES]);

#endif
