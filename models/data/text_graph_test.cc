// The real graphs' tests are skipped where the packages are not in the cache (docs/data.md).
#include "models/data/text_graph.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/data/theorem_graph.h"
#include "models/data/wordnet_graph.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kBook[] =
    "$( a comment $) $c |- -> ph $.\n"
    "$(\n#*#*#*#\n  First part\n#*#*#*#\n words $)\n"
    "wph $f wff ph $.\n"
    "ax $a |- ph $.\n"
    "${ h $e |- ph $. t1 $p |- ph -> ph $= ( ax t9 ) ABC $. $}\n"
    "$(\n#*#*#*#\nSecond part\n#*#*#*#\n$)\n"
    "t2 $p |- ph $= ax t1 ax $( in a proof $) ax $.\n";

TEST(TheoremGraph, ReadsStatementsUsesAndParts) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextGraph text, ParseMetamath(kBook, "book"));
  EXPECT_EQ(text.graph.num_vertices(), 3);
  EXPECT_EQ(text.graph.num_edges(), 3);
  EXPECT_THAT(text.classes, ElementsAre("First part", "Second part"));
  EXPECT_THAT(text.labels_V, ElementsAre(0, 0, 1));
  EXPECT_THAT(text.words, ElementsAre("|-", "ph", "->"));
  EXPECT_THAT(text.words_V[1], ElementsAre(0, 1, 2, 1));
}

TEST(TheoremGraph, FaultsNameTheByte) {
  EXPECT_THAT(ParseMetamath("ax $a |- ph", "f").status().message(),
              HasSubstr("f: byte 11: a statement has no $."));
  EXPECT_THAT(ParseMetamath("$( x", "f").status().message(), HasSubstr("a comment has no $)"));
  EXPECT_THAT(ParseMetamath("a $a x $. a $a x $.", "f").status().message(),
              HasSubstr("statement a comes a second time"));
  EXPECT_THAT(ParseMetamath("", "f").status().message(), HasSubstr("no statements"));
}

TEST(WordNetGraph, ReadsSynsetsAndPointers) {
  const WordNetFiles files = {
      "  1 licence\n00000010 03 n 02 dog 0 hound 1 002 @ 00000050 n 0000 + 00000007 v 0101 | a "
      "Dog\n"
      "00000050 05 n 01 animal 0 000 | a living thing; \"a dog\"\n",
      "00000007 30 v 01 follow 0 001 + 00000010 n 0101 01 + 02 00 | to dog\n", "", ""};
  PIPELAB_ASSERT_OK_AND_ASSIGN(const TextGraph text, ParseWordNet(files));
  EXPECT_EQ(text.graph.num_vertices(), 3);
  EXPECT_EQ(text.graph.num_edges(), 2);
  EXPECT_THAT(text.classes, ElementsAre("03", "05", "30"));
  EXPECT_THAT(text.words_V[0], ElementsAre(0, 1));
  EXPECT_EQ(text.words[1], "dog");
  EXPECT_THAT(ParseWordNet({"1 2 n 01 a 0 001 @ 2 n 0 | x", "", "", ""}).status().message(),
              HasSubstr("data.noun: no synset at 2"));
  EXPECT_THAT(ParseWordNet({"1 2 n ff a 0 001 | x", "", "", ""}).status().message(),
              HasSubstr("data.noun: line 1: 7 fields are too few for 255 words"));
}

// What the graph has, and what its baselines reach.
struct Facts {
  int32_t vertices;
  int64_t edges, largest_degree, isolated;
  size_t classes, words;
  double same_label, largest_class, neighbours, naive_bayes;  // shares
};

void Check(const absl::StatusOr<TextGraph>& text, const Facts& facts) {
  ASSERT_THAT(text, IsOk());
  const CsrGraph& graph = text->graph;
  EXPECT_EQ(graph.num_vertices(), facts.vertices);
  EXPECT_EQ(graph.num_edges(), facts.edges);
  int64_t largest = 0, isolated = 0;
  for (int32_t v = 0; v < graph.num_vertices(); ++v) {
    largest = std::max(largest, graph.degree(v));
    isolated += graph.degree(v) == 0;
  }
  EXPECT_EQ(largest, facts.largest_degree);
  EXPECT_EQ(isolated, facts.isolated);
  EXPECT_EQ(text->classes.size(), facts.classes);
  EXPECT_EQ(text->words.size(), facts.words);
  const GraphData data = ToGraphData(*text, 8);
  EXPECT_NEAR(SameLabelShare(data), facts.same_label, 0.0005);
  // The accuracies are of the fifth that seed 1 holds out.
  EXPECT_NEAR(LargestClassAccuracy(data), facts.largest_class, 0.001);
  EXPECT_NEAR(NeighbourAccuracy(data), facts.neighbours, 0.001);
  EXPECT_NEAR(NaiveBayesAccuracy(*text, data), facts.naive_bayes, 0.001);
}

TEST(TheoremGraph, RealBook) {
  const auto dir = FindDebianPackage(MetamathPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) GTEST_SKIP() << dir.status().message();
  ASSERT_THAT(dir, IsOk());
  Check(LoadTheoremGraph(*dir),
        {40426, 1213085, 28554, 225, 130, 1375, 0.116, 0.083, 0.256, 0.638});
}

TEST(WordNetGraph, RealSynsets) {
  const auto dir = FindDebianPackage(WordNetPackage(), DefaultDataCache());
  if (absl::IsNotFound(dir.status())) GTEST_SKIP() << dir.status().message();
  ASSERT_THAT(dir, IsOk());
  Check(LoadWordNetGraph(*dir), {117659, 183789, 674, 1009, 45, 53946, 0.709, 0.12, 0.699, 0.659});
}

}  // namespace
}  // namespace pipelab
