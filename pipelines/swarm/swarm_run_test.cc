// The running swarm as threads, with faults at chosen messages: the bits of the losses and of the
// final state are those of the undisturbed run.
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/checkpoint/safetensors.h"
#include "pipelines/swarm/swarm_log.h"
#include "pipelines/swarm/test_network.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = swarm::Request::KindCase;

constexpr int kStages = 3;
constexpr int64_t kSteps = 4;

struct Ran {
  std::map<int64_t, double> losses;
  std::string state, log;
  SwarmTrainer::Traffic traffic;
};

CoordinatorOptions OptionsOf(const swarm::Job& job) {
  CoordinatorOptions options;
  options.job = job;
  options.checkpoint_every = 2;
  options.patience = absl::Seconds(30);
  return options;
}

Ran RunSwarm(const CoordinatorOptions& options, const TestNetwork::Rule& rule, int peers = 6,
             int trainers = 1) {
  TestNetwork network;
  network.SetFault(rule);
  TestSwarm swarm(&network, options, peers, trainers);
  EXPECT_THAT(swarm.Run(), IsOk()) << swarm.log();
  return {swarm.losses(), ChecksumOf(swarm.saved().tensors), swarm.log(), swarm.traffic()};
}

TestFault NoFault(const TestCall&) { return TestFault::kNone; }

const Ran& Undisturbed() {
  static const Ran* const ran = new Ran(RunSwarm(OptionsOf(TestJob(kStages, kSteps)), NoFault));
  return *ran;
}

// `fault` at the call `number` of a kind.
TestNetwork::Rule At(Kind kind, int64_t number, TestFault fault) {
  return [=](const TestCall& call) {
    return call.request.kind_case() == kind && call.number == number && call.to != "coordinator"
               ? fault
               : TestFault::kNone;
  };
}

void ExpectSame(const Ran& ran, const std::string& what) {
  EXPECT_EQ(ran.losses, Undisturbed().losses) << what;
  EXPECT_EQ(ran.state, Undisturbed().state) << what;
  const auto proof = CheckSwarmLog(ran.log);
  ASSERT_THAT(proof, IsOk()) << what;
  EXPECT_EQ(proof->steps, kSteps) << what;
  EXPECT_EQ(proof->gradients, kSteps * kStages * 6) << what;
}

TEST(SwarmRunTest, LearnsAndProvesIt) {
  ASSERT_EQ(Undisturbed().losses.size(), kSteps);
  EXPECT_LT(Undisturbed().losses.at(kSteps - 1), Undisturbed().losses.at(0));
  ExpectSame(Undisturbed(), "itself");
}

TEST(SwarmRunTest, AnyNumberOfPeersAndTrainersHasTheSameBits) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  ExpectSame(RunSwarm(options, NoFault, /*peers=*/3), "3 peers");
  ExpectSame(RunSwarm(options, NoFault, /*peers=*/7, /*trainers=*/2), "2 trainers");
}

TEST(SwarmRunTest, EachFaultAtEachKindOfMessage) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  for (Kind kind : {Kind::kPass, Kind::kReduce, Kind::kGetSum, Kind::kCommit, Kind::kGetState}) {
    for (TestFault fault : {TestFault::kLoseRequest, TestFault::kLoseAnswer, TestFault::kKillBefore,
                            TestFault::kKillAfter}) {
      // Inside the second step; the first calls of state are the first checkpoint's.
      const int64_t number = kind == Kind::kPass     ? 40
                             : kind == Kind::kReduce ? 14
                             : kind == Kind::kGetSum ? 20
                             : kind == Kind::kCommit ? 8
                                                     : 1;
      ExpectSame(RunSwarm(options, At(kind, number, fault)),
                 absl::StrCat("kind ", kind, ", fault ", static_cast<int>(fault)));
    }
  }
}

// Every so many calls one that goes wrong, at random.
TEST(SwarmRunTest, ManyFaultsOfManySeeds) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const Ran ran = RunSwarm(options, RandomFaults(seed, "swarm/test"));
    ExpectSame(ran, absl::StrCat("seed ", seed));
  }
}

