// How runs end: with the first error and its place, within the limit, and with nothing left behind.
#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/runtime/executor.h"
#include "pipelines/schedules/catalog.h"
#include "tests/support/fake_pipeline.h"
#include "tests/support/fault_injection.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

constexpr absl::Duration kShort = absl::Milliseconds(300);

Program Lowered(const std::string& scheme, int devices, int micro_batches, bool recompute = false) {
  return *Lower(
      *MakeSchedule(scheme,
                    {.devices = devices, .micro_batches = micro_batches, .recompute = recompute}),
      {});
}

Action Parse(const std::string& text) { return Actions(text)[0]; }

// Injects `fault` into 1F1B on 4 devices; the error of the step.
absl::Status RunWithFault(Fault fault, absl::Duration action_limit = absl::Hours(1),
                          bool recompute = false) {
  const Program program = Lowered("1f1b", 4, 8, recompute);
  FaultInjector faults(std::move(fault));
  FakePipeline pipeline(&program, {.action_limit = action_limit, .faults = &faults});
  if (!pipeline.created().ok()) return pipeline.created();
  const absl::Status status = pipeline.RunStep().status();
  EXPECT_THAT(pipeline.RunStep(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           HasSubstr("the executor cannot be used")));
  EXPECT_EQ(pipeline.LeftAfterwards(), Bytes(0)) << "all tensors go with the run";
  return status;
}

TEST(ExecutorFault, TheFirstErrorComesWithItsPlace) {
  struct Case {
    int device;
    std::string action, place;
  };
  for (const Case& c : std::vector<Case>{{0, "0F0", "device 0, 0F0: "},
                                         {2, "2F3", "device 2, 2F3: "},
                                         {3, "3B7", "device 3, 3B7: "},
                                         {1, "1B7", "device 1, 1B7: "},
                                         {3, "3S", "device 3, optimizer step of stage 3: "}}) {
    // Often enough that every device is at times the first to be freed.
    for (int repeat = 0; repeat < 20; ++repeat) {
      ASSERT_THAT(RunWithFault({.device = c.device,
                                .action = Parse(c.action),
                                .error = absl::DataLossError("bad sector")}),
                  StatusIs(absl::StatusCode::kDataLoss, c.place + "bad sector"));
    }
  }
  EXPECT_THAT(RunWithFault({.device = 1, .action = Parse("1R2"), .error = absl::DataLossError("x")},
                           absl::Hours(1), /*recompute=*/true),
              StatusIs(absl::StatusCode::kDataLoss, "device 1, 1R2: x"));
}

// What is at the host, or on its way, goes with the run too.
TEST(ExecutorFault, OfAScheduleThatOffloads) {
  const Program program = Lowered("po_f", 4, 8);
  for (const char* action : {"1F1", "5F3", "1I2", "5W4"}) {
    FaultInjector faults({.device = 1, .action = Parse(action), .error = absl::DataLossError("x")});
    FakePipeline pipeline(&program, {.faults = &faults});
    ASSERT_THAT(pipeline.created(), IsOk());
    EXPECT_THAT(pipeline.RunStep(),
                StatusIs(absl::StatusCode::kDataLoss, absl::StrCat("device 1, ", action, ": x")));
    EXPECT_EQ(pipeline.LeftAfterwards(), Bytes(0)) << action;
  }
}

TEST(ExecutorFault, WrongTensorsOfAModule) {
  const auto run = [](const std::string& action, int device, FaultKind kind) {
    return RunWithFault({.device = device, .action = Parse(action), .kind = kind});
  };
  EXPECT_THAT(run("2F3", 2, FaultKind::kExtraTensor),
              StatusIs(absl::StatusCode::kInternal,
                       "device 2, 2F3: the module returned 2 tensors for 1 out-edges"));
  EXPECT_THAT(run("0B3", 0, FaultKind::kExtraTensor),
              StatusIs(absl::StatusCode::kInternal,
                       "device 0, 0B3: the module returned 1 tensors for 0 in-edges"));
  EXPECT_THAT(
      run("2F3", 2, FaultKind::kWrongShape),
      StatusIs(
          absl::StatusCode::kInternal,
          "device 2, 2F3: the module returned float32[11, 3] for out-edge 0, not float32[12, 3]"));
  EXPECT_THAT(
      run("1B0", 1, FaultKind::kNoTensor),
      StatusIs(absl::StatusCode::kInternal,
               "device 1, 1B0: the module returned nothing for in-edge 0, not float32[12, 3]"));
}

// Whoever waits for it: the one that is stuck is named, and ends the run at the limit of actions.
TEST(ExecutorFault, AHangEndsWithTheLimit) {
  EXPECT_THAT(RunWithFault({.device = 1, .action = Parse("1F0"), .kind = FaultKind::kHang}, kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "device 1 has been in 1F0 for 0.3 s"));
}

