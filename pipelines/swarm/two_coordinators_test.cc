// One coordinator was thought dead, another one was started, and the first comes back: peers and
// trainers hear now one of them, now the other.
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/safetensors.h"
#include "pipelines/swarm/swarm_log.h"
#include "pipelines/swarm/test_network.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

CoordinatorOptions JobOptions(int64_t steps, const std::string& checkpoint = "") {
  CoordinatorOptions options;
  options.job = TestJob(/*stages=*/3, steps);
  options.checkpoint_every = 2;
  options.patience = absl::Seconds(30);
  if (checkpoint.empty()) return options;
  options.checkpoint = JoinPath(::testing::TempDir(), checkpoint);
  EXPECT_THAT(RemoveTree(options.checkpoint), IsOk());  // an earlier run's
  return options;
}

// A coordinator beside a TestSwarm's, which has the swarm's address while it is `Answer`ing.
class Other {
 public:
  Other(TestNetwork* network, CoordinatorOptions options)
      : network_(*network), link_(network->LinkOf("other")) {
    options.epoch = 100;
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mutex_);
      log_ += line;
    };
    auto made = SwarmCoordinator::Create(link_.get(), options);
    EXPECT_THAT(made, IsOk());
    coordinator_ = *std::move(made);
    coordinator_->SetAddress("other");
    network_.Add("other", coordinator_.get());
  }
  ~Other() {
    coordinator_->Stop();
    Join().IgnoreError();
    network_.Remove("other");
  }
  void Answer() { network_.Add("coordinator", coordinator_.get()); }
  void Run() {
    thread_ = std::thread([this] { ran_ = coordinator_->Run(); });
  }
  absl::Status Join() {
    if (thread_.joinable()) thread_.join();
    return ran_;
  }
  std::string log() const {
    absl::MutexLock lock(&mutex_);
    return log_;
  }
  SwarmCoordinator& coordinator() { return *coordinator_; }

 private:
  TestNetwork& network_;
  const std::unique_ptr<SwarmLink> link_;
  std::unique_ptr<SwarmCoordinator> coordinator_;
  std::thread thread_;
  absl::Status ran_;
  mutable absl::Mutex mutex_;
  std::string log_ ABSL_GUARDED_BY(mutex_);
};

template <typename Log>
void AwaitLine(const Log& of, const std::string& line) {
  for (int i = 0; i < 10'000 && !absl::StrContains(of.log(), line); ++i) {
    absl::SleepFor(absl::Milliseconds(2));
  }
  EXPECT_THAT(of.log(), HasSubstr(line));
}

struct Whole {
  std::map<int64_t, double> losses;
  std::string state;
};

const Whole& Alone(int64_t steps) {
  static auto* const runs = new std::map<int64_t, Whole>;
  const auto [it, fresh] = runs->try_emplace(steps);
  if (!fresh) return it->second;
  TestNetwork network;
  TestSwarm swarm(&network, JobOptions(steps), /*peers=*/6);
  EXPECT_THAT(swarm.Run(), IsOk());
  it->second = {swarm.losses(), ChecksumOf(swarm.saved().tensors)};
  return it->second;
}

// All that answers at the address changes from one to the other and back, with all peers and the
// trainer.
TEST(TwoCoordinatorsTest, TheyMixNothing) {
  constexpr int64_t kTogether = 150, kTurn = 10;
  const CoordinatorOptions options = JobOptions(kTogether);
  TestNetwork network;
  Other other(&network, options);
  other.Run();
  TestSwarm swarm(&network, options, /*peers=*/6);
  std::thread runs([&] { EXPECT_THAT(swarm.Run(), IsOk()); });
  for (int64_t step = 0; step < 2 * kTurn; step += kTurn) {
    AwaitLine(swarm, absl::StrCat("step step=", step, " "));
    other.Answer();
    AwaitLine(other, absl::StrCat("step step=", step, " "));
    network.Add("coordinator", &swarm.coordinator());
  }
  runs.join();
  EXPECT_EQ(swarm.losses(), Alone(kTogether).losses);
  EXPECT_EQ(ChecksumOf(swarm.saved().tensors), Alone(kTogether).state);
  for (const auto& [step, loss] : other.coordinator().losses()) {
    EXPECT_EQ(loss, Alone(kTogether).losses.at(step)) << step;
  }
  EXPECT_THAT(CheckSwarmLog(swarm.log()), IsOk());
  EXPECT_THAT(CheckSwarmLog(other.log()), IsOk());
}

