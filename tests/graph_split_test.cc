// Graph networks split over vertices, in one process.
#include "gtest/gtest.h"
#include "kernels/comm/transport.h"
#include "tests/graph_split_training.h"

namespace pipelab {
namespace {

class GraphSplit : public testing::TestWithParam<GraphConvKind> {};

TEST_P(GraphSplit, ActivationsAndLossesAreOneDevices) {
  for (int members : {1, 2, 4, 8}) {
    const auto transport = MakeInProcessTransport({});
    SplitTrainingCase c;
    c.kind = GetParam();
    c.members = members;
    c.workers = members / 2;
    ExpectSplitAsOneDevice(transport.get(), c);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, GraphSplit,
                         testing::Values(GraphConvKind::kSage, GraphConvKind::kGin,
                                         GraphConvKind::kGat));

// Eight members and three targets: some members have no row in the last layers.
TEST_P(GraphSplit, MembersWithoutTargets) {
  const auto transport = MakeInProcessTransport({});
  SplitTrainingCase c;
  c.kind = GetParam();
  c.members = 8;
  c.batch = 3;
  ExpectSplitAsOneDevice(transport.get(), c);
}

TEST(GraphSplitCpu, ActivationsAndLossesAreOneDevices) {
  for (int members : {2, 4, 8}) {
    const auto transport = MakeInProcessTransport({});
    SplitTrainingCase c;
    c.members = members;
    c.cpu = true;
    if (members == 8) c.batch = 3;
    ExpectSplitAsOneDevice(transport.get(), c);
  }
}

}  // namespace
}  // namespace pipelab
