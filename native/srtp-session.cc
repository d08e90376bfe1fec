// SRTP and SRTCP sessions (RFC 3711, AES_CM_128_HMAC_SHA1_80) over libsrtp2.
//
// A session works in place in the caller's buffer, on a batch of packets a call. A batch is described by an Int32Array of
// (offset, length, capacity) triples: packet i lies at buffer[offset, offset + length) and may grow to capacity bytes. The call
// overwrites each length with the packet's new length, or with a negative error code, and allocates nothing.

#include <napi.h>
#include <srtp2/srtp.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "addon.h"
#include "srtp.h"

namespace {

constexpr int kRtcpHeaderSize = 8;  // RFC 3550 §6.4: common header and sender SSRC
// No Ethernet frame carries more; a bound on what one packet may cost.
constexpr int kMaxPacketSize = 2048;
// Rollover counters ahead that are tried with every packet, and blocks of further ones in turn: three days of packets of 20 ms.
constexpr uint32_t kNextRollovers = 4;
constexpr uint32_t kBlockSize = 8;
constexpr uint32_t kBlocks = 24;

// The order is shared with src/srtp/srtp.ts.
enum class Operation : uint32_t { kProtectRtp = 0, kUnprotectRtp = 1, kProtectRtcp = 2, kUnprotectRtcp = 3 };

// The values are shared with src/srtp/srtp.ts.
enum ErrorCode : int32_t {
  kOutOfBounds = -1,
  kTooShort = -2,
  kTooLong = -3,
  kNoTrailerRoom = -4,
  kMalformed = -5,
  kAuthFailed = -6,
  kReplayed = -7,
  kKeyExpired = -8,
  kFailed = -9,
};

// libsrtp's crypto kernel is one a process and its srtp_init is not thread-safe; worker threads load the addon independently.
bool InitializeLibrary() {
  static std::once_flag once;
  static srtp_err_status_t status = srtp_err_status_init_fail;
  std::call_once(once, [] { status = InitSrtp(); });
  return status == srtp_err_status_ok;
}

ErrorCode ToErrorCode(srtp_err_status_t status) {
  switch (status) {
    case srtp_err_status_auth_fail:
      return kAuthFailed;
    case srtp_err_status_replay_fail:
    case srtp_err_status_replay_old:
    case srtp_err_status_pkt_idx_old:
      return kReplayed;
    case srtp_err_status_bad_param:
    case srtp_err_status_parse_err:
      return kMalformed;
    case srtp_err_status_key_expired:
      return kKeyExpired;
    default:
      return kFailed;
  }
}

class SrtpSession : public Napi::ObjectWrap<SrtpSession> {
 public:
  static void Register(Napi::Env env, Napi::Object exports) {
    exports.Set("SrtpSession", DefineClass(env, "SrtpSession",
                                           {InstanceMethod<&SrtpSession::Transform>("transform"),
                                            InstanceMethod<&SrtpSession::Close>("close")}));
  }

  // new SrtpSession(masterKeyAndSalt: Uint8Array(30), isReceiver: boolean)
  explicit SrtpSession(const Napi::CallbackInfo& info) : Napi::ObjectWrap<SrtpSession>(info) {
    const Napi::Env env = info.Env();
    if (info.Length() < 2 || !info[0].IsTypedArray() || !info[1].IsBoolean() ||
        info[0].As<Napi::TypedArray>().TypedArrayType() != napi_uint8_array ||
        info[0].As<Napi::TypedArray>().ByteLength() != kMasterKeySize) {
      Napi::TypeError::New(env, "expected a Uint8Array of 30 bytes and a boolean").ThrowAsJavaScriptException();
      return;
    }
    std::memcpy(key_, info[0].As<Napi::Uint8Array>().Data(), sizeof key_);
    session_ = CreateSrtp(key_, info[1].As<Napi::Boolean>().Value());
    if (!session_) Napi::Error::New(env, "libsrtp could not create a session").ThrowAsJavaScriptException();
  }

  ~SrtpSession() override { explicit_bzero(key_, sizeof key_); }

 private:
  // transform(operation: number, buffer: Uint8Array, table: Int32Array): number of packets that failed
  Napi::Value Transform(const Napi::CallbackInfo& info) {
    const Napi::Env env = info.Env();
    // The plain C interface: each question to a Napi::TypedArray would be a call into the engine of its own.
    uint32_t operation = 0;
    uint8_t* bytes = nullptr;
    int32_t* entries = nullptr;
    size_t size = 0;
    size_t entry_count = 0;
    if (info.Length() < 3 || napi_get_value_uint32(env, info[0], &operation) != napi_ok ||
        !GetTypedArray(env, info[1], napi_uint8_array, &bytes, &size) ||
        !GetTypedArray(env, info[2], napi_int32_array, &entries, &entry_count)) {
      Napi::TypeError::New(env, "expected an operation, a Uint8Array and an Int32Array").ThrowAsJavaScriptException();
      return env.Undefined();
    }
    if (operation > static_cast<uint32_t>(Operation::kUnprotectRtcp)) {
      Napi::RangeError::New(env, "no such operation").ThrowAsJavaScriptException();
      return env.Undefined();
    }
    if (!session_) {
      Napi::Error::New(env, "the session is closed").ThrowAsJavaScriptException();
      return env.Undefined();
    }
    const size_t packets = entry_count / 3;

    int32_t failures = 0;
    for (size_t i = 0; i < packets; i += 1) {
      int32_t* const entry = entries + 3 * i;
      entry[1] = TransformOne(static_cast<Operation>(operation), bytes, static_cast<int64_t>(size), entry[0], entry[1], entry[2]);
      if (entry[1] < 0) failures += 1;
    }
    return Napi::Number::New(env, failures);
  }

