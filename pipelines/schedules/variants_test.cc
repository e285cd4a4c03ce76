#include "pipelines/schedules/variants.h"

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/schemes.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<SchemeParams> VariantsOf(absl::string_view scheme, const SchemeParams& sizes,
                                     const VariantLimits& limits = {}) {
  const absl::StatusOr<const Scheme*> found = FindScheme(scheme);
  EXPECT_THAT(found, IsOk());
  return Variants(**found, sizes, limits);
}

std::vector<int> Values(const std::vector<SchemeParams>& all, int SchemeParams::*option) {
  std::vector<int> values;
  for (const SchemeParams& params : all) values.push_back(params.*option);
  return values;
}

// What is listed is made, with the stages that were foretold; the default way is the first.
TEST(Variants, AreMade) {
  for (const Scheme& scheme : Catalog()) {
    int made = 0;
    for (int p : {1, 2, 3, 4, 6, 8}) {
      for (int m : {1, 2, 3, 5, 8, 12, 24}) {
        const std::vector<SchemeParams> all =
            Variants(scheme, {p, m}, {/*max_stages=*/100, false, /*halves=*/true});
        const absl::StatusOr<int> by_default = NumStages(scheme.name, {p, m});
        ASSERT_TRUE(!all.empty() || !by_default.ok()) << scheme.name << " " << p << " " << m;
        for (const SchemeParams& params : all) {
          PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, MakeSchedule(scheme.name, params));
          EXPECT_EQ(NumStages(scheme.name, params).value(), s.num_stages());
          EXPECT_LE(s.num_stages(), 100);
          ++made;
        }
        if (!by_default.ok()) continue;
        EXPECT_EQ(MakeOrDie(scheme.name, all[0]).order, MakeOrDie(scheme.name, {p, m}).order);
      }
    }
    EXPECT_GT(made, 10) << scheme.name;
  }
}

// NumStages refuses what MakeSchedule refuses, in the same words.
TEST(Variants, NumStagesRefuses) {
  for (const Scheme& scheme : Catalog()) {
    for (int p : {1, 3, 4}) {
      for (int m : {1, 5, 8}) {
        for (int v : {0, 1, 3}) {
          const SchemeParams params{p, m, v};
          const absl::StatusOr<int> stages = NumStages(scheme.name, params);
          const absl::StatusOr<Schedule> made = MakeSchedule(scheme.name, params);
          ASSERT_EQ(stages.status(), made.status());
          if (made.ok()) {
            EXPECT_EQ(*stages, made->num_stages());
          }
        }
      }
    }
  }
}

TEST(Variants, SayWhatASchemeHas) {
  EXPECT_THAT(Values(VariantsOf("1f1b", {4, 8}), &SchemeParams::virtual_stages), ElementsAre(0));
  EXPECT_THAT(Values(VariantsOf("breadth_first", {4, 8}), &SchemeParams::virtual_stages),
              ElementsAre(2, 3, 4, 6, 8, 12, 16));
  EXPECT_THAT(Values(VariantsOf("hanayo", {4, 8}), &SchemeParams::virtual_stages),
              ElementsAre(2, 4, 6, 8, 12, 16));
  EXPECT_THAT(
      Values(VariantsOf("hanayo", {4, 8}, {/*max_stages=*/16}), &SchemeParams::virtual_stages),
      ElementsAre(2, 4));
  EXPECT_THAT(Values(VariantsOf("hanayo", {4, 8, 4}), &SchemeParams::virtual_stages),
              ElementsAre(4));
  EXPECT_THAT(Values(VariantsOf("interleaved", {4, 8, 2}), &SchemeParams::group_size),
              ElementsAre(0, 8));
  EXPECT_THAT(Values(VariantsOf("interleaved", {4, 12, 2}, {100, /*full_groups=*/true}),
                     &SchemeParams::group_size),
              ElementsAre(0, 8));  // of 8 and 4
  EXPECT_THAT(VariantsOf("interleaved", {4, 9, 2}, {100, /*full_groups=*/true}), IsEmpty());
  VariantLimits every;
  every.max_stages = 12;
  every.least_virtual_stages = 1;
  EXPECT_THAT(Values(VariantsOf("interleaved", {4, 8}, every), &SchemeParams::virtual_stages),
              ElementsAre(1, 2, 3));
  EXPECT_THAT(Values(VariantsOf("interleaved", {4, 8, 2}, every), &SchemeParams::group_size),
              ElementsAre(0));
  VariantLimits full = every;
  full.full_groups = true;
  EXPECT_THAT(Values(VariantsOf("interleaved", {4, 9, 2}, full), &SchemeParams::group_size),
              ElementsAre(5));
  EXPECT_THAT(Values(VariantsOf("gis", {4, 8, 2}, every), &SchemeParams::group_size),
              ElementsAre(0, 2, 3));
  EXPECT_THAT(Values(VariantsOf("chimera", {8, 16}), &SchemeParams::replicas),
              ElementsAre(0, 0, 4, 8));
  EXPECT_EQ(VariantsOf("chimera", {8, 16}, {100, false, /*halves=*/true}).size(), 5);
  EXPECT_THAT(VariantsOf("chimera", {3, 4}), IsEmpty());
  EXPECT_THAT(Values(VariantsOf("pipedream_2bw", {4, 8}), &SchemeParams::update_interval),
              ElementsAre(0, 8));
  EXPECT_THAT(Values(VariantsOf("terapipe", {4, 8}), &SchemeParams::slices),
              ElementsAre(0, 2, 8, 16));
}

TEST(LargestGroup, IsThatOfTheGroups) {
  for (int devices = 1; devices <= 6; ++devices) {
    for (int micro_batches = 1; micro_batches <= 20; ++micro_batches) {
      for (int size = 0; size <= 22; ++size) {
        if (size > 0 && size < devices) continue;
        SchemeParams params{devices, micro_batches};
        params.group_size = size;
        const std::vector<int> groups = *MicroBatchGroups(params);
        EXPECT_EQ(LargestGroup(devices, micro_batches, size),
                  *std::max_element(groups.begin(), groups.end()))
            << devices << " " << micro_batches << " " << size;
      }
    }
  }
}

TEST(EveryGroupSize, ComesByTheLargestGroup) {
  // Groups of 5 and 6 (as 6 and 5 of 0), 6 and 5, 4 and 7, 7 and 4, and all.
  EXPECT_THAT(EveryGroupSize({4, 11, 2}, false), ElementsAre(0, 5, 4, 7, 8));
  EXPECT_THAT(EveryGroupSize({4, 96, 2}, false), ElementsAre(0, 6, 8, 12, 16, 24, 32, 48, 96));
  EXPECT_THAT(EveryGroupSize({4, 90, 2}, false),
              ElementsAre(0, 5, 6, 9, 8, 10, 15, 18, 30, 45, 90));
  EXPECT_THAT(EveryGroupSize({4, 12, 2}, true), ElementsAre(0, 6, 7, 8, 12));
  EXPECT_THAT(EveryGroupSize({4, 9, 2}, true), ElementsAre(5, 9));
  EXPECT_THAT(EveryGroupSize({4, 3, 2}, true), IsEmpty());
  EXPECT_THAT(EveryGroupSize({4, 3, 2}, false), ElementsAre(0));
}

}  // namespace
}  // namespace pipelab
