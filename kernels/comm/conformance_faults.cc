// Conformance: wrong messages, limits, aborts, bad arguments.
#include <chrono>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/conformance.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr absl::Duration kShort = absl::Milliseconds(50);

const TensorSpec& Spec() {
  static const auto& spec = *new TensorSpec{DataType::kFloat32, {2, 3}};
  return spec;
}

// A receive and its wait: whichever of them fails, when the run may end in between.
absl::Status PostAndWait(Communicator& comm, Arena& arena, int from, uint64_t tag,
                         absl::Duration limit) {
  PIPELAB_ASSIGN_OR_RETURN(Ticket ticket, Post(comm, arena, Spec(), from, tag));
  return comm.Wait(ticket, limit).status();
}

// Rank 0 sends `sent` under `sent_tag`; rank 1 expects Spec() under tag 7 and gets an error that
// names both sides; rank 0 is told.
void ExpectMismatch(const RankRunner& run, const TensorSpec& sent, uint64_t sent_tag,
                    const std::string& what) {
  const auto error = StatusIs(
      absl::StatusCode::kInternal,
      AllOf(HasSubstr("rank 1 expects tag 7, float32[2, 3] from rank 0"), HasSubstr(what)));
  run(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 0) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket never, Post(comm, arena, Spec(), 1, 0));
      ASSERT_THAT(comm.Send(TestTensor(arena, sent, 1), 1, sent_tag), IsOk());
      const auto result = comm.Wait(never, kPatience);
      EXPECT_THAT(result, error);
      EXPECT_TRUE(IsFollowUp(result.status()));
    } else {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, Spec(), 0, 7));
      const auto result = comm.Wait(r, kPatience);
      EXPECT_THAT(result, error);
      EXPECT_FALSE(IsFollowUp(result.status()));
    }
  });
}

void WrongTag(const RankRunner& run) {
  ExpectMismatch(run, Spec(), 8, "which sent tag 8, float32[2, 3]");
}

void WrongShapeOrType(const RankRunner& run) {
  ExpectMismatch(run, {DataType::kFloat32, {3, 2}}, 7, "which sent tag 7, float32[3, 2]");
  ExpectMismatch(run, {DataType::kFloat32, {6}}, 7, "which sent tag 7, float32[6]");
  ExpectMismatch(run, {DataType::kInt32, {2, 3}}, 7, "which sent tag 7, int32[2, 3]");
}

// The rank whose limit is over names what it waited for; the others get the same error, marked.
void LimitOfAReceive(const RankRunner& run) {
  run(3, [&](Communicator& comm, Arena& arena) {
    const absl::Duration limit = comm.rank() == 1 ? kShort : kPatience;
    const absl::Status status = PostAndWait(comm, arena, (comm.rank() + 1) % 3, 42, limit);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 "rank 1 waited 50ms for tag 42 from rank 2"));
    EXPECT_EQ(IsFollowUp(status), comm.rank() != 1);
  });
}

void LimitOfACollective(const RankRunner& run) {
  const std::vector<int> group = {0, 1, 2};
  run(3, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 1) return;  // never comes
    Tensor x = TestTensor(arena, Spec(), 0);
    const auto status = comm.AllReduce(x, group, comm.rank() == 0 ? kShort : kPatience);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 AllOf(HasSubstr("rank 0 waited 50ms for rank 1"),
                                       HasSubstr("{0, 1, 2}"))));
    EXPECT_EQ(IsFollowUp(status), comm.rank() != 0);
  });
}

using Call = std::function<absl::Status(Communicator&, Arena&)>;

// Every call that can block, called so that it does.
std::vector<std::pair<std::string, Call>> BlockingCalls() {
  static const auto& group = *new std::vector<int>{0, 1, 2};
  return {{"Wait", [](Communicator& comm,
                      Arena& arena) { return PostAndWait(comm, arena, 0, 0, kPatience); }},
          {"AllReduce",
           [](Communicator& comm, Arena& arena) {
             return comm.AllReduce(TestTensor(arena, Spec(), 0), group, kPatience);
           }},
          {"ReduceScatter",
           [](Communicator& comm, Arena& arena) {
             const Tensor part = TestTensor(arena, {DataType::kFloat32, {2}}, 0);
             return comm.ReduceScatter(TestTensor(arena, Spec(), 0), part, group, kPatience);
           }},
          {"AllGather",
           [](Communicator& comm, Arena& arena) {
             const Tensor part = TestTensor(arena, {DataType::kFloat32, {2}}, 0);
             return comm.AllGather(part, TestTensor(arena, Spec(), 0), group, kPatience);
           }},
          {"AllToAll",
           [](Communicator& comm, Arena& arena) {
             const std::vector<int64_t> parts = {2, 2, 2};
             return comm.AllToAll(TestTensor(arena, Spec(), 0), parts, TestTensor(arena, Spec(), 0),
                                  parts, group, kPatience);
           }},
          {"Broadcast", [](Communicator& comm, Arena& arena) {
             return comm.Broadcast(TestTensor(arena, Spec(), 0), 0, group, kPatience);
           }}};
}

