#include "pipelines/swarm/test_network.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "glog/logging.h"
#include "models/data/text_corpus.h"
#include "models/data/token_fields.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr char kCoordinator[] = "coordinator";

class TestLink final : public SwarmLink {
 public:
  TestLink(TestNetwork* network, std::string from) : network_(*network), from_(std::move(from)) {}
  absl::Status Call(const std::string& address, const swarm::Request& request, absl::Duration limit,
                    swarm::Reply* reply) override {
    return network_.Call(from_, address, request, limit, reply);
  }

 private:
  TestNetwork& network_;
  const std::string from_;
};

void Lie(swarm::Reply* reply) {
  if (reply->has_pass()) reply->mutable_pass()->mutable_values()->mutable_bytes()->append("x");
  if (reply->has_sum()) reply->mutable_sum()->mutable_bytes()->append("x");
}

}  // namespace

TextData TestData(int64_t context) {
  absl::StatusOr<TextData> data = MakeTextData(SyntheticCorpus(1 << 14, 1), context, 1);
  CHECK(data.ok()) << data.status();
  return *std::move(data);
}

void TestNetwork::SetFault(Rule rule) {
  absl::MutexLock lock(&mutex_);
  rule_ = std::move(rule);
}

void TestNetwork::OnKill(std::function<void(const std::string&)> on_kill) {
  absl::MutexLock lock(&mutex_);
  on_kill_ = std::move(on_kill);
}

void TestNetwork::Add(const std::string& address, SwarmService* service) {
  absl::MutexLock lock(&mutex_);
  nodes_[address].service = service;
}

void TestNetwork::Remove(const std::string& address) {
  absl::MutexLock lock(&mutex_);
  Node& node = nodes_[address];
  node.service = nullptr;
  const auto idle = [&node] { return node.serving == 0; };
  mutex_.Await(absl::Condition(&idle));
}

void TestNetwork::Kill(const std::string& address) {
  std::function<void(const std::string&)> on_kill;
  {
    absl::MutexLock lock(&mutex_);
    if (!killed_.insert(address).second) return;
    on_kill = on_kill_;
  }
  if (on_kill) on_kill(address);
}

std::unique_ptr<SwarmLink> TestNetwork::LinkOf(const std::string& from) {
  return std::make_unique<TestLink>(this, from);
}

absl::Status TestNetwork::Call(const std::string& from, const std::string& to,
                               const swarm::Request& request, absl::Duration limit,
                               swarm::Reply* reply) {
  const absl::Status away = absl::UnavailableError(absl::StrCat(to, ": is away"));
  TestFault fault = TestFault::kNone;
  SwarmService* service = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    const auto it = nodes_.find(to);
    if (killed_.count(from) + killed_.count(to) > 0 || it == nodes_.end()) return away;
    service = it->second.service;
    if (service == nullptr) return away;
    ++it->second.serving;
    const int64_t number = calls_[request.kind_case()]++;
    if (rule_) fault = rule_({from, to, request, number});
  }
  if (fault == TestFault::kKillBefore) Kill(to);
  absl::Status served = away;
  if (fault == TestFault::kStall) {
    absl::SleepFor(limit);
    served = absl::DeadlineExceededError("stalls");
  } else if (fault == TestFault::kRefuse) {
    served = absl::InvalidArgumentError("does not fit");
  } else if (fault != TestFault::kLoseRequest && fault != TestFault::kKillBefore) {
    served = service->Serve(request, absl::Now() + limit, reply);
  }
  if (fault == TestFault::kKillAfter) Kill(to);
  if (fault == TestFault::kLie) Lie(reply);
  absl::MutexLock lock(&mutex_);
  --nodes_[to].serving;
  if (fault == TestFault::kLoseAnswer || killed_.count(from) + killed_.count(to) > 0) return away;
  return served;
}

TestNetwork::Rule RandomFaults(uint64_t seed, const std::string& name) {
  return [rng = CounterRng(seed, name)](const TestCall& call) {
    const uint64_t at = call.number * 16 + static_cast<uint64_t>(call.request.kind_case());
    if (call.to == kCoordinator || rng.Below(2 * at, 40) > 0) return TestFault::kNone;
    return static_cast<TestFault>(1 + rng.Below(2 * at + 1, 4));
  };
}

