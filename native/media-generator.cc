// The media of many callers at once: SRTP to wherever it is told, a packet each 20 ms a call, and what comes back is checked. Driven by
// `trunkline load` over stdin and stdout; docs/load-tests.md has the commands and events.

#include <csignal>
#include <cstdio>
#include <string>

#include "generator/command.h"
#include "generator/generator.h"

namespace {

constexpr char kUsage[] = "usage: media-generator --address ADDRESS --port-min PORT --port-max PORT --slots 1..4096\n";

// What is wrong with the flags, or nothing.
std::string ParseFlags(int count, char** words, generator::Options* options) {
  for (int i = 1; i < count; i += 2) {
    const std::string flag = words[i];
    if (i + 1 == count) return flag + " has no value";
    const std::string value = words[i + 1];
    bool is_good = true;
    if (flag == "--address") options->address = value;
    else if (flag == "--port-min") is_good = generator::ParseNumber(value, 1, 65'534, &options->port_min);
    else if (flag == "--port-max") is_good = generator::ParseNumber(value, 1, 65'535, &options->port_max);
    else if (flag == "--slots") is_good = generator::ParseNumber(value, 1, generator::kMaxSlots, &options->slots);
    else return flag + " is not known";
    if (!is_good) return flag + " is not a number that it may be";
  }
  if (options->address.empty()) return "--address is missing";
  if (options->port_min == 0) return "--port-min is missing";
  if (options->port_max == 0) return "--port-max is missing";
  if (options->slots == 0) return "--slots is missing";
  return "";
}

}  // namespace

int main(int count, char** words) {
  std::signal(SIGPIPE, SIG_IGN);
  generator::Options options;
  std::string failure = ParseFlags(count, words, &options);
  if (!failure.empty()) {
    std::fprintf(stderr, "media-generator: %s\n%s", failure.c_str(), kUsage);
    return 2;
  }
  generator::Generator made(options);
  failure = made.Open();
  if (!failure.empty()) {
    std::fprintf(stderr, "media-generator: %s\n", failure.c_str());
    return 1;
  }
  made.Run();
  return 0;
}