// The one that comes back has done steps since the checkpoint from which the other one has gone on.
TEST(TwoCoordinatorsTest, WhoComesBackTakesNothingBack) {
  constexpr int64_t kAll = 8;
  const CoordinatorOptions options = JobOptions(kAll, "taken_over.safetensors");
  TestNetwork network;
  TestSwarm first(&network, options, /*peers=*/6);
  std::atomic<bool> cut_off{false};
  network.SetFault([&](const TestCall& call) {  // one way: all that the first one asks
    const bool asks = call.request.has_reduce() && call.request.epoch() < 100;
    if (asks && call.request.reduce().step() == 3) cut_off = true;
    return asks && cut_off ? TestFault::kLoseRequest : TestFault::kNone;
  });
  absl::Status ran;
  std::thread runs([&] { ran = first.Run(); });
  AwaitLine(first, "save step=2 ");
  while (!cut_off) absl::SleepFor(absl::Milliseconds(1));
  Other second(&network, options);
  second.Answer();
  second.Run();
  AwaitLine(second, "save step=4 ");
  // The first one is heard again, and has its peers and its trainer.
  cut_off = false;
  network.SetFault(nullptr);
  network.Add("coordinator", &first.coordinator());
  runs.join();
  EXPECT_THAT(ran, StatusIs(absl::StatusCode::kFailedPrecondition,
                            AllOf(HasSubstr("--checkpoint="), HasSubstr("another coordinator"))));
  const auto kept = ReadTrainingState(options.checkpoint);
  ASSERT_THAT(kept, IsOk());
  EXPECT_GE(kept->step, 4);
  EXPECT_THAT(first.log(), Not(HasSubstr("save step=4 ")));
  // Nobody is told that all is done: they go on with the second one, to its end.
  second.Answer();
  EXPECT_THAT(second.Join(), IsOk());
  EXPECT_EQ(ChecksumOf(ReadTrainingState(options.checkpoint)->tensors), Alone(kAll).state);
  const auto proof = CheckSwarmLog(absl::StrCat(first.log(), second.log()));
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, kAll);
  EXPECT_GT(proof->redone, 0);
}

