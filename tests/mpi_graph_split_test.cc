// Graph networks split over vertices, whose members are spread over the processes of mpirun.
#include "gtest/gtest.h"
#include "kernels/comm/mpi_test_main.h"
#include "kernels/comm/transport.h"
#include "tests/graph_split_training.h"

namespace pipelab {
namespace {

TEST(MpiGraphSplit, ActivationsAndLossesAreOneDevices) {
  for (int members : {2, 4}) {
    if (members % TestTransport().processes()->size() != 0) continue;
    for (GraphConvKind kind : {GraphConvKind::kSage, GraphConvKind::kGat}) {
      SplitTrainingCase c;
      c.kind = kind;
      c.members = members;
      ExpectSplitAsOneDevice(&TestTransport(), c);
    }
  }
}

}  // namespace
}  // namespace pipelab
