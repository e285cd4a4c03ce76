// Damaged inputs from one seed, and what is right and wrong by hand.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/edge_list.h"
#include "tools/base/fuzz_mutations.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(EdgeListFuzz, Files) {
  RunMutations({"# SNAP\n0\t1\n1\t2\n2 0\n7,3\n", "0 1 0.5\r\n\n% more\r\n  3   3\r\n12 4\r\n",
                "268435455 0\n", "4294967296 1\n-1 2\n"},
               20000);
}

TEST(EdgeList, ReadsBothWaysOnce) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const CsrGraph graph,
                               ParseEdgeList("# a\n0 1\n1\t0\n2,1\n1 1\n", "--graph=g"));
  EXPECT_EQ(graph.num_vertices(), 3);
  EXPECT_EQ(graph.num_edges(), 2);
  EXPECT_THAT(graph.neighbours(1), testing::ElementsAre(0, 2));
}

TEST(EdgeList, ErrorsNameFileAndLine) {
  const auto error = [](absl::string_view text) {
    return std::string(ParseEdgeList(text, "--graph=g").status().message());
  };
  EXPECT_EQ(error("0 1\n2 x\n"),
            "--graph=g: line 2: \"x\": must be a vertex's number, 0 to 268435455");
  EXPECT_EQ(error("0 1\n\n2\n"), "--graph=g: line 3: must have two vertices");
  EXPECT_EQ(error("# nothing\n"), "--graph=g: has no edge");
  EXPECT_EQ(error("0 5000000\n"),
            "--graph=g: vertex 5000000: must be below 1088, 64 for each of the 1 edges and 1024; "
            "number vertices from 0");
}

}  // namespace
}  // namespace pipelab
