// Vocabulary parallelism (Yeung et al., MLSys 2025, arXiv 2411.05288): embedding and output layer
// are divided by words among all devices of a pipeline, so that no device has more to do or to hold
// than another.
//
//   params.stages = VocabularyStages(/*devices=*/4, /*chain=*/4, /*barriers=*/2);
//   PIPELAB_ASSIGN_OR_RETURN(Schedule s, MakeSchedule("vocab_1f1b", params));
//
// A device's part is a stage of the stage graph, so all that works on stages works on parts. With P
// devices and a chain of n stages (the model but for its vocabulary) the stages are
//
//   0 to P - 1            parts of the embedding, one a device: all lead to the chain's first stage
//   P to P + n - 1        the chain
//   P + n to 2 P + n - 1  parts of the output, one a device: the chain's last stage leads to all
//   2 P + n               the loss, on the device of the chain's last stage: all parts lead to it
//
// The paper's pass S is the forward of an output part (logits, and their sums), its pass T the
// backward. Between the two is a barrier, for the loss needs all parts' sums. With two barriers
// (Vocab-1) T makes the gradient of the part's input, and the chain's last backward waits for the
// sum of all parts. With one (Vocab-2) S has made what that gradient needs of the part already: the
// chain's last stage leads to the parts without a gradient, and to the loss with one, and T may
// come at any later time.
//
// The passes are put into the order of any scheme for the chain. Each barrier takes the time of a
// micro-batch, which the pipeline bridges with one more in flight.
//
// `vocab_interlaced` is what the paper compares with (nnScaler's; Lin et al., OSDI 2024): every
// device stops for S, loss and T of one micro-batch at the same time, and the chain waits for them.
// Nothing of the exchange is hidden, and 3 / 2 P micro-batches are in flight on the first device.
#ifndef PIPELAB_PIPELINES_SCHEDULES_VOCABULARY_H_
#define PIPELAB_PIPELINES_SCHEDULES_VOCABULARY_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "pipelines/ir/schedule.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {

StageGraph VocabularyStages(int devices, int chain, int barriers);

// `base` is an order of the chain for `barriers` micro-batches more than the result has: its
// backwards of micro-batch m + barriers become those of m, and so are as much later.
Schedule WithVocabularyPasses(const Schedule& base, int barriers);

// Whether the scheme is another one for stage graphs with parts. Without parts it is that one,
// which tables of all schemes need not show twice; and it takes no other stage graph.
bool TakesVocabularyParts(const Scheme& scheme);

// The catalogue's functions (schemes.h).
absl::Status CheckVocabulary(const SchemeParams& params);
absl::StatusOr<Schedule> MakeVocab1F1B(const SchemeParams& params);
absl::StatusOr<Schedule> MakeVocabVHalf(const SchemeParams& params);
absl::StatusOr<Schedule> MakeVocabInterlaced(const SchemeParams& params);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_VOCABULARY_H_
