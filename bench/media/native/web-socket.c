#define _GNU_SOURCE
#include "web-socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base64.h"
#include "sha1.h"

enum { FIN = 0x80, MASKED = 0x80, LENGTH_16 = 126, LENGTH_64 = 127, ACCEPTED_KEY_BYTES = 24 };

static const char GUID[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

bool web_socket_receive(WebSocketInput *input) {
  memmove(input->bytes, input->bytes + input->taken, input->length - input->taken);
  input->length -= input->taken;
  input->taken = 0;
  const ssize_t got = recv(input->fd, input->bytes + input->length, sizeof input->bytes - input->length, MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  input->length += (size_t)got;
  return got > 0;
}

bool web_socket_next(WebSocketInput *input, WebSocketFrame *frame) {
  uint8_t *at = input->bytes + input->taken;
  const size_t there = input->length - input->taken;
  if (there < 2) return false;
  size_t header = 2;
  size_t length = at[1] & 0x7f;
  if (length == LENGTH_64) return false; /* Longer than the buffer: nobody here sends such. */
  if (length == LENGTH_16) {
    if (there < 4) return false;
    length = (size_t)at[2] << 8 | at[3];
    header = 4;
  }
  const bool is_masked = (at[1] & MASKED) != 0;
  const uint8_t *mask = at + header;
  if (is_masked) header += 4;
  if (there < header + length) return false;
  frame->opcode = at[0] & 0x0f;
  frame->payload = at + header;
  frame->length = length;
  if (is_masked)
    for (size_t i = 0; i < length; i += 1) frame->payload[i] ^= mask[i & 3];
  input->taken += header + length;
  return true;
}

/* No proxy reads what is sent here, so that any mask will do. */
static const uint8_t MASK[4] = {0x5a, 0xc3, 0x96, 0x0f};

bool web_socket_send(int fd, int opcode, uint8_t *buffer, size_t length, bool is_client) {
  uint8_t header[HEADER_ROOM];
  size_t size = 2;
  header[0] = (uint8_t)(FIN | opcode);
  header[1] = (uint8_t)((is_client ? MASKED : 0) | (length < LENGTH_16 ? length : LENGTH_16));
  if (length >= LENGTH_16) {
    header[2] = (uint8_t)(length >> 8);
    header[3] = (uint8_t)length;
    size = 4;
  }
  if (is_client) {
    memcpy(header + size, MASK, sizeof MASK);
    size += sizeof MASK;
    for (size_t i = 0; i < length; i += 1) buffer[HEADER_ROOM + i] ^= MASK[i & 3];
  }
  uint8_t *first = buffer + HEADER_ROOM - size;
  memcpy(first, header, size);
  return send(fd, first, size + length, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(size + length);
}

static void send_at_once(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool web_socket_accept(int fd, const char *request) {
  static const char NAME[] = "\r\nsec-websocket-key:";
  const char *key = strcasestr(request, NAME);
  if (key == NULL) return false;
  key += sizeof NAME - 1;
  key += strspn(key, " ");
  char keyed[ACCEPTED_KEY_BYTES + sizeof GUID];
  snprintf(keyed, sizeof keyed, "%.*s%s", ACCEPTED_KEY_BYTES, key, GUID);
  uint8_t digest[SHA1_BYTES];
  sha1((const uint8_t *)keyed, strlen(keyed), digest);
  char accepted[4 * SHA1_BYTES];
  accepted[base64_encode(accepted, digest, sizeof digest)] = '\0';
  char answer[256];
  const int length = snprintf(answer, sizeof answer,
                              "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n",
                              accepted);
  send_at_once(fd);
  return send(fd, answer, (size_t)length, MSG_NOSIGNAL) == length;
}

int web_socket_connect(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  if (fd < 0 || connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) return -1;
  static const char REQUEST[] =
      "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  if (send(fd, REQUEST, sizeof REQUEST - 1, MSG_NOSIGNAL) < 0) return -1;
  /* By bytes: what follows the answer belongs to the frames. */
  char answer[1024];
  for (size_t length = 0; length < sizeof answer; length += 1) {
    if (recv(fd, answer + length, 1, 0) != 1) return -1;
    if (length >= 3 && memcmp(answer + length - 3, "\r\n\r\n", 4) == 0) {
      send_at_once(fd);
      return fd;
    }
  }
  return -1;
}
