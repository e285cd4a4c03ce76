// Conformance: messages.
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/conformance.h"
#include "kernels/tensor/host_values.h"
#include "tools/base/rng.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TensorSpec FloatSpec(Shape shape) { return {DataType::kFloat32, std::move(shape)}; }

// Messages of a pair arrive in the order of their sends, whatever the order of the waits.
void OrderOfAPair(const RankRunner& run) {
  const auto spec = [](int i) { return FloatSpec({1 + i % 5, 3}); };
  run(2, [&](Communicator& comm, Arena& arena) {
    constexpr int kMessages = 200;
    std::vector<Ticket> tickets;
    for (int i = 0; i < kMessages; ++i) {
      absl::StatusOr<Ticket> t = comm.rank() == 0
                                     ? comm.Send(TestTensor(arena, spec(i), i), 1, 1000 + i)
                                     : Post(comm, arena, spec(i), 0, 1000 + i);
      ASSERT_THAT(t, IsOk());
      tickets.push_back(*t);
    }
    for (int i = kMessages - 1; i >= 0; --i) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(tickets[i], kPatience));
      if (comm.rank() == 0) {
        EXPECT_TRUE(x.empty());
      } else {
        EXPECT_EQ(x.shape(), spec(i).shape);
        EXPECT_EQ(FirstDifference(x, i), -1) << "message " << i;
      }
    }
  });
}

// A receive says when its message is there, and not before; who waits then does not wait.
void ArrivalIsSeenWithoutWaiting(const RankRunner& run) {
  const TensorSpec spec = FloatSpec({1000});
  run(2, [&](Communicator& comm, Arena& arena) {
    if (comm.name() == "nccl") return;  // does not know
    const int peer = 1 - comm.rank();
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket first, Post(comm, arena, spec, peer, 1));
    if (comm.rank() == 0) {  // not before it is asked
      ASSERT_THAT(comm.Wait(first, kPatience), IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, spec, 2), peer, 1));
      ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
      return;
    }
    for (int look = 0; look < 100; ++look) EXPECT_FALSE(comm.Arrived(first));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, spec, 3), peer, 1));
    EXPECT_FALSE(comm.Arrived(s)) << "nothing arrives for a send";
    const absl::Time limit = absl::Now() + kPatience;
    while (!comm.Arrived(first) && absl::Now() < limit) absl::SleepFor(absl::Microseconds(50));
    EXPECT_TRUE(comm.Arrived(first));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(first, absl::ZeroDuration()));
    EXPECT_EQ(FirstDifference(x, 2), -1);
    ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
  });
}

// Every pair in both directions at once, many in flight, in several rounds.
void AllPairsManyInFlight(const RankRunner& run) {
  run(4, [&](Communicator& comm, Arena& arena) {
    const auto name = [](int from, int to, int i) { return from * 10000 + to * 1000 + i; };
    for (int round = 0; round < 3; ++round) {
      struct Expected {
        Ticket ticket;
        int64_t name;
      };
      std::vector<Expected> receives;
      std::vector<Ticket> sends;
      for (int i = 0; i < 40; ++i) {
        for (int peer = 0; peer < comm.size(); ++peer) {
          const int64_t in = name(peer, comm.rank(), i), out = name(comm.rank(), peer, i);
          PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, FloatSpec({i}), peer, in));
          receives.push_back({r, in});
          PIPELAB_ASSERT_OK_AND_ASSIGN(
              Ticket s, comm.Send(TestTensor(arena, FloatSpec({i}), out), peer, out));
          sends.push_back(s);
        }
      }
      for (const Expected& e : receives) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(e.ticket, kPatience));
        ASSERT_EQ(FirstDifference(x, e.name), -1) << "message " << e.name;
      }
      for (Ticket s : sends) ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
    }
    EXPECT_EQ(arena.current(MemoryKind::kActivation), Bytes(0)) << "everything is handed over";
  });
}

void AllSizesAndTypes(const RankRunner& run) {
  std::vector<TensorSpec> specs;
  for (DataType type : {DataType::kFloat32, DataType::kInt32, DataType::kBFloat16}) {
    for (const Shape& shape : std::vector<Shape>{
             {}, {0}, {0, 7}, {1}, {3, 5}, {2, 3, 4, 5}, {1, 1, 1, 1, 6}, {1 << 20}}) {
      specs.push_back({type, shape});
    }
  }
  run(2, [&](Communicator& comm, Arena& arena) {
    const int peer = 1 - comm.rank();
    for (size_t i = 0; i < specs.size(); ++i) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, specs[i], peer, i));
      PIPELAB_ASSERT_OK_AND_ASSIGN(
          Ticket s, comm.Send(TestTensor(arena, specs[i], 10 * i + comm.rank()), peer, i));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(r, kPatience));
      EXPECT_FALSE(x.empty()) << "a tensor without elements is not the absence of one";
      EXPECT_EQ(x.type(), specs[i].type);
      EXPECT_EQ(x.shape(), specs[i].shape);
      EXPECT_EQ(FirstDifference(x, 10 * i + peer), -1) << ShapeToString(specs[i].shape);
      ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
    }
  });
}