  // The new length of the packet or an ErrorCode. Nothing outside of bytes[offset, offset + capacity) is touched.
  int32_t TransformOne(Operation operation, uint8_t* bytes, int64_t size, int32_t offset, int32_t length, int32_t capacity) {
    if (offset < 0 || length < 0 || capacity < length || int64_t{offset} + capacity > size) return kOutOfBounds;
    if (length > kMaxPacketSize) return kTooLong;
    const bool is_rtp = operation == Operation::kProtectRtp || operation == Operation::kUnprotectRtp;
    const bool protects = operation == Operation::kProtectRtp || operation == Operation::kProtectRtcp;
    const int header = is_rtp ? kRtpHeaderSize : kRtcpHeaderSize;
    const int trailer = is_rtp ? kRtpTrailerSize : kRtcpTrailerSize;
    if (length < (protects ? header : header + trailer)) return kTooShort;
    if (protects && capacity - length < trailer) return kNoTrailerRoom;

    uint8_t* const packet = bytes + offset;
    const int plain_size = protects ? length : length - trailer;
    if (is_rtp ? !IsRtp(packet, plain_size) : (packet[0] >> 6) != 2) return kMalformed;

    // libsrtp reads the header through structs of 32-bit words.
    if (reinterpret_cast<uintptr_t>(packet) % alignof(uint32_t) == 0) return Call(operation, packet, length);
    alignas(uint32_t) static thread_local uint8_t aligned[kMaxPacketSize + SRTP_MAX_TRAILER_LEN];
    std::memcpy(aligned, packet, static_cast<size_t>(length));
    const int32_t result = Call(operation, aligned, length);
    if (result >= 0) std::memcpy(packet, aligned, static_cast<size_t>(result));
    return result;
  }

  int32_t Call(Operation operation, uint8_t* packet, int length) {
    srtp_err_status_t status = srtp_err_status_fail;
    switch (operation) {
      case Operation::kProtectRtp:
        status = srtp_protect(session_.get(), packet, &length);
        break;
      case Operation::kUnprotectRtp:
        status = srtp_unprotect(session_.get(), packet, &length);
        if (ToErrorCode(status) == kAuthFailed || ToErrorCode(status) == kReplayed) {
          if (FindRollover(packet, length)) status = srtp_unprotect(session_.get(), packet, &length);
        }
        break;
      case Operation::kProtectRtcp:
        status = srtp_protect_rtcp(session_.get(), packet, &length);
        break;
      case Operation::kUnprotectRtcp:
        status = srtp_unprotect_rtcp(session_.get(), packet, &length);
        break;
    }
    return status == srtp_err_status_ok ? length : ToErrorCode(status);
  }

  // A sender that began before this session has a rollover counter that no packet tells (RFC 3711 §3.3.1). A packet that does not fit is
  // tried with later ones; with an earlier one it would be a replay. Its sequence number chooses which, so that forged packets between
  // the sender's cannot hide any.
  bool FindRollover(const uint8_t* packet, int length) {
    uint32_t ssrc = 0;
    for (int i = 8; i < 12; i += 1) ssrc = ssrc << 8 | packet[i];
    uint32_t known = 0;
    const bool has_stream = srtp_get_stream_roc(session_.get(), ssrc, &known) == srtp_err_status_ok;
    const srtp_policy_t policy = SrtpPolicy(key_, srtp_ssrc_t{ssrc_specific, ssrc});
    const SrtpPointer trial = CreateSrtp(policy);
    if (!trial) return false;

    const uint32_t sequence_number = static_cast<uint32_t>(packet[2] << 8 | packet[3]);
    const uint32_t block = known + kNextRollovers + kBlockSize * (sequence_number % kBlocks);
    uint32_t rollovers = 0;
    for (uint32_t i = 1; rollovers == 0 && i <= kNextRollovers; i += 1)
      if (Fits(trial.get(), ssrc, known + i, packet, length)) rollovers = known + i;
    for (uint32_t i = 1; rollovers == 0 && i <= kBlockSize; i += 1)
      if (Fits(trial.get(), ssrc, block + i, packet, length)) rollovers = block + i;
    if (rollovers == 0) return false;
    if (!has_stream && srtp_add_stream(session_.get(), &policy) != srtp_err_status_ok) return false;
    return srtp_set_stream_roc(session_.get(), ssrc, rollovers) == srtp_err_status_ok;
  }

  static bool Fits(srtp_t trial, uint32_t ssrc, uint32_t rollovers, const uint8_t* packet, int length) {
    alignas(uint32_t) static thread_local uint8_t copy[kMaxPacketSize + SRTP_MAX_TRAILER_LEN];
    std::memcpy(copy, packet, static_cast<size_t>(length));
    return srtp_set_stream_roc(trial, ssrc, rollovers) == srtp_err_status_ok && srtp_unprotect(trial, copy, &length) == srtp_err_status_ok;
  }

  // close(): frees the session and its keys now instead of at garbage collection; a second call does nothing.
  void Close(const Napi::CallbackInfo&) {
    session_.reset();
    explicit_bzero(key_, sizeof key_);
  }

  uint8_t key_[kMasterKeySize] = {};
  SrtpPointer session_;
};

Napi::Object Initialize(Napi::Env env, Napi::Object exports) {
  if (!InitializeLibrary()) {
    Napi::Error::New(env, "libsrtp could not be initialized").ThrowAsJavaScriptException();
    return exports;
  }
  SrtpSession::Register(env, exports);
  RegisterUdpSocket(env, exports);
  return exports;
}

}  // namespace

NODE_API_MODULE(srtp, Initialize)
