#include "experiments/vocabulary/vocabulary_table.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

TEST(VocabularyTable, HasEveryCell) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<VocabularyCell> cells,
                               SimulateCells(paper, cluster));
  ASSERT_EQ(cells.size(), paper.cells.size());
  EXPECT_THAT(VocabularyTable(cells).status(), IsOk());
  for (const Claim& c : VocabularyClaims(cells)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
  for (const VocabularyCell& c : cells) {
    EXPECT_LE(c.as_messages.mfu, c.as_collectives.mfu) << c.published.system;
    EXPECT_GT(c.as_messages.mfu, 0.1);
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
    const auto step = SimulateVocabulary(system, s, cluster, VocabularyExchange::kCollectives);
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

TEST(VocabularyTable, NamesAnUnknownSystem) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  const auto paper = ParseVocabularyPaper(
      R"({"paper": "p", "cells": [{"system": "X", "vocabulary": 8, "mfu": 1, "tag": "eye"}]})",
      "f");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper parsed, paper);
  EXPECT_THAT(SimulateCells(parsed, cluster),
              StatusIs(absl::StatusCode::kNotFound, "no system \"X\""));
}

}  // namespace
}  // namespace pipelab
