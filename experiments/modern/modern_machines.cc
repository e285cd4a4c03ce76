#include "experiments/modern/modern_machines.h"

#include <utility>

#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// `base` with a device of another memory.
ClusterSpec WithMemory(ClusterSpec base, Bytes size, BytesPerSecond bandwidth, const char* source) {
  base.device.memory = {size, source};
  base.device.memory_bandwidth = {bandwidth, source};
  return base;
}

}  // namespace

absl::StatusOr<ModernMachines> LoadModernMachines() {
  ModernMachines m;
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["H100"], LoadCluster("--cluster", "dgx-h100"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["H200"], LoadCluster("--cluster", "dgx-h200"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["B200"], LoadCluster("--cluster", "dgx-b200"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["GB200"], LoadCluster("--cluster", "gb200-nvl72"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["B300"], LoadCluster("--cluster", "dgx-b300"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["GB300"], LoadCluster("--cluster", "gb300-nvl72"));
  PIPELAB_ASSIGN_OR_RETURN(m.nanotron, LoadCluster("--cluster", "h100-cloud"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["A100-80GB"], LoadCluster("--cluster", "dgx-a100"));
  m.by_gpu["A100-40GB"] = WithMemory(m.by_gpu["A100-80GB"], Bytes(int64_t{40} << 30),
                                     BytesPerSecond(1.555e12), "data sheet of the A100 with 40 GB");
  m.by_gpu["H100-96GB-500W"] =
      WithMemory(m.by_gpu["H100"], Bytes(int64_t{96} << 30), BytesPerSecond(2.4e12),
                 "torchtitan's pages on its machine, H100s of 500 W with HBM2e");
  // Some runs had more nodes than the machine that the file describes.
  for (auto& [gpu, cluster] : m.by_gpu) cluster.levels.back().size *= 8;
  return m;
}

}  // namespace pipelab
