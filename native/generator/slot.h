// A slot's sockets: an even port for RTP and the next one for RTCP.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>
#include <string>

#include "../srtp.h"
#include "call.h"

namespace generator {

// An address and port, IPv4 or IPv6.
class Endpoint {
 public:
  // False when the text is no address.
  static bool Parse(const std::string& text, uint16_t port, Endpoint* endpoint);
  static Endpoint Of(const sockaddr_storage& from);

  int family() const { return storage_.ss_family; }
  const sockaddr* address() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return storage_.ss_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }
  Endpoint WithPort(uint16_t port) const;
  bool operator==(const Endpoint& other) const;

 private:
  sockaddr_storage storage_{};
};

class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  bool IsOpen() const { return fd_ >= 0; }

  // Not open when the port is taken; `error` is then the system's.
  static Socket Bind(const Endpoint& at, int* error);
  bool Send(const uint8_t* packet, size_t length, const Endpoint& to) const;
  // Datagrams that the kernel threw away so far because nobody fetched them.
  uint64_t Drops() const;

 private:
  int fd_ = -1;
};

// The last call of a slot: packets of it that are still under way are nobody's.
struct EarlierCall {
  SrtpPointer receive;
  Endpoint far_rtp;
  Endpoint far_rtcp;
  uint64_t until_us = 0;
};

struct Slot {
  Socket rtp;
  Socket rtcp;
  uint16_t port = 0;
  std::array<uint8_t, kMasterKeySize> key{};
  uint32_t next_ssrc = 0;

  std::unique_ptr<Call> call;
  Endpoint far_rtp;
  Endpoint far_rtcp;
  std::array<uint8_t, kMasterKeySize> far_key{};
  size_t phase = 0;
  uint64_t drops_before = 0;
  EarlierCall earlier;
};

}  // namespace generator
