#include "experiments/modern/modern_claims.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/modern/modern_repeats.h"
#include "experiments/modern/modern_switches.h"
#include "experiments/predict/error_summary.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kNoRow[] = "no row could be predicted";
constexpr char kExpertsReason[] =
    "one layout took up to 1.9 times as long under one release as under another; moonlight's runs "
    "of one micro-batch take nearly twice as long as predicted, and gpt-oss is predicted too fast "
    "(its attention's sinks and clamps are free here)";
constexpr char kAdaptersReason[] =
    "AutoModel's runs of 70B with pipelines take half as long again as predicted: eager PyTorch; "
    "DGX Cloud's of 8B are predicted too slow";

bool IsNanotron(const ModernResult& r) { return r.row->group == "nanotron"; }

Claim TimesClaim(const char* id, const char* text, const ModernResults& all,
                 const ModernChoice& choice, double median, double mean, double rank,
                 const std::string& reason) {
  Claim c = OwnClaim(id, text);
  const std::vector<TimedPrediction> times = TimesOf(all, choice);
  if (times.empty()) {
    NotMade(&c, kNoRow);
    return c;
  }
  const ErrorSummary s = Summarise(times);
  const double correlation = RankCorrelation(times);
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(s.median),
        absl::StrFormat("median %.1f %%, mean %.1f %%, mean with sign %.1f %%, rank correlation "
                        "%.2f over %d rows",
                        ToPercent(s.median), ToPercent(s.mean), ToPercent(s.bias), correlation,
                        s.rows));
  std::string accepted = absl::StrFormat("median at most %.0f %%", ToPercent(median));
  if (mean < 1) absl::StrAppendFormat(&accepted, ", mean at most %.0f %%", ToPercent(mean));
  if (rank > 0) absl::StrAppendFormat(&accepted, ", rank correlation at least %.1f", rank);
  MetIf(&c, s.median <= median && s.mean <= mean && correlation >= rank, accepted, reason);
  return c;
}

Claim CoverageClaim(const ModernResults& all) {
  Claim c = OwnClaim("modern.covered", "every row of the table is predicted");
  const auto predicted = std::count_if(all.begin(), all.end(),
                                       [](const ModernResult& r) { return r.why_not.empty(); });
  if (predicted == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "rows";
  Found(&c, Origin::kComputed, static_cast<double>(predicted),
        absl::StrFormat("%d of %d rows", predicted, all.size()));
  MetIf(&c, static_cast<size_t>(predicted) == all.size(), "all rows",
        "Mamba layers, activations on the host and GPUs of others are not priced, and some rows do "
        "not print their batch or sharding");
  return c;
}

Claim MemoryClaim(const ModernResults& all) {
  Claim c = OwnClaim("modern.nanotron_memory", "peak memory of nanotron's runs");
  const std::vector<TimedPrediction> peaks = PeaksOf(all, IsNanotron);
  if (peaks.empty()) {
    NotMade(&c, kNoRow);
    return c;
  }
  const ErrorSummary s = Summarise(peaks);
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(s.median),
        absl::StrFormat("median %.1f %%, mean with sign %.1f %% over %d rows", ToPercent(s.median),
                        ToPercent(s.bias), s.rows));
  MetIf(&c, s.median <= 0.12, "median at most 12 %",
        "many runs with T above 1 keep all rows of the inputs of each block's two first products, "
        "which its code gathers again by default");
  return c;
}

