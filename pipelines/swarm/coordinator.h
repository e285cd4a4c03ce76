// The coordinator of a swarm: who is there, whose gradients count, when all step.
//
//   CoordinatorOptions options;  options.job = job;  options.checkpoint = "swarm.safetensors";
//   PIPELAB_ASSIGN_OR_RETURN(auto coordinator, SwarmCoordinator::Create(link, options));
//   PIPELAB_ASSIGN_OR_RETURN(auto server, SwarmServer::Start("127.0.0.1:4100", access,
//                                                           coordinator.get()));
//   coordinator->SetAddress(server->address());
//   PIPELAB_RETURN_IF_ERROR(coordinator->Run());       // until all steps are done
//
// A step is Job::micro_batches. Trainers ask what is missing and report what peers have done; a
// gradient counts for the peer that answered for it, until that peer is gone (StepLedger). When all
// stages have all, the peers of each stage average what the coordinator names: each micro-batch
// once. When all living peers have the averages, the step is committed and all step. A peer that
// goes before that takes its share with it: exactly that is asked for again, and the average is
// tried anew. With Job::delay the next step's gradients come meanwhile, by the weights before.
//
// A peer is dropped, with one line that says why, when it cannot be reached, is silent for longer
// than the job's wait limit, stalls three requests in a row, answers with what does not fit, or
// floods: more than 100 calls a second, or a place that joins more than 20 times in a minute.
//
// Where no peer of a stage has its state any more, and when the coordinator itself was killed, all
// goes on from the checkpoint, with the same bits. Without a file for it, from memory.
//
// A trainer whose data are not the swarm's is refused, with one line in the log that names it, and
// the swarm goes on with the others.
//
// Create returns InvalidArgument where the checkpoint is of another training (SettingsOf), or of a
// step between those with fresh weights, or cannot be written. Run returns Unavailable when no
// gradient has come for `patience`, and the errors of writing the checkpoint.
//
// A later coordinator takes the checkpoint over: Run writes the file anew. The earlier one, which
// was thought dead, finds another file than its own and ends with FailedPrecondition. It does not
// tell peers and trainers that all is done, since they continue with the later one.
#ifndef PIPELAB_PIPELINES_SWARM_COORDINATOR_H_
#define PIPELAB_PIPELINES_SWARM_COORDINATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/swarm/job.h"
#include "pipelines/swarm/link.h"
#include "pipelines/swarm/rebalance.h"
#include "pipelines/swarm/updates.h"
#include "tools/base/printable.h"

namespace pipelab {

struct SwarmStep {
  int64_t step = 0;
  double loss = 0;  // mean over the step's tokens, nats
  absl::Duration time;
};

struct CoordinatorOptions {
  swarm::Job job;          // its fresh_every is set: checkpoint_every, where updates are delayed
  std::string checkpoint;  // file; empty: none
  int64_t checkpoint_every = 10;                // steps
  std::map<std::string, std::string> settings;  // into the checkpoint, and checked
  SwarmSettings data;                           // the same, and those that trainers must have, too
  absl::Duration rebalance_every = absl::ZeroDuration();  // 0: never
  absl::Duration patience = absl::Seconds(60);
  int64_t epoch = 1;  // of several lives of a coordinator, another one each
  std::function<void(const std::string& line)> log;  // with its line end (swarm_log.h)
  std::function<absl::Status(const std::string& file, const TrainingState& state)> write =
      WriteTrainingState;  // the checkpoint
  std::function<void(const SwarmStep& step)> on_step;
};

class SwarmCoordinator final : public SwarmService {
 public:
  // From the checkpoint, where there is one.
  static absl::StatusOr<std::unique_ptr<SwarmCoordinator>> Create(
      SwarmLink* link, const CoordinatorOptions& options);

  void SetAddress(const std::string& address) { address_ = address; }  // before Run
  absl::Status Run();
  void Stop();

  // A report with the text of a fault is the largest.
  int most_request_bytes() const override { return 1 << 16; }
  absl::Status Serve(const swarm::Request& request, absl::Time deadline,
                     swarm::Reply* reply) override;

  // By step, of this life; the log has all.
  std::map<int64_t, double> losses() const;
  TrainingState saved() const;  // the last checkpoint

