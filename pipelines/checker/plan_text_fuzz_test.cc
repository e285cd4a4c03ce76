// Damaged inputs from one seed.
#include "gtest/gtest.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(PlanTextFuzz, Plans) {
  RunMutations({R"({"stages": [{"layers": [0, 1]}, {"layers": [2, 3], "data": 2}]})",
                R"({"planner": "piper", "state": "optimal", "search_seconds": 0.25,
 "objective": {"name": "stage_time", "value": 12.5}, "lower_bound": 3.5, "group_size": 2,
 "peak_bytes": 100, "stages": [{"layers": [0, 1, 2, 3], "tensor": 2, "data": 4, "recompute": [1, 2],
 "variants": ["vanilla", "recompute", "recompute", "vanilla"], "first_device": 0, "in_flight": 3,
 "micro_batch_samples": 1, "data_of_level": [2, 2], "on_processor": false}],
 "slices": [{"samples": 1, "tokens": [5, 3]}]})"},
               20000);
}

TEST(PlanTextFuzz, Words) {
  RunMutations({"breadth_first:P=8,T=8,D=1,V=8,b=1,M=8,sharding=fully,recompute",
                "1f1b:P=4,M=16,no_pipeline_overlap,no_data_overlap,whole_messages", "3,2,2,3,1,1",
                "0-3;4,5,9;6-8;10-11", "0,2,4-11;1,3"},
               20000);
}

}  // namespace
}  // namespace pipelab