// The others are done and nobody waits: RunStep itself does.
TEST(ExecutorFault, AHangThatNobodyWaitsForEndsToo) {
  EXPECT_THAT(RunWithFault({.device = 0, .action = Parse("0S"), .kind = FaultKind::kHang}, kShort),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       "device 0 has been in optimizer step of stage 0 for 0.3 s"));
}

// Every action takes longer than a wait may, so at each moment somebody has waited for too long,
// and at the end all devices step at once. None of it is a deadlock.
TEST(ExecutorFault, ADeviceThatComputesIsWaitedFor) {
  const Program program = Lowered("1f1b", 2, 1);
  FaultInjector faults({.kind = FaultKind::kSlow, .pause = absl::Milliseconds(300)});
  FakePipeline pipeline(&program, {.wait_limit = absl::Milliseconds(150), .faults = &faults});
  ASSERT_THAT(pipeline.created(), IsOk());
  EXPECT_THAT(pipeline.RunStep(), IsOk());
  EXPECT_EQ(pipeline.WrongParameters(1), "");
}

TEST(ExecutorFault, AHangBeforeAReductionNamesIt) {
  const Program program = Lowered("chimera", 2, 4);
  Action last;  // some backward of device 1
  for (const Instruction& i : program.instructions[1]) {
    if (i.op == OpCode::kCompute) last = i.action;
  }
  FaultInjector faults({.device = 1, .action = last, .kind = FaultKind::kHang});
  FakePipeline pipeline(&program, {.action_limit = kShort, .faults = &faults});
  ASSERT_THAT(pipeline.created(), IsOk());
  EXPECT_THAT(pipeline.RunStep(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       absl::StrCat("device 1 has been in ", ToString(last), " for 0.3 s")));
}

// One device lacks the reduction that the other waits for.
TEST(ExecutorFault, AMissingReductionNamesTheWait) {
  Program program = Lowered("chimera", 2, 4);
  auto& list = program.instructions[1];
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const Instruction& i) {
                              return i.op == OpCode::kReduce || i.op == OpCode::kReduceWait;
                            }),
             list.end());
  FakePipeline pipeline(&program, {.wait_limit = kShort});
  ASSERT_THAT(pipeline.created(), IsOk());
  EXPECT_THAT(pipeline.RunStep(), StatusIs(absl::StatusCode::kDeadlineExceeded,
                                           StartsWith("device 0 waited 0.3 s for gradient "
                                                      "reduction of stage ")));
}

// A hand-made program with a wait for a message that the sender never sends.
TEST(ExecutorFault, AMissingSendNamesTheWait) {
  Program program = Lowered("gpipe", 2, 2);
  auto& list = program.instructions[0];
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].op == OpCode::kSend && list[i].action.micro_batch == 1) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  FakePipeline pipeline(&program, {.wait_limit = kShort});
  ASSERT_THAT(pipeline.created(), IsOk());
  EXPECT_THAT(pipeline.RunStep(),
              StatusIs(absl::StatusCode::kDeadlineExceeded,
                       AllOf(AnyOf(StartsWith("device 1 waited 0.3 s for 0F1 from device 0; "),
                                   StartsWith("device 0 waited 0.3 s for 1B")),
                             AnyOf(HasSubstr("; device 1 waits for 0F1 from device 0"),
                                   HasSubstr("; device 0 waits for 1B")))));
}

// Devices of two processes (here: executors) that wait for each other: one of them ends the run,
// and the other reports that one's error as what it is.
TEST(ExecutorFault, OfSeveralProcessesOneReportsADeadlock) {
  Program program = Lowered("gpipe", 2, 2);
  auto& list = program.instructions[0];
  list.erase(std::remove_if(list.begin(), list.end(),
                            [](const Instruction& i) { return i.op == OpCode::kSend; }),
             list.end());
  auto ranks = MakeInProcessCommunicators(2, {});
  Arena arenas[2];
  FakeStage stages[2] = {{&arenas[0], {.graph = &program.schedule.stages, .stage = 0}},
                         {&arenas[1], {.graph = &program.schedule.stages, .stage = 1}}};
  std::unique_ptr<Executor> executors[2];
  for (int d = 0; d < 2; ++d) {
    std::vector<DeviceSetup> own(1);
    own[0].arena = &arenas[d];
    own[0].communicator = std::move(ranks[d]);
    own[0].modules = {{d == 0 ? &stages[0] : nullptr, d == 1 ? &stages[1] : nullptr}};
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        executors[d], Executor::Create(&program, std::move(own),
                                       {.wait_limit = kShort, .others_elsewhere = true}));
  }
  absl::Status ends[2];
  std::thread other([&] { ends[1] = executors[1]->RunStep().status(); });
  ends[0] = executors[0]->RunStep().status();
  other.join();
  EXPECT_THAT(ends[0], StatusIs(absl::StatusCode::kDeadlineExceeded,
                                AnyOf(StartsWith("device 0 waited 0.3 s for 1B"),
                                      StartsWith("device 1 waited 0.3 s for 0F"))));
  EXPECT_EQ(ends[0].message(), ends[1].message());
  EXPECT_NE(IsFollowUp(ends[0]), IsFollowUp(ends[1]));
}

