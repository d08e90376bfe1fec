#define _GNU_SOURCE
/*
 * The agents: a WebSocket server whose calls get back at once what they say (`bot echo`), or hear a bot that paces its own speech in real
 * time (`bot paced`): a frame each 20 ms while it has words, at a phase of its own, as late as a timer of an ordinary process is. Bots speak
 * Twilio's messages or raw audio; at the address of a provider of voice models the bot speaks that one's protocol, and echoes.
 *
 * Its first line is `ready <port>`. Orders:
 *   measure <from µs> <to µs>   which stretch of the monotonic clock counts
 *   figures                     said <frames of a paced bot> opened <connections so far> up <p50 p99 p99.9 most, ms from the caller to the bot>
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base64.h"
#include "clock.h"
#include "histogram.h"
#include "orders.h"
#include "stamp.h"
#include "web-socket.h"
#include "wheel.h"

enum {
  MOST_CONNECTIONS = WHEEL_MEMBERS,
  MOST_SID = 64,
  MOST_EVENTS = 64,
  BACKLOG = 512,
  /* A prime: neighbours are far apart. */
  PHASE_STEP = 31,
  PHASES = FRAME_US / WHEEL_STEP_US,
  /* Nobody's audio is longer: 20 ms at 24 kHz. */
  MOST_AUDIO = 960,
  BUFFER = HEADER_ROOM + 2048,
};

typedef enum { STREAM, OPENAI, DEEPGRAM, GEMINI } Protocol;

typedef struct {
  WebSocketInput input;
  bool is_open;
  Protocol protocol;
  char sid[MOST_SID];
  bool is_speaking;
  uint32_t serial;
  int64_t next_us;
} Connection;

static Connection *connections[MOST_CONNECTIONS];
static Wheel wheel;
static bool is_paced;
static Window window;
static Histogram up;
static uint64_t said;
static uint64_t opened;

/* What is between `before` and the next quote, or NULL. */
static char *quoted(const WebSocketFrame *frame, const char *before, size_t *length) {
  char *text = (char *)frame->payload;
  char *start = memmem(text, frame->length, before, strlen(before));
  if (start == NULL) return NULL;
  start += strlen(before);
  const char *end = memchr(start, '"', (size_t)(text + frame->length - start));
  if (end == NULL) return NULL;
  *length = (size_t)(end - start);
  return start;
}

static bool has(const WebSocketFrame *frame, const char *part) { return memmem(frame->payload, frame->length, part, strlen(part)) != NULL; }

static void count_heard(const Stamp *stamp, int64_t at_us) {
  if (is_within(&window, stamp->sent_us)) histogram_add(&up, elapsed_us(stamp->sent_us, at_us));
}

/* Silence stays silence. */
static void hear(uint8_t *frame, size_t length, bool is_echo) {
  Stamp stamp;
  if (length != FRAME_BYTES || !read_stamp(frame, &stamp)) return;
  count_heard(&stamp, now_us());
  if (is_echo) write_said(frame, now_us());
}

static bool send_text(const Connection *to, const char *text) {
  uint8_t buffer[BUFFER];
  const size_t length = strlen(text);
  memcpy(buffer + HEADER_ROOM, text, length);
  return web_socket_send(to->input.fd, OPCODE_TEXT, buffer, length, false);
}

/* A text around audio in base64. */
static bool send_audio(const Connection *to, const char *before, const uint8_t *audio, size_t length, const char *after) {
  uint8_t buffer[BUFFER];
  char *text = (char *)buffer + HEADER_ROOM;
  size_t size = strlen(before);
  memcpy(text, before, size);
  size += base64_encode(text + size, audio, length);
  memcpy(text + size, after, strlen(after));
  return web_socket_send(to->input.fd, OPCODE_TEXT, buffer, size + strlen(after), false);
}

static bool send_media(const Connection *to, const uint8_t *audio, size_t length) {
  char before[MOST_SID + 64];
  snprintf(before, sizeof before, "{\"event\":\"media\",\"streamSid\":\"%s\",\"media\":{\"payload\":\"", to->sid);
  return send_audio(to, before, audio, length, "\"}}");
}

static bool send_binary(const Connection *to, const uint8_t *audio, size_t length) {
  uint8_t buffer[BUFFER];
  memcpy(buffer + HEADER_ROOM, audio, length);
  return web_socket_send(to->input.fd, OPCODE_BINARY, buffer, length, false);
}

/* The audio between `before` and the next quote; 0 bytes without any. */
static size_t read_audio(const WebSocketFrame *frame, const char *before, uint8_t *audio) {
  size_t length;
  const char *text = quoted(frame, before, &length);
  return text == NULL ? 0 : base64_decode(audio, MOST_AUDIO, text, length);
}