// Two of the peers are cut off from all others, both ways, for so many messages, and come back.
TEST(SwarmRunTest, PartitionsHeal) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  const auto cut_off = [](const std::string& name) { return name == "peer1" || name == "peer4"; };
  for (const int64_t length : {10, 60, 300}) {
    auto messages = std::make_shared<std::atomic<int64_t>>(0);
    const Ran ran = RunSwarm(options, [=](const TestCall& call) {
      const int64_t number = (*messages)++;
      const bool parted = number >= 80 && number < 80 + length;
      return parted && cut_off(call.from) != cut_off(call.to) ? TestFault::kLoseRequest
                                                              : TestFault::kNone;
    });
    ExpectSame(ran, absl::StrCat("cut off for ", length, " messages"));
  }
}

// One peer's messages to other peers and the trainer are lost while all reach it, or the other way.
TEST(SwarmRunTest, LossInOneDirection) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  for (const bool outwards : {false, true}) {
    const Ran ran = RunSwarm(options, [=](const TestCall& call) {
      const bool lost = outwards ? call.from == "peer2" && call.to != "coordinator"
                                 : call.to == "peer2" && call.from != "coordinator";
      return lost && call.number >= 10 ? TestFault::kLoseRequest : TestFault::kNone;
    });
    ExpectSame(ran, outwards ? "from peer2" : "to peer2");
  }
}

TEST(SwarmRunTest, WhereAStageLosesAllPeersItGoesBackToTheCheckpoint) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  const Ran ran = RunSwarm(
      options,
      [](const TestCall& call) {
        const bool last = call.request.has_pass() && call.request.pass().stage() == 1 &&
                          call.request.pass().step() == 3 && call.number < 200;
        return last ? TestFault::kKillBefore : TestFault::kNone;
      },
      /*peers=*/3);
  ExpectSame(ran, "all of stage 1");
  EXPECT_GT(CheckSwarmLog(ran.log)->redone, 0);
}

TEST(SwarmRunTest, ALiarIsDroppedAndNamed) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  const auto lies = [](Kind kind) {
    return [kind](const TestCall& call) {
      return call.request.kind_case() == kind && call.to == "peer2" ? TestFault::kLie
                                                                    : TestFault::kNone;
    };
  };
  const Ran passes = RunSwarm(options, lies(Kind::kPass));
  ExpectSame(passes, "passes");
  EXPECT_THAT(passes.log, HasSubstr("address=peer2 why=\"INVALID_ARGUMENT: values of"));
  const Ran sums = RunSwarm(options, lies(Kind::kGetSum));
  ExpectSame(sums, "sums");
  EXPECT_THAT(sums.log, AnyOf(HasSubstr("address=peer2 why=\"sums: "),
                              HasSubstr("address=peer2 why=\"averages: ")));
}

TEST(SwarmRunTest, AStallingPeerIsDroppedAndNamed) {
  swarm::Job job = TestJob(kStages, kSteps);
  job.set_wait_ms(300);
  const Ran ran = RunSwarm(OptionsOf(job), [](const TestCall& call) {
    return call.request.has_pass() && call.to == "peer1" ? TestFault::kStall : TestFault::kNone;
  });
  ExpectSame(ran, "stalls");
  EXPECT_THAT(ran.log, HasSubstr("address=peer1 why=\"stalls: 3 requests in a row"));
}

TEST(SwarmRunTest, FloodsAreRefusedAndNamed) {
  TestNetwork network;
  TestSwarm swarm(&network, OptionsOf(TestJob(kStages, kSteps)), /*peers=*/3);
  const auto link = network.LinkOf("flood");
  absl::Status last;
  for (int i = 0; i < 25; ++i) {
    swarm::Request request;
    swarm::Reply reply;
    request.mutable_join()->set_address("flood");
    request.mutable_join()->set_speed(1);
    last = link->Call("coordinator", request, absl::Seconds(5), &reply);
  }
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("floods")));
  EXPECT_THAT(swarm.log(), HasSubstr("why=\"floods: joins"));
  EXPECT_THAT(swarm.Run(), IsOk());
  EXPECT_EQ(swarm.losses(), Undisturbed().losses);
}

