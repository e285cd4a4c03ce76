// The manual page, in roff: `pipelab help --man | man -l -`.
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_MANUAL_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_MANUAL_H_

#include <string>

namespace pipelab {

std::string ManualPage();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_MANUAL_H_
