// Many calls in one thread: a tick each millisecond fetches what has come on all sockets and sends what is due.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "command.h"
#include "histogram.h"
#include "report.h"
#include "slot.h"

namespace generator {

struct Options {
  std::string address;
  int port_min = 0;
  int port_max = 0;
  int slots = 0;
};

class Generator {
 public:
  explicit Generator(Options options) : options_(std::move(options)) {}

  // Binds the ports of all slots; what went wrong, or nothing.
  std::string Open();
  // Until `quit`, or until the commands or the reader of the events end.
  void Run();

 private:
  static constexpr size_t kPhases = 20;  // milliseconds of a frame
  static constexpr size_t kBatch = 16;   // datagrams of one socket at once

  std::string BindSlots(const Endpoint& at);
  std::string OpenPolls();

  bool ReadCommands();
  bool Obey(const std::string& line);
  void Start(const StartCommand& command);
  void Stop(int slot);
  void ArmTicks();
  void StopTicks();

  void Tick();
  void SendDue(uint64_t tick);
  void SendPacket(Slot& slot);
  void Harvest();
  void Fetch(Slot& slot, bool is_rtcp);
  void Take(Slot& slot, bool is_rtcp, uint8_t* packet, size_t length, const Endpoint& from, const Times& arrival);
  bool IsOfEarlierCall(Slot& slot, bool is_rtcp, uint8_t* packet, size_t length, const Endpoint& from, uint64_t now_us);
  void Second();
  void CountDrops(Slot& slot);
  void Finish();

  const Options options_;
  std::vector<Slot> slots_;
  Report report_;
  Totals totals_;
  Histogram total_delays_;
  Histogram second_delays_;
  int process_ = 0;

  Socket events_;   // stdin and the timers
  Socket sockets_;  // looked at each tick, never waited for
  Socket tick_timer_;
  Socket second_timer_;
  std::string line_;

  std::array<std::vector<int>, kPhases> phases_;
  size_t calls_ = 0;
  bool is_ticking_ = false;
  uint64_t first_tick_us_ = 0;
  uint64_t next_tick_ = 0;
  uint64_t late_us_ = 0;
  uint64_t most_late_us_ = 0;
  SecondFigures before_{};  // sums at the end of the last second
};

}  // namespace generator
