// The commands, one a line. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <variant>

#include "../srtp.h"
#include "audio.h"

namespace generator {

constexpr size_t kMaxLineBytes = 512;
// What a stamp has room for.
constexpr int kMaxSlots = 4'096;

struct StartCommand {
  int slot;
  std::string address;
  uint16_t port;
  std::array<uint8_t, kMasterKeySize> key;
  Law law;
  int telephone_event;  // payload type, or -1
  std::string digits;
};
struct StopCommand {
  int slot;
};
struct QuitCommand {};
struct CommandError {
  std::string text;
};

using Command = std::variant<StartCommand, StopCommand, QuitCommand, CommandError>;

Command ParseCommand(const std::string& line, int slots);

// A whole number in decimal digits; false for anything else and out of bounds.
bool ParseNumber(const std::string& text, int least, int most, int* number);

std::string EncodeBase64(const uint8_t* bytes, size_t length);

}  // namespace generator