// Rank 0 stays away and aborts while the others block; then everything returns the same error.
void AbortFreesEveryCall(const RankRunner& run) {
  for (const auto& [name, call] : BlockingCalls()) {
    SCOPED_TRACE(name);
    const Call& blocking = call;
    run(3, [&](Communicator& comm, Arena& arena) {
      if (comm.rank() == 0) {
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        comm.Abort(absl::DataLossError("disk 7 is gone"));
      } else {
        EXPECT_THAT(blocking(comm, arena), StatusIs(absl::StatusCode::kDataLoss, "disk 7 is gone"));
      }
      const auto later = comm.Send(TestTensor(arena, Spec(), 0), 1, 0).status();
      EXPECT_THAT(later, StatusIs(absl::StatusCode::kDataLoss, "disk 7 is gone"));
      EXPECT_TRUE(IsFollowUp(later));
      EXPECT_THAT(Post(comm, arena, Spec(), 1, 0),
                  StatusIs(absl::StatusCode::kDataLoss, "disk 7 is gone"));
      for (const auto& other : BlockingCalls()) {
        EXPECT_THAT(other.second(comm, arena),
                    StatusIs(absl::StatusCode::kDataLoss, "disk 7 is gone"))
            << other.first;
      }
    });
  }
}

// A rank that blocks is freed by another thread of its own.
void AbortFromAnotherThread(const RankRunner& run) {
  run(2, [&](Communicator& comm, Arena& arena) {
    if (comm.rank() == 0) return;
    std::thread killer([&comm] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      comm.Abort(absl::CancelledError("stop"));
    });
    EXPECT_THAT(PostAndWait(comm, arena, 0, 0, kPatience),
                StatusIs(absl::StatusCode::kCancelled, "stop"));
    killer.join();
  });
}

void FirstAbortWins(const RankRunner& run) {
  run(1, [&](Communicator& comm, Arena& arena) {
    comm.Abort(absl::UnknownError("first"));
    comm.Abort(absl::InternalError("second"));
    EXPECT_THAT(Post(comm, arena, Spec(), 0, 0), StatusIs(absl::StatusCode::kUnknown, "first"));
  });
}

// A part of another size than its receiver waits for, of a group whose other parts fit.
void WrongPartOfAnAllToAll(const RankRunner& run) {
  run(2, [&](Communicator& comm, Arena& arena) {
    const bool sends = comm.rank() == 0;
    const std::vector<int64_t> to = sends ? std::vector<int64_t>{0, 2} : std::vector<int64_t>{1, 0};
    const std::vector<int64_t> from =
        sends ? std::vector<int64_t>{0, 1} : std::vector<int64_t>{1, 0};
    const std::vector<int> group = {0, 1};
    const Tensor data = TestTensor(arena, Spec(), 0), result = TestTensor(arena, Spec(), 0);
    absl::Status status = comm.AllToAll(data, to, result, from, group, kPatience);
    const auto error =
        StatusIs(absl::StatusCode::kDataLoss, "rank 0 sent 8 bytes to a collective that takes 4");
    // The sender may have what it waits for before it is told.
    if (sends && status.ok()) status = comm.AllReduce(data, group, kPatience);
    EXPECT_THAT(status, error);
    EXPECT_EQ(IsFollowUp(status), sends);
  });
}

void BadArgumentsEndNothing(const RankRunner& run) {
  const auto bad = [](const std::string& what) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what));
  };
  run(2, [&](Communicator& comm, Arena& arena) {
    const Tensor x = TestTensor(arena, Spec(), 0);
    const int me = comm.rank(), other = 1 - me;
    EXPECT_THAT(comm.Send(x, 2, 0), bad("rank 2 of 2"));
    EXPECT_THAT(Post(comm, arena, Spec(), -1, 0), bad("rank -1 of 2"));
    EXPECT_THAT(comm.Wait(12345, kShort), bad("not under way"));
    EXPECT_THAT(comm.AllReduce(x, {1, 0}, kShort), bad("group {1, 0} is not ascending"));
    EXPECT_THAT(comm.AllReduce(x, {0, 2}, kShort), bad("group {0, 2} is not ascending"));
    EXPECT_THAT(comm.AllReduce(x, {other}, kShort), bad("is not in group"));
    EXPECT_THAT(comm.Broadcast(x, other, {me}, kShort), bad("root"));
    EXPECT_THAT(comm.ReduceScatter(x, x, {0, 1}, kShort), bad("are not 2 parts of"));
    EXPECT_THAT(comm.AllGather(x, x, {0, 1}, kShort), bad("are not 2 parts of"));
    EXPECT_THAT(comm.AllToAll(x, {3, 4}, x, {3, 3}, {0, 1}, kShort), bad("within 6 and 6"));
    EXPECT_THAT(comm.AllToAll(x, {3, 3}, x, {7, -1}, {0, 1}, kShort), bad("within 6 and 6"));
    EXPECT_THAT(comm.AllToAll(x, {6}, x, {3, 3}, {0, 1}, kShort), bad("a group of 2"));
    EXPECT_THAT(comm.AllToAll(x, {2, 2}, x, {3, 3}, {0, 1}, kShort), bad("sends itself 2"));

    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, Spec(), other, 3));
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(x, other, 3));
    EXPECT_THAT(comm.Wait(r, kPatience), IsOk());
    EXPECT_THAT(comm.Wait(s, kPatience), IsOk());
    EXPECT_THAT(comm.Wait(r, kShort), bad("not under way")) << "a ticket is waited for once";
  });
}

}  // namespace

std::vector<ConformanceCase> FaultCases() {
  return {{"WrongTag", WrongTag},
          {"WrongShapeOrType", WrongShapeOrType},
          {"LimitOfAReceive", LimitOfAReceive},
          {"LimitOfACollective", LimitOfACollective},
          {"AbortFreesEveryCall", AbortFreesEveryCall},
          {"AbortFromAnotherThread", AbortFromAnotherThread},
          {"FirstAbortWins", FirstAbortWins},
          {"WrongPartOfAnAllToAll", WrongPartOfAnAllToAll},
          {"BadArgumentsEndNothing", BadArgumentsEndNothing}};
}

}  // namespace pipelab