void RowsOfATensor(const RankRunner& run) {
  run(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 0) {
      const Tensor whole = TestTensor(arena, {DataType::kInt32, {6, 4}}, 5);
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket a, comm.Send(whole.Rows(0, 2), 1, 1));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket b, comm.Send(whole.Rows(2, 6), 1, 2));
      ASSERT_THAT(comm.Wait(a, kPatience), IsOk());
      ASSERT_THAT(comm.Wait(b, kPatience), IsOk());
      return;
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket a, Post(comm, arena, {DataType::kInt32, {2, 4}}, 0, 1));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket b, Post(comm, arena, {DataType::kInt32, {4, 4}}, 0, 2));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor lower, comm.Wait(b, kPatience));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor upper, comm.Wait(a, kPatience));
    const std::vector<int32_t> first = HostIds(upper), rest = HostIds(lower);
    for (int i = 0; i < 24; ++i) {
      EXPECT_EQ(i < 8 ? first[i] : rest[i - 8], TestValue(5, i)) << i;
    }
  });
}

void SendToItself(const RankRunner& run) {
  run(2, [&](Communicator& comm, Arena& arena) {
    const int me = comm.rank();
    for (int i = 0; i < 3; ++i) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, FloatSpec({9}), me, i));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s,
                                   comm.Send(TestTensor(arena, FloatSpec({9}), me + i), me, i));
      ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(r, kPatience));
      EXPECT_EQ(FirstDifference(x, me + i), -1);
    }
  });
}

// The receiver pays from the post to the last use; the sender until the message has gone.
void ChargesFollowTheTensor(const RankRunner& run) {
  run(2, [&](Communicator& comm, Arena& arena) {
    const auto held = [&] { return arena.current(MemoryKind::kActivation); };
    if (comm.rank() == 0) {
      Tensor x = TestTensor(arena, FloatSpec({25}), 1);
      EXPECT_EQ(held(), Bytes(100));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(std::move(x), 1, 0));
      ASSERT_THAT(comm.Wait(s, kPatience), IsOk());
      EXPECT_EQ(held(), Bytes(0));
    } else {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, FloatSpec({25}), 0, 0));
      EXPECT_EQ(held(), Bytes(100));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(r, kPatience));
      EXPECT_EQ(held(), Bytes(100)) << "not counted twice";
      x = Tensor();
      EXPECT_EQ(held(), Bytes(0));
    }
    EXPECT_EQ(arena.peak(MemoryKind::kActivation), Bytes(100));
  });
}

// Eight ranks exchange messages of random sizes with random peers, with collectives between.
void Stress(const RankRunner& run) {
  run(8, [&](Communicator& comm, Arena& arena) {
    const CounterRng rng(11, "stress");
    std::vector<int> everybody;
    for (int r = 0; r < comm.size(); ++r) everybody.push_back(r);
    for (uint64_t round = 0; round < 150; ++round) {
      // The shift says who sends to whom in this round; all ranks draw the same.
      const int shift = rng.Below(3 * round, comm.size());
      const int to = (comm.rank() + shift) % comm.size();
      const int from = (comm.rank() - shift + comm.size()) % comm.size();
      const int count = 1 + rng.Below(3 * round + 1, 8);
      const Shape shape = {static_cast<int64_t>(rng.Below(3 * round + 2, 300))};
      std::vector<Ticket> sends, receives;
      for (int i = 0; i < count; ++i) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, FloatSpec(shape), from, i));
        receives.push_back(r);
        PIPELAB_ASSERT_OK_AND_ASSIGN(
            Ticket s, comm.Send(TestTensor(arena, FloatSpec(shape), comm.rank() + i), to, i));
        sends.push_back(s);
      }
      for (int i = 0; i < count; ++i) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(receives[i], kPatience));
        ASSERT_EQ(FirstDifference(x, from + i), -1);
        ASSERT_THAT(comm.Wait(sends[i], kPatience), IsOk());
      }
      if (round % 10 != 0) continue;
      Tensor sum = TestTensor(arena, FloatSpec(shape), comm.rank());
      ASSERT_THAT(comm.AllReduce(sum, everybody, kPatience), IsOk());
      const std::vector<float> sums = HostValues(sum);
      for (int64_t i = 0; i < sum.size(); ++i) {
        int64_t want = 0;
        for (int r : everybody) want += TestValue(r, i);
        ASSERT_EQ(sums[i], want) << i;
      }
    }
  });
}

}  // namespace

std::vector<ConformanceCase> MessageCases() {
  return {{"OrderOfAPair", OrderOfAPair},
          {"ArrivalIsSeenWithoutWaiting", ArrivalIsSeenWithoutWaiting},
          {"AllPairsManyInFlight", AllPairsManyInFlight},
          {"AllSizesAndTypes", AllSizesAndTypes},
          {"RowsOfATensor", RowsOfATensor},
          {"SendToItself", SendToItself},
          {"ChargesFollowTheTensor", ChargesFollowTheTensor},
          {"Stress", Stress}};
}

}  // namespace pipelab
