#define _GNU_SOURCE
/*
 * Many callers in one process: each sends a packet of G.711 each 20 ms at a phase of its own, by RTP or SRTP, and hears what comes back.
 *
 * Its first line is `ready`. Orders:
 *   prepare <first> <calls> plain|srtp   <port> <key> of each; a key is base64, or `-`
 *   start <first> (<port> <key>)…        where each of them sends to from now on
 *   measure <from µs> <to µs>            which stretch of the monotonic clock counts, whose beginning is still to come
 *   figures                              names and numbers (see print_figures), once all is there that will come
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <srtp2/srtp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base64.h"
#include "clock.h"
#include "histogram.h"
#include "orders.h"
#include "receivers.h"
#include "stamp.h"
#include "wheel.h"

enum {
  MOST_CALLS = WHEEL_MEMBERS,
  MOST_EVENTS = 64,
  HEADER_BYTES = 12,
  PACKET_BYTES = HEADER_BYTES + FRAME_BYTES,
  MOST_BYTES = 2048,
  FRAME_SAMPLES = 160,
  KEY_BYTES = 30,
  KEY_TEXT = 40,
  RECEIVE_BUFFER = 1 << 20,
  /* A prime: neighbours are far apart. */
  PHASE_STEP = 31,
  PHASES = FRAME_US / WHEEL_STEP_US,
  /* The serial numbers of some 20 minutes. */
  MOST_SERIALS = 1 << 16,
};

typedef struct {
  int fd;
  bool has_key;
  bool is_started;
  uint8_t key[KEY_BYTES];
  srtp_t protect;
  srtp_t unprotect;
  uint32_t serial;
  Receivers *receivers;
  /* The last word's frame that was heard: its serial number and timestamp. */
  uint32_t last_serial;
  uint32_t last_timestamp;
  uint8_t is_heard[MOST_SERIALS / 8];
} Call;

static Call *calls[MOST_CALLS];
static Wheel wheel;
static Window window;
static int64_t late_us;
static uint64_t sent;
static uint64_t heard;
static uint64_t sent_late;
static uint64_t silenced;
static Histogram down;
static Histogram total;
static Played fixed;
static Played adaptive;

static void write_16(uint8_t *at, uint32_t value) {
  at[0] = (uint8_t)(value >> 8);
  at[1] = (uint8_t)value;
}

static void write_32(uint8_t *at, uint32_t value) {
  write_16(at, value >> 16);
  write_16(at + 2, value);
}

static uint32_t read_32(const uint8_t *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static srtp_t srtp_session(uint8_t *key, srtp_ssrc_type_t direction) {
  srtp_policy_t policy;
  memset(&policy, 0, sizeof policy);
  srtp_crypto_policy_set_rtp_default(&policy.rtp);
  srtp_crypto_policy_set_rtcp_default(&policy.rtcp);
  policy.ssrc.type = direction;
  policy.key = key;
  srtp_t session;
  if (srtp_create(&session, &policy) != srtp_err_status_ok) fail("srtp_create");
  return session;
}

static int bound_socket(void) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const int on = 1, size = RECEIVE_BUFFER;
  if (fd < 0 || bind(fd, (const struct sockaddr *)&address, sizeof address) != 0) fail("bind");
  /* When the kernel had a datagram does not depend on when we get to it. */
  setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  return fd;
}

static void prepare(int first, int count, bool is_secure) {
  for (int index = first; index < first + count && index < MOST_CALLS; index += 1) {
    Call *call = calls[index] = calloc(1, sizeof *call);
    if (call == NULL) fail("calloc");
    call->fd = bound_socket();
    call->has_key = is_secure;
    call->receivers = receivers_open();
    call->serial = first_serial(index);
    struct sockaddr_in address;
    socklen_t size = sizeof address;
    getsockname(call->fd, (struct sockaddr *)&address, &size);
    char text[KEY_TEXT + 1] = "-";
    if (is_secure) {
      if (getrandom(call->key, KEY_BYTES, 0) != KEY_BYTES) fail("getrandom");
      text[base64_encode(text, call->key, KEY_BYTES)] = '\0';
    }
    printf("%d %s ", ntohs(address.sin_port), text);
  }
}

