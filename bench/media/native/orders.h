#ifndef BENCH_ORDERS_H
#define BENCH_ORDERS_H

#include <stdbool.h>

/*
 * The benchmark's main process writes an order a line to our stdin, and reads one line in answer. Words are divided by a space.
 */

enum { MOST_WORDS = 4096 };

typedef struct {
  int count;
  char *words[MOST_WORDS];
} Order;

/* Lets the process open as many files as it may, and stdin be read without waiting. */
void orders_begin(void);

/* Reads what has come. False at the end of stdin: nobody is left to answer. */
bool orders_read(void);

/* The next whole order, whose words are valid until the next orders_read; false when none is there. */
bool orders_next(Order *order);

/* Whether the order begins with this word and has at least so many after it. */
bool is_order(const Order *order, const char *name, int arguments);

/* Ends the answer's line. */
void answer_end(void);

/* Prints what failed with errno's text, and ends the process. */
void fail(const char *what);

#endif