 private:
  struct Member {
    int stage = 0;
    std::string address;
    int64_t ready = -1;  // the step whose state it has
    absl::Time seen;
    double told_speed = 1, queue = 0;
    int stalls = 0, calls = 0;  // in a row; in this second
    absl::Time second;
  };
  using Members = std::map<int, Member>;    // by peer
  struct Books {                            // of a step that has begun and is not committed
    std::vector<std::vector<int>> counted;  // [stage][micro-batch] peer; -1: missing
    std::vector<double> losses;             // [micro-batch]
  };

  SwarmCoordinator(SwarmLink* link, const CoordinatorOptions& options, SwarmLayout layout);

  // Requests.
  absl::Status ServeJoin(const swarm::Join& join, swarm::Reply* reply);
  absl::Status ServeReady(const swarm::Ready& ready, absl::Time deadline, swarm::Reply* reply);
  absl::Status ServeBeat(const swarm::Beat& beat, bool known_epoch, swarm::BeatDone* done);
  absl::Status CheckTrainer(const swarm::GetTasks& get) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status ServeTasks(const swarm::GetTasks& get, absl::Time deadline, swarm::Reply* reply);
  absl::Status ServeReport(const swarm::Report& report, swarm::Counted* done);
  absl::Status ServeState(int stage, swarm::State* state) const;
  void Suspect(int peer, const std::string& fault, bool lied);
  void FillTasks(int trainer, swarm::Tasks* tasks) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Members.
  std::vector<StageLoad> Loads() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsReady(const Member& m) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NeighbourOf(int stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Drop(int peer, absl::string_view why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Remove(int peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropSilent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Floods(Member* m) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MoveOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillEmptyStage() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Steps.
  absl::Status RunStep();
  void BeginSteps() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GoBack() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool StageIsLost() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AwaitGradients();
  // The shares of the first step that is not committed.
  std::map<int, std::vector<int>> SharesOf(int stage) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Average();
  bool Commit(absl::Time begin);  // false: a gradient is missing again
  // Asks all of them at once; drops who does not answer. True: all have.
  bool AskAll(const std::map<int, swarm::Request>& requests, const char* what);
  absl::Status Save();
  absl::Status Write(const TrainingState& state);
  absl::StatusOr<std::string> StateOf(int stage);

  void Changed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { ++number_; }
  template <typename... Words>
  void Log(const Words&... words) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    // One line, whatever others have written into it.
    if (!options_.log) return;
    options_.log(absl::StrCat(Printable(absl::StrCat(words..., " epoch=", epoch_)), "\n"));
  }

  SwarmLink& link_;
  const CoordinatorOptions options_;
  SwarmLayout layout_;
  std::string address_;
  std::string file_mark_;  // of the checkpoint, as this coordinator has read or written it

  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false, finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool averaging_ ABSL_GUARDED_BY(mutex_) = false;  // step_
  int64_t epoch_ ABSL_GUARDED_BY(mutex_), number_ ABSL_GUARDED_BY(mutex_) = 1;
  int64_t step_ ABSL_GUARDED_BY(mutex_) = 0;  // the first that is not committed
  int64_t attempt_ ABSL_GUARDED_BY(mutex_) = 0;
  int next_peer_ ABSL_GUARDED_BY(mutex_) = 0;
  Members members_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int> moving_ ABSL_GUARDED_BY(mutex_);  // address -> its next stage
  std::map<std::string, std::vector<absl::Time>> joins_ ABSL_GUARDED_BY(mutex_);
  std::map<int, absl::Time> trainers_ ABSL_GUARDED_BY(mutex_);  // when seen
  std::set<int> refused_ ABSL_GUARDED_BY(mutex_);               // trainers
  std::unique_ptr<StepLedger> ledger_ ABSL_GUARDED_BY(mutex_);
  int64_t ledger_begin_ ABSL_GUARDED_BY(mutex_) = 0;  // its first step
  std::map<int64_t, Books> books_ ABSL_GUARDED_BY(mutex_);
  absl::Time progress_ ABSL_GUARDED_BY(mutex_), rebalanced_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, double> losses_ ABSL_GUARDED_BY(mutex_);
  TrainingState saved_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_COORDINATOR_H_
