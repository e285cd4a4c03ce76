// What holds for every scheme of the catalogue.
#include "pipelines/schedules/catalog.h"

#include <set>
#include <string>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tests/support/program_checker.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

bool MovesToHost(const Schedule& s) {
  for (const auto& list : s.order) {
    for (const Action& a : list) {
      if (IsHostTransfer(a.kind)) return true;
    }
  }
  return false;
}

TEST(Catalog, EveryScheduleIsValidAndLowersSoundly) {
  for (const Scheme& scheme : Catalog()) {
    int served = 0;
    for (int p : {1, 2, 3, 4, 6, 8}) {
      for (int m : {1, 2, 3, 4, 6, 8, 16, 18}) {
        for (int variant = 0; variant < 4; ++variant) {
          SchemeParams params{p, m};
          params.recompute = variant % 2 == 1;
          params.virtual_stages = variant < 2 ? 0 : 3;
          const absl::StatusOr<Schedule> s = MakeSchedule(scheme.name, params);
          if (!s.ok()) {
            ASSERT_THAT(s.status(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--")));
            continue;
          }
          ++served;
          ASSERT_THAT(Validate(*s), IsOk());
          EXPECT_EQ(s->name, scheme.name);
          EXPECT_EQ(s->num_devices(), p);
          EXPECT_EQ(s->num_micro_batches, m);
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Program program, Lower(*s, {}));
          ASSERT_EQ(CheckProgram(program), "") << scheme.name << " " << p << " " << m;
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule parsed, ParseSchedule(ToText(*s)));
          ASSERT_EQ(parsed.order, s->order);
          ASSERT_EQ(ToText(parsed), ToText(*s));
          if (scheme.asynchronous || s->num_slices > 1 || !s->stages.AllGradientsAreOwn() ||
              s->forward_only || MovesToHost(*s) || s->weights_travel ||
              s->merges_passes) {  // which cells do not have
            EXPECT_FALSE(ToCsv(*s).ok());
            continue;
          }
          PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, ToCsv(*s));
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule from_csv, ParseCsv(csv));
          ASSERT_EQ(from_csv.placement.groups, s->placement.groups)
              << scheme.name << " " << p << " " << m;
        }
      }
    }
    EXPECT_GT(served, 30) << scheme.name;
  }
}

// Where a stage's gradients come in micro-batch order, results are bit-equal to serial training.
TEST(Catalog, BackwardsComeInMicroBatchOrder) {
  for (const Scheme& scheme : Catalog()) {
    const Schedule s = MakeOrDie(scheme.name, {4, 12});
    for (const auto& list : s.order) {
      std::vector<std::vector<int>> last(s.placement.num_replicas(),
                                         std::vector<int>(s.num_stages(), -1));
      for (const Action& a : list) {
        if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardWeight) continue;
        int& before = last[s.placement.replica_of_micro_batch[a.micro_batch]][a.stage];
        // A micro-batch's slices from the last to the first.
        const int item = a.micro_batch * s.num_slices + s.num_slices - 1 - a.slice;
        EXPECT_GT(item, before) << scheme.name;
        before = item;
      }
    }
  }
}

TEST(Catalog, NamesAreUniqueAndExplained) {
  std::set<std::string> names;
  for (const Scheme& scheme : Catalog()) {
    EXPECT_TRUE(names.insert(std::string(scheme.name)).second);
    EXPECT_FALSE(scheme.summary.empty());
    EXPECT_FALSE(scheme.paper.empty());
    EXPECT_GE(scheme.default_virtual_stages, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Scheme* found, FindScheme(scheme.name));
    EXPECT_EQ(found, &scheme);
  }
}

