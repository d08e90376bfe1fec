// UDP sockets of the media endpoint, and of the commands to rtpengine. One system call receives or sends many datagrams, and the kernel's
// sender address becomes a peer's number here, so that packets of strangers cost no JavaScript.
//
// Packets to send wait until the event loop is about to block: those of one turn leave together.

#include <napi.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

#include "addon.h"

namespace {

// The value is shared with src/srtp/udp-socket.ts.
constexpr size_t kBatch = 32;  // datagrams a system call

constexpr size_t kMaxQueued = 256;
// So many batches are read before other sockets have their turn.
constexpr int kMaxRounds = 4;

// An address and a port, IPv4 in its mapped form.
struct Endpoint {
  std::array<uint8_t, 16> address{};
  uint16_t port = 0;

  bool operator==(const Endpoint& other) const { return port == other.port && address == other.address; }
};

struct EndpointHash {
  size_t operator()(const Endpoint& endpoint) const {
    uint64_t low = 0;
    uint64_t high = 0;
    std::memcpy(&high, endpoint.address.data(), 8);
    std::memcpy(&low, endpoint.address.data() + 8, 8);
    return std::hash<uint64_t>()(high * 31 + low * 17 + endpoint.port);
  }
};

Endpoint EndpointOf(const sockaddr_storage& from) {
  Endpoint endpoint;
  if (from.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(from);
    endpoint.address[10] = endpoint.address[11] = 0xff;
    std::memcpy(endpoint.address.data() + 12, &v4.sin_addr, 4);
    endpoint.port = v4.sin_port;
  } else {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(from);
    std::memcpy(endpoint.address.data(), &v6.sin6_addr, 16);
    endpoint.port = v6.sin6_port;
  }
  return endpoint;
}

bool Parse(const std::string& address, int port, sockaddr_storage* parsed) {
  return uv_ip4_addr(address.c_str(), port, reinterpret_cast<sockaddr_in*>(parsed)) == 0 ||
         uv_ip6_addr(address.c_str(), port, reinterpret_cast<sockaddr_in6*>(parsed)) == 0;
}

socklen_t SizeOf(const sockaddr_storage& address) {
  return address.ss_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

struct Message {
  sockaddr_storage address;
  iovec part;
};

#ifdef __linux__
using Header = mmsghdr;
int ReceiveMany(int fd, Header* headers, size_t count) { return recvmmsg(fd, headers, static_cast<unsigned>(count), MSG_DONTWAIT, nullptr); }
int SendMany(int fd, Header* headers, size_t count) { return sendmmsg(fd, headers, static_cast<unsigned>(count), MSG_DONTWAIT); }
#else
struct Header {
  msghdr msg_hdr;
  unsigned msg_len;
};
int ReceiveMany(int fd, Header* headers, size_t count) {
  for (size_t i = 0; i < count; i += 1) {
    const ssize_t size = recvmsg(fd, &headers[i].msg_hdr, MSG_DONTWAIT);
    if (size < 0) return i == 0 ? -1 : static_cast<int>(i);
    headers[i].msg_len = static_cast<unsigned>(size);
  }
  return static_cast<int>(count);
}
int SendMany(int fd, Header* headers, size_t count) {
  for (size_t i = 0; i < count; i += 1)
    if (sendmsg(fd, &headers[i].msg_hdr, MSG_DONTWAIT) < 0) return i == 0 ? -1 : static_cast<int>(i);
  return static_cast<int>(count);
}
#endif

class UdpSocket;

// What libuv holds: it outlives the JavaScript object, until both handles are closed.
struct Handles {
  uv_poll_t poll;
  uv_prepare_t prepare;
  UdpSocket* socket;
  napi_async_cleanup_hook_handle cleanup = nullptr;
  int fd;
  int open = 0;

  void Close() {
    if (socket == nullptr) return;
    socket = nullptr;
    uv_poll_stop(&poll);
    close(fd);
    uv_close(reinterpret_cast<uv_handle_t*>(&poll), OnClosed);
    uv_close(reinterpret_cast<uv_handle_t*>(&prepare), OnClosed);
  }

  static void OnClosed(uv_handle_t* handle) {
    auto* const handles = static_cast<Handles*>(handle->data);
    handles->open -= 1;
    if (handles->open > 0) return;
    napi_remove_async_cleanup_hook(handles->cleanup);
    delete handles;
  }
};

class UdpSocket : public Napi::ObjectWrap<UdpSocket> {
 public:
  static void Register(Napi::Env env, Napi::Object exports) {
    exports.Set("UdpSocket", DefineClass(env, "UdpSocket",
                                         {InstanceMethod<&UdpSocket::AddPeer>("addPeer"), InstanceMethod<&UdpSocket::FindPeer>("findPeer"),
                                          InstanceMethod<&UdpSocket::RemovePeer>("removePeer"), InstanceMethod<&UdpSocket::Send>("send"),
                                          InstanceMethod<&UdpSocket::GrowReceiveBuffer>("growReceiveBuffer"),
                                          InstanceMethod<&UdpSocket::Counters>("counters"),
                                          InstanceMethod<&UdpSocket::Close>("close")}));
  }

  // new UdpSocket(address: string, port: number, slots: Uint8Array(kBatch * size), table: Int32Array(3 * kBatch), onDatagrams)
  // onDatagrams(count) finds (slot, length, peer) of each datagram in the table, and its bytes at slots[slot * size]. None is longer.
  explicit UdpSocket(const Napi::CallbackInfo& info) : Napi::ObjectWrap<UdpSocket>(info), context_(info.Env(), "UdpSocket") {
    const Napi::Env env = info.Env();
    size_t slots_size = 0;
    size_t table_size = 0;
    sockaddr_storage address{};
    if (info.Length() < 5 || !info[0].IsString() || !info[1].IsNumber() ||
        !GetTypedArray(env, info[2], napi_uint8_array, &slots_, &slots_size) || slots_size < kBatch ||
        !GetTypedArray(env, info[3], napi_int32_array, &table_, &table_size) || table_size < 3 * kBatch || !info[4].IsFunction() ||
        !Parse(info[0].As<Napi::String>(), info[1].As<Napi::Number>(), &address)) {
      Napi::TypeError::New(env, "expected an address, a port, slots, a table and a function").ThrowAsJavaScriptException();
      return;
    }
    slot_size_ = slots_size / kBatch;
    const int fd = socket(address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
      Fail(env, "socket", errno);
      return;
    }
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), SizeOf(address)) < 0) {
      const int error = errno;
      close(fd);
      Fail(env, "bind", error);
      return;
    }
    owned_ = {Napi::Persistent(info[2]), Napi::Persistent(info[3])};
    on_datagrams_ = Napi::Persistent(info[4].As<Napi::Function>());
    Listen(env, fd);
  }

 private:
  void Listen(Napi::Env env, int fd) {
    uv_loop_s* loop = nullptr;
    napi_get_uv_event_loop(env, &loop);
    handles_ = new Handles{};
    handles_->socket = this;
    handles_->fd = fd;
    handles_->poll.data = handles_->prepare.data = handles_;
    uv_poll_init(loop, &handles_->poll, fd);
    uv_prepare_init(loop, &handles_->prepare);
    handles_->open = 2;
    uv_unref(reinterpret_cast<uv_handle_t*>(&handles_->prepare));
    uv_poll_start(&handles_->poll, UV_READABLE, [](uv_poll_t* poll, int, int) {
      auto* const handles = static_cast<Handles*>(poll->data);
      if (handles->socket != nullptr) handles->socket->Receive(handles);
    });
    // A thread that is ended from outside does not close its sockets.
    napi_add_async_cleanup_hook(
        env, [](napi_async_cleanup_hook_handle, void* handles) { static_cast<Handles*>(handles)->Close(); }, handles_, &handles_->cleanup);
    Ref();
  }

  static void Fail(Napi::Env env, const char* call, int error) {
    Napi::Error thrown = Napi::Error::New(env, std::string(call) + " " + uv_err_name(uv_translate_sys_error(error)));
    thrown.Set("code", Napi::String::New(env, uv_err_name(uv_translate_sys_error(error))));
    thrown.ThrowAsJavaScriptException();
  }

  static bool ReadAddress(const Napi::CallbackInfo& info, sockaddr_storage* address) {
    if (info.Length() >= 2 && info[0].IsString() && info[1].IsNumber() &&
        Parse(info[0].As<Napi::String>(), info[1].As<Napi::Number>(), address))
      return true;
    Napi::TypeError::New(info.Env(), "expected an address and a port").ThrowAsJavaScriptException();
    return false;
  }

  // findPeer(address, port): the peer's number, or -1.
  Napi::Value FindPeer(const Napi::CallbackInfo& info) {
    sockaddr_storage address{};
    if (!ReadAddress(info, &address)) return info.Env().Undefined();
    const auto peer = numbers_.find(EndpointOf(address));
    return Napi::Number::New(info.Env(), peer == numbers_.end() ? -1 : peer->second);
  }

  // addPeer(address, port): the peer's number; -1: another one has the address and port.
  Napi::Value AddPeer(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    sockaddr_storage address{};
    if (!ReadAddress(info, &address)) return env.Undefined();
    const int32_t number = free_.empty() ? static_cast<int32_t>(peers_.size()) : free_.back();
    if (!numbers_.emplace(EndpointOf(address), number).second) return Napi::Number::New(env, -1);
    if (free_.empty()) {
      peers_.push_back(address);
    } else {
      free_.pop_back();
      peers_[static_cast<size_t>(number)] = address;
    }
    return Napi::Number::New(env, number);
  }

  void RemovePeer(const Napi::CallbackInfo& info) {
    const sockaddr_storage* const peer = PeerOf(info);
    if (peer == nullptr) return;
    numbers_.erase(EndpointOf(*peer));
    const int32_t number = info[0].As<Napi::Number>();
    peers_[static_cast<size_t>(number)].ss_family = AF_UNSPEC;
    free_.push_back(number);
  }

  const sockaddr_storage* PeerOf(const Napi::CallbackInfo& info) {
    int32_t number = -1;
    if (info.Length() < 1 || napi_get_value_int32(info.Env(), info[0], &number) != napi_ok || number < 0 ||
        static_cast<size_t>(number) >= peers_.size() || peers_[static_cast<size_t>(number)].ss_family == AF_UNSPEC) {
      Napi::RangeError::New(info.Env(), "no such peer").ThrowAsJavaScriptException();
      return nullptr;
    }
    return &peers_[static_cast<size_t>(number)];
  }

  // send(peer, buffer: Uint8Array, length): copies the packet. After close() nothing is sent.
  void Send(const Napi::CallbackInfo& info) {
    if (handles_ == nullptr) return;
    const sockaddr_storage* const peer = PeerOf(info);
    if (peer == nullptr) return;
    uint8_t* bytes = nullptr;
    size_t size = 0;
    uint32_t length = 0;
    if (info.Length() < 3 || !GetTypedArray(info.Env(), info[1], napi_uint8_array, &bytes, &size) ||
        napi_get_value_uint32(info.Env(), info[2], &length) != napi_ok || length > size || length > slot_size_) {
      Napi::TypeError::New(info.Env(), "expected a packet and its length").ThrowAsJavaScriptException();
      return;
    }
    if (queue_.size() == kMaxQueued) Flush();
    if (queue_.empty()) uv_prepare_start(&handles_->prepare, [](uv_prepare_t* prepare) {
      uv_prepare_stop(prepare);
      auto* const handles = static_cast<Handles*>(prepare->data);
      if (handles->socket != nullptr) handles->socket->Flush();
    });
    queue_.push_back({*peer, {nullptr, length}});
    bytes_.insert(bytes_.end(), bytes, bytes + length);
  }

  void Flush() {
    std::array<Header, kBatch> headers;
    uint8_t* at = bytes_.data();
    for (size_t first = 0; first < queue_.size();) {
      const size_t count = std::min(kBatch, queue_.size() - first);
      uint8_t* next = at;
      for (size_t i = 0; i < count; i += 1) {
        Message& message = queue_[first + i];
        message.part.iov_base = next;
        next += message.part.iov_len;
        headers[i] = {};
        headers[i].msg_hdr.msg_name = &message.address;
        headers[i].msg_hdr.msg_namelen = SizeOf(message.address);
        headers[i].msg_hdr.msg_iov = &message.part;
        headers[i].msg_hdr.msg_iovlen = 1;
      }
      // A packet that cannot be sent is dropped: later it would be of no use. Those behind it have their own chance.
      const int sent = SendMany(handles_->fd, headers.data(), count);
      if (sent < 0) send_errors_ += 1;
      const size_t done = sent < 0 ? 1 : static_cast<size_t>(sent);
      for (size_t i = 0; i < done; i += 1) at += queue_[first + i].part.iov_len;
      first += done;
    }
    queue_.clear();
    bytes_.clear();
  }

  void Receive(Handles* handles) {
    for (int round = 0; round < kMaxRounds; round += 1) {
      std::array<Header, kBatch> headers;
      std::array<Message, kBatch> messages;
      for (size_t i = 0; i < kBatch; i += 1) {
        messages[i].part = {slots_ + i * slot_size_, slot_size_};
        headers[i] = {};
        headers[i].msg_hdr.msg_name = &messages[i].address;
        headers[i].msg_hdr.msg_namelen = sizeof(sockaddr_storage);
        headers[i].msg_hdr.msg_iov = &messages[i].part;
        headers[i].msg_hdr.msg_iovlen = 1;
      }
      const int received = ReceiveMany(handles->fd, headers.data(), kBatch);
      if (received <= 0) return;
      int32_t known = 0;
      for (size_t i = 0; i < static_cast<size_t>(received); i += 1) {
        const auto peer = numbers_.find(EndpointOf(messages[i].address));
        if (peer == numbers_.end()) {
          strangers_ += 1;
          continue;
        }
        int32_t* const entry = table_ + 3 * known;
        entry[0] = static_cast<int32_t>(i);
        // Longer than any that is meant for us: as good as empty.
        entry[1] = headers[i].msg_hdr.msg_flags & MSG_TRUNC ? 0 : static_cast<int32_t>(headers[i].msg_len);
        entry[2] = peer->second;
        known += 1;
      }
      if (known > 0) Deliver(known);
      if (handles->socket == nullptr || static_cast<size_t>(received) < kBatch) return;
    }
  }

  // The plain C interface: in a thread that is being ended every call fails, which the C++ one takes for fatal.
  void Deliver(int32_t count) {
    const napi_env env = Env();
    napi_handle_scope scope;
    if (napi_open_handle_scope(env, &scope) != napi_ok) return;
    napi_value global;
    napi_value on_datagrams;
    napi_value argument;
    napi_value thrown;
    napi_valuetype type;
    if (napi_get_global(env, &global) == napi_ok && napi_get_reference_value(env, on_datagrams_, &on_datagrams) == napi_ok &&
        napi_create_int32(env, count, &argument) == napi_ok &&
        napi_make_callback(env, context_, global, on_datagrams, 1, &argument, nullptr) == napi_pending_exception &&
        napi_get_and_clear_last_exception(env, &thrown) == napi_ok && napi_typeof(env, thrown, &type) == napi_ok && type == napi_object) {
      napi_fatal_exception(env, thrown);
    }
    napi_close_handle_scope(env, scope);
  }

  // growReceiveBuffer(bytes): the bytes that the system granted, as it reports them.
  Napi::Value GrowReceiveBuffer(const Napi::CallbackInfo& info) {
    int bytes = info.Length() > 0 && info[0].IsNumber() ? info[0].As<Napi::Number>().Int32Value() : 0;
    socklen_t size = sizeof bytes;
    if (handles_ != nullptr) {
      setsockopt(handles_->fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
      getsockopt(handles_->fd, SOL_SOCKET, SO_RCVBUF, &bytes, &size);
    }
    return Napi::Number::New(info.Env(), bytes);
  }

  // counters(): [datagrams of strangers, packets that the system did not take]
  Napi::Value Counters(const Napi::CallbackInfo& info) {
    Napi::Array counters = Napi::Array::New(info.Env(), 2);
    counters.Set(0u, Napi::Number::New(info.Env(), static_cast<double>(strangers_)));
    counters.Set(1u, Napi::Number::New(info.Env(), static_cast<double>(send_errors_)));
    return counters;
  }

  // close(): sends what waits; a second call does nothing.
  void Close(const Napi::CallbackInfo&) {
    if (handles_ == nullptr) return;
    Flush();
    handles_->Close();
    handles_ = nullptr;
    Unref();
  }

  Handles* handles_ = nullptr;
  Napi::AsyncContext context_;
  Napi::FunctionReference on_datagrams_;
  // Keeps the memory behind the two pointers.
  std::array<Napi::Reference<Napi::Value>, 2> owned_;
  uint8_t* slots_ = nullptr;
  size_t slot_size_ = 0;
  int32_t* table_ = nullptr;
  std::unordered_map<Endpoint, int32_t, EndpointHash> numbers_;
  std::vector<sockaddr_storage> peers_;
  std::vector<int32_t> free_;
  std::vector<Message> queue_;
  std::vector<uint8_t> bytes_;
  uint64_t strangers_ = 0;
  uint64_t send_errors_ = 0;
};

}  // namespace

void RegisterUdpSocket(Napi::Env env, Napi::Object exports) { UdpSocket::Register(env, exports); }
