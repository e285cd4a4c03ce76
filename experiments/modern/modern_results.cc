#include "experiments/modern/modern_results.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/validation/error_summary.h"

namespace pipelab {
namespace {

constexpr char kNoRow[] = "no row could be predicted";

using Results = std::vector<ModernResult>;
using Choice = std::function<bool(const ModernResult&)>;

// The largest dense model of a source calibrates its machines. nanotron's runs with pipelines took
// times that no size explains, its largest model's most of all, so it calibrates nothing.
const std::map<std::string, std::string> kCalibrating = {{"dgxc", "nemotron4-340b"},
                                                         {"foundry", "mpt-70b"}};

// And dgx-h100's share of the peak in products is from GPT-3 175B of the DGX Cloud recipes.
bool Calibrates(const ModernRow& row) {
  const auto model = kCalibrating.find(row.group);
  return (model != kCalibrating.end() && model->second == row.model) ||
         (row.group == "dgxc" && absl::StartsWith(row.model, "gpt3-175b"));
}

// The mean of |log(predicted / measured)| where all efficiencies are times `factor`; none where no
// step can be predicted.
absl::optional<double> ErrorWith(const std::vector<std::pair<double, ModernStep>>& runs,
                                 double factor) {
  double sum = 0;
  for (const auto& [seconds, step] : runs) {
    ModernStep changed = step;
    changed.cluster = WithEfficiency(step.cluster, factor);
    const absl::StatusOr<StepPrediction> p = Predict(changed);
    if (!p.ok()) return absl::nullopt;
    sum += std::abs(std::log(ToSeconds(p->step_time) / seconds));
  }
  return sum / static_cast<double>(runs.size());
}

// Source, GPU and precision.
using Runs = std::tuple<std::string, std::string, std::string>;
Runs RunsOf(const ModernRow& row) { return {row.group, row.gpu, row.precision}; }

// Of each of them that has rows to calibrate it: one number, to two digits.
std::map<Runs, double> FactorsOf(const std::vector<ModernRow>& rows,
                                 const std::vector<ModernModel>& models,
                                 const ModernMachines& machines) {
  std::map<Runs, std::vector<std::pair<double, ModernStep>>> runs;
  for (const ModernRow& row : rows) {
    const auto model = kCalibrating.find(row.group);
    if (model == kCalibrating.end() || model->second != row.model) continue;
    absl::StatusOr<ModernStep> step = StepOfRow(row, models, machines);
    if (step.ok()) runs[RunsOf(row)].push_back({*row.Seconds(), *std::move(step)});
  }
  std::map<Runs, double> factors;
  for (const auto& [key, of_key] : runs) {
    double least = std::numeric_limits<double>::infinity();
    for (int percent = 50; percent <= 160; ++percent) {
      const absl::optional<double> error = ErrorWith(of_key, percent / 100.0);
      if (!error.has_value() || *error >= least) continue;
      least = *error;
      factors[key] = percent / 100.0;
    }
  }
  return factors;
}

std::string Alike(const ModernRow& r) {
  return absl::StrCat(r.group, "/", r.gpu, "/", r.precision, "/", r.model, "/", r.gpus, "/",
                      r.batch, "/", r.tokens);
}

// Powers of two between two layouts, over all sizes that a layout has.
double Distance(const ModernRow& a, const ModernRow& b) {
  double sum = 0;
  for (const auto size : {&ModernRow::gpus, &ModernRow::tensor, &ModernRow::pipeline,
                          &ModernRow::micro_batch, &ModernRow::batch, &ModernRow::tokens}) {
    sum += std::abs(std::log2(static_cast<double>(a.*size) / static_cast<double>(b.*size)));
  }
  return sum + (a.sharding == b.sharding ? 0 : 1) + (a.recompute == b.recompute ? 0 : 1);
}

struct Predicted {
  ModernResult* result;
  double flops;  // of a GPU and step
};

void AddNearest(std::vector<Predicted>* all) {
  for (Predicted& p : *all) {
    const ModernRow& row = *p.result->row;
    double least = std::numeric_limits<double>::infinity();
    for (const Predicted& other : *all) {
      const ModernRow& r = *other.result->row;
      if (r.group != row.group || r.gpu != row.gpu || r.precision != row.precision ||
          r.model == row.model) {
        continue;
      }
      const double distance = Distance(row, r);
      if (distance >= least) continue;
      least = distance;
      p.result->nearest_seconds = *r.Seconds() * p.flops / other.flops;
    }
  }
}

std::vector<TimedPrediction> TimesOf(const Results& all, const Choice& choice, bool nearest) {
  std::vector<TimedPrediction> times;
  for (const ModernResult& r : all) {
    if (!r.judged() || !choice(r) || (nearest && !r.nearest_seconds.has_value())) continue;
    times.push_back({Alike(*r.row), *r.row->Seconds(), nearest ? *r.nearest_seconds : r.seconds});
  }
  return times;
}

bool IsNanotron(const ModernResult& r) { return r.row->group == "nanotron"; }

struct Axis {
  const char* name;
  std::function<std::string(const ModernRow&)> value;
};

std::vector<Axis> Axes() {
  const auto size = [](const char* name, int64_t ModernRow::*field) {
    return Axis{name, [field](const ModernRow& r) { return absl::StrFormat("%4d", r.*field); }};
  };
  return {{"source and GPU", [](const ModernRow& r) { return absl::StrCat(r.group, ", ", r.gpu); }},
          {"precision", [](const ModernRow& r) { return r.precision; }},
          {"model", [](const ModernRow& r) { return r.model; }},
          size("GPUs", &ModernRow::gpus),
          size("T", &ModernRow::tensor),
          size("P", &ModernRow::pipeline),
          {"micro-batch up to",
           [](const ModernRow& r) {
             int64_t power = 1;
             while (power < r.micro_batch) power *= 2;
             return absl::StrFormat("%4d", power);
           }},
          {"sharding", [](const ModernRow& r) { return r.sharding.empty() ? "-" : r.sharding; }}};
}

std::vector<Cell> ErrorCells(const std::string& axis, const std::string& value, const Results& all,
                             const Choice& choice) {
  const std::vector<TimedPrediction> times = TimesOf(all, choice, /*nearest=*/false);
  const ErrorSummary s = Summarise(times);
  const ErrorSummary nearest = Summarise(TimesOf(all, choice, /*nearest=*/true));
  const RankingSummary order = RankPairs(times);
  return {Label(axis),
          Label(value),
          Computed(static_cast<double>(s.rows)),
          Computed(ToPercent(s.median)),
          Computed(ToPercent(s.mean)),
          Computed(ToPercent(s.bias)),
          times.size() < 3 ? Missing("fewer than three rows") : Computed(RankCorrelation(times)),
          order.pairs == 0 ? Missing("no two rows of one model, GPUs and batch differ by 10 %")
                           : Computed(ToPercent(order.share())),
          nearest.rows == 0 ? Missing("the source has no other model")
                            : Computed(ToPercent(nearest.median))};
}

absl::optional<double> MemoryError(const ModernResult& r) {
  if (!r.judged() || !r.row->peak_gb.has_value()) return absl::nullopt;
  return static_cast<double>(r.memory.value()) / (*r.row->peak_gb * 1e9) - 1;
}

// As times, in bytes.
std::vector<TimedPrediction> PeaksOf(const Results& all, const Choice& choice) {
  std::vector<TimedPrediction> peaks;
  for (const ModernResult& r : all) {
    if (!MemoryError(r).has_value() || !choice(r)) continue;
    peaks.push_back({"", *r.row->peak_gb * 1e9, static_cast<double>(r.memory.value())});
  }
  return peaks;
}

Claim TimesClaim(const char* id, const char* text, const Results& all, const Choice& choice,
                 double median, double mean, double rank, const char* reason) {
  Claim c = OwnClaim(id, text);
  const std::vector<TimedPrediction> times = TimesOf(all, choice, /*nearest=*/false);
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

Claim CoverageClaim(const Results& all) {
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
        "experts, adapters and 4-bit products are not priced, and some rows do "
        "not print their micro-batch");
  return c;
}

Claim MemoryClaim(const Results& all) {
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
        "devices keep more than the model says where T or P is above 1: about as much as the "
        "logits of one micro-batch for each stage. nanotron's code was not read");
  return c;
}

Claim FitsClaim(const Results& all) {
  Claim c = OwnClaim("modern.fits", "every run that ran fits by the memory model");
  int64_t judged = 0, fit = 0;
  std::string names;
  for (const ModernResult& r : all) {
    if (!r.why_not.empty()) continue;
    ++judged;
    fit += r.memory <= r.device_memory;
    if (r.memory > r.device_memory && names.size() < 200) {
      absl::StrAppend(&names, names.empty() ? "" : ", ", r.row->id);
    }
  }
  if (judged == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "rows";
  Found(&c, Origin::kSimulated, static_cast<double>(fit),
        absl::StrFormat("%d of %d rows", fit, judged));
  MetIf(&c, fit == judged, "every row",
        absl::StrCat("36 print no recomputation, and most must have some; 40 are up to 31 % above: "
                     "what is kept beside the layers, and gradients in 2 bytes under fp8, are not "
                     "theirs. ",
                     names));
  return c;
}

Claim OrderClaim(const Results& all) {
  Claim c = OwnClaim("modern.order",
                     "of two layouts of one model on as many GPUs whose times differ by more than "
                     "10 %, the faster one is told");
  const RankingSummary order = RankPairs(TimesOf(
      all, [](const ModernResult&) { return true; }, /*nearest=*/false));
  if (order.pairs == 0) {
    NotMade(&c, kNoRow);
    return c;
  }
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(order.share()),
        absl::StrFormat("%.1f %% of %d pairs", ToPercent(order.share()), order.pairs));
  MetIf(&c, order.share() >= 0.92, "at least 92 %",
        "nearly all pairs are nanotron's, whose pipelined runs have times that sizes do not "
        "explain");
  return c;
}

}  // namespace

