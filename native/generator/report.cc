#include "report.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>

namespace generator {
namespace {

// Far more than a reader that lives ever leaves.
constexpr size_t kMaxWaitingBytes = 64u << 20;

// Members of one object. Texts are ours: nothing needs to be escaped but what an error may quote, and errors quote nothing.
class Json {
 public:
  explicit Json(const char* event) { Text("event", event); }

  Json& Text(const char* name, const std::string& value) { return Member(name, '"' + value + '"'); }
  Json& Count(const char* name, uint64_t value) { return Member(name, std::to_string(value)); }
  Json& Signed(const char* name, int64_t value) { return Member(name, std::to_string(value)); }
  Json& Number(const char* name, double value) { return Member(name, Format(value)); }
  Json& Null(const char* name) { return Member(name, "null"); }
  Json& Raw(const char* name, const std::string& value) { return Member(name, value); }

  Json& Delays(const Histogram& delays, bool has_max) {
    if (delays.IsEmpty()) return Null("delay_ms");
    std::string value = "{\"p50\":" + Format(delays.Percentile(0.5)) + ",\"p99\":" + Format(delays.Percentile(0.99));
    if (has_max) value += ",\"max\":" + Format(delays.MaxMs());
    return Raw("delay_ms", value + '}');
  }

  std::string Line() const { return '{' + members_ + "}\n"; }

  static std::string Format(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", std::isfinite(value) ? value : 0);
    return text;
  }

 private:
  Json& Member(const char* name, const std::string& value) {
    if (!members_.empty()) members_ += ',';
    members_ += '"';
    members_ += name;
    members_ += "\":" + value;
    return *this;
  }

  std::string members_;
};

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kHeard:
      return "heard";
    case Verdict::kWrong:
      return "wrong";
    case Verdict::kSilent:
      break;
  }
  return "silent";
}

}  // namespace

void Totals::Add(const Call& call) {
  calls += 1;
  sent += call.sent();
  unsent += call.unsent();
  received += call.reception().received();
  expected += call.reception().expected();
  lost += call.Lost();
  out_of_order += call.reception().out_of_order();
  duplicates += call.duplicates();
  rejected += call.rejected();
  strangers += call.strangers();
  dropped += call.dropped();
  digits += call.digits().digits().size();
  digits_answered += static_cast<uint64_t>(call.digits().answered());
  rtcp_received += call.rtcp_received();
  jitter_ms_sum += call.reception().JitterMs();
  const Verdict verdict = call.verdict();
  (verdict == Verdict::kHeard ? heard : verdict == Verdict::kWrong ? wrong : silent) += 1;
  double mos = 0;
  if (!call.OpinionScore(&mos)) return;
  mos_min = scored == 0 ? mos : std::min(mos_min, mos);
  mos_sum += mos;
  scored += 1;
}

void Report::Ready(const std::vector<ReadySlot>& slots) {
  std::string list;
  for (const ReadySlot& slot : slots) {
    list += list.empty() ? "[" : ",";
    list += "{\"slot\":" + std::to_string(slot.slot) + ",\"port\":" + std::to_string(slot.port) + ",\"key\":\"" + slot.key + "\"}";
  }
  waiting_ += Json("ready").Raw("slots", list + ']').Line();
}

void Report::Second(const SecondFigures& figures, const Histogram& delays) {
  Json json("second");
  json.Count("calls", figures.calls).Count("sent", figures.sent).Count("received", figures.received).Count("lost", figures.lost);
  json.Count("dropped", figures.dropped).Number("late_ms", figures.late_ms).Number("jitter_ms", figures.jitter_ms);
  waiting_ += json.Delays(delays, false).Line();
}

void Report::CallEnded(const Call& call, uint64_t now_us) {
  const Reception& reception = call.reception();
  Json json("call");
  json.Signed("slot", call.settings().slot).Number("seconds", static_cast<double>(now_us - call.started_us()) / 1'000'000);
  json.Count("sent", call.sent()).Count("received", reception.received()).Count("expected", reception.expected());
  json.Count("lost", call.Lost()).Count("out_of_order", reception.out_of_order()).Count("duplicates", call.duplicates());
  json.Count("rejected", call.rejected()).Count("strangers", call.strangers());
  json.Count("dropped", call.dropped()).Count("unsent", call.unsent());
  json.Number("jitter_ms", reception.JitterMs()).Delays(call.delays(), true);
  double value = 0;
  if (call.OpinionScore(&value)) json.Number("mos", value);
  else json.Null("mos");
  json.Text("tone", NameOf(call.verdict())).Text("digits", call.digits().digits()).Signed("digits_answered", call.digits().answered());
  json.Count("rtcp_received", call.rtcp_received());
  int32_t lost = 0;
  if (call.RemoteLost(&lost)) json.Signed("remote_lost", lost);
  else json.Null("remote_lost");
  if (call.RoundTripMs(&value)) json.Number("round_trip_ms", value);
  else json.Null("round_trip_ms");
  waiting_ += json.Line();
}

void Report::Total(const Totals& totals, const Histogram& delays, double late_ms) {
  Json json("total");
  json.Count("calls", totals.calls).Count("sent", totals.sent).Count("received", totals.received).Count("expected", totals.expected);
  json.Count("lost", totals.lost).Count("out_of_order", totals.out_of_order).Count("duplicates", totals.duplicates);
  json.Count("rejected", totals.rejected).Count("strangers", totals.strangers);
  json.Count("dropped", totals.dropped).Count("unsent", totals.unsent).Number("late_ms", late_ms);
  json.Number("jitter_ms", totals.calls == 0 ? 0 : totals.jitter_ms_sum / static_cast<double>(totals.calls)).Delays(delays, true);
  if (totals.scored == 0) json.Null("mos").Null("mos_min");
  else json.Number("mos", totals.mos_sum / static_cast<double>(totals.scored)).Number("mos_min", totals.mos_min);
  const auto tone = [](uint64_t count) { return std::to_string(count); };
  json.Raw("tones", "{\"heard\":" + tone(totals.heard) + ",\"silent\":" + tone(totals.silent) + ",\"wrong\":" + tone(totals.wrong) + '}');
  json.Count("digits", totals.digits).Count("digits_answered", totals.digits_answered).Count("rtcp_received", totals.rtcp_received);
  waiting_ += json.Line();
}

void Report::Error(const std::string& text) { waiting_ += Json("error").Text("text", text).Line(); }

bool Report::Flush(bool waits) {
  if (waiting_.size() > kMaxWaitingBytes) return false;
  while (!waiting_.empty()) {
    pollfd writable = {STDOUT_FILENO, POLLOUT, 0};
    // A reader that sleeps must not keep the packets waiting.
    if (poll(&writable, 1, waits ? -1 : 0) <= 0) return true;
    // No more than a pipe has room for when it says that it is writable.
    const ssize_t written = write(STDOUT_FILENO, waiting_.data(), std::min<size_t>(waiting_.size(), PIPE_BUF));
    if (written < 0) return errno == EINTR || errno == EAGAIN;
    waiting_.erase(0, static_cast<size_t>(written));
  }
  return true;
}

}  // namespace generator
