// The catalogue's schedules as words.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/synthesize.h"

namespace pipelab {
namespace {

PassTimes TimesOf(const SynthesisProblem& p) {
  PassTimes times;
  int64_t hop = 0;
  for (int s = 0; s < p.stages(); ++s) {
    times.forward.push_back(Nanoseconds(p.lengths.forward[s]));
    times.backward_input.push_back(Nanoseconds(p.lengths.backward_input[s]));
    times.backward_weight.push_back(Nanoseconds(p.lengths.backward_weight[s]));
    times.recompute.push_back(Nanoseconds(p.lengths.recompute[s]));
    if (s + 1 < p.stages()) hop = std::max(hop, p.lengths.hop[s]);
  }
  times.hop = {Nanoseconds(hop)};
  return times;
}

std::string NameOf(const Scheme& scheme, const SchemeParams& params) {
  std::string name(scheme.name);
  if (params.group_size > 0) absl::StrAppend(&name, " group_size=", params.group_size);
  return name;
}

}  // namespace

std::vector<CatalogueOrder> CatalogueOrders(const SynthesisProblem& p) {
  std::vector<CatalogueOrder> orders;
  if (p.stages() % p.devices != 0) return orders;
  WordEvaluator evaluator(p);
  constexpr uint32_t kOther = kTokenSlices | kStageGraph | kForwardOnly | kNoGradients;
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme) || (scheme.options & kOther) != 0) continue;
    const bool own = (scheme.options & kVirtualStages) == 0;
    if (own && scheme.default_virtual_stages != p.stages() / p.devices) continue;
    SchemeParams sizes;
    sizes.devices = p.devices;
    sizes.micro_batches = p.micro_batches;
    sizes.virtual_stages = own ? 0 : p.stages() / p.devices;
    // Orders of F, I and W alone; where an R belongs is known.
    sizes.recompute = p.RecomputesAll();
    for (const bool timed : {false, true}) {
      if (timed && (scheme.options & kPassTimes) == 0) continue;
      if (timed) sizes.times = TimesOf(p);
      for (const SchemeParams& params : Variants(scheme, sizes)) {
        const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
        if (!schedule.ok()) continue;
        absl::StatusOr<OrderWords> words = WordsOf(p, *schedule);
        if (!words.ok()) continue;
        bool fits = true;
        for (int d = 0; d < p.devices; ++d) fits = fits && IsWordOf(p, d, (*words)[d]);
        if (!fits) continue;
        const int64_t makespan = evaluator.Makespan(*words);
        orders.push_back({NameOf(scheme, params), *std::move(words), makespan});
      }
    }
  }
  std::stable_sort(orders.begin(), orders.end(),
                   [](const auto& a, const auto& b) { return a.makespan < b.makespan; });
  return orders;
}

}  // namespace pipelab
