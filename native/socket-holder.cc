// Keeps the SIP server's sockets open while no SIP server runs: what arrives meanwhile waits in the kernel for the next one.
//
//   socket-holder hold DIRECTORY NAME PROTOCOL ADDRESS PORT …   binds them (PROTOCOL: tcp or udp) and hands them to whoever asks
//   socket-holder exec DIRECTORY COMMAND ARGUMENT …             becomes the command, with these sockets as systemd passes them
//
// It hands them over a Unix socket in the directory (SCM_RIGHTS, unix(7)). The command finds them from descriptor 3 on, with LISTEN_PID,
// LISTEN_FDS and LISTEN_FDNAMES (sd_listen_fds(3)). Where nobody holds any, the command gets none and opens its own.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr char kSocketName[] = "sockets.sock";
constexpr int kFirstDescriptor = 3;
constexpr int kMaxSockets = 8;
constexpr int kBacklog = 1024;
constexpr int kUdpBufferBytes = 4 << 20;
constexpr int kRetryMs = 1000;
constexpr int kAnswerLimitMs = 1000;

struct Wanted {
  const char* name;
  int type;
  const char* address;
  const char* port;
};

// -1 with errno on failure.
int Bind(const Wanted& wanted) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = wanted.type;
  addrinfo* found = nullptr;
  if (getaddrinfo(wanted.address, wanted.port, &hints, &found) != 0) {
    errno = EINVAL;
    return -1;
  }
  const int one = 1;
  const int fd = socket(found->ai_family, wanted.type | SOCK_CLOEXEC, 0);
  bool is_bound = fd >= 0;
  if (wanted.type == SOCK_STREAM) {
    is_bound = is_bound && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0;
  } else if (is_bound) {
    // As large as the system allows.
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kUdpBufferBytes, sizeof kUdpBufferBytes);
  }
  is_bound = is_bound && bind(fd, found->ai_addr, found->ai_addrlen) == 0;
  is_bound = is_bound && (wanted.type != SOCK_STREAM || listen(fd, kBacklog) == 0);
  freeaddrinfo(found);
  if (is_bound) return fd;
  const int error = errno;
  if (fd >= 0) close(fd);
  errno = error;
  return -1;
}

int OpenUnix(sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path, kSocketName, sizeof kSocketName);
  return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

void HandOver(int peer, const std::string& names, const std::vector<int>& held) {
  iovec text{const_cast<char*>(names.data()), names.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSockets)] = {};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(sizeof(int) * held.size());
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int) * held.size());
  std::memcpy(CMSG_DATA(header), held.data(), sizeof(int) * held.size());
  sendmsg(peer, &message, MSG_NOSIGNAL);
}

int Hold(const std::vector<Wanted>& wanted) {
  std::string names;
  std::vector<int> held;
  for (const Wanted& one : wanted) {
    int fd = Bind(one);
    // A SIP server that outlived an earlier holder has it.
    while (fd < 0 && errno == EADDRINUSE) {
      poll(nullptr, 0, kRetryMs);
      fd = Bind(one);
    }
    if (fd < 0) {
      std::fprintf(stderr, "socket-holder: %s port %s on %s: %s\n", one.name, one.port, one.address, std::strerror(errno));
      return 1;
    }
    held.push_back(fd);
    names += (names.empty() ? "" : ":") + std::string(one.name);
  }
  umask(077);
  unlink(kSocketName);
  sockaddr_un address;
  const int server = OpenUnix(&address);
  if (server < 0 || bind(server, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(server, kMaxSockets) != 0) {
    std::perror("socket-holder");
    return 1;
  }
  for (;;) {
    const int peer = accept4(server, nullptr, nullptr, SOCK_CLOEXEC);
    if (peer < 0) continue;
    HandOver(peer, names, held);
    close(peer);
  }
}

// Leaves the sockets at descriptor 3 and above. 0: there are none.
size_t Receive(std::string* names) {
  sockaddr_un address;
  const int holder = OpenUnix(&address);
  if (holder < 0 || connect(holder, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return 0;
  const timeval limit{kAnswerLimitMs / 1000, 0};
  setsockopt(holder, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  char text[256];
  iovec buffer{text, sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMaxSockets)] = {};
  msghdr message{};
  message.msg_iov = &buffer;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t length = recvmsg(holder, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* header = length > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return 0;
  const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  int received[kMaxSockets];
  std::memcpy(received, CMSG_DATA(header), count * sizeof(int));
  names->assign(text, static_cast<size_t>(length));
  // Out of the way first: one may have a number that another is to get.
  for (size_t index = 0; index < count; ++index) received[index] = fcntl(received[index], F_DUPFD, kFirstDescriptor + kMaxSockets);
  // dup2 leaves it open in the command.
  for (size_t index = 0; index < count; ++index) {
    dup2(received[index], kFirstDescriptor + static_cast<int>(index));
    close(received[index]);
  }
  return count;
}

int Exec(const char* directory, char** command) {
  // Above the numbers that the sockets get.
  const int here = fcntl(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), F_DUPFD_CLOEXEC, kFirstDescriptor + 2 * kMaxSockets);
  std::string names;
  const size_t count = chdir(directory) == 0 ? Receive(&names) : 0;
  if (here < 0 || fchdir(here) != 0) {
    std::perror("socket-holder");
    return 1;
  }
  if (count > 0) {
    setenv("LISTEN_PID", std::to_string(getpid()).c_str(), 1);
    setenv("LISTEN_FDS", std::to_string(count).c_str(), 1);
    setenv("LISTEN_FDNAMES", names.c_str(), 1);
  }
  execvp(command[0], command);
  std::fprintf(stderr, "socket-holder: %s: %s\n", command[0], std::strerror(errno));
  return 127;
}

int Usage() {
  std::fputs("usage: socket-holder hold DIRECTORY (NAME tcp|udp ADDRESS PORT)…\n       socket-holder exec DIRECTORY COMMAND ARGUMENT…\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Usage();
  const std::string mode = argv[1];
  if (mode == "exec") return Exec(argv[2], argv + 3);
  if (mode != "hold" || (argc - 3) % 4 != 0 || (argc - 3) / 4 > kMaxSockets) return Usage();
  std::vector<Wanted> wanted;
  for (int at = 3; at < argc; at += 4)
    wanted.push_back({argv[at], std::strcmp(argv[at + 1], "udp") == 0 ? SOCK_DGRAM : SOCK_STREAM, argv[at + 2], argv[at + 3]});
  if (chdir(argv[2]) != 0) {
    std::perror("socket-holder");
    return 1;
  }
  return Hold(wanted);
}
