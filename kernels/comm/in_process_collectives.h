// Collectives between threads: every member publishes its tensor, all meet, each does its share of
// the work directly in the others' memory, all meet again.
//
//   PIPELAB_RETURN_IF_ERROR(AllReduceInProcess(world, rank, data, group, limit));
//
// Arguments are checked here; see communicator.h for what the calls promise.
#ifndef PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_
#define PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "kernels/comm/in_process_world.h"
#include "kernels/tensor/tensor.h"

namespace pipelab {

absl::Status AllReduceInProcess(InProcessWorld& world, int rank, const Tensor& data,
                                absl::Span<const int> group, absl::Duration limit);
absl::Status ReduceScatterInProcess(InProcessWorld& world, int rank, const Tensor& data,
                                    const Tensor& part, absl::Span<const int> group,
                                    absl::Duration limit);
absl::Status AllGatherInProcess(InProcessWorld& world, int rank, const Tensor& part,
                                const Tensor& data, absl::Span<const int> group,
                                absl::Duration limit);
absl::Status BroadcastInProcess(InProcessWorld& world, int rank, const Tensor& data, int root,
                                absl::Span<const int> group, absl::Duration limit);

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_IN_PROCESS_COLLECTIVES_H_
