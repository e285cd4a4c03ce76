#include "experiments/modern/modern_machines.h"

#include <utility>

#include "pipelines/cluster/catalog.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<ModernMachines> LoadModernMachines() {
  ModernMachines m;
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["H100"], LoadCluster("--cluster", "dgx-h100"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["H200"], LoadCluster("--cluster", "dgx-h200"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["B200"], LoadCluster("--cluster", "dgx-b200"));
  PIPELAB_ASSIGN_OR_RETURN(m.by_gpu["GB200"], LoadCluster("--cluster", "gb200-nvl72"));
  PIPELAB_ASSIGN_OR_RETURN(m.nanotron, LoadCluster("--cluster", "h100-cloud"));
  PIPELAB_ASSIGN_OR_RETURN(ClusterSpec a100, LoadCluster("--cluster", "dgx-a100"));
  m.by_gpu["A100-80GB"] = a100;
  a100.device.memory = {Bytes(int64_t{40} << 30), "data sheet of the A100 with 40 GB"};
  a100.device.memory_bandwidth = {BytesPerSecond(1.555e12), "data sheet of the A100 with 40 GB"};
  m.by_gpu["A100-40GB"] = std::move(a100);
  return m;
}

}  // namespace pipelab
