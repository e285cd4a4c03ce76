#include "experiments/vocabulary/vocabulary_table.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;

// Every system on every number of GPUs, with the fewest words.
TEST(VocabularyTable, HasEveryCell) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(VocabularyPaper paper, PublishedVocabulary());
  EXPECT_EQ(paper.cells.size(), 116u + 46u + 40u + 2 * 5u);
  paper.cells.erase(std::remove_if(paper.cells.begin(), paper.cells.end(),
                                   [](const PublishedVocabularyCell& c) {
                                     return c.vocabulary != 32000 || c.run.tokens != 2048;
                                   }),
                    paper.cells.end());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto logs, SimulateLogs(paper, cluster));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<VocabularyCell> cells,
                               SimulateCells(paper, logs, cluster));
  ASSERT_EQ(cells.size(), paper.cells.size());
  EXPECT_THAT(VocabularyTable(cells).status(), IsOk());
  for (const Claim& c : VocabularyClaims(cells)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
  for (const VocabularyCell& c : cells) {
    // On one node steps of rings take as much as a few more messages.
    if (c.published.run.devices > 8) {
      EXPECT_LE(c.as_messages.mfu, c.as_collectives.mfu) << c.published.system;
    }
    EXPECT_GT(c.as_messages.mfu, 0.1);
    EXPECT_EQ(c.told.has_value(),
              c.published.run.table == "table 5" && c.published.run.devices > 8);
  }
}

// Why vocabulary.told.redistributed is missed by one cell: its last GPU seems to have two blocks.
TEST(VocabularyTable, OneCellFitsAnotherDivision) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto logs, SimulateLogs(paper, cluster));
  const auto system = VocabularySystem::kRedistributed;
  for (const PublishedVocabularyCell& c : paper.cells) {
    if (c.run.table != "table 5" || c.run.devices != 16 || c.run.tokens != 2048) continue;
    if (c.system != "redistributed" || c.vocabulary != 128000) continue;
    VocabularySizes sizes = SizesOf(c.run, c.run.tokens, c.vocabulary);
    EXPECT_EQ(LastBlocks(sizes), 1);
    sizes.last_blocks = 2;
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep ours,
                                 SimulateVocabulary(system, sizes, cluster));
    VocabularyOptions told;
    told.passes = ToldPasses(*FindLog(logs, system, sizes.tokens, sizes.vocabulary), ours.passes);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep step,
                                 SimulateVocabulary(system, sizes, cluster, told));
    EXPECT_NEAR(100 * step.mfu * kDevicePeakTflops / c.run.peak_tflops, c.mfu, 1);
  }
}

// What is divided grows by a part of the words on each device alone.
TEST(VocabularyTable, PartsBalanceMemory) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  VocabularySizes s;
  s.devices = 4;
  s.micro_batches = 8;
  s.layers = 8;
  s.hidden = 1024;
  s.heads = 16;
  const auto memory = [&](VocabularySystem system, int64_t words) {
    s.vocabulary = words;
    const auto step = SimulateVocabulary(system, s, cluster);
    EXPECT_THAT(step, IsOk());
    return static_cast<double>(step->memory.value());
  };
  const auto growth = [&](VocabularySystem system) {
    return memory(system, 200000) - memory(system, 40000);
  };
  // 16 bytes a parameter of a table; two tables' quarters, and logits that come and go.
  EXPECT_GE(growth(VocabularySystem::kBaseline), 16.0 * 160000 * 1024);
  EXPECT_LT(growth(VocabularySystem::kVocab1), 0.75 * growth(VocabularySystem::kBaseline));
}

TEST(VocabularyTable, NamesAWrongRow) {
  const auto parse = [](absl::string_view rows) {
    return ParseVocabularyPaper(
               absl::StrCat(
                   R"({"paper": "p", "words": [8, 9], "runs": [{"table": "t", "tag": "read",
                   "peak_tflops": 312, "devices": 2, "layers": 2, "hidden": 8, "heads": 2,
                   "tokens": 4, "rows": [)",
                   rows, "]}]}"),
               "f")
        .status();
  };
  EXPECT_THAT(parse(R"({"system": "1F1B", "mfu": [1, null], "memory": [1, null]})"), IsOk());
  EXPECT_THAT(parse(R"({"system": "1F1B", "mfu": [1], "memory": [1, 2]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 1 numbers")));
  EXPECT_THAT(parse(R"({"system": "1F1B", "mfu": [1, 2], "memory": [1, null]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("null where mfu is")));
  EXPECT_THAT(parse(R"({"system": "1F1B", "mfu": [1, "2"], "memory": [1, 2]})"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("numbers or null")));
}

TEST(VocabularyTable, NamesAnUnknownSystem) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const auto paper = ParseVocabularyPaper(
      R"({"paper": "p", "words": [8], "runs": [{"table": "t", "tag": "read",
          "peak_tflops": 312, "devices": 2, "layers": 2, "hidden": 8, "heads": 2, "tokens": 4,
          "rows": [{"system": "X", "mfu": [1], "memory": [1]}]}]})",
      "f");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper parsed, paper);
  EXPECT_THAT(SimulateCells(parsed, {}, cluster),
              StatusIs(absl::StatusCode::kNotFound, "no system \"X\""));
}

}  // namespace
}  // namespace pipelab
