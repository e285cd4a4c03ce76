// The serial loop that a pipeline of scheme local_replay must equal: all passes of a stage, one
// after the other, then those of the next on what the stage before has put down. No messages, and
// no actions: only Schedule::SourceOf, which says what a pass reads.
#ifndef PIPELAB_TESTS_REPLAY_LOOP_H_
#define PIPELAB_TESTS_REPLAY_LOOP_H_

#include "models/data/batch_source.h"
#include "models/graph/layer_spec.h"
#include "pipelines/runtime/training.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

// local_replay of such sizes.
TrainingOptions SmallReplay(const SchemeParams& sizes);

// Trains both ways, with a step every so many passes (0: at the end). Losses and all parameters are
// the same bits, memory and traffic as predicted. Where devices are spread over processes, each
// makes this call, and the first compares.
void ExpectAsReplayLoop(const ModelGraph& graph, const BatchSource& data,
                        const TrainingOptions& options, int every, int steps);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_REPLAY_LOOP_H_
