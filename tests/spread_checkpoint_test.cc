// Checkpoints over processes that are threads (mpi_training_test has real ones).
#include "gtest/gtest.h"
#include "kernels/comm/thread_processes.h"
#include "tests/spread_checkpoints.h"

namespace pipelab {
namespace {

TEST(SpreadCheckpoint, OverThreads) {
  for (const int processes : {2, 4}) {
    for (const SpreadCheckpointCase& c : SpreadCheckpointCases()) {
      RunAsProcesses(processes, [&](Transport& transport) {
        SCOPED_TRACE(testing::Message() << c.name << " in " << processes << " processes");
        c.run(transport);
      });
    }
  }
}

}  // namespace
}  // namespace pipelab
