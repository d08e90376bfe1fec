// What the addon and the media generator share: one direction of AES_CM_128_HMAC_SHA1_80 (RFC 3711, RFC 4568 §6.2) as a libsrtp session.
#pragma once

#include <dlfcn.h>
#include <srtp2/srtp.h>

#include <cstring>
#include <memory>
#include <type_traits>

constexpr size_t kMasterKeySize = SRTP_AES_128_KEY_LEN + SRTP_SALT_LEN;
static_assert(kMasterKeySize == 30, "RFC 4568 §6.1: 128-bit master key and 112-bit master salt");

constexpr int kRtpHeaderSize = 12;    // RFC 3550 §5.1
constexpr int kRtpTrailerSize = 10;   // RFC 3711 §5.2: the 80-bit tag; no MKI
constexpr int kRtcpTrailerSize = 14;  // RFC 3711 §3.4: E flag and index, 80-bit tag

// RFC 3550 §5.1: version 2, and the CSRC list and the extension lie inside the packet, the trailer not counted.
inline bool IsRtp(const uint8_t* packet, int size) {
  if ((packet[0] >> 6) != 2) return false;
  int header = kRtpHeaderSize + 4 * (packet[0] & 0x0f);
  if (packet[0] & 0x10) {
    if (header + 4 > size) return false;
    header += 4 + 4 * ((packet[header + 2] << 8) | packet[header + 3]);
  }
  return header <= size;
}

// Debian's libsrtp takes its ciphers from NSS, which it starts with NSS_INIT_OPTIMIZESPACE: each packet then walks a list that has a 32nd
// of all keys of the process (2,400 calls: 18 us in place of 5). Who starts NSS first decides, so we do, without that flag.
inline srtp_err_status_t InitSrtp() {
  constexpr unsigned kReadOnly = 0x1, kNoCertDb = 0x2, kNoModuleDb = 0x4, kForceOpen = 0x8;
  using InitContext = void* (*)(const char*, const char*, const char*, const char*, void*, unsigned);
  const auto init_context = reinterpret_cast<InitContext>(dlsym(RTLD_DEFAULT, "NSS_InitContext"));
  if (init_context != nullptr) (void)init_context("", "", "", "", nullptr, kReadOnly | kNoCertDb | kNoModuleDb | kForceOpen);
  return srtp_init();
}

struct SrtpDeleter {
  void operator()(srtp_t session) const { srtp_dealloc(session); }
};
using SrtpPointer = std::unique_ptr<std::remove_pointer_t<srtp_t>, SrtpDeleter>;

// A session's policy with this key, which the policy refers to. RFC 3711 §3.3.2: a sender never uses one packet index twice under one key.
inline srtp_policy_t SrtpPolicy(uint8_t key[kMasterKeySize], srtp_ssrc_t ssrc) {
  srtp_policy_t policy;
  std::memset(&policy, 0, sizeof policy);
  srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtp);
  srtp_crypto_policy_set_aes_cm_128_hmac_sha1_80(&policy.rtcp);
  policy.ssrc = ssrc;
  policy.key = key;
  policy.window_size = 1024;
  policy.allow_repeat_tx = 0;
  return policy;
}

// Empty when libsrtp refuses; the key is copied.
inline SrtpPointer CreateSrtp(const srtp_policy_t& policy) {
  srtp_t session = nullptr;
  return SrtpPointer(srtp_create(&session, &policy) == srtp_err_status_ok ? session : nullptr);
}

// For any number of SSRCs.
inline SrtpPointer CreateSrtp(uint8_t key[kMasterKeySize], bool is_receiver) {
  return CreateSrtp(SrtpPolicy(key, srtp_ssrc_t{is_receiver ? ssrc_any_inbound : ssrc_any_outbound, 0}));
}
