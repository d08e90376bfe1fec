#include "wheel.h"

void wheel_begin(Wheel *wheel, int64_t now_us) {
  wheel->step = now_us / WHEEL_STEP_US;
  for (int i = 0; i < WHEEL_STEPS; i += 1) wheel->first[i] = NO_MEMBER;
}

void wheel_add(Wheel *wheel, int member, int64_t due_us) {
  int64_t step = (due_us + WHEEL_STEP_US - 1) / WHEEL_STEP_US;
  /* What should be gone is due at once. */
  if (step < wheel->step) step = wheel->step;
  int *first = &wheel->first[step % WHEEL_STEPS];
  wheel->due_us[member] = due_us;
  wheel->next[member] = *first;
  *first = member;
}

int wheel_take(Wheel *wheel, int64_t now_us) {
  const int64_t now_step = now_us / WHEEL_STEP_US;
  for (; wheel->step <= now_step; wheel->step += 1) {
    int *first = &wheel->first[wheel->step % WHEEL_STEPS];
    if (*first == NO_MEMBER) continue;
    const int member = *first;
    *first = wheel->next[member];
    return member;
  }
  /* The step of this moment is not over: a member may still be added to it. */
  wheel->step = now_step;
  return NO_MEMBER;
}

int64_t wheel_wait_us(const Wheel *wheel, int64_t now_us) {
  for (int64_t ahead = 0; ahead < WHEEL_STEPS; ahead += 1) {
    const int64_t step = wheel->step + ahead;
    if (wheel->first[step % WHEEL_STEPS] == NO_MEMBER) continue;
    const int64_t wait_us = step * WHEEL_STEP_US - now_us;
    return wait_us < 0 ? 0 : wait_us;
  }
  return (int64_t)WHEEL_STEPS * WHEEL_STEP_US;
}