static void begin_speech(Connection *connection, int index) {
  connection->is_speaking = true;
  connection->serial = first_serial(index);
  connection->next_us = now_us() / FRAME_US * FRAME_US + FRAME_US + (int64_t)(index * PHASE_STEP % PHASES) * WHEEL_STEP_US;
  wheel_add(&wheel, index, connection->next_us);
}

static bool on_start(Connection *connection, int index, const WebSocketFrame *frame) {
  size_t length;
  const char *sid = quoted(frame, "\"streamSid\":\"", &length);
  if (sid == NULL || length >= MOST_SID) return false;
  memcpy(connection->sid, sid, length);
  connection->sid[length] = '\0';
  if (is_paced && !connection->is_speaking) begin_speech(connection, index);
  return true;
}

static bool on_stream(Connection *connection, int index, const WebSocketFrame *frame) {
  uint8_t audio[MOST_AUDIO];
  if (frame->opcode == OPCODE_BINARY) {
    hear(frame->payload, frame->length, !is_paced);
    return is_paced || frame->length > MOST_AUDIO || send_binary(connection, frame->payload, frame->length);
  }
  if (has(frame, "\"event\":\"start\"")) return on_start(connection, index, frame);
  if (!has(frame, "\"event\":\"media\"")) return true;
  const size_t length = read_audio(frame, "\"payload\":\"", audio);
  hear(audio, length, !is_paced);
  return is_paced || send_media(connection, audio, length);
}

static bool on_openai(const Connection *connection, const WebSocketFrame *frame) {
  if (has(frame, "\"session.update\"")) {
    return send_text(connection, "{\"type\":\"session.updated\",\"session\":{\"type\":\"realtime\"}}") &&
           send_text(connection, "{\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}");
  }
  if (!has(frame, "\"input_audio_buffer.append\"")) return true;
  uint8_t audio[MOST_AUDIO];
  const size_t length = read_audio(frame, "\"audio\":\"", audio);
  hear(audio, length, true);
  return send_audio(connection, "{\"type\":\"response.output_audio.delta\",\"response_id\":\"r\",\"item_id\":\"i\",\"delta\":\"", audio, length, "\"}");
}

static bool on_deepgram(const Connection *connection, const WebSocketFrame *frame) {
  if (frame->opcode == OPCODE_TEXT) return send_text(connection, "{\"type\":\"SettingsApplied\"}");
  hear(frame->payload, frame->length, true);
  return frame->length > MOST_AUDIO || send_binary(connection, frame->payload, frame->length);
}

/* 20 ms in 24 kHz: the times of a caller's words do not outlive another rate. */
static bool on_gemini(const Connection *connection, const WebSocketFrame *frame) {
  if (has(frame, "\"setup\"")) return send_text(connection, "{\"setupComplete\":{}}");
  uint8_t audio[MOST_AUDIO];
  memset(audio, 0x21, sizeof audio);
  return send_audio(connection, "{\"serverContent\":{\"modelTurn\":{\"parts\":[{\"inlineData\":{\"mimeType\":\"audio/pcm;rate=24000\",\"data\":\"", audio,
                    sizeof audio, "\"}}]}}}");
}

static bool on_message(Connection *connection, int index, const WebSocketFrame *frame) {
  switch (connection->protocol) {
    case OPENAI:
      return on_openai(connection, frame);
    case DEEPGRAM:
      return on_deepgram(connection, frame);
    case GEMINI:
      return on_gemini(connection, frame);
    default:
      return on_stream(connection, index, frame);
  }
}

static bool answer_ping(const Connection *connection, const WebSocketFrame *frame) {
  uint8_t buffer[BUFFER];
  memcpy(buffer + HEADER_ROOM, frame->payload, frame->length);
  return web_socket_send(connection->input.fd, OPCODE_PONG, buffer, frame->length, false);
}

static bool on_frame(Connection *connection, int index, const WebSocketFrame *frame) {
  switch (frame->opcode) {
    case OPCODE_CLOSE:
      return false;
    case OPCODE_PING:
      return answer_ping(connection, frame);
    case OPCODE_PONG:
      return true;
    default:
      return on_message(connection, index, frame);
  }
}

static Protocol protocol_of(const char *request) {
  if (strncmp(request, "GET /openai-realtime", 20) == 0) return OPENAI;
  if (strncmp(request, "GET /deepgram", 13) == 0) return DEEPGRAM;
  if (strncmp(request, "GET /gemini-live", 16) == 0) return GEMINI;
  return STREAM;
}

/* The client sends nothing more before it has the answer. */
static bool open_connection(Connection *connection) {
  WebSocketInput *input = &connection->input;
  char *request = (char *)input->bytes;
  if (input->length == sizeof input->bytes) return false;
  request[input->length] = '\0';
  if (strstr(request, "\r\n\r\n") == NULL) return true;
  input->taken = input->length;
  connection->is_open = true;
  connection->protocol = protocol_of(request);
  if (!web_socket_accept(input->fd, request)) return false;
  opened += 1;
  return connection->protocol != OPENAI || send_text(connection, "{\"type\":\"session.created\",\"session\":{\"type\":\"realtime\"}}");
}

