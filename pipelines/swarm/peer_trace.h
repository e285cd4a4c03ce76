// When peers come and go, from a CSV file or generated from a seed.
//
//   peer,speed,join,leave
//   0,1,0 s,5400 s
//   0,1,6000 s,
//
//   PIPELAB_ASSIGN_OR_RETURN(PeerTrace read, ReadPeerTrace("--trace", "a.csv"));
//   PeerTrace made = GeneratePeerTrace({});             // the same for a seed on every machine
//
// A row is one stay of a peer; without `leave` it stays. Rows are in the order of join. A peer is a
// place that a machine fills, numbered from 0: the next stay of peer 3 is the machine that replaces
// the one that was preempted. A speed is a multiple of one reference peer's.
//
// Generated traces are not recorded ones. SWARM's (arXiv 2301.11913) are not public, so times up
// and away are drawn from exponential distributions, each peer for itself.
//
// InvalidArgument, one line: "--trace=a.csv: row 2: speed "x": must be a number above 0 and at most
// 1000000".
#ifndef PIPELAB_PIPELINES_SWARM_PEER_TRACE_H_
#define PIPELAB_PIPELINES_SWARM_PEER_TRACE_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/units.h"

namespace pipelab {

inline constexpr Nanoseconds kNever = Nanoseconds(std::numeric_limits<int64_t>::max());

struct PeerStay {
  int peer = 0;
  double speed = 1;
  Nanoseconds join, leave = kNever;
};

struct PeerTrace {
  std::string source;           // for people: a file, or "generated, seed 1, ..."
  std::vector<PeerStay> stays;  // by join; a peer's do not overlap

  int num_peers() const;  // one more than the largest peer
};

struct PeerTraceOptions {
  int peers = 400;
  std::vector<double> speeds = {1};  // peer i has speeds[i % their number]
  Nanoseconds duration = Milliseconds(32 * 3'600'000ll);
  // Means. A trace begins in the long run's state: each peer is there with the probability
  // up / (up + away). `up` 0: all peers are always there.
  Nanoseconds up = Nanoseconds(0), away = Nanoseconds(0);
  uint64_t seed = 1;
};

PeerTrace GeneratePeerTrace(const PeerTraceOptions& options);

// FailedPrecondition where the file is wrong.
absl::StatusOr<PeerTrace> ReadPeerTrace(absl::string_view option, absl::string_view path);
// `what` names the text in errors.
absl::StatusOr<PeerTrace> ParsePeerTrace(absl::string_view text, absl::string_view what);
// Parses back to the same stays. Speeds have 17 digits.
std::string ToCsv(const PeerTrace& trace);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_PEER_TRACE_H_
