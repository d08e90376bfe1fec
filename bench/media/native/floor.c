#define _GNU_SOURCE
/*
 * The floor of what a bridge costs: one thread that makes the system calls which no bridge with a socket a call gets around, and nothing
 * else. recvfrom → base64 in a JSON text → send to the WebSocket; recv → base64 → sendto.
 *
 * Its first line is `ready`. Orders:
 *   open <port of the bot> <port of a caller>…   <own port> of each
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base64.h"
#include "orders.h"
#include "stamp.h"
#include "web-socket.h"

enum { MOST_CALLS = 4096, MOST_EVENTS = 64, HEADER_BYTES = 12, PACKET_BYTES = HEADER_BYTES + FRAME_BYTES, FRAME_SAMPLES = 160, BUFFER = 1024 };

typedef struct {
  int udp;
  struct sockaddr_in caller;
  WebSocketInput bot;
  unsigned chunk;
  uint32_t frames;
} Call;

static Call *calls[MOST_CALLS];
static int count;

static bool send_text(Call *call, const char *text) {
  uint8_t buffer[BUFFER];
  const size_t length = strlen(text);
  memcpy(buffer + HEADER_ROOM, text, length);
  return web_socket_send(call->bot.fd, OPCODE_TEXT, buffer, length, true);
}

static void on_datagram(Call *call) {
  uint8_t packet[BUFFER / 2];
  struct sockaddr_in from;
  socklen_t size = sizeof from;
  const ssize_t length = recvfrom(call->udp, packet, sizeof packet, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
  if (length != PACKET_BYTES) return;
  call->chunk += 1;
  uint8_t buffer[BUFFER];
  char *text = (char *)buffer + HEADER_ROOM;
  int at = sprintf(text,
                   "{\"event\":\"media\",\"sequenceNumber\":\"%u\",\"media\":{\"track\":\"inbound\",\"chunk\":\"%u\",\"timestamp\":\"%u\",\"payload\":\"",
                   call->chunk + 1, call->chunk, call->chunk * 20);
  at += (int)base64_encode(text + at, packet + HEADER_BYTES, FRAME_BYTES);
  at += sprintf(text + at, "\"},\"streamSid\":\"MZ\"}");
  if (!web_socket_send(call->bot.fd, OPCODE_TEXT, buffer, (size_t)at, true)) fail("send");
}

static void write_header(Call *call, uint8_t *packet) {
  call->frames += 1;
  const uint32_t timestamp = htonl(call->frames * FRAME_SAMPLES);
  const uint16_t sequence = htons((uint16_t)call->frames);
  packet[0] = 0x80;
  packet[1] = 0;
  memcpy(packet + 2, &sequence, sizeof sequence);
  memcpy(packet + 4, &timestamp, sizeof timestamp);
  memcpy(packet + 8, &call->caller.sin_port, sizeof call->caller.sin_port);
  memset(packet + 10, 0, 2);
}

static void on_message(Call *call, const WebSocketFrame *frame) {
  static const char BEFORE[] = "\"payload\":\"";
  const char *text = (const char *)frame->payload;
  const char *start = memmem(text, frame->length, BEFORE, sizeof BEFORE - 1);
  if (start == NULL) return;
  start += sizeof BEFORE - 1;
  uint8_t packet[PACKET_BYTES];
  write_header(call, packet);
  base64_decode(packet + HEADER_BYTES, FRAME_BYTES, start, (size_t)(text + frame->length - start));
  sendto(call->udp, packet, sizeof packet, MSG_DONTWAIT, (const struct sockaddr *)&call->caller, sizeof call->caller);
}

static void on_bot(Call *call) {
  if (!web_socket_receive(&call->bot)) exit(0);
  WebSocketFrame frame;
  while (web_socket_next(&call->bot, &frame)) on_message(call, &frame);
}

static int open_call(int poll, int bot_port, int caller_port) {
  if (count == MOST_CALLS) fail("calls");
  Call *call = calls[count] = calloc(1, sizeof *call);
  if (call == NULL) fail("calloc");
  call->caller = (struct sockaddr_in){
      .sin_family = AF_INET, .sin_port = htons((uint16_t)caller_port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  call->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof own;
  if (call->udp < 0 || bind(call->udp, (struct sockaddr *)&own, size) != 0) fail("bind");
  getsockname(call->udp, (struct sockaddr *)&own, &size);
  call->bot.fd = web_socket_connect(bot_port);
  if (call->bot.fd < 0 || !send_text(call, "{\"event\":\"start\",\"streamSid\":\"MZ\"}")) fail("connect");
  /* Even: the caller's side; odd: the bot's. */
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)(2 * count)};
  epoll_ctl(poll, EPOLL_CTL_ADD, call->udp, &event);
  event.data.u32 += 1;
  epoll_ctl(poll, EPOLL_CTL_ADD, call->bot.fd, &event);
  count += 1;
  return ntohs(own.sin_port);
}

static void obey(int poll, const Order *order) {
  if (is_order(order, "open", 1)) {
    for (int i = 2; i < order->count; i += 1) printf("%d ", open_call(poll, atoi(order->words[1]), atoi(order->words[i])));
  } else {
    printf("error unknown order");
  }
  answer_end();
}

int main(void) {
  enum { ORDERS = 2 * MOST_CALLS };
  orders_begin();
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = ORDERS};
  epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  printf("ready");
  answer_end();
  struct epoll_event events[MOST_EVENTS];
  Order order;
  for (;;) {
    const int ready = epoll_wait(poll, events, MOST_EVENTS, -1);
    for (int i = 0; i < ready; i += 1) {
      const uint32_t index = events[i].data.u32;
      if (index == ORDERS) {
        if (!orders_read()) return 0;
        while (orders_next(&order)) obey(poll, &order);
      } else if (index % 2 == 0) {
        on_datagram(calls[index / 2]);
      } else {
        on_bot(calls[index / 2]);
      }
    }
  }
}
