#include "experiments/vocabulary/vocabulary_logs.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "experiments/vocabulary/vocabulary_scaling.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/cluster/catalog.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

double FlopsOf(const VocabularyPaper& paper, const PublishedVocabularyLog& log) {
  const double tokens = 128.0 * static_cast<double>(log.tokens), h = paper.logs_run.hidden;
  return 6 * tokens * h * log.vocabulary +
         tokens * paper.logs_run.layers * (72 * h * h + 12 * h * static_cast<double>(log.tokens));
}

// So the log is of the paper's runs, and its table's MFU is of 320 Tflop/s.
TEST(VocabularyLogs, AreTheRunsOfTheTable) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  std::map<std::tuple<std::string, int64_t, int64_t>, double> mfu;
  for (const PublishedVocabularyCell& c : paper.cells) {
    if (c.run.table != "table 5" || c.run.devices != paper.logs_run.devices) continue;
    EXPECT_EQ(c.run.peak_tflops, 320);
    mfu[{c.system, c.run.tokens, c.vocabulary}] = c.mfu;
  }
  ASSERT_THAT(paper.logs, SizeIs(40));
  for (const PublishedVocabularyLog& log : paper.logs) {
    const double rate = FlopsOf(paper, log) / paper.logs_run.devices / (log.step_ms * 1e-3);
    EXPECT_NEAR(100 * rate / 320e12, (mfu[{log.system, log.tokens, log.vocabulary}]), 0.005)
        << log.system << " " << log.tokens << " " << log.vocabulary;
  }
}

TEST(VocabularyLogs, LastBlocksAreTheLogs) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  for (const PublishedVocabularyLog& log : paper.logs) {
    if (log.system != "redistributed") continue;
    EXPECT_EQ(LastBlocks(SizesOf(paper.logs_run, log.tokens, log.vocabulary)), log.last_blocks)
        << log.tokens << " " << log.vocabulary;
  }
}

// A step of its own passes is the same step, and one of longer passes is longer.
TEST(VocabularyLogs, PassesTakeThePlaceOfKernels) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  VocabularySizes s;
  s.devices = 4;
  s.micro_batches = 8;
  s.layers = 8;
  s.hidden = 1024;
  s.heads = 16;
  for (const auto system :
       {VocabularySystem::kBaseline, VocabularySystem::kRedistributed, VocabularySystem::kVocab1,
        VocabularySystem::kVocab2, VocabularySystem::kInterlaced}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep own, SimulateVocabulary(system, s, cluster));
    VocabularyOptions options;
    VocabularyPasses& passes = options.passes.emplace(own.passes);
    EXPECT_THAT(passes.forward, SizeIs(4));
    EXPECT_THAT(passes.output, SizeIs(IsDivided(system) ? 4 : 0));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep same,
                                 SimulateVocabulary(system, s, cluster, options));
    EXPECT_EQ(same.time, own.time) << VocabularySystemName(system);
    for (auto* of : {&passes.forward, &passes.backward, &passes.output}) {
      for (Nanoseconds& t : *of) t = t * 3;
    }
    PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyStep longer,
                                 SimulateVocabulary(system, s, cluster, options));
    EXPECT_GT(longer.time, own.time * 2) << VocabularySystemName(system);
    EXPECT_EQ(longer.memory, own.memory);
  }
}

// The told passes of the log's own model are the logged ones, and twice them where ours are twice.
TEST(VocabularyLogs, TellOtherModelsPasses) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  paper.logs.resize(1);
  for (const char* system : {"1F1B", "Vocab-1"}) {
    const auto logs = PublishedVocabulary().value().logs;
    paper.logs[0] = *std::find_if(logs.begin(), logs.end(),
                                  [&](const auto& log) { return log.system == system; });
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto steps, SimulateLogs(paper, cluster));
    const VocabularyLogSteps& log = steps[0];
    EXPECT_EQ(FindLog(steps, log.system, log.log.tokens, log.log.vocabulary), &log);
    EXPECT_EQ(FindLog(steps, log.system, 1, log.log.vocabulary), nullptr);
    VocabularyPasses twice = log.simulated.passes;
    for (auto* of : {&twice.forward, &twice.backward, &twice.output}) {
      for (Nanoseconds& t : *of) t = t * 2;
    }
    const VocabularyPasses told = ToldPasses(log, log.simulated.passes),
                           more = ToldPasses(log, twice);
    for (size_t d = 0; d < 8; ++d) {
      const bool end = d == 0 || d == 7;
      const double near =
          end && !IsDivided(log.system) ? 1e-6 : 0.1;  // the middle device tells the others
      EXPECT_NEAR(1e3 * ToMilliseconds(told.forward[d]) / log.log.forward_us[d], 1, near) << d;
      EXPECT_NEAR(1e3 * ToMilliseconds(told.backward[d]) / log.log.backward_us[d], 1, near) << d;
      EXPECT_NEAR(more.forward[d].value(), 2 * told.forward[d].value(), 2);
    }
    ASSERT_EQ(told.output.size(), log.log.output_us.size());
  }
}