TestSwarm::TestSwarm(TestNetwork* network, CoordinatorOptions options, int peers, int trainers,
                     const SwarmSettings& trainers_have)
    : network_(*network), data_(TestData()), link_(network->LinkOf(kCoordinator)) {
  options.log = [this](const std::string& line) {
    absl::MutexLock lock(&mutex_);
    log_ += line;
  };
  absl::StatusOr<std::unique_ptr<SwarmCoordinator>> made =
      SwarmCoordinator::Create(link_.get(), options);
  CHECK(made.ok()) << made.status();
  coordinator_ = *std::move(made);
  coordinator_->SetAddress(kCoordinator);
  network_.Add(kCoordinator, coordinator_.get());
  network_.OnKill([this](const std::string&) { AddPeer(); });
  for (int i = 0; i < peers; ++i) AddPeer();
  for (int i = 0; i < trainers; ++i) {
    SwarmTrainerOptions trainer;
    trainer.coordinator = kCoordinator;
    trainer.data = data_.train.get();
    trainer.trainer = i;
    trainer.in_flight = 3;
    trainer.settings = trainers_have;
    trainers_.push_back(std::make_unique<SwarmTrainer>(link_.get(), trainer));
  }
}

void TestSwarm::AddPeer(const SwarmPeerOptions& options) {
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  auto runner = std::make_unique<Runner>();
  runner->address = absl::StrCat("peer", peers_.size());
  runner->link = network_.LinkOf(runner->address);
  SwarmPeerOptions own = options;
  own.coordinator = kCoordinator;
  runner->peer = std::make_unique<SwarmPeer>(runner->link.get(), own);
  runner->peer->SetAddress(runner->address);
  network_.Add(runner->address, runner->peer.get());
  runner->thread = std::thread([peer = runner->peer.get()] { peer->Run().IgnoreError(); });
  peers_.push_back(std::move(runner));
}

absl::Status TestSwarm::Run() {
  {  // All are there from the first step on, if no fault is earlier.
    absl::MutexLock lock(&mutex_);
    const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      size_t count = 0;
      for (size_t at = log_.find("ready "); at != std::string::npos;
           at = log_.find("ready ", at + 1))
        ++count;
      return count >= peers_.size();
    };
    mutex_.AwaitWithTimeout(absl::Condition(&ready), absl::Seconds(2));
  }
  for (auto& trainer : trainers_) {
    trainer_threads_.emplace_back([t = trainer.get()] {
      const absl::Status ran = t->Run();
      LOG_IF(ERROR, !ran.ok()) << ran;
    });
  }
  return coordinator_->Run();
}

std::string TestSwarm::log() const {
  absl::MutexLock lock(&mutex_);
  return log_;
}

TestSwarm::~TestSwarm() {
  network_.OnKill(nullptr);
  coordinator_->Stop();
  for (auto& trainer : trainers_) trainer->Stop();
  for (std::thread& t : trainer_threads_) t.join();
  std::vector<std::unique_ptr<Runner>> peers;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = true;
    peers = std::move(peers_);
  }
  for (auto& runner : peers) runner->peer->Stop();
  for (auto& runner : peers) runner->thread.join();
  for (auto& runner : peers) network_.Remove(runner->address);
  network_.Remove(kCoordinator);
}

swarm::Job TestJob(int stages, int64_t steps) {
  GptConfig model;
  model.layers = 2;
  model.hidden = 8;
  model.heads = 2;
  const TextData data = TestData();
  model.tokens = data.train->Field(kTokens).size();
  model.vocabulary = data.train->vocabulary();
  model.dropout = 0.1;
  swarm::Job job = MakeJob(model, OptimizerOptions::Adam({}));
  job.set_stages(stages);
  job.set_steps(steps);
  job.set_micro_batches(6);
  job.set_micro_batch_size(2);
  job.set_seed(3);
  job.set_order_free(true);
  job.set_wait_ms(2000);
  return job;
}

}  // namespace pipelab
