// A peer of a swarm: serves passes of one stage to whoever asks (SWARM, Ryabinin et al., arXiv
// 2301.11913), and takes part in the averages of its stage.
//
//   SwarmPeer peer(link, options);
//   PIPELAB_ASSIGN_OR_RETURN(auto server, SwarmServer::Start("127.0.0.1:0", access, &peer));
//   peer.SetAddress(server->address());
//   PIPELAB_RETURN_IF_ERROR(peer.Run());              // until the training is done
//
// It joins, fetches values and optimizer state from a neighbour over the network, serves, and joins
// again where the coordinator has dropped it, moved it to another stage, or is a new one. It keeps
// the gradient of each micro-batch of a step by itself, 4 bytes a value, until the step is
// committed: which of them count, the coordinator says at the end. So a request that was given up
// and was served all the same counts once or not at all, as it is named.
//
// A request that outlives its membership leaves nothing in the next one, whose coordinator may be
// another.
//
// The step of an average: each peer sums its part of the stage's values over all (exactly and
// rounded once, with Job::order_free), all fetch all parts, and nobody steps before all have them.
//
// Errors of Run: Unavailable when the coordinator does not answer for longer than `patience`;
// PermissionDenied and InvalidArgument when it refuses this peer.
#ifndef PIPELAB_PIPELINES_SWARM_PEER_H_
#define PIPELAB_PIPELINES_SWARM_PEER_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "pipelines/swarm/link.h"
#include "pipelines/swarm/peer_stage.h"

namespace pipelab {

struct SwarmPeerOptions {
  std::string coordinator;  // its address
  int stage = -1;           // to serve; -1: where it is needed
  double speed = 1;         // a multiple of a reference peer's, until it is measured
  // For trials: passes take at least this long, backwards 2.5 times, as on a slower device.
  absl::Duration least_pass = absl::ZeroDuration();
  absl::Duration patience = absl::Seconds(60);
  int most_waiting = 64;  // requests that wait; more are refused
};

class SwarmPeer final : public SwarmService {
 public:
  SwarmPeer(SwarmLink* link, const SwarmPeerOptions& options) : link_(*link), options_(options) {}

  void SetAddress(const std::string& address) { address_ = address; }  // before Run
  absl::Status Run();
  void Stop() { stopped_ = true; }

  absl::Status Serve(const swarm::Request& request, absl::Time deadline,
                     swarm::Reply* reply) override;

 private:
  using Gradient = std::shared_ptr<const std::vector<float>>;
  struct Average {  // of a step's gradients, all of it or a part
    int64_t step = -1, attempt = 0, begin = 0;
    std::vector<float> values;
  };

  // The life of one membership: OK when it is to join again.
  absl::Status JoinOnce();
  absl::Status FetchState(const std::string& from, absl::Duration limit);
  absl::Status BecomeReady(const swarm::Joined& joined);
  absl::Status BeatUntilDropped();
  absl::Status Ask(const std::string& to, swarm::Request* request, swarm::Reply* reply);

  // `joined`: joins_ when the request came.
  absl::Status ServePass(int64_t joined, const swarm::Pass& pass, absl::Time deadline,
                         swarm::Reply* reply);
  absl::Status ServeReduce(int64_t joined, const swarm::Reduce& r, swarm::ReduceDone* done);
  absl::Status ServeGather(int64_t joined, const swarm::Reduce& r, swarm::ReduceDone* done);
  absl::Status ServeSum(int64_t joined, const swarm::GetSum& get, swarm::Sum* sum) const;
  absl::Status ServeCommit(int64_t joined, const swarm::Commit& commit);
  absl::Status ServeState(int64_t joined, swarm::State* state);
  // This peer's own or, with a call, another's.
  absl::Status FetchSum(int64_t joined, const swarm::Share& share, const swarm::GetSum& get,
                        swarm::Sum* sum);
  absl::StatusOr<std::vector<Gradient>> GradientsOf(int64_t joined, const swarm::GetSum& get) const;
  // With books_ or computing_ held, so that it stays true.
  absl::Status CheckJoined(int64_t joined) const {
    if (joined == joins_) return absl::OkStatus();
    return absl::FailedPreconditionError("joined anew meanwhile");
  }

  SwarmLink& link_;
  const SwarmPeerOptions options_;
  std::string address_;
  std::atomic<bool> stopped_{false}, finished_{false};
  std::atomic<int64_t> epoch_{-1}, joins_{0};  // with computing_ and books_ held
  std::atomic<int> waiting_{0};
  std::atomic<int64_t> queue_sum_{0}, queue_samples_{0};

  absl::Mutex computing_;  // before books_
  std::unique_ptr<PeerStage> stage_ ABSL_GUARDED_BY(computing_);

  mutable absl::Mutex books_;
  int peer_ ABSL_GUARDED_BY(books_) = -1;
  swarm::Job job_ ABSL_GUARDED_BY(books_);
  int64_t parameters_ ABSL_GUARDED_BY(books_) = 0;
  // By step, of those that are not committed, and micro-batch.
  std::map<std::pair<int64_t, int>, Gradient> gradients_ ABSL_GUARDED_BY(books_);
  Average part_ ABSL_GUARDED_BY(books_), whole_ ABSL_GUARDED_BY(books_);
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_PEER_H_
