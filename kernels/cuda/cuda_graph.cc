#include "kernels/cuda/cuda_graph.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"

namespace pipelab {
namespace gpu {
namespace {

// How the kernel is launched, which may need leave for its shared memory.
cudaError_t Describe(const Work& work, KernelLaunch* launch) {
  constexpr int64_t kWithoutAsking = 48 * 1024;
  work.entry(work.arguments, launch);
  if (launch->shared_bytes <= kWithoutAsking) return cudaSuccess;
  return cudaFuncSetAttribute(launch->function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(launch->shared_bytes));
}

// The error would come out of a later call.
bool Served(cudaError_t error) {
  if (error == cudaSuccess) return true;
  cudaGetLastError();
  return false;
}

// The node that the stream's capture ends with; null: several, or none.
cudaGraphNode_t LastNode(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;  // NOLINT(runtime/int): the library's type
  cudaGraph_t graph = nullptr;
  const cudaGraphNode_t* nodes = nullptr;
  const cudaGraphEdgeData* edges = nullptr;
  size_t count = 0;
  if (!Served(cudaStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &count))) {
    return nullptr;
  }
  return status == cudaStreamCaptureStatusActive && count == 1 ? nodes[0] : nullptr;
}

class CudaGraph final : public Graph {
 public:
  // Takes the graph. Nodes are of the pieces; null: a piece that cannot be changed.
  CudaGraph(cudaStream_t stream, cudaGraph_t graph, cudaGraphExec_t ready,
            std::vector<cudaGraphNode_t> nodes)
      : stream_(stream), graph_(graph), ready_(ready), nodes_(std::move(nodes)) {}
  ~CudaGraph() override {
    cudaStreamSynchronize(stream_);  // it may be on its way
    cudaGraphExecDestroy(ready_);
    cudaGraphDestroy(graph_);
  }

  // Launches that are on their way keep the arguments that they had.
  bool Change(int i, const Work& work) override {
    if (nodes_[i] == nullptr) return false;
    switch (work.kind) {
      case WorkKind::kKernel:
        return ChangeKernel(nodes_[i], work);
      case WorkKind::kCopy: {
        const auto& copy = *static_cast<const CopyWork*>(work.arguments);
        return Served(cudaGraphExecMemcpyNodeSetParams1D(ready_, nodes_[i], copy.to, copy.from,
                                                         copy.bytes, cudaMemcpyDefault));
      }
      case WorkKind::kFill: {
        const auto& fill = *static_cast<const FillWork*>(work.arguments);
        cudaMemsetParams params = {};
        params.dst = fill.to;
        params.value = static_cast<unsigned>(fill.value);
        params.elementSize = 1;
        params.width = fill.bytes;
        params.height = 1;
        return Served(cudaGraphExecMemsetNodeSetParams(ready_, nodes_[i], &params));
      }
      case WorkKind::kProduct:
      case WorkKind::kConvolution:
        return false;
    }
    return false;
  }

  absl::Status Launch() override {
    return CudaStatus(cudaGraphLaunch(ready_, stream_),
                      absl::StrCat("a graph of ", nodes_.size(), " pieces of work"));
  }

 private:
  bool ChangeKernel(cudaGraphNode_t node, const Work& work) {
    KernelLaunch launch;
    if (!Served(Describe(work, &launch))) return false;
    cudaKernelNodeParams params = {};
    params.func = const_cast<void*>(launch.function);
    params.gridDim = dim3(launch.blocks);
    params.blockDim = dim3(kThreads);
    params.sharedMemBytes = static_cast<unsigned>(launch.shared_bytes);
    params.kernelParams = launch.arguments;
    return Served(cudaGraphExecKernelNodeSetParams(ready_, node, &params));
  }

  const cudaStream_t stream_;
  const cudaGraph_t graph_;
  const cudaGraphExec_t ready_;
  const std::vector<cudaGraphNode_t> nodes_;
};

}  // namespace

std::unique_ptr<Graph> CaptureGraph(cudaStream_t stream, const WorkList& list,
                                    const std::function<absl::Status(const Work&)>& launch) {
  if (!Served(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed))) return nullptr;
  std::vector<cudaGraphNode_t> nodes;
  cudaGraphNode_t last = nullptr;
  bool ok = true;
  for (int i = 0; i < list.size() && ok; ++i) {
    const Work work = list[i];
    ok = launch(work).ok();
    const cudaGraphNode_t before = std::exchange(last, LastNode(stream));
    nodes.push_back(work.can_change() && last != before ? last : nullptr);
  }
  cudaGraph_t graph = nullptr;
  ok &= Served(cudaStreamEndCapture(stream, &graph));
  cudaGetLastError();  // of a launch that was refused
  cudaGraphExec_t ready = nullptr;
  if (ok && graph != nullptr && Served(cudaGraphInstantiate(&ready, graph, 0))) {
    return std::make_unique<CudaGraph>(stream, graph, ready, std::move(nodes));
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return nullptr;
}

absl::Status LaunchWork(const Work& work, cudaStream_t stream) {
  switch (work.kind) {
    case WorkKind::kKernel: {
      KernelLaunch launch;
      cudaError_t error = Describe(work, &launch);
      if (error == cudaSuccess) {
        error = cudaLaunchKernel(launch.function, dim3(launch.blocks), dim3(kThreads),
                                 launch.arguments, launch.shared_bytes, stream);
      }
      return CudaStatus(error, work.name);
    }
    case WorkKind::kCopy: {
      const auto& copy = *static_cast<const CopyWork*>(work.arguments);
      return CudaStatus(cudaMemcpyAsync(copy.to, copy.from, copy.bytes, cudaMemcpyDefault, stream),
                        work.name);
    }
    case WorkKind::kFill: {
      const auto& fill = *static_cast<const FillWork*>(work.arguments);
      return CudaStatus(cudaMemsetAsync(fill.to, static_cast<int>(fill.value), fill.bytes, stream),
                        work.name);
    }
    case WorkKind::kProduct:
    case WorkKind::kConvolution:
      break;
  }
  return absl::InternalError(absl::StrCat(work.name, ": not a kernel of our own"));
}

}  // namespace gpu
}  // namespace pipelab