// A coordinator that was started again may have other stages, and meets the same trainer.
TEST(TwoCoordinatorsTest, ATrainerGoesOnWithOtherStages) {
  for (const int stages : {2, 4}) {
    CoordinatorOptions options = JobOptions(/*steps=*/100'000);
    TestNetwork network;
    TestSwarm swarm(&network, options, /*peers=*/6);
    std::thread runs([&] { EXPECT_THAT(swarm.Run(), IsOk()); });
    AwaitLine(swarm, "step step=0 ");
    options.job = TestJob(stages, /*steps=*/4);
    Other again(&network, options);
    again.Answer();
    again.Run();
    EXPECT_THAT(again.Join(), IsOk());
    EXPECT_EQ(again.coordinator().losses(), Alone(4).losses) << stages;
    EXPECT_THAT(CheckSwarmLog(again.log()), IsOk());
    swarm.coordinator().Stop();
    runs.join();
  }
}

// Another training has this trainer's data and not its work.
TEST(TwoCoordinatorsTest, ATrainerOfAnotherTrainingIsRefusedAndNamed) {
  CoordinatorOptions options = JobOptions(/*steps=*/100'000);
  TestNetwork network;
  TestSwarm swarm(&network, options, /*peers=*/3);
  std::thread runs([&] { EXPECT_THAT(swarm.Run(), IsOk()); });
  const TextData data = TestData();
  const auto link = network.LinkOf("trainer");
  SwarmTrainerOptions lost;
  lost.coordinator = "moves";
  lost.data = data.train.get();
  lost.trainer = 7;
  const auto refused = [&](const std::string& name, auto change, const std::string& why) {
    network.Add("moves", &swarm.coordinator());
    SwarmTrainer trainer(link.get(), lost);
    absl::Status ended;
    std::thread trains([&] { ended = trainer.Run(); });
    for (int i = 0; i < 1000 && trainer.traffic().requests == 0; ++i) {
      absl::SleepFor(absl::Milliseconds(10));
    }
    CoordinatorOptions different = options;
    change(&different.job);
    Other other(&network, different);
    network.Add("moves", &other.coordinator());
    trains.join();
    EXPECT_THAT(ended, StatusIs(absl::StatusCode::kPermissionDenied,
                                absl::StrCat("trainer 7: ", why, ", as in the swarm")))
        << name;
    EXPECT_THAT(other.log(), HasSubstr("refuse why=\"trainer 7: ")) << name;
    network.Remove("moves");
  };
  refused(
      "rate", [](swarm::Job* job) { job->mutable_adam()->set_learning_rate(0.5f); },
      "optimizer is \"adam, rate 0.001\"; it must be \"adam, rate 0.5\"");
  refused(
      "seed", [](swarm::Job* job) { job->set_seed(4); }, "--seed is \"3\"; it must be \"4\"");
  const int64_t step = swarm.losses().size();
  AwaitLine(swarm, absl::StrCat("step step=", step + 1, " "));  // it goes on
  EXPECT_THAT(swarm.log(), Not(HasSubstr("drop ")));
  swarm.coordinator().Stop();
  runs.join();
}

// A sum that was asked for before the peer has joined anew comes after that.
TEST(TwoCoordinatorsTest, NoAverageOutlivesItsMembership) {
  TestNetwork network;
  class Slow final : public SwarmService {  // a neighbour, and a coordinator of many epochs
   public:
    absl::Status Serve(const swarm::Request& request, absl::Time, swarm::Reply* reply) override {
      if (request.has_join()) {
        reply->mutable_joined()->set_peer(1);
        *reply->mutable_joined()->mutable_job() = TestJob(3, 4);
        ++joined;
      }
      reply->set_epoch(joined);
      if (request.has_ready()) reply->mutable_ready();
      if (request.has_beat()) reply->mutable_beat()->set_unknown(asked && joined == 1);
      if (!request.has_get_sum()) return absl::OkStatus();
      asked = true;
      while (joined == 1) absl::SleepFor(absl::Milliseconds(1));
      absl::SleepFor(absl::Milliseconds(100));
      reply->mutable_sum()->mutable_bytes()->resize(parameters * sizeof(float));
      return absl::OkStatus();
    }
    std::atomic<int> joined{0};
    std::atomic<bool> asked{false};
    int64_t parameters = 0;
  } slow;
  slow.parameters = (*PeerStage::Create(TestJob(3, 4), 0))->parameters();
  network.Add("coordinator", &slow);
  const auto link = network.LinkOf("peer");
  SwarmPeerOptions options;
  options.coordinator = "coordinator";
  SwarmPeer peer(link.get(), options);
  peer.SetAddress("peer");
  network.Add("peer", &peer);
  std::thread runs([&] { EXPECT_THAT(peer.Run(), IsOk()); });
  swarm::Request request;
  swarm::Reply reply;
  do {
    request.mutable_health();
    EXPECT_THAT(link->Call("peer", request, absl::Seconds(5), &reply), IsOk());
  } while (reply.epoch() != 1);
  request.set_epoch(1);
  swarm::Reduce& gather = *request.mutable_reduce();
  gather.set_gather(true);
  gather.add_parts()->set_peer(2);
  gather.mutable_parts(0)->set_address("coordinator");
  EXPECT_THAT(link->Call("peer", request, absl::Seconds(5), &reply),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("joined anew")));
  request.set_epoch(2);
  request.mutable_commit()->set_step(0);
  EXPECT_THAT(link->Call("peer", request, absl::Seconds(5), &reply),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("no average of step 0")));
  peer.Stop();
  runs.join();
  network.Remove("peer");
  network.Remove("coordinator");
}

}  // namespace
}  // namespace pipelab