TEST(SwarmRunTest, PlainSumsDifferByRoundingAlone) {
  swarm::Job job = TestJob(kStages, kSteps);
  job.set_order_free(false);
  const Ran ran = RunSwarm(OptionsOf(job), At(Kind::kPass, 40, TestFault::kKillAfter));
  ASSERT_EQ(ran.losses.size(), kSteps);
  // Sums of 6 micro-batches in another order: each step moves the loss by 5 epsilon of itself.
  const double tolerance =
      kSteps * 5 * std::numeric_limits<float>::epsilon() * Undisturbed().losses.at(0);
  for (const auto& [step, loss] : Undisturbed().losses) {
    EXPECT_NEAR(ran.losses.at(step), loss, tolerance) << step;
  }
  EXPECT_THAT(CheckSwarmLog(ran.log), IsOk());
}

TEST(SwarmRunTest, EightBitsHaveAFourthOfTheTraffic) {
  swarm::Job job = TestJob(kStages, kSteps);
  job.set_eight_bits(true);
  const Ran ran = RunSwarm(OptionsOf(job), NoFault);
  EXPECT_NEAR(ran.losses.at(0), Undisturbed().losses.at(0), 0.02);
  // A boundary has 2 * 8 * 8 values: a micro-batch's two forwards take one and give two; backwards
  // take two inputs and two gradients, and give two.
  const int64_t micro_batches = kSteps * 6, floats = 4 * 128, int8 = 16 + 2 + 128;
  EXPECT_EQ(Undisturbed().traffic.values_out, micro_batches * 5 * floats);
  EXPECT_EQ(Undisturbed().traffic.values_back, micro_batches * 4 * floats);
  EXPECT_EQ(ran.traffic.values_out, micro_batches * 5 * int8);
  EXPECT_EQ(ran.traffic.values_back, micro_batches * 4 * int8);
}

TEST(SwarmRunTest, ACoordinatorGoesOnFromItsCheckpoint) {
  const std::string file = absl::StrCat(::testing::TempDir(), "/restart.safetensors");
  CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  options.checkpoint = file;
  std::string log;
  {
    TestNetwork network;
    options.job.set_steps(2);
    TestSwarm swarm(&network, options, 6);
    ASSERT_THAT(swarm.Run(), IsOk());
    log = swarm.log();
  }
  options.job.set_steps(kSteps);
  options.epoch = 2;
  const Ran ran = RunSwarm(options, NoFault);
  EXPECT_EQ(ran.state, Undisturbed().state);
  for (const auto& [step, loss] : ran.losses) EXPECT_EQ(loss, Undisturbed().losses.at(step));
  EXPECT_EQ(ran.losses.begin()->first, 2);
  const auto proof = CheckSwarmLog(absl::StrCat(log, ran.log));
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, kSteps);
}

