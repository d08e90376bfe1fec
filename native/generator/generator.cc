#include "generator.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace generator {
namespace {

constexpr uint64_t kTickUs = 1'000;
constexpr uint64_t kRestUs = 2'000'000;
constexpr rlim_t kOtherFiles = 16;

uint64_t ClockUs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1'000;
}

uint64_t NowUs() { return ClockUs(CLOCK_MONOTONIC); }
Times Now() { return {NowUs(), ClockUs(CLOCK_REALTIME)}; }

template <typename Value>
Value Random() {
  Value value{};
  // Never fails for so few bytes.
  if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) abort();
  return value;
}

void SetTimer(int fd, uint64_t first_us, uint64_t interval_us) {
  const auto spec = [](uint64_t us) { return timespec{static_cast<time_t>(us / 1'000'000), static_cast<long>(us % 1'000'000 * 1'000)}; };
  const itimerspec value = {spec(interval_us), spec(first_us)};
  timerfd_settime(fd, TFD_TIMER_ABSTIME, &value, nullptr);
}

void Acknowledge(int timer) {
  uint64_t expirations = 0;
  // Nothing is made of how many: the clock says what is due.
  if (read(timer, &expirations, sizeof expirations) < 0) return;
}

bool Add(int poll, int fd, uint64_t data) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = data;
  return epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// Two files a slot.
bool RaiseFileLimit(int slots) {
  rlimit limit{};
  const rlim_t needed = 2 * static_cast<rlim_t>(slots) + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return true;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur >= needed;
}

enum Source : uint64_t { kCommands, kTick, kSecond };

}  // namespace

std::string Generator::Open() {
  Endpoint at;
  if (!Endpoint::Parse(options_.address, 0, &at)) return "--address is no IP address";
  if (InitSrtp() != srtp_err_status_ok) return "libsrtp could not be initialized";
  if (!RaiseFileLimit(options_.slots)) return "the limit on open files is too low for two sockets a slot";
  process_ = Random<uint16_t>() & 0xfff;
  const std::string failure = BindSlots(at);
  return failure.empty() ? OpenPolls() : failure;
}

std::string Generator::BindSlots(const Endpoint& at) {
  int error = 0;
  for (int port = options_.port_min + (options_.port_min & 1); port < options_.port_max && slots_.size() < static_cast<size_t>(options_.slots);
       port += 2) {
    Slot slot;
    slot.port = static_cast<uint16_t>(port);
    slot.rtp = Socket::Bind(at.WithPort(slot.port), &error);
    if (slot.rtp.IsOpen()) slot.rtcp = Socket::Bind(at.WithPort(static_cast<uint16_t>(port + 1)), &error);
    if (!slot.rtcp.IsOpen()) {
      // Somebody else's port: the next pair will do.
      if (error == EADDRINUSE) continue;
      return std::string("the ports cannot be bound: ") + std::strerror(error);
    }
    slot.key = Random<decltype(slot.key)>();
    slot.next_ssrc = Random<uint32_t>();
    slots_.push_back(std::move(slot));
  }
  if (slots_.size() == static_cast<size_t>(options_.slots)) return "";
  return "only " + std::to_string(slots_.size()) + " pairs of ports are free from --port-min to --port-max";
}

std::string Generator::OpenPolls() {
  events_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  sockets_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  tick_timer_ = Socket(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  second_timer_ = Socket(timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
  bool is_watching = Add(events_.fd(), STDIN_FILENO, kCommands) && Add(events_.fd(), tick_timer_.fd(), kTick) &&
                     Add(events_.fd(), second_timer_.fd(), kSecond);
  for (size_t i = 0; i < slots_.size() && is_watching; i += 1)
    is_watching = Add(sockets_.fd(), slots_[i].rtp.fd(), 2 * i) && Add(sockets_.fd(), slots_[i].rtcp.fd(), 2 * i + 1);
  return is_watching ? "" : std::string("the sockets cannot be watched: ") + std::strerror(errno);
}

void Generator::Run() {
  std::vector<ReadySlot> ready;
  for (const Slot& slot : slots_) ready.push_back({static_cast<int>(ready.size()), slot.port, EncodeBase64(slot.key.data(), slot.key.size())});
  report_.Ready(ready);
  SetTimer(second_timer_.fd(), NowUs() + 1'000'000, 1'000'000);
  bool is_running = report_.Flush(true);
  while (is_running) {
    std::array<epoll_event, 4> events;
    const int count = epoll_wait(events_.fd(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; i += 1) {
      const uint64_t source = events[static_cast<size_t>(i)].data.u64;
      if (source == kTick) Tick();
      if (source == kSecond) Second();
      if (source == kCommands && !ReadCommands()) is_running = false;
    }
    if (!report_.Flush(false)) return;
  }
  Finish();
}

// False at `quit`, and when there will be no more commands.
bool Generator::ReadCommands() {
  std::array<char, 16'384> bytes;
  const ssize_t length = read(STDIN_FILENO, bytes.data(), bytes.size());
  if (length < 0) return errno == EINTR || errno == EAGAIN;
  if (length == 0) return false;
  for (ssize_t i = 0; i < length; i += 1) {
    const char at = bytes[static_cast<size_t>(i)];
    if (at != '\n') {
      // One more than is allowed shows that the line is too long.
      if (line_.size() <= kMaxLineBytes) line_ += at;
      continue;
    }
    const bool goes_on = Obey(line_);
    line_.clear();
    if (!goes_on) return false;
  }
  return true;
}

bool Generator::Obey(const std::string& line) {
  const Command command = ParseCommand(line, options_.slots);
  if (const auto* const start = std::get_if<StartCommand>(&command)) Start(*start);
  else if (const auto* const stop = std::get_if<StopCommand>(&command)) Stop(stop->slot);
  else if (const auto* const error = std::get_if<CommandError>(&command)) report_.Error(error->text);
  return !std::holds_alternative<QuitCommand>(command);
}

void Generator::Start(const StartCommand& command) {
  Slot& slot = slots_[static_cast<size_t>(command.slot)];
  const std::string name = "start: slot " + std::to_string(command.slot);
  if (slot.call != nullptr) return report_.Error(name + " has a call");
  Endpoint own;
  if (!Endpoint::Parse(command.address, command.port, &slot.far_rtp) || !Endpoint::Parse(options_.address, 0, &own) ||
      own.family() != slot.far_rtp.family())
    return report_.Error(name + ": the address is no IP address of the family of --address");
  slot.far_rtcp = slot.far_rtp.WithPort(static_cast<uint16_t>(command.port + 1));
  slot.far_key = command.key;
  SrtpPointer send = CreateSrtp(slot.key.data(), false);
  SrtpPointer receive = CreateSrtp(slot.far_key.data(), true);
  if (send == nullptr || receive == nullptr) return report_.Error(name + ": libsrtp could not create a session");
  // What lies in the sockets came before the call.
  Fetch(slot, false);
  Fetch(slot, true);
  CallSettings settings = {command.slot,   process_,           command.law,       command.telephone_event, command.digits,
                           slot.next_ssrc, Random<uint16_t>(), Random<uint32_t>()};
  slot.next_ssrc += 1;
  slot.call = std::make_unique<Call>(std::move(settings), std::move(send), std::move(receive), NowUs());
  slot.drops_before = slot.rtp.Drops();
  const auto emptiest = std::min_element(phases_.begin(), phases_.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  slot.phase = static_cast<size_t>(emptiest - phases_.begin());
  emptiest->push_back(command.slot);
  calls_ += 1;
  if (!is_ticking_) ArmTicks();
}

void Generator::Stop(int index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.call == nullptr) return report_.Error("stop: slot " + std::to_string(index) + " has no call");
  Fetch(slot, false);
  Fetch(slot, true);
  CountDrops(slot);
  const uint64_t now_us = NowUs();
  report_.CallEnded(*slot.call, now_us);
  totals_.Add(*slot.call);
  slot.call.reset();
  slot.earlier = {CreateSrtp(slot.far_key.data(), true), slot.far_rtp, slot.far_rtcp, now_us + kRestUs};
  std::vector<int>& phase = phases_[slot.phase];
  phase.erase(std::find(phase.begin(), phase.end(), index));
  calls_ -= 1;
  if (calls_ == 0) StopTicks();
}

void Generator::ArmTicks() {
  is_ticking_ = true;
  first_tick_us_ = NowUs() + kTickUs;
  next_tick_ = 0;
  SetTimer(tick_timer_.fd(), first_tick_us_, kTickUs);
}

void Generator::StopTicks() {
  is_ticking_ = false;
  SetTimer(tick_timer_.fd(), 0, 0);
}

void Generator::Tick() {
  Acknowledge(tick_timer_.fd());
  Harvest();
  // No further than now: what falls due meanwhile waits for the next tick, so that commands are read however busy the machine is.
  const uint64_t now_us = NowUs();
  for (; is_ticking_ && first_tick_us_ + next_tick_ * kTickUs <= now_us; next_tick_ += 1) {
    late_us_ = std::max(late_us_, NowUs() - first_tick_us_ - next_tick_ * kTickUs);
    SendDue(next_tick_);
  }
}

void Generator::SendDue(uint64_t tick) {
  for (const int slot : phases_[tick % kPhases]) SendPacket(slots_[static_cast<size_t>(slot)]);
}

void Generator::SendPacket(Slot& slot) {
  alignas(uint64_t) uint8_t packet[kMaxPacketBytes];
  Call& call = *slot.call;
  size_t length = call.NextPacket(packet, NowUs());
  call.Sent(length > 0 && slot.rtp.Send(packet, length, slot.far_rtp));
  if (!call.IsReportDue()) return;
  length = call.NextReport(packet, Now());
  // A report that is lost is followed by another.
  if (length > 0) (void)slot.rtcp.Send(packet, length, slot.far_rtcp);
}

void Generator::Harvest() {
  std::array<epoll_event, 256> events;
  int count = 0;
  do {
    count = epoll_wait(sockets_.fd(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; i += 1) {
      const uint64_t data = events[static_cast<size_t>(i)].data.u64;
      Fetch(slots_[data / 2], data % 2 == 1);
    }
  } while (count == static_cast<int>(events.size()));
}

void Generator::Fetch(Slot& slot, bool is_rtcp) {
  struct Received {
    alignas(uint64_t) uint8_t packet[kMaxPacketBytes];
    alignas(cmsghdr) uint8_t control[CMSG_SPACE(sizeof(timespec))];
    sockaddr_storage from;
    iovec vector;
  };
  static std::array<Received, kBatch> received;
  std::array<mmsghdr, kBatch> headers{};
  const int fd = (is_rtcp ? slot.rtcp : slot.rtp).fd();
  int count = 0;
  do {
    for (size_t i = 0; i < kBatch; i += 1) {
      received[i].vector = {received[i].packet, kMaxPacketBytes};
      msghdr& header = headers[i].msg_hdr;
      header = {};
      header.msg_name = &received[i].from;
      header.msg_namelen = sizeof received[i].from;
      header.msg_iov = &received[i].vector;
      header.msg_iovlen = 1;
      header.msg_control = received[i].control;
      header.msg_controllen = sizeof received[i].control;
    }
    count = recvmmsg(fd, headers.data(), kBatch, MSG_DONTWAIT, nullptr);
    const Times now = Now();
    for (int i = 0; i < count; i += 1) {
      const auto at = static_cast<size_t>(i);
      Times arrival = now;
      const cmsghdr* const control = CMSG_FIRSTHDR(&headers[at].msg_hdr);
      if (control != nullptr && control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_TIMESTAMPNS) {
        timespec stamp{};
        std::memcpy(&stamp, CMSG_DATA(control), sizeof stamp);
        const uint64_t unix_us = static_cast<uint64_t>(stamp.tv_sec) * 1'000'000 + static_cast<uint64_t>(stamp.tv_nsec) / 1'000;
        // A clock that is set back in between must not make it come in the future.
        const uint64_t ago_us = now.unix_us > unix_us ? now.unix_us - unix_us : 0;
        arrival = {now.monotonic_us - std::min(ago_us, now.monotonic_us), unix_us};
      }
      Take(slot, is_rtcp, received[at].packet, headers[at].msg_len, Endpoint::Of(received[at].from), arrival);
    }
  } while (count == static_cast<int>(kBatch));
}

void Generator::Take(Slot& slot, bool is_rtcp, uint8_t* packet, size_t length, const Endpoint& from, const Times& arrival) {
  if (slot.call == nullptr) return;
  Call& call = *slot.call;
  const bool is_known = from == (is_rtcp ? slot.far_rtcp : slot.far_rtp);
  if (is_known && (is_rtcp ? call.TakeRtcp(packet, length, arrival)
                           : call.TakeRtp(packet, length, arrival.monotonic_us, &second_delays_, &total_delays_)))
    return;
  if (IsOfEarlierCall(slot, is_rtcp, packet, length, from, arrival.monotonic_us)) return;
  if (is_known) call.Reject();
  else call.MeetStranger();
}

bool Generator::IsOfEarlierCall(Slot& slot, bool is_rtcp, uint8_t* packet, size_t length, const Endpoint& from, uint64_t now_us) {
  const EarlierCall& earlier = slot.earlier;
  if (earlier.receive == nullptr || now_us > earlier.until_us) return false;
  // Reports are few, and nothing is counted by them.
  if (is_rtcp) return from == earlier.far_rtcp;
  int size = static_cast<int>(length);
  return from == earlier.far_rtp && size >= kRtpHeaderSize + kRtpTrailerSize && IsRtp(packet, size - kRtpTrailerSize) &&
         srtp_unprotect(earlier.receive.get(), packet, &size) == srtp_err_status_ok;
}

void Generator::CountDrops(Slot& slot) { slot.call->SetDropped(slot.rtp.Drops() - slot.drops_before); }

void Generator::Second() {
  Acknowledge(second_timer_.fd());
  SecondFigures sums = {calls_, totals_.sent, totals_.received, totals_.lost, totals_.dropped, 0, 0};
  double jitter_ms = 0;
  for (Slot& slot : slots_) {
    if (slot.call == nullptr) continue;
    CountDrops(slot);
    const Call& call = *slot.call;
    sums.sent += call.sent();
    sums.received += call.reception().received();
    sums.lost += call.Lost();
    sums.dropped += call.dropped();
    jitter_ms += call.reception().JitterMs();
  }
  SecondFigures second = sums;
  second.sent -= before_.sent;
  second.received -= before_.received;
  // What was missing may have come late.
  second.lost = sums.lost - std::min(sums.lost, before_.lost);
  second.dropped -= before_.dropped;
  second.late_ms = static_cast<double>(late_us_) / 1'000;
  second.jitter_ms = calls_ == 0 ? 0 : jitter_ms / static_cast<double>(calls_);
  report_.Second(second, second_delays_);
  sums.lost = std::max(sums.lost, before_.lost);
  before_ = sums;
  second_delays_ = {};
  most_late_us_ = std::max(most_late_us_, late_us_);
  late_us_ = 0;
}

void Generator::Finish() {
  for (size_t i = 0; i < slots_.size(); i += 1)
    if (slots_[i].call != nullptr) Stop(static_cast<int>(i));
  report_.Total(totals_, total_delays_, static_cast<double>(std::max(most_late_us_, late_us_)) / 1'000);
  (void)report_.Flush(true);
}

}  // namespace generator
