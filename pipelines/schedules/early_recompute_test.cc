#include "pipelines/schedules/early_recompute.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "pipelines/ir/validate.h"
#include "pipelines/schedules/catalog.h"
#include "tests/support/scheme_testing.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

PassLengths Unit(const Schedule& s) {
  PassLengths lengths = PassLengths::Unit(s.num_stages());
  lengths.recompute = lengths.forward;
  return lengths;
}

SchemeParams RecomputeSizes(int devices, int micro_batches) {
  SchemeParams params;
  params.devices = devices;
  params.micro_batches = micro_batches;
  params.recompute = true;
  return params;
}

// The most rebuilt activations that a device has at a time.
int MostRebuilt(const std::vector<Action>& list) {
  int rebuilt = 0, most = 0;
  for (const Action& a : list) {
    if (a.kind == ActionKind::kRecompute) most = std::max(most, ++rebuilt);
    if (a.kind == ActionKind::kBackward || a.kind == ActionKind::kBackwardInput) --rebuilt;
  }
  return most;
}

// Everything else keeps its order, nothing takes longer, and no more is held than was allowed.
TEST(EarlyRecompute, IsNeverLonger) {
  std::map<std::string, int> shorter;
  for (const char* scheme : {"gpipe", "1f1b", "interleaved", "breadth_first", "chimera", "hanayo",
                             "zb_h1", "zbv", "v_min", "dualpipe", "dualpipev", "gis_h"}) {
    for (const int devices : {2, 4, 8}) {
      for (const int micro_batches : {devices, 2 * devices, 4 * devices}) {
        const Schedule plain = MakeOrDie(scheme, RecomputeSizes(devices, micro_batches));
        int64_t before = Figures(plain).makespan;
        for (const int ahead : {0, 1, 2, 8}) {
          const Schedule early = RecomputeInGaps(plain, Unit(plain), ahead);
          EXPECT_THAT(Validate(early), IsOk());
          const int64_t makespan = Figures(early).makespan;
          EXPECT_LE(makespan, Figures(plain).makespan) << scheme << " " << devices;
          if (ahead == 0) {
            EXPECT_EQ(early.order, plain.order);
          }
          shorter[scheme] += makespan < before;
          for (int d = 0; d < devices; ++d) {
            EXPECT_LE(MostRebuilt(early.order[d]), MostRebuilt(plain.order[d]) + ahead);
            std::vector<Action> others = early.order[d], given = plain.order[d];
            for (std::vector<Action>* list : {&others, &given}) {
              list->erase(
                  std::remove_if(list->begin(), list->end(),
                                 [](const Action& a) { return a.kind == ActionKind::kRecompute; }),
                  list->end());
            }
            EXPECT_EQ(others, given);
          }
        }
      }
    }
  }
  // Where devices wait in the middle of a step, and not only at its ends.
  for (const auto& [scheme, times] : shorter) RecordProperty(scheme, times);
  EXPECT_GT(shorter["chimera"] + shorter["hanayo"] + shorter["v_min"], 0);
}

}  // namespace
}  // namespace pipelab
