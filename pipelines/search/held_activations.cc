#include "pipelines/search/held_activations.h"

#include <algorithm>

#include "pipelines/schedules/closed_forms.h"
#include "pipelines/schedules/formula.h"

namespace pipelab {

std::vector<int64_t> HeldActivations::ByForm(const StepConfig& c) const {
  if (c.has_schedule_file() || cache_.HasSchedule(c.scheme)) return {};
  if (StepCache::ChoosesOrder(c)) return {};
  const ClosedForm* form = FindClosedForm(c.scheme, SchemeSizes(c));
  if (form == nullptr) return {};
  FormulaValues values = ValuesOf(c.scheme, SchemeSizes(c)).value();
  std::vector<int64_t> held;
  for (int d = 0; d < c.pipeline; ++d) {
    values['r'] = d;
    held.push_back(static_cast<int64_t>(EvaluateFormula(form->in_flight, values).value()));
  }
  return held;
}

const std::vector<int64_t>& HeldActivations::Of(const StepConfig& c) {
  const auto key = std::make_tuple(c.scheme, c.pipeline, c.virtual_stages, c.micro_batches,
                                   c.group_size, c.replicas, c.concatenation);
  auto found = known_.find(key);
  if (found == known_.end()) found = known_.emplace(key, ByForm(c)).first;
  return found->second;
}

double LeastBytes(int64_t activations, std::vector<double> kept, double most) {
  std::sort(kept.begin(), kept.end());
  double bytes = 0;
  auto left = static_cast<double>(activations);
  for (size_t i = 0; i < kept.size() && left > 0; left -= most, ++i) {
    bytes += std::min(left, most) * kept[i];
  }
  return bytes;
}

}  // namespace pipelab
