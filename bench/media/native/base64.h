#ifndef BENCH_BASE64_H
#define BENCH_BASE64_H

#include <stddef.h>
#include <stdint.h>

/* Returns the characters written: four for each three bytes begun. */
size_t base64_encode(char *text, const uint8_t *bytes, size_t length);

/* Returns the bytes written, at most `room`; what is no base64 ends it. */
size_t base64_decode(uint8_t *bytes, size_t room, const char *text, size_t length);

#endif