Results PredictAll(const std::vector<ModernRow>& rows, const std::vector<ModernModel>& models,
                   const ModernMachines& machines) {
  Results all;
  all.reserve(rows.size());
  const auto factors = FactorsOf(rows, models, machines);
  std::vector<Predicted> predicted;
  for (const ModernRow& row : rows) {
    ModernResult& r = all.emplace_back();
    r.row = &row;
    r.calibrating = Calibrates(row);
    absl::StatusOr<ModernStep> step = StepOfRow(row, models, machines);
    if (!step.ok()) {
      r.why_not = std::string(step.status().message());
      continue;
    }
    if (const auto factor = factors.find(RunsOf(row)); factor != factors.end()) {
      r.factor = factor->second;
      step->cluster = WithEfficiency(step->cluster, r.factor);
    }
    const absl::StatusOr<StepPrediction> p = Predict(*step);
    if (!p.ok()) {
      r.why_not = std::string(p.status().message());
      continue;
    }
    r.seconds = ToSeconds(p->step_time);
    r.memory = p->largest_device;
    r.device_memory = p->step.device_memory;
    predicted.push_back({&r, p->tflops_per_device * r.seconds});
  }
  AddNearest(&predicted);
  return all;
}

Table CoverageTable(const Results& all) {
  Table t("coverage", "Rows by source: how many are predicted, and why the others are not");
  t.AddKey("source");
  t.AddKey("gpu", "GPU");
  t.AddKey("precision");
  t.AddColumn({"rows", "rows", "", "", Origin::kComputed, 0});
  t.AddColumn({"predicted", "predicted", "", "", Origin::kComputed, 0});
  t.AddColumn({"factor", "efficiency times", "times", "", Origin::kComputed, 2});
  t.AddColumn({"why_not", "why not", "", "", Origin::kComputed, 0});
  struct Source {
    int rows = 0;
    double factor = 1;
    std::map<std::string, int> reasons;
  };
  std::map<Runs, Source> sources;
  for (const ModernResult& r : all) {
    Source& s = sources[RunsOf(*r.row)];
    ++s.rows;
    if (r.why_not.empty()) s.factor = r.factor;
    if (!r.why_not.empty()) ++s.reasons[r.why_not];
  }
  for (const auto& [name, source] : sources) {
    const auto& [rows, factor, reasons] = source;
    int missing = 0;
    std::vector<std::string> words;
    for (const auto& [why, count] : reasons) {
      missing += count;
      words.push_back(absl::StrCat(count, " ", why));
    }
    t.AddRow({Label(std::get<0>(name)), Label(std::get<1>(name)), Label(std::get<2>(name)),
              Computed(rows), Computed(rows - missing),
              missing == rows ? Missing("none is predicted") : Computed(factor),
              words.empty() ? Missing("all are") : Computed(absl::StrJoin(words, ", "))});
  }
  return t;
}

