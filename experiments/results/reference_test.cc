// Studies that are quick enough, run again: their deterministic columns are the committed ones.
//
//   bazel run //experiments:all -- --quick --update      writes those of all studies
#include <map>
#include <set>
#include <string>
#include <vector>

#include "experiments/all/claim_records.h"
#include "experiments/all/deterministic_columns.h"
#include "experiments/all/run_studies.h"
#include "experiments/published/coverage.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/file.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using ::testing::Pair;

// Those whose --quick is so quick that a test runs it.
constexpr const char* kQuickStudies[] = {"schedule_formulas",        "amoebanet_scaling",
                                         "cost_model_validation",    "bapipe_comparison",
                                         "bidirectional_comparison", "terapipe_comparison"};

std::vector<ClaimRecord> CommittedClaims() {
  const std::string file = "experiments/results/claims.csv";
  return ParseClaimRecords(ReadFile(file).value(), file).value();
}

TEST(ReferenceTest, QuickStudiesHaveTheCommittedColumns) {
  RunStudiesOptions options;
  options.quick = true;
  options.out = testing::TempDir();
  for (const char* name : kQuickStudies) {
    SCOPED_TRACE(name);
    const StudyProgram study = {name, {"experiments/pipelab_study", name}};
    const StudyOutcome outcome = RunStudy(study, options);
    EXPECT_EQ(outcome.failure, "");
    ASSERT_TRUE(outcome.result.has_value());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string reference,
                                 ReadFile(JoinPath("experiments/results", study.name + ".csv")));
    // So they are those of another run, too: where they are not, a third one says whether runs
    // differ from one another.
    const std::string difference = CompareLines(reference, outcome.result->deterministic);
    EXPECT_EQ(difference, "equal");
    if (difference != "equal") {
      const StudyOutcome again = RunStudy(study, options);
      ASSERT_TRUE(again.result.has_value());
      EXPECT_EQ(again.result->deterministic, outcome.result->deterministic);
    }
    const std::vector<ClaimRecord> committed = Select(CommittedClaims(), study.name);
    EXPECT_THAT(ClaimDifferences(committed,
                                 ToCommit(committed, RecordsOf(study.name, outcome.result->claims),
                                          /*full=*/false)),
                testing::IsEmpty());
  }
}

// A claim that turned says why in CHANGELOG.md.
TEST(ReferenceTest, EveryTurnIsExplained) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string changelog, ReadFile("CHANGELOG.md"));
  EXPECT_THAT(Unexplained(CommittedClaims(), changelog), testing::IsEmpty());
}

// coverage.json says which claims answer which published table. One that no study records any more,
// or a paper's claim that no table asks for, is a mistake here or there.
TEST(ReferenceTest, EveryPublishedTableHasItsClaims) {
  const std::vector<ClaimRecord> records = CommittedClaims();
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::vector<PublishedItem> items, PublishedItems());
  EXPECT_THAT(Unanswered(items, records), testing::IsEmpty());
  std::set<std::string> asked_for, seen;
  std::map<std::string, int> of_paper;
  for (const PublishedItem& item : items) {
    asked_for.insert(item.claims.begin(), item.claims.end());
    ++of_paper[item.paper.substr(0, item.paper.find(" ("))];
  }
  for (const ClaimRecord& r : records) {
    EXPECT_TRUE(seen.insert(r.claim).second) << r.claim << " is recorded twice";
    EXPECT_TRUE(r.source.empty() || asked_for.count(r.claim) == 1) << r.claim;
  }
  // An item that is taken out must be taken out here, too.
  EXPECT_THAT(of_paper,
              testing::UnorderedElementsAre(
                  Pair("GPipe", 11), Pair("SALIENT", 3), Pair("GSplit", 4),
                  Pair("Breadth-First Pipeline Parallelism", 5), Pair("GraphPipe", 7),
                  Pair("Megatron-LM", 4), Pair("PipeDream", 2), Pair("Piper", 1), Pair("DAPPLE", 1),
                  Pair("BaPipe", 1), Pair("Chimera", 1), Pair("BitPipe", 3), Pair("TeraPipe", 3),
                  Pair("Zero bubble", 4), Pair("Controllable memory", 1), Pair("DualPipe", 1),
                  Pair("PipeFill", 5), Pair("PPLL", 2), Pair("PARTIME", 1), Pair("MARLIN", 2),
                  Pair("SWARM", 2), Pair("Vocabulary parallelism", 8), Pair("Seq1F1B", 3),
                  Pair("SlimPipe", 2), Pair("WeiPipe", 1), Pair("TawPipe", 2),
                  Pair("PipeOffload", 3), Pair("OptPipe", 2)));
}

}  // namespace
}  // namespace pipelab
