// Batch normalisation in data-parallel copies of a stage: what a training does, and the serial loop
// that it is compared with.
//
//   options.batch_norm = BatchNormCopies::kOwn;
//   serial.norm_parts = NormParts(graph, partition, schedule, options.batch_norm);
//   BatchNormNote(graph, partition, schedule, options.batch_norm);
//       // "batch normalisation: each copy by its own rows, as does the serial loop; ..."
//
// Synchronised, the default, copies train as the plain serial loop does; with statistics of their
// own, as one that normalises the rows of each copy by themselves (SerialOptions::norm_parts).
#ifndef PIPELAB_PIPELINES_RUNTIME_BATCH_NORM_H_
#define PIPELAB_PIPELINES_RUNTIME_BATCH_NORM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "models/graph/batch_norm_copies.h"  // IWYU pragma: export
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "pipelines/cost/model_partition.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

// Whether some layer of the stage is a batch normalisation.
bool StageHasBatchNorm(const ModelGraph& graph, const ModelPartition& partition, int stage);

// Copies that normalise together meet within their passes, so they must run one list:
// InvalidArgument naming the option and two devices that do not.
absl::Status CheckBatchNorm(const ModelGraph& graph, const ModelPartition& partition,
                            const Schedule& schedule, BatchNormCopies batch_norm);

// [layer] For SerialOptions::norm_parts; empty where the plain loop has the same statistics.
std::vector<int> NormParts(const ModelGraph& graph, const ModelPartition& partition,
                           const Schedule& schedule, BatchNormCopies batch_norm);

// Makes a serial loop compute and add copy by copy (SerialOptions::copies): to the bit what copies
// do that normalise by themselves, or have nothing to normalise. False, and nothing is changed,
// where stages have different numbers of copies or the schedule has replicas.
bool SumByCopy(const Schedule& schedule, SerialOptions* serial);

// One line of what copies normalise by; "" where no copies have a batch normalisation.
std::string BatchNormNote(const ModelGraph& graph, const ModelPartition& partition,
                          const Schedule& schedule, BatchNormCopies batch_norm);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RUNTIME_BATCH_NORM_H_