Table ErrorTable(const Results& all) {
  Table t("errors", "A step's time: predicted against measured");
  t.AddKey("axis");
  t.AddKey("value");
  const Origin computed = Origin::kComputed;
  t.AddColumn({"rows", "rows", "", "", computed, 0});
  t.AddColumn({"median_error", "median error", "median", "%", computed, 1});
  t.AddColumn({"mean_error", "mean", "", "%", computed, 1});
  t.AddColumn({"bias", "mean with sign", "bias", "%", computed, 1});
  t.AddColumn({"rank", "rank correlation", "rank", "", computed, 2});
  t.AddColumn({"order", "pairs in order", "order", "%", computed, 0});
  t.AddColumn({"nearest", "median error of the nearest row", "nearest", "%", computed, 1});
  for (const Axis& axis : Axes()) {
    std::map<std::string, bool> values;
    for (const ModernResult& r : all) {
      if (r.judged()) values[axis.value(*r.row)] = true;
    }
    for (const auto& [value, there] : values) {
      t.AddRow(ErrorCells(axis.name, value, all, [&, v = value](const ModernResult& r) {
        return axis.value(*r.row) == v;
      }));
    }
  }
  t.AddNote(
      "Above 0, with sign: predicted slower than measured. What calibrates is left out: Nemotron-4 "
      "340B and GPT-3 175B of the DGX Cloud recipes, MPT 70B of llm-foundry. The nearest row is of "
      "the same source and another model, scaled by the flops of a GPU: a yardstick.");
  return t;
}

