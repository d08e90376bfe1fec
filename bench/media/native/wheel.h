#ifndef BENCH_WHEEL_H
#define BENCH_WHEEL_H

#include <stdint.h>

enum { WHEEL_STEP_US = 250, WHEEL_STEPS = 1024, WHEEL_MEMBERS = 4096, NO_MEMBER = -1 };

/* When each member is due next, at most 250 ms ahead, in steps of 250 µs. A member is in it at most once. */
typedef struct {
  int64_t step;
  int first[WHEEL_STEPS];
  int next[WHEEL_MEMBERS];
  int64_t due_us[WHEEL_MEMBERS];
} Wheel;

void wheel_begin(Wheel *wheel, int64_t now_us);

void wheel_add(Wheel *wheel, int member, int64_t due_us);

/* Takes out a member that is due, or gives NO_MEMBER; due_us has when it was. */
int wheel_take(Wheel *wheel, int64_t now_us);

/* Microseconds until the next member may be due; the whole wheel's length when it is empty. */
int64_t wheel_wait_us(const Wheel *wheel, int64_t now_us);

#endif
