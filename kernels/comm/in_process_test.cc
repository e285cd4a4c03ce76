// The in-process communicator: conformance with and without rendezvous, and what only it promises.
#include <chrono>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/conformance.h"
#include "kernels/comm/spsc_queue.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const TensorSpec kSpec{DataType::kFloat32, {4}};

// Ranks are threads.
RankRunner Threads(const InProcessOptions& options) {
  return [options](int size, const RankBody& body) {
    auto ranks = MakeInProcessCommunicators(size, options);
    std::deque<Arena> arenas(size);
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r) {
      threads.emplace_back([&, r] { body(*ranks[r], arenas[r]); });
    }
    for (std::thread& t : threads) t.join();
    ranks.clear();  // receives that nobody waited for still have charges
  };
}

struct InProcessParam {
  ConformanceCase conformance;
  bool rendezvous;
};

class InProcessConformance : public testing::TestWithParam<InProcessParam> {};

TEST_P(InProcessConformance, Holds) {
  GetParam().conformance.run(Threads({.rendezvous = GetParam().rendezvous}));
}

std::vector<InProcessParam> InProcessParams() {
  std::vector<InProcessParam> params;
  for (const ConformanceCase& c : ConformanceCases()) {
    params.push_back({c, false});
    params.push_back({c, true});
  }
  return params;
}

INSTANTIATE_TEST_SUITE_P(All, InProcessConformance, testing::ValuesIn(InProcessParams()),
                         [](const testing::TestParamInfo<InProcessParam>& info) {
                           return info.param.conformance.name +
                                  (info.param.rendezvous ? "Rendezvous" : "Buffered");
                         });

TEST(InProcess, HandsTheMemoryOver) {
  const void* sent = nullptr;  // ordered by the message itself
  Threads({})(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 0) {
      Tensor x = TestTensor(arena, kSpec, 1);
      sent = x.data();
      ASSERT_THAT(comm.Send(std::move(x), 1, 0), IsOk());
      EXPECT_EQ(arena.current(MemoryKind::kActivation), Bytes(0)) << "before anybody receives";
    } else {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, kSpec, 0, 0));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(r, kPatience));
      EXPECT_EQ(x.data(), sent);
    }
  });
}

TEST(InProcess, BufferedSendsAreDoneAtOnce) {
  Threads({})(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 1) return;
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, kSpec, 1), 1, 0));
    EXPECT_THAT(comm.Wait(s, absl::ZeroDuration()), IsOk());
  });
}

TEST(InProcess, RendezvousSendWaitsForItsReceive) {
  using Clock = std::chrono::steady_clock;
  Threads({.rendezvous = true})(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 0) {
      const Clock::time_point start = Clock::now();
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, kSpec, 1), 1, 0));
      EXPECT_THAT(comm.Wait(s, kPatience), IsOk());
      EXPECT_GE(Clock::now() - start, std::chrono::milliseconds(25));
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, kSpec, 0, 0));
      EXPECT_THAT(comm.Wait(r, kPatience), IsOk());
    }
  });
}

// Two ranks that both send first and receive later: fine with buffers, a deadlock without.
TEST(InProcess, RendezvousDeadlockEndsWithTheLimit) {
  for (bool rendezvous : {false, true}) {
    Threads({.rendezvous = rendezvous})(2, [&](Communicator& comm, Arena& arena) {
      const int peer = 1 - comm.rank();
      const absl::Duration limit = comm.rank() == 0 ? absl::Milliseconds(50) : kPatience;
      const auto send = [&]() -> absl::Status {
        PIPELAB_ASSIGN_OR_RETURN(Ticket s, comm.Send(TestTensor(arena, kSpec, 1), peer, 5));
        return comm.Wait(s, limit).status();
      };
      const absl::Status status = send();
      if (rendezvous) {
        EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                     "rank 0 waited 50ms for rank 1 to receive tag 5"));
        EXPECT_EQ(IsFollowUp(status), comm.rank() != 0);
      } else {
        EXPECT_THAT(status, IsOk());
      }
    });
  }
}

