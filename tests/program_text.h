// What a program is and does as plain lines of numbers, for comparing two builds: no line depends
// on how a program is kept (indices into its tables, the layout of structs), so that a program of
// other structs that does the same can write the same lines.
//
//   std::string lists = ListsText(program);      // device 0
//                                                //  send F 0 3 0 0 0 value 0 3 0 0 1 0 1 1
//   std::string spans = SpansText(program, trace);  //  compute F 0 3 0 0 120 180 60
//
// An instruction has its operation, its action (kind, stage, micro-batch, slice, version), its
// replica, and what it means. That is the message itself (edge, micro-batch, slice, from, to, rows;
// or a hop's stage, from, to), or the collective or exchange, numbered among those that are alike.
// Times are nanoseconds, sizes bytes.
#ifndef PIPELAB_TESTS_PROGRAM_TEXT_H_
#define PIPELAB_TESTS_PROGRAM_TEXT_H_

#include <string>

#include "pipelines/cost/cost_table.h"
#include "pipelines/ir/program.h"
#include "pipelines/ir/trace.h"

namespace pipelab {

std::string ListsText(const Program& program);
// Begin, end and own time of each instruction and host copy, and the makespan.
std::string SpansText(const Program& program, const Trace& trace);
// For each device the peaks of activations, state and host.
std::string PeaksText(const Trace& trace);
// And activations and state whenever they change.
std::string LevelsText(const Program& program, const CostTable& costs, const Trace& trace);
// For each device bytes and messages sent, bytes of collectives, to the host and of its group.
std::string TrafficText(const Trace& trace);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PROGRAM_TEXT_H_
