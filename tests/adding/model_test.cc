// With docs/adding.md's line the catalogue has one more model; published_test.cc holds its count.
#include "gtest/gtest.h"
#include "models/zoo/published.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(AddingAModel, ItGoesByName) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelGraph graph, BuildPublished("gpt-example"));
  EXPECT_NEAR(static_cast<double>(graph.num_parameters()), 1.3e9, 0.05e9);
}

}  // namespace
}  // namespace pipelab
