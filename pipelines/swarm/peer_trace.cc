#include "pipelines/swarm/peer_trace.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/csv.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/quantity_text.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kMostPeers = 1'000'000;
constexpr double kMostSpeed = 1e6;
constexpr int64_t kFileLimit = int64_t{1} << 28;

absl::StatusOr<PeerStay> StayOf(const CsvTable& table, const std::vector<std::string>& row) {
  const auto wrong = [](absl::string_view name, absl::string_view cell, const auto&... why) {
    return absl::InvalidArgumentError(absl::StrCat(name, " \"", cell, "\": ", why...));
  };
  PeerStay stay;
  const std::string& peer = row[table.Column("peer")];
  if (!absl::SimpleAtoi(peer, &stay.peer) || stay.peer < 0 || stay.peer >= kMostPeers) {
    return wrong("peer", peer, "must be a whole number from 0 to ", kMostPeers - 1);
  }
  const std::string& speed = row[table.Column("speed")];
  if (!absl::SimpleAtod(speed, &stay.speed) || !(stay.speed > 0) || stay.speed > kMostSpeed) {
    return wrong("speed", speed, "must be a number above 0 and at most ",
                 absl::StrFormat("%.0f", kMostSpeed));
  }
  const absl::StatusOr<Nanoseconds> join = ParseQuantity<Nanoseconds>(row[table.Column("join")]);
  if (!join.ok()) return absl::InvalidArgumentError(absl::StrCat("join ", join.status().message()));
  stay.join = *join;
  const std::string& leave = row[table.Column("leave")];
  if (leave.empty()) return stay;
  const absl::StatusOr<Nanoseconds> left = ParseQuantity<Nanoseconds>(leave);
  if (!left.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("leave ", left.status().message()));
  }
  stay.leave = *left;
  if (stay.leave <= stay.join) return wrong("leave", leave, "must be after join");
  return stay;
}

// A time of an exponential distribution, at least 1 ns.
Nanoseconds Drawn(const CounterRng& rng, uint64_t index, Nanoseconds mean) {
  const double times = -std::log1p(-static_cast<double>(rng.Uniform(index)));
  return Nanoseconds(1 + std::llround(times * static_cast<double>(mean.value())));
}

}  // namespace

int PeerTrace::num_peers() const {
  int most = 0;
  for (const PeerStay& stay : stays) most = std::max(most, stay.peer + 1);
  return most;
}

PeerTrace GeneratePeerTrace(const PeerTraceOptions& options) {
  PeerTrace trace;
  trace.source = absl::StrFormat("generated, seed %d: %d peers", options.seed, options.peers);
  const bool always = options.up == Nanoseconds(0);
  trace.source += always ? ", always there"
                         : absl::StrFormat(", up %s and away %s in the mean, exponential",
                                           ToString(options.up), ToString(options.away));
  const CounterRng rng(options.seed, "elastic/stays");
  const double there = always ? 1 : options.up / (options.up + options.away);
  for (int peer = 0; peer < options.peers; ++peer) {
    uint64_t draw = uint64_t{1} << 20;
    draw *= static_cast<uint64_t>(peer);
    PeerStay stay;
    stay.peer = peer;
    stay.speed = options.speeds[peer % options.speeds.size()];
    if (rng.Uniform(draw++) >= there) stay.join = Drawn(rng, draw++, options.away);
    while (stay.join < options.duration) {
      // The exponential distribution forgets: what is left of a stay has its mean too.
      if (!always) stay.leave = stay.join + Drawn(rng, draw++, options.up);
      trace.stays.push_back(stay);
      if (always) break;
      stay.join = stay.leave + Drawn(rng, draw++, options.away);
    }
  }
  std::stable_sort(trace.stays.begin(), trace.stays.end(),
                   [](const PeerStay& a, const PeerStay& b) { return a.join < b.join; });
  return trace;
}

absl::StatusOr<PeerTrace> ParsePeerTrace(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const CsvTable table,
                           CsvTable::Parse(text, what, {"peer", "speed", "join", "leave"}));
  PeerTrace trace;
  trace.source = std::string(what);
  std::map<int, Nanoseconds> left;  // [peer] the end of its last stay
  for (const std::vector<std::string>& row : table.rows()) {
    const std::string where = absl::StrCat(what, ": row ", trace.stays.size() + 1, ": ");
    const absl::StatusOr<PeerStay> stay = StayOf(table, row);
    if (!stay.ok()) return absl::InvalidArgumentError(where + std::string(stay.status().message()));
    const std::string join = absl::StrCat("join \"", row[table.Column("join")], "\": ");
    if (!trace.stays.empty() && stay->join < trace.stays.back().join) {
      return absl::InvalidArgumentError(where + join + "must not be before the row before");
    }
    const auto [before, is_new] = left.emplace(stay->peer, stay->leave);
    if (!is_new && stay->join < before->second) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, join, "peer ", stay->peer, " has not left yet"));
    }
    before->second = stay->leave;
    trace.stays.push_back(*stay);
  }
  if (trace.stays.empty()) return absl::InvalidArgumentError(absl::StrCat(what, ": has no stays"));
  return trace;
}

absl::StatusOr<PeerTrace> ReadPeerTrace(absl::string_view option, absl::string_view path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path, kFileLimit);
  if (!text.ok()) {
    return absl::Status(text.status().code(), absl::StrCat(option, ": ", text.status().message()));
  }
  return FaultOfFile(ParsePeerTrace(*text, absl::StrCat(option, "=", path)));
}

std::string ToCsv(const PeerTrace& trace) {
  std::string csv = "peer,speed,join,leave\n";
  for (const PeerStay& stay : trace.stays) {
    absl::StrAppendFormat(&csv, "%d,%.17g,%d ns,", stay.peer, stay.speed, stay.join.value());
    csv += stay.leave == kNever ? "\n" : absl::StrCat(stay.leave.value(), " ns\n");
  }
  return csv;
}

}  // namespace pipelab
