// A real swarm on this machine, whose processes are killed with SIGKILL while it trains: what it
// did, read off its coordinator's log.
//
//   SurvivalOptions options;  options.pipelab = "bazel-bin/experiments/pipelab";
//   options.folder = "/tmp/x";  options.least_pause = absl::Seconds(5);  ...
//   PIPELAB_ASSIGN_OR_RETURN(const SurvivalRun run, RunSwarm(options));
//   run.losses == undisturbed.losses;      // to the bit, with order-free sums
//
// A coordinator, a trainer and peers are processes of `pipelab swarm`, which die with this one.
// For each killed peer a new one starts at once. Times are of this machine's clock.
//
// Errors: Internal for a process that ended otherwise than it should; DeadlineExceeded where the
// run did not end within `limit`, and then all is killed; DataLoss of the log's proof.
#ifndef PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_H_
#define PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "pipelines/swarm/peer_trace.h"
#include "pipelines/swarm/swarm_log.h"

namespace pipelab {

struct SurvivalOptions {
  std::string pipelab;  // the program
  std::string folder;   // for files; exists
  std::string text;     // file; empty: generated
  int peers = 12, stages = 3, steps = 200, micro_batches = 12, in_flight = 12;
  std::vector<std::string> job;  // more options of `swarm coordinate`
  int wait_limit_s = 5;
  // Between kills; 0: none. Each kills `at_once` peers.
  absl::Duration least_pause = absl::ZeroDuration(), most_pause = absl::ZeroDuration();
  int at_once = 1;
  bool stall = false;                    // SIGSTOP in the place of SIGKILL, which comes at the end
  bool kill_coordinator = false;         // instead, each time; it is started again
  std::vector<int> least_pass_ms = {0};  // of peer i: [i % their number]
  std::vector<double> speeds = {1};      // told, likewise
  uint64_t seed = 1;                     // of pauses and victims
  absl::Duration limit = absl::Minutes(10);
};

struct SurvivalRun {
  std::map<int64_t, std::string> losses;  // by step; hexadecimal, all bits
  SwarmProof proof;
  int kills = 0;
  int left = 0;                      // processes that did not end by themselves
  absl::Duration time;               // from the first gradient to the last step's end
  absl::Duration warm_up;            // of it, the first steps: peers still join
  double median_step_s = 0;          // of steps in which nobody died
  double worst_step_s = 0;           // of steps in which peers died
  double longest_lost_s = 0;         // that a request waited for a peer in vain
  double worst_join_s = 0;           // from a process's start to its first gradient
  double throughput = 0;             // micro-batches a second, after that
  std::vector<double> stage_speeds;  // what those who joined and were not killed were told
  PeerTrace trace;                   // of peers, from the first step on
};

absl::StatusOr<SurvivalRun> RunSwarm(const SurvivalOptions& options);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_ELASTIC_SURVIVAL_H_