TEST(InProcess, MembersThatDisagreeAreNamed) {
  Threads({})(3, [&](Communicator& comm, Arena& arena) {
    const Tensor x = TestTensor(arena, {DataType::kFloat32, {comm.rank() == 2 ? 5 : 4}}, 0);
    EXPECT_THAT(comm.AllReduce(x, {0, 1, 2}, kPatience),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("rank 0 calls all-reduce with 4 float32"),
                               HasSubstr("rank 2 calls all-reduce with 5 float32"))));
  });
  Threads({})(2, [&](Communicator& comm, Arena& arena) {
    const Tensor x = TestTensor(arena, kSpec, 0);
    EXPECT_THAT(comm.Broadcast(x, comm.rank(), {0, 1}, kPatience),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("rank 0 calls broadcast from rank 0"),
                               HasSubstr("rank 1 calls broadcast from rank 1"))));
  });
}

TEST(InProcess, AbortOfASendThatWaits) {
  Threads({.rendezvous = true})(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 1) {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      return comm.Abort(absl::DataLossError("gone"));
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, kSpec, 1), 1, 0));
    EXPECT_THAT(comm.Wait(s, kPatience), StatusIs(absl::StatusCode::kDataLoss, "gone"));
  });
}

// Cost tables rely on it: between begin and wait nothing of a collective runs.
TEST(InProcess, CollectivesWorkAtTheWait) {
  auto ranks = MakeInProcessCommunicators(2, {});
  std::deque<Arena> arenas(2);
  std::vector<Tensor> data;
  std::vector<Ticket> tickets;
  for (int r = 0; r < 2; ++r) {
    EXPECT_TRUE(ranks[r]->collectives_work_at_wait());
    data.push_back(arenas[r].Allocate(DataType::kFloat32, {1}, MemoryKind::kActivation));
    data[r].f32()[0] = static_cast<float>(r + 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Ticket ticket,
                                 ranks[r]->BeginAllReduce(data[r], {0, 1}, ReduceOp::kSum));
    tickets.push_back(ticket);
  }
  EXPECT_EQ(data[0].f32()[0], 1.0f) << "all have begun, nobody has waited";
  EXPECT_EQ(data[1].f32()[0], 2.0f);
  std::thread other([&] { EXPECT_THAT(ranks[1]->Wait(tickets[1], kPatience), IsOk()); });
  EXPECT_THAT(ranks[0]->Wait(tickets[0], kPatience), IsOk());
  other.join();
  EXPECT_EQ(data[0].f32()[0], 3.0f);
  EXPECT_EQ(data[1].f32()[0], 3.0f);
}

// Mail that is never received, and charges of receives that are never waited for, go with the
// ranks.
TEST(InProcess, LeftoversAreFreed) {
  Threads({})(2, [&](Communicator& comm, Arena& arena) {
    for (int i = 0; i < 50; ++i) {
      ASSERT_THAT(comm.Send(TestTensor(arena, kSpec, i), 1 - comm.rank(), i), IsOk());
    }
    for (int i = 0; i < 20; ++i) ASSERT_THAT(Post(comm, arena, kSpec, 1 - comm.rank(), i), IsOk());
    EXPECT_EQ(arena.current(MemoryKind::kActivation), Bytes(20 * 16));
  });
}

TEST(SpscQueue, KeepsOrderAcrossBlocks) {
  // On the heap: gcc 12's address sanitizer places what is aligned to 64 bytes wrongly on its own
  // stack (gcc bug 110027).
  const auto queue = std::make_unique<SpscQueue<std::unique_ptr<int>>>();
  constexpr int kItems = 20000;
  std::thread producer([&] {
    for (int i = 0; i < kItems; ++i) queue->Push(std::make_unique<int>(i));
  });
  for (int i = 0; i < kItems - 5; ++i) {  // the rest goes with the queue
    while (queue->pushed() <= i) std::this_thread::yield();
    ASSERT_EQ(*queue->Pop(), i);
  }
  producer.join();
}

}  // namespace
}  // namespace pipelab
