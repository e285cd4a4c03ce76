// What the schemes' tests share: pictures, and numbers read off a simulated trace.
//
//   EXPECT_EQ(Picture("1f1b", {2, 2}), R"(
//   0: 0F0 0F1 0B0 0B1
//   1: 1F0 1B0 1F1 1B1
//   )");
#ifndef PIPELAB_TESTS_SUPPORT_SCHEME_TESTING_H_
#define PIPELAB_TESTS_SUPPORT_SCHEME_TESTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "pipelines/ir/program.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// The schedule; ends the process with the reason when the scheme refuses.
Schedule MakeOrDie(absl::string_view scheme, const SchemeParams& params);

// A newline, then a line a device: "0: 0F0 0B0".
std::string Picture(absl::string_view scheme, const SchemeParams& params);

// The paper's kind of figure, at F = B = 1 and no communication: a line a device and two characters
// a slot, the micro-batch in hexadecimal, backwards after a quote: " 0 1'0'1". Where some backwards
// are split, F = I = W = 1 and B = 2, with W after a dot: " 0'0.0 1'1'1". With token slices a slot
// is a slice's, and the slices of all micro-batches are counted through.
std::string Timeline(const Schedule& schedule);

// From Simulate with unit costs (F = 1, B = 2; of a token slice where there are several), in whole
// units.
struct UnitFigures {
  int64_t makespan = 0;
  int64_t busy = 0;           // of a device; all devices of the catalogue's schemes do equal work
  int64_t idle = 0;           // makespan - busy
  std::vector<int64_t> peak;  // [device] activations of stages held at a time, until B or W
  std::vector<int64_t> span;  // [device] from its first action's begin to its last one's end
};
UnitFigures Figures(const Schedule& schedule);

// The sizes of a scheme with token slices.
inline SchemeParams SlicedSizes(int devices, int micro_batches, int slices,
                                int virtual_stages = 0) {
  SchemeParams params{devices, micro_batches, virtual_stages};
  params.slices = slices;
  return params;
}

// Every way to place collectives and steps that a schedule of so many stages may be asked for.
std::vector<LoweringOptions> AllOptions(int num_stages);

// Status message of a scheme that must refuse.
std::string Refusal(absl::string_view scheme, const SchemeParams& params);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_SUPPORT_SCHEME_TESTING_H_
