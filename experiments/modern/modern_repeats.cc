#include "experiments/modern/modern_repeats.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "experiments/predict/error_summary.h"

namespace pipelab {
namespace {

// A row's layout, without its sharding.
std::string Layout(const ModernRow& r) {
  return absl::StrCat(r.group, "/", r.gpu, "/", r.precision, "/", r.model, "/", r.recompute, "/",
                      r.gpus, "/", r.tokens, "/", r.batch, "/", r.micro_batch, "/", r.tensor, "/",
                      r.pipeline, "/", r.context, "/", r.expert, "/", r.virtual_stages);
}

double Ratio(double a, double b) { return std::max(a, b) / std::min(a, b); }

}  // namespace

ModernRepeats RepeatsOf(const std::vector<ModernResult>& all, const ModernChoice& choice) {
  std::map<std::string, const ModernResult*> of_stage[2];
  for (const ModernResult& r : all) {
    const bool first = r.row->sharding == "zero1";
    if (!r.judged() || !choice(r) || !(first || r.row->sharding == "zero0")) continue;
    of_stage[first ? 1 : 0][Layout(*r.row)] = &r;
  }
  ModernRepeats repeats;
  std::vector<double> ratios;
  std::vector<TimedPrediction> best;
  for (const auto& [layout, zero0] : of_stage[0]) {
    const auto zero1 = of_stage[1].find(layout);
    if (zero1 == of_stage[1].end()) continue;
    const double a = *zero0->row->Seconds(), b = *zero1->second->row->Seconds();
    ratios.push_back(Ratio(a, b));
    repeats.apart += ratios.back() > 1.2 / 0.8;
    repeats.largest_predicted =
        std::max(repeats.largest_predicted, Ratio(zero0->seconds, zero1->second->seconds));
    for (const double time : {a, b}) best.push_back({"", time, std::sqrt(a * b)});
  }
  repeats.layouts = static_cast<int64_t>(ratios.size());
  if (ratios.empty()) return repeats;
  std::sort(ratios.begin(), ratios.end());
  repeats.median_ratio = (ratios[(ratios.size() - 1) / 2] + ratios[ratios.size() / 2]) / 2;
  repeats.largest_ratio = ratios.back();
  repeats.best_rank = RankCorrelation(best);
  return repeats;
}

}  // namespace pipelab
