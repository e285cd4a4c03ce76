// What fake stages (fake_module.h) come to without any pipeline: one micro-batch after the other
// through all stages.
//
//   EXPECT_EQ(stage.parameters(), SerialParameters(schedule, ties, /*steps=*/2)[number]);
#ifndef PIPELAB_TESTS_SUPPORT_FAKE_SERIAL_H_
#define PIPELAB_TESTS_SUPPORT_FAKE_SERIAL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "pipelines/ir/program.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// The parameters of each stage after `steps` steps, all with the smallest micro-batches.
// `norm_values`: LoweringOptions::norm_values.
std::vector<std::vector<float>> SerialParameters(const Schedule& schedule,
                                                 const std::vector<Tie>& ties, int steps,
                                                 int64_t norm_values = 0);

// The tied parameter's name for a stage; empty when it has none.
std::string TiedParameter(const std::vector<Tie>& ties, int stage);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_FAKE_SERIAL_H_
