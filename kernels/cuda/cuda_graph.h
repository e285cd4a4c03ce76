// A list of work as a CUDA graph.
//
//   std::unique_ptr<Graph> graph = CaptureGraph(stream, list, [&](const Work& w) { return Do(w);
//   });
#ifndef PIPELAB_KERNELS_CUDA_CUDA_GRAPH_H_
#define PIPELAB_KERNELS_CUDA_CUDA_GRAPH_H_

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "kernels/cuda/graph_cache.h"
#include "kernels/cuda/work_list.h"

namespace pipelab {
namespace gpu {

// What `launch` queues on the stream is captured. Null where the driver or a library refuses; then
// nothing was queued.
std::unique_ptr<Graph> CaptureGraph(cudaStream_t stream, const WorkList& list,
                                    const std::function<absl::Status(const Work&)>& launch);

// One piece that is no library's, on a stream.
absl::Status LaunchWork(const Work& work, cudaStream_t stream);

}  // namespace gpu
}  // namespace pipelab

#endif  // PIPELAB_KERNELS_CUDA_CUDA_GRAPH_H_