// Without bytes and steps the exchange takes its calls alone.
TEST(VocabularyScaling, ExchangeOfInterlacedStepsTakesTime) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSERT_OK_AND_ASSIGN(ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double percent, SimulateInterlacedExchange(paper, cluster));
  EXPECT_GT(percent, 5);
  for (ClusterLevel& level : cluster.levels) {
    level.rings.clear();
    level.connection.latency.value = level.connection.latency.value * 2;
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const double slower, SimulateInterlacedExchange(paper, cluster));
  EXPECT_GT(slower, 1.2 * percent);
  EXPECT_THAT(CheckClaim(InterlacedExchangeClaim(percent)), IsOk());
}

// A run of each kind, and what is made of it.
TEST(VocabularyLogs, HaveTablesAndClaims) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(VocabularyPaper paper, PublishedVocabulary());
  paper.logs.erase(std::remove_if(paper.logs.begin(), paper.logs.end(),
                                  [](const PublishedVocabularyLog& log) {
                                    return log.vocabulary != 32000 || log.tokens != 2048;
                                  }),
                   paper.logs.end());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const auto steps, SimulateLogs(paper, cluster));
  ASSERT_THAT(steps, SizeIs(5));
  EXPECT_THAT(VocabularyLogsTable(steps).status(), IsOk());
  EXPECT_THAT(VocabularyPassesTable(steps).status(), IsOk());
  for (const Claim& c : VocabularyLogClaims(steps)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
  for (const Claim& c : VocabularyLogClaims({})) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

// Parts never scale better than linearly, and the less the more of them there are.
TEST(VocabularyScaling, HasEveryCell) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const VocabularyPaper paper, PublishedVocabulary());
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ClusterSpec cluster, LoadCluster("--cluster", "dgx-a100"));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<ScalingCell> cells,
                               SimulateScaling(paper, cluster));
  ASSERT_THAT(cells, SizeIs(18));
  std::map<std::pair<std::string, int64_t>, double> last;
  for (const ScalingCell& c : cells) {
    EXPECT_GT(c.simulated, 0);
    const auto [before, first] = last.insert({{c.layer, c.tokens}, 100});
    EXPECT_LT(c.simulated, before->second + 0.5) << c.layer << " " << c.devices;
    before->second = c.simulated;
  }
  EXPECT_THAT(ScalingTable(cells).status(), IsOk());
  for (const Claim& c : ScalingClaims(cells)) EXPECT_THAT(CheckClaim(c), IsOk()) << c.id;
}

TEST(VocabularyLogs, NameAWrongRow) {
  const auto parse = [](absl::string_view row) {
    return ParseVocabularyPaper(
               absl::StrCat(R"({"paper": "p", "words": [8], "runs": [], "logs": {"source": "s",
                   "devices": 2, "layers": 2, "hidden": 8, "heads": 2, "rows": [{"system": "1F1B",
                   "tokens": 4, "words": 8, "last_blocks": 1, "step_ms": 1, "tag": "read", )",
                            row, "}]}}"),
               "f")
        .status();
  };
  EXPECT_THAT(parse(R"("forward_us": [1, 2], "backward_us": [1, 2])"), IsOk());
  EXPECT_THAT(parse(R"("forward_us": [1], "backward_us": [1, 2])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but there are 2 devices")));
  EXPECT_THAT(parse(R"("forward_us": [1, 0], "backward_us": [1, 2])"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("numbers above 0")));
}

}  // namespace
}  // namespace pipelab