/* Connected, so that nobody else's packets, such as RTCP from another port, are heard. */
static void start(int poll, int index, int port, const char *key) {
  if (index < 0 || index >= MOST_CALLS || calls[index] == NULL || calls[index]->is_started) return;
  Call *call = calls[index];
  const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (connect(call->fd, (const struct sockaddr *)&to, sizeof to) != 0) fail("connect");
  if (call->has_key) {
    uint8_t far_key[KEY_BYTES];
    if (base64_decode(far_key, KEY_BYTES, key, strlen(key)) != KEY_BYTES) fail("key");
    call->protect = srtp_session(call->key, ssrc_any_outbound);
    call->unprotect = srtp_session(far_key, ssrc_any_inbound);
  }
  call->is_started = true;
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
  epoll_ctl(poll, EPOLL_CTL_ADD, call->fd, &event);
  wheel_add(&wheel, index, now_us() / FRAME_US * FRAME_US + FRAME_US + (int64_t)(index * PHASE_STEP % PHASES) * WHEEL_STEP_US);
}

static void say(int index, int64_t due_us) {
  Call *call = calls[index];
  uint8_t packet[PACKET_BYTES + SRTP_MAX_TRAILER_LEN] = {0x80};
  call->serial += 1;
  write_16(packet + 2, call->serial);
  write_32(packet + 4, call->serial * FRAME_SAMPLES);
  write_32(packet + 8, 0x10000 + (uint32_t)index);
  const int64_t at_us = now_us();
  write_frame(packet + HEADER_BYTES, call->serial, at_us);
  int length = PACKET_BYTES;
  if (call->protect != NULL) srtp_protect(call->protect, packet, &length);
  send(call->fd, packet, (size_t)length, MSG_DONTWAIT);
  wheel_add(&wheel, index, due_us + FRAME_US);
  if (!is_within(&window, at_us)) return;
  if (at_us - due_us > late_us) late_us = at_us - due_us;
  if (is_word(call->serial)) sent += 1;
}

/* False when this frame was heard before. */
static bool is_first(Call *call, uint32_t serial) {
  uint8_t *bits = &call->is_heard[serial % MOST_SERIALS / 8];
  const uint8_t bit = (uint8_t)(1 << serial % 8);
  if ((*bits & bit) != 0) return false;
  *bits |= bit;
  return true;
}

/* 20 ms of the same word between this frame and the last one, in which there was something else or nothing. */
static uint32_t silence_before(const Call *call, uint32_t serial, uint32_t timestamp) {
  if (serial <= call->last_serial || serial / ROUND_FRAMES != call->last_serial / ROUND_FRAMES) return 0;
  const int32_t slots = (int32_t)(timestamp - call->last_timestamp) / FRAME_SAMPLES;
  return slots > 1 ? (uint32_t)slots - 1 : 0;
}

static void hear(Call *call, uint8_t *packet, int length, int64_t arrival_us) {
  if (call->unprotect != NULL && srtp_unprotect(call->unprotect, packet, &length) != srtp_err_status_ok) return;
  if (length != PACKET_BYTES) return;
  const uint32_t timestamp = read_32(packet + 4);
  Stamp stamp;
  const bool is_heard = read_stamp(packet + HEADER_BYTES, &stamp);
  const bool counts = is_heard && is_within(&window, stamp.sent_us) && is_first(call, stamp.serial);
  const Arrival arrival = {
      .arrival_us = arrival_us,
      .timestamp = timestamp,
      .has_marker = packet[1] >> 7,
      .is_word = is_heard,
      .said_us = counts ? stamp.said_us : -1,
  };
  const bool is_late = receivers_hear(call->receivers, &arrival, &fixed, &adaptive);
  if (counts) {
    heard += 1;
    histogram_add(&down, elapsed_us(stamp.said_us, arrival_us));
    histogram_add(&total, elapsed_us(stamp.sent_us, arrival_us));
    if (is_late) sent_late += 1;
    silenced += silence_before(call, stamp.serial, timestamp);
  }
  if (!is_heard) return;
  call->last_serial = stamp.serial;
  call->last_timestamp = timestamp;
}

