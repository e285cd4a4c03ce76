// Copies of a graph network's training in the processes of mpirun, each with its own workers:
// losses have the bits of copies in one process.
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "kernels/comm/mpi_test_main.h"
#include "kernels/comm/transport.h"
#include "models/data/graph_store.h"
#include "pipelines/graphs/graph_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

ProcessGroup& Processes() { return *TestTransport().processes(); }

TEST(MpiGraphTraining, CopiesHaveTheBitsOfOneProcess) {
  GeneratedGraph shape;
  shape.degrees_V = PowerLawDegrees(600, 1.7, 2, 60, 1);
  shape.classes = 5;
  const GraphData data = GenerateGraph(shape, 2);
  GraphTrainingOptions options;
  options.sizes.copies = Processes().size();
  options.batches.batch = 64;
  options.batches.fanouts = {5, 3};
  options.model.hidden = 16;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<double> serial,
                               SerialGraphLosses(&data, options, 2));
  options.transport = &TestTransport();
  // No worker, which has no queue; and queues of 1 to 8.
  for (int i = 0; i <= 3 * 8; ++i) {
    options.sizes.workers = i == 0 ? 0 : 1 << (i - 1) / 8;
    options.sizes.depth = i == 0 ? 1 : (i - 1) % 8 + 1;
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training, GraphTraining::Create(&data, options));
    std::vector<std::vector<double>> own(2);
    for (std::vector<double>& losses : own) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(GraphEpoch epoch, training->RunEpoch());
      losses = std::move(epoch.losses);
    }
    // A process has its copy's share of the loss; the shares are added in the order of copies.
    std::string text;
    for (const auto& losses : own) {
      for (double loss : losses) absl::StrAppendFormat(&text, "%a ", loss);
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto all, Processes().ToAll(text, absl::Minutes(1)));
    std::vector<double> sums(serial.size());
    for (const std::string& of_process : all) {
      const char* at = of_process.c_str();
      for (double& sum : sums) {
        char* end = nullptr;
        sum += std::strtod(at, &end);
        at = end;
      }
    }
    EXPECT_EQ(sums, serial) << options.sizes.workers << " workers, depth " << options.sizes.depth;
  }
}

}  // namespace
}  // namespace pipelab
