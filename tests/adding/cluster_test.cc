// docs/adding.md's cluster, read as those of pipelines/cluster/specs are.
#include "gtest/gtest.h"
#include "pipelines/cluster/cluster_json.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(AddingACluster, ReadsBack) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string text, ReadFile("tests/adding/ours.json"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, ParseCluster(text, "ours.json"));
  EXPECT_EQ(cluster.name, "ours");  // which its file must be called
  EXPECT_EQ(cluster.max_devices(), 4);
  const std::string again = ClusterToJson(cluster);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec read, ParseCluster(again, "again"));
  EXPECT_EQ(ClusterToJson(read), again);
}

}  // namespace
}  // namespace pipelab