static int64_t arrival_us(struct msghdr *message, int64_t wall_us) {
  for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL; part = CMSG_NXTHDR(message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_TIMESTAMPNS) continue;
    struct timespec at;
    memcpy(&at, CMSG_DATA(part), sizeof at);
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000 + wall_us;
  }
  return now_us();
}

static void read_call(Call *call, int64_t wall_us) {
  for (;;) {
    uint8_t packet[MOST_BYTES];
    uint8_t control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec part = {.iov_base = packet, .iov_len = sizeof packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    const ssize_t length = recvmsg(call->fd, &message, MSG_DONTWAIT);
    if (length < 0) return;
    hear(call, packet, (int)length, arrival_us(&message, wall_us));
  }
}

static void measure(int64_t from_us, int64_t to_us) {
  window = (Window){.from_us = from_us, .to_us = to_us};
  sent = heard = sent_late = silenced = 0;
  late_us = 0;
  fixed = adaptive = (Played){0};
  histogram_clear(&down);
  histogram_clear(&total);
  for (int index = 0; index < MOST_CALLS; index += 1)
    if (calls[index] != NULL) memset(calls[index]->is_heard, 0, sizeof calls[index]->is_heard);
}

static void print_played(const char *name, const Played *played) {
  const double mean_ms = played->played == 0 ? 0.0 / 0.0 : played->delays_us / (double)played->played / 1000.0;
  printf(" %s %.3f %llu", name, mean_ms, (unsigned long long)played->late);
}

/* Packets; milliseconds: p50, p99, p99.9, most; of the receivers the mean and the late packets. */
static void print_figures(void) {
  for (int index = 0; index < MOST_CALLS; index += 1)
    if (calls[index] != NULL) receivers_play(calls[index]->receivers, now_us(), &adaptive);
  printf("sent %llu heard %llu sent-late %llu silenced %llu late %.3f", (unsigned long long)sent, (unsigned long long)heard,
         (unsigned long long)sent_late, (unsigned long long)silenced, (double)late_us / 1000.0);
  histogram_print("down", &down);
  histogram_print("total", &total);
  print_played("fixed", &fixed);
  print_played("adaptive", &adaptive);
}

static void obey(int poll, const Order *order) {
  if (is_order(order, "prepare", 3)) {
    prepare(atoi(order->words[1]), atoi(order->words[2]), strcmp(order->words[3], "srtp") == 0);
  } else if (is_order(order, "start", 1)) {
    const int first = atoi(order->words[1]);
    for (int i = 2; i + 1 < order->count; i += 2) start(poll, first + (i - 2) / 2, atoi(order->words[i]), order->words[i + 1]);
    printf("ok");
  } else if (is_order(order, "measure", 2)) {
    measure(atoll(order->words[1]), atoll(order->words[2]));
    printf("ok");
  } else if (is_order(order, "figures", 0)) {
    print_figures();
  } else {
    printf("error unknown order");
  }
  answer_end();
}

int main(void) {
  enum { ORDERS = MOST_CALLS };
  orders_begin();
  if (srtp_init() != srtp_err_status_ok) fail("srtp_init");
  prctl(PR_SET_TIMERSLACK, 1000);
  wheel_begin(&wheel, now_us());
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = ORDERS};
  epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  printf("ready");
  answer_end();
  struct epoll_event events[MOST_EVENTS];
  Order order;
  for (;;) {
    const struct timespec wait = {.tv_nsec = wheel_wait_us(&wheel, now_us()) * 1000};
    const int ready = epoll_pwait2(poll, events, MOST_EVENTS, &wait, NULL);
    int64_t now = now_us();
    for (int index; (index = wheel_take(&wheel, now)) != NO_MEMBER; now = now_us()) say(index, wheel.due_us[index]);
    const int64_t wall_us = wall_to_monotonic_us();
    for (int i = 0; i < ready; i += 1) {
      const uint32_t index = events[i].data.u32;
      if (index != ORDERS) {
        read_call(calls[index], wall_us);
        continue;
      }
      if (!orders_read()) return 0;
      while (orders_next(&order)) obey(poll, &order);
    }
  }
}
