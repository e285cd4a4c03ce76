// Rows that say their release take what its recipes switched on: a page of results has one line a
// layout, while its recipes changed from release to release.
//
//   PIPELAB_RETURN_IF_ERROR(TakeReleases(&rows));   // sets kernels and recompute
//
// releases/megatron_bridge.csv has, by release, model, GPU, precision and layout, what
// scripts/performance and perf_recipes of Megatron-Bridge set at the release's tag; tools/cluster/
// bridge_releases.py makes it from a clone. Rows of Megatron-Bridge's main branch since July 2026
// count as 26.08. Rows that it lacks keep what they say themselves.
#ifndef PIPELAB_EXPERIMENTS_MODERN_RELEASE_RECIPES_H_
#define PIPELAB_EXPERIMENTS_MODERN_RELEASE_RECIPES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "experiments/modern/modern_rows.h"

namespace pipelab {

std::string ReleaseOf(const ModernRow& row);  // "26.04.01"; "" where it does not say
absl::Status TakeReleases(std::vector<ModernRow>* rows);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_RELEASE_RECIPES_H_
