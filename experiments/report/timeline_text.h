// A trace as text, for terminals: a line a device, a character a unit of time.
//
//   std::cout << TimelineText(program, trace, 100);
//
//   device 0 |abcd......AABBCCDD|
//   device 1 |.abcd..AABBCCDD...|
//   a b c: forward of micro-batch 0 1 2; A B C: backward; .: idle; a character is 1 ms
//
// The unit is the shortest action's time where that fits `columns`, else longer; then short actions
// may not show. After z the letters begin again. W is written +, recompute ~, reduction #,
// optimizer =. Where a character is longer than every action (128 micro-batches), it says only
// whether its middle is a forward or a backward, and of which of the device's stages.
#ifndef PIPELAB_EXPERIMENTS_REPORT_TIMELINE_TEXT_H_
#define PIPELAB_EXPERIMENTS_REPORT_TIMELINE_TEXT_H_

#include <string>

#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

// `columns`: most characters of time in a line. `colours`: with ANSI sequences, for a terminal.
std::string TimelineText(const Program& program, const Trace& trace, int columns,
                         bool colours = false);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_TIMELINE_TEXT_H_
