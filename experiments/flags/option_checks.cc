#include "experiments/flags/option_checks.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace pipelab {
namespace {

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

double PhysicalMemory() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

absl::Status CheckRange(absl::string_view option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(option, "=", value, ": must be from ", least, " to ", most));
}

absl::Status CheckMemory(const ModelGraph& graph, int64_t micro_batch_size) {
  // In double: the sum over layers of products of sizes at their limits leaves 64 bits.
  double bytes = 4.0 * sizeof(float) * static_cast<double>(graph.num_parameters());
  for (const LayerSpec& layer : graph.layers) {
    const LayerCosts costs = layer.costs(micro_batch_size);
    bytes += static_cast<double>(costs.output.value()) + static_cast<double>(costs.kept.value());
  }
  const double physical = PhysicalMemory();
  if (bytes <= physical) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--micro_batch_size=%d: training this model holds at least %.1f GiB, this "
                      "machine has %.1f; reduce "
                      "--micro_batch_size, --tokens, --hidden or --layers",
                      micro_batch_size, bytes / kGiB, physical / kGiB));
}

}  // namespace pipelab