Claim FitsClaim(const ModernResults& all) {
  Claim c = OwnClaim("modern.fits", "every run that ran fits by the memory model");
  int64_t judged = 0, fit = 0, inferred = 0;
  double most = 0;
  std::string names;
  for (const ModernResult& r : all) {
    if (!r.why_not.empty() || r.assumed) continue;
    ++judged;
    fit += r.fits();
    inferred += r.inferred && r.fits();
    if (r.fits()) continue;
    if (names.size() < 200) absl::StrAppend(&names, names.empty() ? "" : ", ", r.row->id);
    most = std::max(most, r.memory / r.device_memory);
  }
  if (judged == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "rows";
  Found(&c, Origin::kSimulated, static_cast<double>(fit),
        absl::StrFormat("%d of %d rows, %d of them with recomputation that they do not print", fit,
                        judged, inferred));
  MetIf(&c, fit == judged, "every row",
        absl::StrFormat("the others are up to %.1f %% above their device's memory: %s",
                        ToPercent(most - 1), names));
  return c;
}

Claim OrderClaim(const char* id, const char* text, const ModernResults& all,
                 const ModernChoice& choice, const std::string& reason) {
  Claim c = OwnClaim(id, text);
  const RankingSummary order = RankPairs(TimesOf(all, choice));
  if (order.pairs == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(order.share()),
        absl::StrFormat("%.1f %% of %d pairs", ToPercent(order.share()), order.pairs));
  MetIf(&c, order.share() >= 0.92, "at least 92 %", reason);
  return c;
}

// Why no price of a layout tells the sweep's times.
std::string NanotronReason(const ModernResults& all) {
  const ModernRepeats r =
      RepeatsOf(all, [](const ModernResult& r) { return IsNanotron(r) && r.row->pipeline > 1; });
  return absl::StrFormat(
      "runs with pipelines are of two states of the software: its benchmark script starts those "
      "with P above 1 again that ran before a job number, which no row prints. Of %d layouts that "
      "ran with both of ZeRO's stages %d took more than 1.5 times as long with one as with the "
      "other, up to %.0f times: one price for both is within 20 %% for at most %.0f %% of them, "
      "and its rank correlation at most %.2f",
      r.layouts, r.apart, r.largest_ratio, ToPercent(r.best_share()), r.best_rank);
}

std::string ReleasesReason(const ModernResults& all) {
  const RankingSummary r =
      RankPairs(TimesOf(all, [](const ModernResult& r) { return !IsNanotron(r); }));
  return absl::StrFormat(
      "%d of the pairs have one price, nearly all of them one layout under two releases of its "
      "software; of the other %d, most of models with experts, %d are in order",
      r.ties, r.pairs - r.ties, r.right);
}

// A switch that hardly changed the time has no direction to tell.
Claim SwitchClaim(const ModernResults& all) {
  constexpr double kLeast = 0.01;
  Claim c = OwnClaim("modern.switches",
                     "of matched experiments on one switch that changed a step's time by at least "
                     "1 %, slower or faster is told");
  int64_t judged = 0, right = 0;
  std::string wrong;
  for (const ModernSwitch& s : SwitchesOf(all)) {
    if (std::abs(s.measured()) < kLeast) continue;
    ++judged;
    right += s.right();
    if (!s.right()) absl::StrAppend(&wrong, wrong.empty() ? "" : ", ", s.after->row->id);
  }
  if (judged == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "%";
  const double share = static_cast<double>(right) / static_cast<double>(judged);
  Found(&c, Origin::kSimulated, ToPercent(share), absl::StrFormat("%d of %d", right, judged));
  MetIf(&c, share >= 0.9, "at least 90 %", absl::StrCat("not told: ", wrong));
  return c;
}

}  // namespace

std::vector<Claim> ModernClaims(const ModernResults& all) {
  const auto of = [](const std::vector<std::string>& groups, const std::string& precision) {
    return [groups, precision](const ModernResult& r) {
      return r.kind == ModernKind::kDense &&
             absl::EndsWith(r.row->precision, precision) &&  // MXFP8 is FP8
             std::find(groups.begin(), groups.end(), r.row->group) != groups.end();
    };
  };
  return {
      CoverageClaim(all),
      TimesClaim("modern.dense_bf16",
                 "a step of dense models in bf16, Megatron-Bridge and DGX Cloud", all,
                 of({"dgxc", "mbridge"}, "BF16"), 0.08, 0.12, 0,
                 "dgx-h100 has assumed host and collective times of eager code, where these runs "
                 "have fused kernels and hide their collectives"),
      TimesClaim("modern.dense_fp8", "a step of dense models in fp8, Megatron-Bridge and DGX Cloud",
                 all, of({"dgxc", "mbridge"}, "FP8"), 0.12, 0.18, 0,
                 "layers that stay in bf16 are not told, but for head and routers"),
      TimesClaim(
          "modern.fsdp", "a step of torchtitan and llm-foundry", all,
          of({"titan", "foundry"}, "BF16"), 0.12, 1, 0,
          "predicted too fast, the smaller the model the more: small products are slower than is "
          "known of them, and blocks of eager PyTorch launch more than Megatron-LM's, which are "
          "priced"),
      TimesClaim("modern.nanotron_time", "a step of nanotron's sweep", all, IsNanotron, 0.2, 1, 0.9,
                 NanotronReason(all)),
      TimesClaim(
          "modern.nanotron_no_pipeline", "the same without pipelines", all,
          [](const ModernResult& r) { return IsNanotron(r) && r.row->pipeline == 1; }, 0.2, 1, 0.9,
          "predicted too fast: as for the others of eager PyTorch"),
      TimesClaim(
          "modern.experts", "a step of models with experts, all sources", all,
          [](const ModernResult& r) { return r.kind == ModernKind::kExperts; }, 0.15, 0.2, 0,
          kExpertsReason),
      TimesClaim(
          "modern.adapters", "a step that trains adapters alone (LoRA), all sources", all,
          [](const ModernResult& r) { return r.kind == ModernKind::kAdapters; }, 0.15, 0.2, 0,
          kAdaptersReason),
      OrderClaim(
          "modern.order",
          "of two layouts of one model on as many GPUs whose times differ by more than 10 %, "
          "the faster one is told",
          all, [](const ModernResult&) { return true; },
          "nearly all pairs are nanotron's, whose pipelined runs have times that sizes do "
          "not explain"),
      OrderClaim(
          "modern.order_without_nanotron", "the same without nanotron's rows", all,
          [](const ModernResult& r) { return !IsNanotron(r); }, ReleasesReason(all)),
      SwitchClaim(all),
      MemoryClaim(all),
      FitsClaim(all),
  };
}

}  // namespace pipelab