TEST(Catalog, RefusesBadSizesInTheUsersTerms) {
  EXPECT_THAT(Refusal("zigzag", {2, 2}),
              AllOf(StartsWith("--scheme=zigzag: no such scheme; there are gpipe, 1f1b, "),
                    HasSubstr(", chimera")));
  EXPECT_EQ(Refusal("1f1b", {0, 2}), "--devices=0: a pipeline needs at least 1 device");
  EXPECT_EQ(Refusal("1f1b", {2, -1}), "--micro_batches=-1: a step needs at least 1 micro-batch");
  EXPECT_EQ(Refusal("1f1b", {2, 2, -1}),
            "--virtual_stages=-1: a device holds at least 1 stage (0 means the scheme's default)");
  EXPECT_EQ(Refusal("1f1b", {40000, 2}),
            "--devices=40000 --virtual_stages=1: 40000 stages; at most 32767");
  EXPECT_EQ(Refusal("1f1b", {1024, 2000000000}),
            "--micro_batches=2000000000: too many for 1024 stages; at most 131072");
  SchemeParams sliced{1024, 4096};
  sliced.slices = 1024;
  EXPECT_EQ(Refusal("terapipe", sliced),
            "--micro_batches=4096: too many for 1024 stages and 1024 slices; at most 128");
  const auto memory = [](const SchemeParams& params, int64_t mib) {
    return std::string(CheckMemory(params, Bytes(mib << 20)).message());
  };
  EXPECT_EQ(memory({1000, 100000}, 3 << 10),
            "--devices=1000 --micro_batches=100000: 200000000 actions need about 48.4 GiB of "
            "memory, and 3 GiB are free; fewer micro-batches show the same pattern");
  EXPECT_EQ(memory({1000, 100000}, 80 << 10), "");
  EXPECT_EQ(memory({128, 1024, 4}, 0).substr(0, 58),
            "--devices=128 --virtual_stages=4 --micro_batches=1024: 104");
  EXPECT_EQ(memory({128, 1024, 1}, 0), "");  // a hundred MiB
  EXPECT_EQ(ParseConcatenation("direct").value(), Concatenation::kDirect);
  EXPECT_THAT(ParseConcatenation("doubling"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "--concatenation=doubling: must be one of direct, forward_doubling, "
                       "backward_halving"));
  EXPECT_THAT(Refusal("interleaved", {2147483647, 2147483647, 2147483647}),
              HasSubstr("at most 32767"));
}

// Options that a scheme does not have are refused, not ignored.
TEST(Catalog, RefusesOptionsOfOtherSchemes) {
  SchemeParams group{2, 4}, replicas{2, 4}, doubling{2, 4}, update{2, 4};
  group.group_size = 2;
  replicas.replicas = 2;
  doubling.concatenation = Concatenation::kForwardDoubling;
  update.update_interval = 4;
  SchemeParams slices{2, 4};
  slices.slices = 2;
  for (const Scheme& scheme : Catalog()) {
    const std::string begin = absl::StrCat(scheme.name, " ");
    if ((scheme.options & kGroupSize) == 0) {
      EXPECT_EQ(Refusal(scheme.name, group),
                begin +
                    "--group_size=2: only for interleaved_seq1f1b, interleaved, gis, "
                    "interleaved_merged, interleaved_zb1p, tawpipe, graph, local_replay, decode, "
                    "prefill_decode");
    }
    if ((scheme.options & kReplicas) == 0) {
      EXPECT_EQ(Refusal(scheme.name, replicas), begin + "--replicas=2: only for chimera");
    }
    if ((scheme.options & kConcatenation) == 0) {
      EXPECT_EQ(Refusal(scheme.name, doubling),
                begin + "--concatenation=forward_doubling: only for chimera");
    }
    if ((scheme.options & kTokenSlices) == 0) {
      EXPECT_EQ(Refusal(scheme.name, slices),
                begin +
                    "--slices=2: only for terapipe, seq1f1b, interleaved_seq1f1b, zb_seq1f1b, "
                    "prefill_decode");
    }
    if ((scheme.options & kUpdateEvery) == 0) {
      EXPECT_EQ(Refusal(scheme.name, update),
                begin + "--update_interval=4: only for pipedream_2bw, local, local_replay");
    }
  }
}

}  // namespace
}  // namespace pipelab