// Receives of a pair in another order than its sends: found by the tag.
TEST(ExecutorFault, SwappedReceivesAreFound) {
  Program program = Lowered("gpipe", 2, 2);
  std::vector<Instruction> receives, others;
  for (const Instruction& i : program.instructions[1]) {
    (i.op == OpCode::kReceive ? receives : others).push_back(i);
  }
  ASSERT_EQ(receives.size(), 2u);
  program.instructions[1] = {receives[1], receives[0]};
  for (const Instruction& i : others) program.instructions[1].push_back(i);
  FakePipeline pipeline(&program, {});
  ASSERT_THAT(pipeline.created(), IsOk());
  EXPECT_THAT(pipeline.RunStep(),
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(StartsWith("device 1, 0F0 from device 0: rank 1 expects tag 0"),
                             HasSubstr("from rank 0, which sent tag 1"))));
}

TEST(ExecutorFault, CreateRefusesWhatDoesNotFit) {
  const Program program = Lowered("gpipe", 2, 2);
  const auto error = [&](auto change) {
    Arena arenas[2];
    FakeStage stages[2] = {{&arenas[0], {.graph = &program.schedule.stages, .stage = 0}},
                           {&arenas[1], {.graph = &program.schedule.stages, .stage = 1}}};
    auto ranks = MakeInProcessCommunicators(2, {});
    std::vector<DeviceSetup> devices(2);
    for (int d = 0; d < 2; ++d) {
      devices[d].arena = &arenas[d];
      devices[d].communicator = std::move(ranks[d]);
      devices[d].modules = {{d == 0 ? &stages[0] : nullptr, d == 1 ? &stages[1] : nullptr}};
    }
    change(devices);
    return Executor::Create(&program, std::move(devices), {}).status();
  };
  const auto bad = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(error([](std::vector<DeviceSetup>&) {}), IsOk());
  EXPECT_THAT(error([](std::vector<DeviceSetup>& d) { d[1].modules[0][1] = nullptr; }),
              bad("device 1 holds stage 1 of replica 0 and has no module for it"));
  EXPECT_THAT(error([](std::vector<DeviceSetup>& d) { d[0].modules.clear(); }),
              bad("device 0 holds stage 0 of replica 0"));
  EXPECT_THAT(error([](std::vector<DeviceSetup>& d) { d.pop_back(); }), bad("there are 1"));
  EXPECT_THAT(error([](std::vector<DeviceSetup>& d) { d[1].arena = nullptr; }),
              bad("device 1 has no arena"));
  EXPECT_THAT(error([](std::vector<DeviceSetup>& d) { d[0].communicator = nullptr; }),
              bad("device 0 has no communicator"));
  EXPECT_THAT(
      error([](std::vector<DeviceSetup>& d) { std::swap(d[0].communicator, d[1].communicator); }),
      bad("device 0 of 2 has the communicator of rank 1"));
}

TEST(ExecutorFault, CreateRefusesBrokenPrograms) {
  const auto error = [](auto change) {
    Program program = Lowered("gpipe", 2, 2);
    change(program);
    return FakePipeline(&program, {}).created();
  };
  const auto erase = [](Program& p, int device, OpCode op) {
    auto& list = p.instructions[device];
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].op == op) return void(list.erase(list.begin() + static_cast<std::ptrdiff_t>(i)));
    }
  };
  const auto bad = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  EXPECT_THAT(error([&](Program& p) { erase(p, 1, OpCode::kReceive); }),
              bad("device 1, 0F0 from device 0: no receive is posted for it"));
  EXPECT_THAT(error([](Program& p) { std::swap(p.instructions[1][0], p.instructions[1][1]); }),
              bad("device 1, 0F0 from device 0: no receive is posted for it"));
  EXPECT_THAT(error([](Program& p) { p.instructions[1][0].arg = 99; }), bad("no message 99"));
  EXPECT_THAT(error([](Program& p) { p.messages[0].to_device = 0; }), bad("is for another device"));
  EXPECT_THAT(error([](Program& p) {
                for (Message& m : p.messages) m.row_parts = 5;  // 12 rows
              }),
              bad("cannot be cut"));
  EXPECT_THAT(error([](Program& p) {
                for (Message& m : p.messages) m.row_parts = 2;
              }),
              bad("only in part"));
}

// A wait that is left out of the program is found when the compute starts.
TEST(ExecutorFault, AComputeWithoutItsInput) {
  Program program = Lowered("gpipe", 2, 2);
  auto& list = program.instructions[1];
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].op == OpCode::kWait) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(i));
      break;
    }
  }
  FakePipeline pipeline(&program, {});
  EXPECT_THAT(pipeline.RunStep(),
              StatusIs(absl::StatusCode::kInternal, "device 1, 1F0: input 0 has not arrived"));
}

}  // namespace
}  // namespace pipelab
