#include "pipelines/search/search_request.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/cluster/cluster.h"

namespace pipelab {

Bytes MemoryFor(const StepModel& model, const SearchRequest& search) {
  return search.memory == Bytes(0) ? model.cluster->device.memory.value : search.memory;
}

absl::Status CheckSearch(const StepModel& model, const SearchRequest& search) {
  if (search.devices < 1 || search.devices > model.cluster->max_devices()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--devices=", search.devices, ": must be from 1 to ",
                     model.cluster->max_devices(), ", the devices of ", model.cluster->name));
  }
  if (search.batch < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch=", search.batch, ": must be at least 1"));
  }
  if (search.top < 1) {
    return absl::InvalidArgumentError(absl::StrCat("--top=", search.top, ": must be at least 1"));
  }
  return absl::OkStatus();
}

// What binds where nothing was found.
absl::Status NothingFits(const StepModel& model, const SearchRequest& search,
                         const SearchRefusals& refusals) {
  const std::string what = absl::StrCat("no configuration of ", search.devices, " devices of ",
                                        model.cluster->name, " for --batch=", search.batch);
  if (refusals.memory > 0) {
    constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;
    return absl::NotFoundError(
        absl::StrFormat("%s: not enough memory; the nearest, %s, needs %.2f GiB of %.2f", what,
                        refusals.nearest, static_cast<double>(refusals.least_memory.value()) / kGiB,
                        static_cast<double>(MemoryFor(model, search).value()) / kGiB));
  }
  if (refusals.scheme > 0)
    return absl::NotFoundError(absl::StrCat(what, ": ", refusals.scheme_reason));
  if (refusals.accept > 0) {
    const bool pipelines = std::all_of(search.methods.begin(), search.methods.end(),
                                       [](const SearchMethod& m) { return m.pipeline; });
    return absl::NotFoundError(absl::StrCat(
        what, ": of the ", refusals.accept, " that these methods have, none is as --fixed asks",
        pipelines ? "; their pipelines have at least 2 devices" : ""));
  }
  if (refusals.batch > 0) {
    return absl::NotFoundError(absl::StrCat(
        what, ": the batch is not a multiple of the data-parallel degree of any grid; --batch=",
        search.devices, " would be one for all"));
  }
  return absl::NotFoundError(absl::StrCat(
      what, ": tensor parallelism does not divide the model, and pipelines are longer than its ",
      model.model->num_groups(), " layers"));
}

std::vector<Recompute> RecomputesOf(const SearchRequest& search) {
  if (!search.fixed.has("recompute")) return search.recompute;
  return {search.fixed.values.recompute};
}

}  // namespace pipelab
