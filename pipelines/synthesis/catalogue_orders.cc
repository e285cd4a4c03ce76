// The catalogue's schedules as words.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/variants.h"
#include "pipelines/synthesis/evaluate.h"
#include "pipelines/synthesis/place_copies.h"
#include "pipelines/synthesis/synthesize.h"

namespace pipelab {
namespace {

constexpr double kCatalogueLeads[] = {0, 1};

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

void AddIfItFits(const SynthesisProblem& p, CatalogueOrder order, WordEvaluator* evaluator,
                 std::vector<CatalogueOrder>* orders) {
  for (int d = 0; d < p.devices; ++d) {
    if (!IsWordOf(p, d, order.words[d])) return;
  }
  order.makespan = evaluator->Makespan(order.words);
  orders->push_back(std::move(order));
}

// As it is; and where the scheme has no copies and the problem may, with those that make room.
void AddWords(const SynthesisProblem& p, const std::string& name, const OrderWords& words,
              WordEvaluator* evaluator, std::vector<CatalogueOrder>* orders) {
  AddIfItFits(p, {name, words, 0}, evaluator, orders);
  bool copies = false;
  for (const auto& word : words) copies |= std::any_of(word.begin(), word.end(), IsCopy);
  if (copies || !p.HasCopies()) return;
  for (const double lead : kCatalogueLeads) {
    OrderWords with = CopiesAsNeeded(p, words, lead);
    if (with.empty()) continue;
    AddIfItFits(p, {absl::StrCat(name, ", copies as needed"), std::move(with), 0}, evaluator,
                orders);
  }
}

// Schedules of one replica over the problem's stages, with the problem's times where they are
// taken.
void ForEachSchedule(const SynthesisProblem& p,
                     absl::FunctionRef<void(const std::string&, const Schedule&)> use) {
  if (p.stages() % p.devices != 0) return;
  constexpr uint32_t kOther = kStageGraph | kForwardOnly | kNoGradients;
  for (const Scheme& scheme : Catalog()) {
    if (!TrainsAsSerial(scheme) || (scheme.options & kOther) != 0) continue;
    if (((scheme.options & kTokenSlices) != 0) != (p.slices > 1)) continue;
    const bool own = (scheme.options & kVirtualStages) == 0;
    if (own && scheme.default_virtual_stages != p.stages() / p.devices) continue;
    SchemeParams sizes;
    sizes.devices = p.devices;
    sizes.micro_batches = p.micro_batches;
    sizes.slices = p.slices > 1 ? p.slices : 0;
    sizes.virtual_stages = own ? 0 : p.stages() / p.devices;
    // Orders of F, I and W alone; where an R belongs is known.
    sizes.recompute = p.RecomputesAll();
    for (const bool timed : {false, true}) {
      if (timed && (scheme.options & kPassTimes) == 0) continue;
      if (timed) sizes.times = TimesOf(p);
      for (const SchemeParams& params : Variants(scheme, sizes)) {
        const absl::StatusOr<Schedule> schedule = MakeSchedule(scheme.name, params);
        if (schedule.ok()) use(NameOf(scheme, params), *schedule);
      }
    }
  }
}

}  // namespace

std::vector<CatalogueOrder> CatalogueOrders(const SynthesisProblem& p) {
  std::vector<CatalogueOrder> orders;
  WordEvaluator evaluator(p);
  ForEachSchedule(p, [&](const std::string& name, const Schedule& schedule) {
    const absl::StatusOr<OrderWords> words = WordsOf(p, schedule);
    if (words.ok()) AddWords(p, name, *words, &evaluator, &orders);
  });
  std::stable_sort(orders.begin(), orders.end(),
                   [](const auto& a, const auto& b) { return a.makespan < b.makespan; });
  return orders;
}

std::vector<std::vector<bool>> OffloadedInCatalogue(const SynthesisProblem& p) {
  std::vector<std::vector<bool>> all;
  ForEachSchedule(p, [&](const std::string&, const Schedule& schedule) {
    std::vector<bool> stages(p.stages(), false);
    if (schedule.num_stages() != p.stages() || schedule.placement.num_replicas() != 1) return;
    for (int s = 0; s < p.stages(); ++s) {
      if (schedule.placement.groups[0][s] != std::vector<int>{p.device_of_stage[s]}) return;
    }
    for (const auto& list : schedule.order) {
      for (const Action& a : list) {
        if (a.kind == ActionKind::kOffload) stages[a.stage] = true;
      }
    }
    if (std::find(stages.begin(), stages.end(), true) == stages.end()) return;
    if (std::find(all.begin(), all.end(), stages) == all.end()) all.push_back(std::move(stages));
  });
  return all;
}

}  // namespace pipelab
