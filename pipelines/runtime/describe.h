// How errors call the parts of a program.
//
//   Describe(program, instruction)   // "1F3", "0F3 from device 0", "gradient reduction of stage 2"
//   SpecToString(spec)               // "float32[4, 128]"
#ifndef PIPELAB_PIPELINES_RUNTIME_DESCRIBE_H_
#define PIPELAB_PIPELINES_RUNTIME_DESCRIBE_H_

#include <string>

#include "absl/time/time.h"
#include "kernels/comm/communicator.h"
#include "pipelines/ir/program.h"

namespace pipelab {

std::string Describe(const Program& program, const Instruction& instruction);
std::string SpecToString(const TensorSpec& spec);
std::string LimitToString(absl::Duration limit);  // "60 s"

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_DESCRIBE_H_