static bool read_connection(Connection *connection, int index) {
  if (!web_socket_receive(&connection->input)) return false;
  if (!connection->is_open) return open_connection(connection);
  WebSocketFrame frame;
  while (web_socket_next(&connection->input, &frame))
    if (!on_frame(connection, index, &frame)) return false;
  return true;
}

/* One that is in the wheel stays until its next frame is due. */
static void end_connection(int index) {
  Connection *connection = connections[index];
  close(connection->input.fd);
  connection->input.fd = -1;
  if (connection->is_speaking) return;
  free(connection);
  connections[index] = NULL;
}

static void take_connection(int poll, int listener) {
  const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  int index = 0;
  while (index < MOST_CONNECTIONS && connections[index] != NULL) index += 1;
  Connection *connection = index < MOST_CONNECTIONS ? calloc(1, sizeof *connection) : NULL;
  if (connection == NULL) {
    close(fd);
    return;
  }
  connection->input.fd = fd;
  connections[index] = connection;
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)index};
  epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

static uint32_t random_state = 2463534242;

/* From 0 up to 1 (xorshift): the same numbers in each run. */
static double random_share(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state / 4294967296.0;
}

/* How late an ordinary process is: mostly up to 3 ms, and once in 200 frames, for a garbage collection or another process, 10 to 30 ms. */
static int64_t lateness_us(void) {
  if (random_share() < 0.005) return 10000 + (int64_t)(20000 * random_share());
  return (int64_t)(3000 * random_share() * random_share());
}

/* A frame that is late does not delay those after it, and is not overtaken. */
static void speak(int index, int64_t due_us) {
  Connection *connection = connections[index];
  if (connection->input.fd < 0) {
    connection->is_speaking = false;
    free(connection);
    connections[index] = NULL;
    return;
  }
  uint8_t frame[FRAME_BYTES];
  connection->serial += 1;
  const int64_t at_us = now_us();
  write_frame(frame, connection->serial, at_us);
  bool is_good = true;
  if (is_word(connection->serial)) {
    if (is_within(&window, at_us)) said += 1;
    is_good = send_media(connection, frame, sizeof frame);
  }
  connection->next_us += FRAME_US;
  const int64_t late_us = connection->next_us + lateness_us();
  wheel_add(&wheel, index, late_us > due_us ? late_us : due_us);
  if (!is_good) end_connection(index);
}

static void obey(const Order *order) {
  if (is_order(order, "measure", 2)) {
    window = (Window){.from_us = atoll(order->words[1]), .to_us = atoll(order->words[2])};
    histogram_clear(&up);
    said = 0;
    printf("ok");
  } else if (is_order(order, "figures", 0)) {
    printf("said %llu opened %llu", (unsigned long long)said, (unsigned long long)opened);
    histogram_print("up", &up);
  } else {
    printf("error unknown order");
  }
  answer_end();
}

static int listening(void) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof address;
  if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, BACKLOG) != 0) fail("listen");
  getsockname(listener, (struct sockaddr *)&address, &size);
  printf("ready %d", ntohs(address.sin_port));
  answer_end();
  return listener;
}

int main(int count, char **arguments) {
  enum { ORDERS = MOST_CONNECTIONS, LISTENER };
  orders_begin();
  is_paced = count > 1 && strcmp(arguments[1], "paced") == 0;
  prctl(PR_SET_TIMERSLACK, 1000);
  wheel_begin(&wheel, now_us());
  const int poll = epoll_create1(EPOLL_CLOEXEC);
  const int listener = listening();
  struct epoll_event event = {.events = EPOLLIN, .data.u32 = ORDERS};
  epoll_ctl(poll, EPOLL_CTL_ADD, STDIN_FILENO, &event);
  event.data.u32 = LISTENER;
  epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event);
  struct epoll_event events[MOST_EVENTS];
  Order order;
  for (;;) {
    const int64_t wait_us = wheel_wait_us(&wheel, now_us());
    const struct timespec wait = {.tv_nsec = wait_us * 1000};
    const int ready = epoll_pwait2(poll, events, MOST_EVENTS, &wait, NULL);
    for (int i = 0; i < ready; i += 1) {
      const uint32_t index = events[i].data.u32;
      if (index == LISTENER) {
        take_connection(poll, listener);
      } else if (index == ORDERS) {
        if (!orders_read()) return 0;
        while (orders_next(&order)) obey(&order);
      } else if (connections[index] != NULL && !read_connection(connections[index], (int)index)) {
        end_connection((int)index);
      }
    }
    int64_t now = now_us();
    for (int index; (index = wheel_take(&wheel, now)) != NO_MEMBER; now = now_us()) speak(index, wheel.due_us[index]);
  }
}
