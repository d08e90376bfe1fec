/*
 * Both receivers on a stream that was never sent: reads a packet a line, `<arrival µs> <timestamp> <marker 0|1> <word 0|1> <said µs, or -1>`, and at the
 * end of stdin prints for the fixed and for the adaptive one the mean delay from `said` to the first sample played, in ms, and the late packets.
 */
#include <inttypes.h>
#include <stdio.h>

#include "receivers.h"

int main(void) {
  Receivers *receivers = receivers_open();
  Played fixed = {0};
  Played adaptive = {0};
  Arrival arrival;
  int marker;
  int word;
  while (scanf("%" SCNd64 " %" SCNu32 " %d %d %" SCNd64, &arrival.arrival_us, &arrival.timestamp, &marker, &word, &arrival.said_us) == 5) {
    arrival.has_marker = marker != 0;
    arrival.is_word = word != 0;
    receivers_hear(receivers, &arrival, &fixed, &adaptive);
  }
  receivers_play(receivers, arrival.arrival_us + 1000000, &adaptive);
  printf("%.2f %" PRIu64 " %.2f %" PRIu64 "\n", fixed.delays_us / 1000.0 / (double)fixed.played, fixed.late,
         adaptive.delays_us / 1000.0 / (double)adaptive.played, adaptive.late);
}