TEST(SwarmRunTest, ACheckpointIsOfOneTraining) {
  CoordinatorOptions options = OptionsOf(TestJob(kStages, 2));
  options.checkpoint = absl::StrCat(::testing::TempDir(), "/one_training.safetensors");
  options.data = {{"--data", "a text"}};
  TestNetwork network;
  const auto link = network.LinkOf("coordinator");
  {
    TestSwarm swarm(&network, options, 3, /*trainers=*/1, options.data);
    ASSERT_THAT(swarm.Run(), IsOk());
  }
  const auto again = [&](auto change, const std::string& message) {
    CoordinatorOptions other = options;
    change(&other);
    const auto made = SwarmCoordinator::Create(link.get(), other);
    if (message.empty()) {
      EXPECT_THAT(made, IsOk());
      return;
    }
    EXPECT_THAT(
        made, StatusIs(absl::StatusCode::kInvalidArgument,
                       absl::StrCat(options.checkpoint, ": ", message, ", as in the checkpoint")));
  };
  using Options = CoordinatorOptions;
  again([](Options*) {}, "");
  again([](Options* o) { o->job.set_steps(9); }, "");
  again([](Options* o) { o->job.set_stages(2); }, "");
  again([](Options* o) { o->job.set_seed(4); }, "--seed is \"4\"; it must be \"3\"");
  again([](Options* o) { o->job.mutable_adam()->set_learning_rate(0.5f); },
        "optimizer is \"adam, rate 0.5\"; it must be \"adam, rate 0.001\"");
  again([](Options* o) { o->job.mutable_model()->set_dropout(0); },
        "dropout is \"0\"; it must be \"0.1\"");
  again([](Options* o) { o->job.mutable_model()->set_heads(4); },
        "--heads is \"4\"; it must be \"2\"");
  again([](Options* o) { o->job.set_micro_batches(7); },
        "--micro_batches is \"7\"; it must be \"6\"");
  again([](Options* o) { o->job.set_delay(1); }, "--update_delay is \"1\"; it must be \"0\"");
  again([](Options* o) { o->data["--data"] = "another"; },
        "--data is \"another\"; it must be \"a text\"");
  again([](Options* o) { o->data.clear(); }, "--data is not given; it must be \"a text\"");
  options.data["--more"] = "1";  // what this checkpoint does not know
  EXPECT_THAT(SwarmCoordinator::Create(link.get(), options),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("--more is \"1\"; another version has made the checkpoint")));
}

TEST(SwarmRunTest, AJobIsOfOneNetwork) {
  swarm::Job job = TestJob(kStages, kSteps);
  const auto layout = LayoutOf(job);
  ASSERT_THAT(layout, IsOk());
  job.set_network(NetworkOf(layout->graph));
  EXPECT_THAT(LayoutOf(job), IsOk());
  job.mutable_model()->set_heads(4);  // as another version might build it
  EXPECT_THAT(LayoutOf(job),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("run the same version")));
}

// The one whose fault it is ends, blames nobody, and the others go on.
TEST(SwarmRunTest, AMisconfiguredTrainerIsRefusedAndNamed) {
  CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  options.data = {{"--data", "a text"}, {"--seed", "1"}};
  TestNetwork network;
  const auto link = network.LinkOf("trainer");
  const auto run = [&](const TextData& data, const SwarmSettings& settings) {
    SwarmTrainerOptions trainer;
    trainer.coordinator = "coordinator";
    trainer.data = data.train.get();
    trainer.trainer = 7;
    trainer.settings = settings;
    return SwarmTrainer(link.get(), trainer).Run();
  };
  TestSwarm swarm(&network, options, /*peers=*/6, /*trainers=*/1, options.data);
  EXPECT_THAT(run(TestData(), {{"--data", "a text"}, {"--seed", "2"}}),
              StatusIs(absl::StatusCode::kPermissionDenied,
                       "trainer 7: --seed is \"2\"; it must be \"1\", as in the swarm"));
  EXPECT_THAT(run(TestData(), {}),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("--data is not given")));
  EXPECT_THAT(run(TestData(/*context=*/4), options.data),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("samples have 4 tokens")));
  EXPECT_THAT(swarm.Run(), IsOk());
  EXPECT_EQ(swarm.losses(), Undisturbed().losses);
  EXPECT_THAT(swarm.log(), HasSubstr("refuse why=\"trainer 7: --seed is '2'; it must be '1'"));
  EXPECT_THAT(swarm.log(), Not(HasSubstr("drop ")));
  EXPECT_THAT(CheckSwarmLog(swarm.log()), IsOk());
}

