// Faults of a machine, for one process of the product: its wall clock jumps, its disk is full, its name service does not answer.
// Built and preloaded by preload.ts. What is wrong stands in a file in FAULTS_DIRECTORY that is named as one of the process's
// arguments (gateway, sip-server, redis-server, rtpengine), which the test writes while the process runs. CLOCK_MONOTONIC is left alone,
// as the kernel leaves it when somebody sets the clock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netdb.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults {
  int64_t clock_seconds; // added to the wall clock
  int64_t is_disk_full;  // writes to files fail
  int64_t is_dns_gone;   // names are asked for in vain
};

static struct faults none;
static volatile struct faults *faults = &none;

static void map_file(const char *directory, const char *argument) {
  char path[PATH_MAX];
  if (argument[0] == '\0' || strchr(argument, '/') != NULL) return;
  snprintf(path, sizeof path, "%s/%s", directory, argument);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  void *mapped = mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, fd, 0);
  if (mapped != MAP_FAILED) faults = mapped;
  close(fd);
}

__attribute__((constructor)) static void find_faults(void) {
  char arguments[4096];
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  ssize_t length = read(fd, arguments, sizeof arguments - 1);
  close(fd);
  if (length <= 0) return;
  arguments[length] = '\0';
  for (ssize_t at = 0; at < length; at += (ssize_t)strlen(arguments + at) + 1) map_file(FAULTS_DIRECTORY, arguments + at);
}

int clock_gettime(clockid_t id, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, id, now);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) now->tv_sec += faults->clock_seconds;
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *result) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != NULL) *result = now.tv_sec;
  return now.tv_sec;
}

static int has_no_room(int fd) {
  struct stat about;
  if (!faults->is_disk_full || fstat(fd, &about) != 0 || !S_ISREG(about.st_mode)) return 0;
  errno = ENOSPC;
  return 1;
}

ssize_t write(int fd, const void *data, size_t length) {
  return has_no_room(fd) ? -1 : syscall(SYS_write, fd, data, length);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
  return has_no_room(fd) ? -1 : syscall(SYS_writev, fd, parts, count);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at) {
  return has_no_room(fd) ? -1 : syscall(SYS_pwrite64, fd, data, length, at);
}

typedef int (*lookup)(const char *, const char *, const struct addrinfo *, struct addrinfo **);

// The C library asks a resolver that does not answer twice, 5 s each.
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **found) {
  const struct timespec tenth = {.tv_nsec = 100 * 1000 * 1000};
  int is_name = node != NULL && strspn(node, "0123456789.") != strlen(node) && strchr(node, ':') == NULL;
  for (int waited = 0; is_name && faults->is_dns_gone && waited < 100; waited += 1) nanosleep(&tenth, NULL);
  if (is_name && faults->is_dns_gone) return EAI_AGAIN;
  return ((lookup)dlsym(RTLD_NEXT, "getaddrinfo"))(node, service, hints, found);
}
