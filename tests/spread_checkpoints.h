// Checkpoints of trainings whose devices are spread over processes: what must hold over every
// transport. The processes of one run call each case together.
//
//   for (const SpreadCheckpointCase& c : SpreadCheckpointCases()) c.run(transport);
//
// There are 4 devices, so 1, 2 or 4 processes. Reports through GoogleTest.
#ifndef PIPELAB_TESTS_SPREAD_CHECKPOINTS_H_
#define PIPELAB_TESTS_SPREAD_CHECKPOINTS_H_

#include <functional>
#include <string>
#include <vector>

#include "kernels/comm/transport.h"

namespace pipelab {

struct SpreadCheckpointCase {
  std::string name;
  std::function<void(Transport& transport)> run;
};

std::vector<SpreadCheckpointCase> SpreadCheckpointCases();

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SPREAD_CHECKPOINTS_H_
