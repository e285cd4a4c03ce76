// A trainer of a swarm: takes micro-batches through the stages, from peer to peer.
//
//   SwarmTrainer trainer(link, {.coordinator = address, .data = data.train.get()});
//   PIPELAB_RETURN_IF_ERROR(trainer.Run());              // until the training is done
//
// It has the data, asks the coordinator which gradients are missing, and keeps what crosses the
// boundaries between stages until the step is committed. So when a peer dies with gradients that
// it had answered for, exactly those backwards are asked for again, of other peers.
//
// Each request goes to the peer that PeerRouter says. One that does not answer within the job's
// wait limit only loses this request; one that fails is not asked again before it has joined anew.
// Values of another size than the stage's are a lie, and reported.
//
// A restarted coordinator may have other stages. One of another training (SettingsOf) refuses this
// trainer. Where several coordinators answer alternately, nothing of one reaches another.
//
// Each of several trainers takes its share of micro-batches; those of one that dies are begun anew
// by the others. Run returns SwarmPeer's errors, and FailedPrecondition where its data do not fit
// the model, or where peers refuse several of its requests in a row: the fault is its own, so it
// blames nobody and ends.
#ifndef PIPELAB_PIPELINES_SWARM_TRAINER_H_
#define PIPELAB_PIPELINES_SWARM_TRAINER_H_

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "models/data/batch_source.h"
#include "pipelines/swarm/job.h"
#include "pipelines/swarm/link.h"
#include "pipelines/swarm/routing.h"

namespace pipelab {

struct SwarmTrainerOptions {
  std::string coordinator;
  const BatchSource* data = nullptr;  // tokens and targets (token_fields.h)
  SwarmSettings settings;             // what makes its batches; must be CoordinatorOptions::data
  int trainer = 1;                    // its number among the trainers
  int in_flight = 12;                 // micro-batches
  uint64_t seed = 1;                  // of the router's draws
  absl::Duration patience = absl::Seconds(60);
};

class SwarmTrainer {
 public:
  struct Traffic {
    int64_t requests = 0, retries = 0;        // passes that were answered; that were asked again
    double longest_lost_s = 0;                // of those asked again, the longest waited in vain
    int64_t values_out = 0, values_back = 0;  // bytes of activations and gradients
  };

  SwarmTrainer(SwarmLink* link, const SwarmTrainerOptions& options)
      : link_(*link), options_(options) {}

  absl::Status Run();
  void Stop() { stopped_ = true; }
  Traffic traffic() const;

 private:
  struct MicroBatch {  // of a step; [stage]
    std::vector<swarm::Values> inputs, output_gradients;
    std::vector<bool> has_input, has_gradient;
    std::set<int> missing;       // stages
    std::map<int, int> counted;  // stage -> the peer whose gradient counts
    bool busy = false;
  };
  using Key = std::pair<int64_t, int>;  // step, micro-batch
  struct Place {                        // of what is done now
    int64_t epoch = 0, step = 0;
    int64_t visit = 0;  // how often the epoch has changed: a former coordinator may come back
    Key Of(int micro_batch) const { return {step, micro_batch}; }
  };

  absl::Status Take(const swarm::Reply& reply);
  absl::Status CheckData(const swarm::Job& job) const;
  void Refused(const absl::Status& why);
  void MeasureUnit(int stage, double seconds) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddTo(PeerRouter* router, const swarm::PeerPlace& peer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!router->Has(peer.peer())) router->Add(peer.peer(), std::max(1e-6, peer.speed()));
  }
  void TakePeers(const swarm::Tasks& tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Work();
  absl::Status RunMicroBatch(const Place& place, int micro_batch, const std::set<int>& missing);
  absl::StatusOr<swarm::PassDone> Ask(const Place& place, swarm::Pass pass, int* peer);
  absl::StatusOr<swarm::PeerPlace> NextPeer(const Place& place, int stage, double work);
  absl::Status CheckDone(const Place& place, const swarm::Pass& pass,
                         const swarm::PassDone& done) const;
  void Failed(const Place& place, int peer, int stage, const absl::Status& why, bool lied,
              absl::Duration lost);
  absl::Status Report(const Place& place, const swarm::Pass& pass, double loss, int peer);
  swarm::Pass PassOf(const Place& place, int micro_batch, int stage, bool backward);
  bool IsNow(const Place& place) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return place.visit == place_.visit && place.step >= place_.step && !stopped_;
  }

  // How often waits look around; before another try.
  static constexpr absl::Duration kLook = absl::Milliseconds(50), kRetry = absl::Milliseconds(20);

  SwarmLink& link_;
  const SwarmTrainerOptions options_;
  std::atomic<bool> stopped_{false};
  SwarmSettings training_;  // of job_; Run's thread alone

  mutable absl::Mutex mutex_;
  swarm::Job job_ ABSL_GUARDED_BY(mutex_);
  SwarmLayout layout_ ABSL_GUARDED_BY(mutex_);
  Place place_ ABSL_GUARDED_BY(mutex_);  // of the first step that is not committed
  std::map<Key, MicroBatch> micro_batches_ ABSL_GUARDED_BY(mutex_);
  std::map<int, swarm::PeerPlace> peers_ ABSL_GUARDED_BY(mutex_);
  std::set<int> banned_ ABSL_GUARDED_BY(mutex_);
  std::vector<PeerRouter> routers_ ABSL_GUARDED_BY(mutex_);  // [stage]
  // [stage] Seconds of a forward at a peer of speed 1, so that told and measured speeds compare; 0:
  // not known.
  std::vector<double> unit_ ABSL_GUARDED_BY(mutex_);
  Traffic traffic_ ABSL_GUARDED_BY(mutex_);
  int refusals_ ABSL_GUARDED_BY(mutex_) = 0;  // of requests in a row
  absl::Status own_fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_TRAINER_H_