// A trainer learns from its peers' refusals what no handshake asks.
TEST(SwarmRunTest, ATrainerWhoseRequestsAreRefusedBlamesNobody) {
  const CoordinatorOptions options = OptionsOf(TestJob(kStages, kSteps));
  TestNetwork network;
  network.SetFault([](const TestCall& call) {
    return call.from == "trainer" && call.request.has_pass() ? TestFault::kRefuse
                                                             : TestFault::kNone;
  });
  const auto link = network.LinkOf("trainer");
  const TextData data = TestData();
  SwarmTrainerOptions bad;
  bad.coordinator = "coordinator";
  bad.data = data.train.get();
  bad.trainer = 7;
  TestSwarm swarm(&network, options, /*peers=*/6);
  absl::Status ended;
  std::thread thread([&] { ended = SwarmTrainer(link.get(), bad).Run(); });
  EXPECT_THAT(swarm.Run(), IsOk());
  thread.join();
  EXPECT_THAT(ended, StatusIs(absl::StatusCode::kFailedPrecondition,
                              HasSubstr("3 requests in a row were refused")));
  EXPECT_EQ(swarm.losses(), Undisturbed().losses);
  EXPECT_THAT(swarm.log(), Not(HasSubstr("drop ")));
}

TEST(SwarmRunTest, NobodyForgesLinesOfTheLog) {
  TestNetwork network;
  TestSwarm swarm(&network, OptionsOf(TestJob(kStages, kSteps)), /*peers=*/3);
  const auto link = network.LinkOf("stranger");
  for (const std::string& address :
       std::vector<std::string>{"a\nstep step=0 loss=0", "a peer=0", "\x1b[2J", "a\"b", ""}) {
    swarm::Request request;
    swarm::Reply reply;
    request.mutable_join()->set_address(address);
    request.mutable_join()->set_speed(1);
    EXPECT_THAT(link->Call("coordinator", request, absl::Seconds(5), &reply),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("address")));
  }
  while (!absl::StrContains(swarm.log(), "join peer=0 ")) absl::SleepFor(absl::Milliseconds(10));
  swarm::Request request;
  swarm::Reply reply;
  request.set_epoch(1);
  request.mutable_report()->set_peer(0);
  request.mutable_report()->set_lied(true);
  request.mutable_report()->set_fault("bad\nstep step=0 loss=0\x1b[2J\" x=\"");
  EXPECT_THAT(link->Call("coordinator", request, absl::Seconds(5), &reply), IsOk());
  EXPECT_THAT(swarm.Run(), IsOk());
  EXPECT_THAT(swarm.log(), HasSubstr(" why=\"bad\\nstep step=0 loss=0\\x1b[2J' x='\" epoch=1\n"));
  EXPECT_THAT(CheckSwarmLog(swarm.log()), IsOk());
}

TEST(SwarmRunTest, AStageWithoutPeersGetsOne) {
  swarm::Job job = TestJob(kStages, kSteps);
  job.set_wait_ms(300);
  TestNetwork network;
  TestSwarm swarm(&network, OptionsOf(job), /*peers=*/0);
  SwarmPeerOptions chosen;
  for (int stage : {0, 0, 1, 1}) {
    chosen.stage = stage;
    swarm.AddPeer(chosen);
  }
  EXPECT_THAT(swarm.Run(), IsOk());
  EXPECT_EQ(swarm.losses(), Undisturbed().losses);
  EXPECT_THAT(swarm.log(), HasSubstr(" to=2 epoch=1\n"));
}

TEST(SwarmRunTest, PeersMoveWhereTheyAreNeeded) {
  CoordinatorOptions options = OptionsOf(TestJob(kStages, 40));
  options.rebalance_every = absl::Milliseconds(20);
  TestNetwork network;
  TestSwarm swarm(&network, options, /*peers=*/0);
  SwarmPeerOptions first;
  first.stage = 0;
  for (int i = 0; i < 4; ++i) swarm.AddPeer(first);
  for (int stage : {1, 2}) {
    first.stage = stage;
    swarm.AddPeer(first);
  }
  ASSERT_THAT(swarm.Run(), IsOk());
  EXPECT_THAT(swarm.log(), HasSubstr("move peer="));
  const auto proof = CheckSwarmLog(swarm.log());
  ASSERT_THAT(proof, IsOk());
  EXPECT_EQ(proof->steps, 40);
}

}  // namespace
}  // namespace pipelab
