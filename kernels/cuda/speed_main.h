// The `main` of programs that time a GPU: --json, progress a line at a time, and the exit status.
//
//   absl::Status Measure(std::string* json);
//   int main(int argc, char** argv) { return pipelab::gpu::SpeedMain(argc, argv, &Measure); }
#ifndef PIPELAB_KERNELS_CUDA_SPEED_MAIN_H_
#define PIPELAB_KERNELS_CUDA_SPEED_MAIN_H_

#include <string>

#include "absl/status/status.h"

namespace pipelab {
namespace gpu {

// Parses flags, measures and writes the results to --json. Exit status: 0; 1, an error; 3, no CUDA
// device (NotFound).
int SpeedMain(int argc, char** argv, absl::Status (*measure)(std::string* json));

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_SPEED_MAIN_H_
