// The MPI communicator under mpirun: conformance with devices laid out over the processes in
// several ways, and what only several processes show.
#include "kernels/comm/mpi.h"

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/comm/communicator.h"
#include "kernels/comm/conformance.h"
#include "kernels/comm/mpi_test_main.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using Layout = std::function<int(int device, int size, int processes)>;

// Devices as `layout` spreads them; those of one process are threads of it.
RankRunner Spread(const Layout& layout) {
  return [layout](int size, const RankBody& body) {
    Transport& transport = TestTransport();
    std::vector<int> process_of;
    for (int d = 0; d < size; ++d) {
      process_of.push_back(layout(d, size, transport.processes()->size()));
    }
    auto own = MakeMpiCommunicators(&transport, process_of);
    std::deque<Arena> arenas(own.size());
    std::vector<std::thread> threads;
    for (size_t i = 1; i < own.size(); ++i) {
      threads.emplace_back([&, i] { body(*own[i], arenas[i]); });
    }
    if (!own.empty()) body(*own[0], arenas[0]);
    for (std::thread& t : threads) t.join();
    // What an abort has left may still be on its way to others.
    EXPECT_THAT(transport.processes()->Meet(2 * kPatience), IsOk());
    own.clear();  // receives that nobody waited for still have charges
  };
}

int InTurn(int device, int, int processes) { return device % processes; }
int InBlocks(int device, int size, int processes) {
  return device / ((size + processes - 1) / processes);
}
int OnTwo(int device, int, int) { return device % 2; }

struct MpiParam {
  ConformanceCase conformance;
  std::string name;
  Layout layout;
};

class MpiConformance : public testing::TestWithParam<MpiParam> {};

TEST_P(MpiConformance, Holds) { GetParam().conformance.run(Spread(GetParam().layout)); }

std::vector<MpiParam> MpiParams() {
  std::vector<MpiParam> params;
  for (const ConformanceCase& c : ConformanceCases()) {
    params.push_back({c, "InTurn", InTurn});
    params.push_back({c, "InBlocks", InBlocks});
    params.push_back({c, "OnTwo", OnTwo});
  }
  return params;
}

INSTANTIATE_TEST_SUITE_P(All, MpiConformance, testing::ValuesIn(MpiParams()),
                         [](const testing::TestParamInfo<MpiParam>& info) {
                           return info.param.conformance.name + info.param.name;
                         });

TEST(Mpi, DevicesMustDivideAmongProcesses) {
  EXPECT_THAT(TestTransport().Connect(6),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("4 processes cannot share 6 devices equally")));
  PIPELAB_ASSERT_OK_AND_ASSIGN(auto own, TestTransport().Connect(8));
  ASSERT_EQ(own.size(), 2u);
  const int process = TestTransport().processes()->rank();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(own[i]->rank(), 2 * process + i);
    EXPECT_EQ(own[i]->size(), 8);
    EXPECT_EQ(own[i]->name(), "mpi");
  }
  EXPECT_THAT(TestTransport().processes()->Meet(kPatience), IsOk());
}

TEST(Mpi, MembersThatDisagreeAreNamed) {
  Spread(InTurn)(3, [&](Communicator& comm, Arena& arena) {
    const Tensor x = TestTensor(arena, {DataType::kFloat32, {comm.rank() == 2 ? 5 : 4}}, 0);
    EXPECT_THAT(comm.AllReduce(x, {0, 1, 2}, kPatience),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("calls all-reduce with 4 float32"),
                               HasSubstr("rank 2 calls all-reduce with 5 float32"))));
  });
  Spread(InTurn)(2, [&](Communicator& comm, Arena& arena) {
    const Tensor x = TestTensor(arena, {DataType::kFloat32, {4}}, 0);
    EXPECT_THAT(comm.Broadcast(x, comm.rank(), {0, 1}, kPatience),
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr("rank 0 calls broadcast from rank 0"),
                               HasSubstr("rank 1 calls broadcast from rank 1"))));
  });
}

// Bytes move while their sender computes: the receiver has them long before the sender comes back.
TEST(Mpi, MovesWhileTheSenderIsBusy) {
  const TensorSpec spec{DataType::kFloat32, {1 << 20}};
  Spread(InTurn)(2, [&](Communicator& comm, Arena& arena) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    if (comm.rank() == 0) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket s, comm.Send(TestTensor(arena, spec, 3), 1, 9));
      std::this_thread::sleep_for(std::chrono::seconds(2));
      EXPECT_THAT(comm.Wait(s, kPatience), IsOk());
    } else {
      PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, spec, 0, 9));
      PIPELAB_ASSERT_OK_AND_ASSIGN(Tensor x, comm.Wait(r, kPatience));
      EXPECT_LT(Clock::now() - begin, std::chrono::milliseconds(1900));
      EXPECT_EQ(FirstDifference(x, 3), -1);
    }
  });
}

// The others hear where a device was when its wait failed.
TEST(Mpi, AnErrorSaysWhereItsDeviceWas) {
  Spread(InTurn)(3, [&](Communicator& comm, Arena& arena) {
    comm.SetWhereabouts([&] { return comm.rank() == 1 ? "device 1 is in 1F3" : "elsewhere"; });
    const TensorSpec spec{DataType::kFloat32, {4}};
    PIPELAB_ASSERT_OK_AND_ASSIGN(Ticket r, Post(comm, arena, spec, (comm.rank() + 1) % 3, 7));
    const absl::Duration limit = comm.rank() == 1 ? absl::Milliseconds(50) : kPatience;
    const absl::Status status = comm.Wait(r, limit).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded,
                                 comm.rank() == 1 ? "rank 1 waited 50ms for tag 7 from rank 2"
                                                  : "rank 1 waited 50ms for tag 7 from rank 2; "
                                                    "device 1 is in 1F3"));
    comm.SetWhereabouts(nullptr);
  });
}

}  // namespace
}  // namespace pipelab
