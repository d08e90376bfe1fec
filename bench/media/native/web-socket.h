#ifndef BENCH_WEB_SOCKET_H
#define BENCH_WEB_SOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As much of WebSocket (RFC 6455) as bots and bridges of the benchmark need: messages of one frame, no extensions. */

enum { OPCODE_TEXT = 1, OPCODE_BINARY = 2, OPCODE_CLOSE = 8, OPCODE_PING = 9, OPCODE_PONG = 10, HEADER_ROOM = 14 };

typedef struct {
  int opcode;
  uint8_t *payload;
  size_t length;
} WebSocketFrame;

/* A connection and what it has sent so far that is no whole frame. */
typedef struct {
  int fd;
  size_t length;
  size_t taken;
  uint8_t bytes[1 << 16];
} WebSocketInput;

/* Reads what has come with one recv. False when the connection is over. */
bool web_socket_receive(WebSocketInput *input);

/* The next whole frame, unmasked in place, valid until the next web_socket_receive. */
bool web_socket_next(WebSocketInput *input, WebSocketFrame *frame);

/*
 * Writes a frame whose payload the caller has put HEADER_ROOM bytes after the beginning of `buffer`, with one send. A client masks it (§5.3).
 * False when the peer does not take it whole: the connection cannot be used any longer.
 */
bool web_socket_send(int fd, int opcode, uint8_t *buffer, size_t length, bool is_client);

/* The server's answer to a request with its end of headers (§4.2.2); false when that has no key. */
bool web_socket_accept(int fd, const char *request);

/* Connects to a server on 127.0.0.1 and waits until it has accepted (§4.1). Returns the socket, or -1. */
int web_socket_connect(int port);

#endif
