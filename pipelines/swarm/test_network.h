// A swarm as threads of one process, for tests, whose messages can be made to fail at chosen
// points: the same peers, trainer and coordinator as over gRPC.
//
//   TestNetwork network;
//   network.SetFault([](const TestCall& call) { return call.to == "peer1" ? TestFault::kKillBefore
//                                                                         : TestFault::kNone; });
//   TestSwarm swarm(&network, options, /*peers=*/6);
//   PIPELAB_RETURN_IF_ERROR(swarm.Run());
//
// A killed peer is out of reach for good, both ways, also for calls that it is answering.
#ifndef PIPELAB_PIPELINES_SWARM_TEST_NETWORK_H_
#define PIPELAB_PIPELINES_SWARM_TEST_NETWORK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "models/data/text_batches.h"
#include "pipelines/swarm/coordinator.h"
#include "pipelines/swarm/peer.h"
#include "pipelines/swarm/trainer.h"

namespace pipelab {

enum class TestFault : uint8_t {
  kNone,
  kLoseRequest,  // it does not arrive, and the caller sees that
  kLoseAnswer,   // it is done, and the caller never hears of it
  kKillBefore,   // who is asked dies before it does it
  kKillAfter,    // after it has done it, before the answer
  kStall,        // nothing comes until the limit
  kLie,          // the answer has values of another size
  kRefuse,       // who is asked says that the request does not fit
};

struct TestCall {
  std::string from, to;
  const swarm::Request& request;
  int64_t number;  // calls of this kind so far
};

class TestNetwork {
 public:
  using Rule = std::function<TestFault(const TestCall& call)>;

  void SetFault(Rule rule);
  void Add(const std::string& address, SwarmService* service);
  // Once nobody serves a call there any more.
  void Remove(const std::string& address);
  void Kill(const std::string& address);
  std::unique_ptr<SwarmLink> LinkOf(const std::string& from);
  absl::Status Call(const std::string& from, const std::string& to, const swarm::Request& request,
                    absl::Duration limit, swarm::Reply* reply);
  // Called, in the thread of the call, for each peer that a fault kills.
  void OnKill(std::function<void(const std::string& address)> on_kill);

 private:
  struct Node {
    SwarmService* service = nullptr;
    int serving = 0;
  };
  mutable absl::Mutex mutex_;
  Rule rule_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const std::string&)> on_kill_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Node> nodes_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> killed_ ABSL_GUARDED_BY(mutex_);
  std::map<int, int64_t> calls_ ABSL_GUARDED_BY(mutex_);  // by kind
};

// At random, one of 40 calls of whatever kind, not to the coordinator: lost, or a peer is killed.
TestNetwork::Rule RandomFaults(uint64_t seed, const std::string& name);

// Peers "peer0", "peer1", ..., a trainer and a coordinator. For each killed peer a new one comes.
class TestSwarm {
 public:
  TestSwarm(TestNetwork* network, CoordinatorOptions options, int peers, int trainers = 1,
            const SwarmSettings& trainers_have = {});
  ~TestSwarm();

  absl::Status Run();  // the coordinator's
  std::map<int64_t, double> losses() const { return coordinator_->losses(); }
  TrainingState saved() const { return coordinator_->saved(); }
  std::string log() const;
  SwarmTrainer::Traffic traffic() const { return trainers_[0]->traffic(); }
  SwarmCoordinator& coordinator() { return *coordinator_; }
  void AddPeer(const SwarmPeerOptions& options = {});

 private:
  struct Runner {
    std::string address;
    std::unique_ptr<SwarmLink> link;
    std::unique_ptr<SwarmPeer> peer;
    std::thread thread;
  };
  TestNetwork& network_;
  const TextData data_;
  std::unique_ptr<SwarmLink> link_;
  std::unique_ptr<SwarmCoordinator> coordinator_;
  std::vector<std::unique_ptr<SwarmTrainer>> trainers_;
  std::vector<std::thread> trainer_threads_;
  mutable absl::Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Runner>> peers_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

// What it trains on: generated text. And a small GPT in `stages` stages.
TextData TestData(int64_t context = 8);
swarm::Job TestJob(int stages, int64_t steps);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SWARM_TEST_NETWORK_H_
