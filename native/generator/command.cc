#include "command.h"

#include <cstring>
#include <vector>

#include "digits.h"

namespace generator {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr int kFirstDynamicType = 96;  // RFC 3551 §6
constexpr int kLastDynamicType = 127;
constexpr size_t kStartWords = 8;

std::vector<std::string> WordsOf(const std::string& line) {
  std::vector<std::string> words(1);
  for (const char at : line) {
    if (at == ' ') {
      words.emplace_back();
    } else {
      words.back() += at;
    }
  }
  return words;
}

// 30 bytes are 40 characters without padding (RFC 4568 §6.1).
bool ParseKey(const std::string& text, std::array<uint8_t, kMasterKeySize>* key) {
  if (text.size() != kMasterKeySize / 3 * 4) return false;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    for (size_t j = 0; j < 4; j += 1) {
      const char* const found = text[i + j] == '\0' ? nullptr : std::strchr(kAlphabet, text[i + j]);
      if (found == nullptr) return false;
      group = group << 6 | static_cast<uint32_t>(found - kAlphabet);
    }
    for (size_t j = 0; j < 3; j += 1) (*key)[i / 4 * 3 + j] = static_cast<uint8_t>(group >> (16 - 8 * j));
  }
  return true;
}

bool ParseDigits(const std::string& text, std::string* digits) {
  if (text == "-") return true;
  if (text.empty() || text.size() > kMaxDigits) return false;
  for (const char digit : text)
    if (EventOfDigit(digit) < 0) return false;
  *digits = text;
  return true;
}

CommandError SlotError(const std::string& command, int slots) {
  return {command + ": the slot is not a number from 0 to " + std::to_string(slots - 1)};
}

// Never says what the key is.
Command ParseStart(const std::vector<std::string>& words, int slots) {
  if (words.size() != kStartWords)
    return CommandError{"start takes <slot> <address> <port> <key> <payload type> <telephone-event payload type or -> <digits or ->"};
  StartCommand start{};
  int port = 0;
  int type = 0;
  if (!ParseNumber(words[1], 0, slots - 1, &start.slot)) return SlotError("start", slots);
  start.address = words[2];
  if (!ParseNumber(words[3], 1, 65'534, &port)) return CommandError{"start: the port is not a number from 1 to 65534"};
  start.port = static_cast<uint16_t>(port);
  if (!ParseKey(words[4], &start.key)) return CommandError{"start: the key is not 30 bytes in base64"};
  if (!ParseNumber(words[5], 0, 8, &type) || (type != 0 && type != 8))
    return CommandError{"start: the payload type is neither 0 (PCMU) nor 8 (PCMA)"};
  start.law = static_cast<Law>(type);
  start.telephone_event = -1;
  if (words[6] != "-" && !ParseNumber(words[6], kFirstDynamicType, kLastDynamicType, &start.telephone_event))
    return CommandError{"start: the telephone-event payload type is neither - nor a number from 96 to 127"};
  if (!ParseDigits(words[7], &start.digits))
    return CommandError{"start: the digits are neither - nor 1 to " + std::to_string(kMaxDigits) + " of 0-9, *, #, A-D"};
  if (!start.digits.empty() && start.telephone_event < 0) return CommandError{"start: digits need a telephone-event payload type"};
  return start;
}

}  // namespace

bool ParseNumber(const std::string& text, int least, int most, int* number) {
  if (text.empty() || text.size() > 9 || text.find_first_not_of("0123456789") != std::string::npos) return false;
  *number = std::stoi(text);
  return *number >= least && *number <= most;
}

Command ParseCommand(const std::string& line, int slots) {
  if (line.size() > kMaxLineBytes) return CommandError{"a command has at most " + std::to_string(kMaxLineBytes) + " bytes"};
  const std::vector<std::string> words = WordsOf(line);
  if (words[0] == "start") return ParseStart(words, slots);
  if (words[0] == "stop") {
    StopCommand stop{};
    if (words.size() != 2 || !ParseNumber(words[1], 0, slots - 1, &stop.slot)) return SlotError("stop", slots);
    return stop;
  }
  if (words[0] == "quit" && words.size() == 1) return QuitCommand{};
  return CommandError{"the commands are start, stop and quit"};
}

std::string EncodeBase64(const uint8_t* bytes, size_t length) {
  std::string text;
  for (size_t i = 0; i + 3 <= length; i += 3) {
    const uint32_t group = static_cast<uint32_t>(bytes[i]) << 16 | static_cast<uint32_t>(bytes[i + 1]) << 8 | bytes[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text += kAlphabet[group >> shift & 0x3f];
  }
  return text;
}

}  // namespace generator
