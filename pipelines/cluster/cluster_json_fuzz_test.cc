// Damaged inputs from one seed: none may crash, and none that is read may be written differently.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/cluster_files.h"
#include "pipelines/cluster/simumax_sample.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(ClusterJsonFuzz, Mutations) {
  std::vector<std::string> samples = {kSimumaxSample};
  for (const EmbeddedText& file : ClusterFiles()) samples.emplace_back(file.text);
  RunMutations(samples, 5000);
}

}  // namespace
}  // namespace pipelab
