#include "orders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char bytes[1 << 18];
static size_t length;
static size_t taken;

void orders_begin(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  fcntl(STDIN_FILENO, F_SETFL, fcntl(STDIN_FILENO, F_GETFL) | O_NONBLOCK);
}

bool orders_read(void) {
  memmove(bytes, bytes + taken, length - taken);
  length -= taken;
  taken = 0;
  const ssize_t got = read(STDIN_FILENO, bytes + length, sizeof bytes - length);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  length += (size_t)got;
  return got > 0;
}

bool orders_next(Order *order) {
  char *line = bytes + taken;
  char *end = memchr(line, '\n', length - taken);
  if (end == NULL) return false;
  *end = '\0';
  taken = (size_t)(end + 1 - bytes);
  order->count = 0;
  for (char *word = strtok(line, " "); word != NULL && order->count < MOST_WORDS; word = strtok(NULL, " ")) {
    order->words[order->count] = word;
    order->count += 1;
  }
  return true;
}

bool is_order(const Order *order, const char *name, int arguments) {
  return order->count > arguments && strcmp(order->words[0], name) == 0;
}

void answer_end(void) {
  putchar('\n');
  fflush(stdout);
}

void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}