Table MemoryTable(const Results& all) {
  Table t("memory", "Peak memory of a device: predicted against measured");
  t.AddKey("axis");
  t.AddKey("value");
  t.AddColumn({"rows", "rows", "", "", Origin::kComputed, 0});
  t.AddColumn({"median_error", "median error", "median", "%", Origin::kComputed, 1});
  t.AddColumn({"bias", "mean with sign", "bias", "%", Origin::kComputed, 1});
  for (const Axis& axis : Axes()) {
    std::map<std::string, bool> values;
    for (const ModernResult& r : all) {
      if (MemoryError(r).has_value()) values[axis.value(*r.row)] = true;
    }
    for (const auto& [value, there] : values) {
      const ErrorSummary s = Summarise(
          PeaksOf(all, [&, v = value](const ModernResult& r) { return axis.value(*r.row) == v; }));
      t.AddRow({Label(axis.name), Label(value), Computed(static_cast<double>(s.rows)),
                Computed(ToPercent(s.median)), Computed(ToPercent(s.bias))});
    }
  }
  return t;
}

std::vector<Claim> ModernClaims(const Results& all) {
  const auto of = [](std::vector<std::string> groups, std::string precision) {
    return [groups, precision](const ModernResult& r) {
      return absl::EndsWith(r.row->precision, precision) &&  // MXFP8 is FP8
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
                 "casts cost nothing in the model, and layers that stay in bf16 are not told"),
      TimesClaim(
          "modern.fsdp", "a step of torchtitan and llm-foundry", all,
          of({"titan", "foundry"}, "BF16"), 0.12, 1, 0,
          "predicted too fast, the smaller the model the more: eager PyTorch has other kernels "
          "than Megatron-LM's, which are priced, and probably more of them"),
      TimesClaim("modern.nanotron_time", "a step of nanotron's sweep", all, IsNanotron, 0.2, 1, 0.9,
                 "two runs of one layout that differ in ZeRO's stage or the micro-batch alone took "
                 "up to 60 times as long as each other, nearly all with P above 1: about 1.5 s a "
                 "micro-batch whatever its size"),
      TimesClaim(
          "modern.nanotron_no_pipeline", "the same without pipelines", all,
          [](const ModernResult& r) { return IsNanotron(r) && r.row->pipeline == 1; }, 0.2, 1, 0.9,
          "predicted too fast: as for the others of eager PyTorch"),
      OrderClaim(all),
      MemoryClaim(all),
      FitsClaim(all),
  };
}

}  // namespace pipelab
