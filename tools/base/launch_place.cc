#include "tools/base/launch_place.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace pipelab {
namespace {

bool Number(const char* variable, int* value) {
  const char* text = std::getenv(variable);
  return text != nullptr && absl::SimpleAtoi(text, value);
}

}  // namespace

LaunchPlace PlaceFromEnvironment() {
  LaunchPlace place;
  if (Number("OMPI_COMM_WORLD_RANK", &place.process) &&
      Number("OMPI_COMM_WORLD_SIZE", &place.processes)) {
    int here = 0;
    place.one_host = Number("OMPI_COMM_WORLD_LOCAL_SIZE", &here) && here == place.processes;
    return place;
  }
  if (Number("PMIX_RANK", &place.process) && Number("SLURM_NTASKS", &place.processes)) {
    int hosts = 0;
    place.one_host = Number("SLURM_STEP_NUM_NODES", &hosts) && hosts == 1;
    return place;
  }
  return LaunchPlace();
}

}  // namespace pipelab
