#include "slot.h"

#include <arpa/inet.h>
#include <linux/sock_diag.h>

#include <cerrno>
#include <cstring>

#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

namespace generator {
namespace {

// Seconds of one call's packets, for when the machine is busy.
constexpr int kReceiveBufferBytes = 256 << 10;

}  // namespace

bool Endpoint::Parse(const std::string& text, uint16_t port, Endpoint* endpoint) {
  endpoint->storage_ = {};
  auto* const four = reinterpret_cast<sockaddr_in*>(&endpoint->storage_);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&endpoint->storage_);
  if (inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    return true;
  }
  if (inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) != 1) return false;
  six->sin6_family = AF_INET6;
  six->sin6_port = htons(port);
  return true;
}

Endpoint Endpoint::Of(const sockaddr_storage& from) {
  Endpoint endpoint;
  endpoint.storage_ = from;
  return endpoint;
}

Endpoint Endpoint::WithPort(uint16_t port) const {
  Endpoint other = *this;
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&other.storage_)->sin6_port = htons(port);
  else reinterpret_cast<sockaddr_in*>(&other.storage_)->sin_port = htons(port);
  return other;
}

bool Endpoint::operator==(const Endpoint& other) const {
  if (family() != other.family()) return false;
  if (family() == AF_INET6) {
    const auto* const one = reinterpret_cast<const sockaddr_in6*>(&storage_);
    const auto* const two = reinterpret_cast<const sockaddr_in6*>(&other.storage_);
    return one->sin6_port == two->sin6_port && std::memcmp(&one->sin6_addr, &two->sin6_addr, sizeof one->sin6_addr) == 0;
  }
  const auto* const one = reinterpret_cast<const sockaddr_in*>(&storage_);
  const auto* const two = reinterpret_cast<const sockaddr_in*>(&other.storage_);
  return one->sin_port == two->sin_port && one->sin_addr.s_addr == two->sin_addr.s_addr;
}

Socket Socket::Bind(const Endpoint& at, int* error) {
  Socket made(socket(at.family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (made.IsOpen()) {
    setsockopt(made.fd(), SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);
    // When a packet came, however late we look.
    setsockopt(made.fd(), SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on);
    if (bind(made.fd(), at.address(), at.size()) == 0) return made;
  }
  *error = errno;
  return Socket();
}

bool Socket::Send(const uint8_t* packet, size_t length, const Endpoint& to) const {
  return sendto(fd_, packet, length, 0, to.address(), to.size()) == static_cast<ssize_t>(length);
}

uint64_t Socket::Drops() const {
  uint32_t figures[SK_MEMINFO_VARS] = {};
  socklen_t size = sizeof figures;
  if (getsockopt(fd_, SOL_SOCKET, SO_MEMINFO, figures, &size) != 0) return 0;
  return figures[SK_MEMINFO_DROPS];
}

}  // namespace generator
