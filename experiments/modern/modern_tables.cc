#include "experiments/modern/modern_tables.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/modern/modern_calibration.h"
#include "experiments/modern/modern_repeats.h"
#include "experiments/modern/modern_switches.h"
#include "experiments/predict/error_summary.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

struct Axis {
  const char* name;
  std::function<std::string(const ModernResult&)> value;
};

std::vector<Axis> Axes() {
  const auto size = [](const char* name, int64_t ModernRow::*field) {
    return Axis{name,
                [field](const ModernResult& r) { return absl::StrFormat("%4d", (*r.row).*field); }};
  };
  return {{"kind", [](const ModernResult& r) { return ModernKindName(r.kind); }},
          {"source and GPU",
           [](const ModernResult& r) { return absl::StrCat(r.row->group, ", ", r.row->gpu); }},
          {"kind, source and GPU",
           [](const ModernResult& r) {
             return absl::StrCat(ModernKindName(r.kind), ", ", r.row->group, ", ", r.row->gpu);
           }},
          {"precision", [](const ModernResult& r) { return r.row->precision; }},
          {"model", [](const ModernResult& r) { return r.row->model; }},
          size("GPUs", &ModernRow::gpus),
          size("T", &ModernRow::tensor),
          size("P", &ModernRow::pipeline),
          size("E", &ModernRow::expert),
          {"micro-batch up to",
           [](const ModernResult& r) {
             int64_t power = 1;
             while (power < r.row->micro_batch) power *= 2;
             return absl::StrFormat("%4d", power);
           }},
          {"sharding",
           [](const ModernResult& r) { return r.row->sharding.empty() ? "-" : r.row->sharding; }}};
}

// add(axis, value, chooses its rows) for each value that a row has of those that count.
template <class Add>
void ForEachValue(const ModernResults& all, const ModernChoice& counts, const Add& add) {
  for (const Axis& axis : Axes()) {
    std::set<std::string> values;
    for (const ModernResult& r : all) {
      if (counts(r)) values.insert(axis.value(r));
    }
    for (const std::string& value : values) {
      add(axis, value, [&](const ModernResult& r) { return axis.value(r) == value; });
    }
  }
}

std::vector<Cell> ErrorCells(const std::string& axis, const std::string& value,
                             const ModernResults& all, const ModernChoice& choice) {
  const std::vector<TimedPrediction> times = TimesOf(all, choice);
  const ErrorSummary s = Summarise(times);
  const ErrorSummary nearest = Summarise(NearestTimesOf(all, choice));
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

}  // namespace

Table CoverageTable(const ModernResults& all) {
  Table t("coverage", "Rows by source: how many are predicted, and why the others are not");
  t.AddKey("source");
  t.AddKey("gpu", "GPU");
  t.AddKey("precision");
  t.AddKey("models");
  t.AddColumn({"rows", "rows", "", "", Origin::kComputed, 0});
  t.AddColumn({"predicted", "predicted", "", "", Origin::kComputed, 0});
  t.AddColumn({"why_not", "why not", "", "", Origin::kComputed, 0});
  struct Source {
    int rows = 0;
    std::map<std::string, int> reasons;
  };
  std::map<std::pair<ModernRuns, ModernKind>, Source> sources;
  for (const ModernResult& r : all) {
    Source& s = sources[{RunsOf(*r.row), r.kind}];
    ++s.rows;
    if (!r.why_not.empty()) ++s.reasons[r.why_not];
  }
  for (const auto& [key, source] : sources) {
    const auto& [name, kind] = key;
    const auto& [rows, reasons] = source;
    int missing = 0;
    std::vector<std::string> words;
    for (const auto& [why, count] : reasons) {
      missing += count;
      words.push_back(absl::StrCat(count, " ", why));
    }
    t.AddRow({Label(std::get<0>(name)), Label(std::get<1>(name)), Label(std::get<2>(name)),
              Label(ModernKindName(kind)), Computed(rows), Computed(rows - missing),
              words.empty() ? Missing("all are") : Computed(absl::StrJoin(words, ", "))});
  }
  return t;
}

Table ErrorTable(const ModernResults& all) {
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
  ForEachValue(
      all, [](const ModernResult& r) { return r.judged(); },
      [&](const Axis& axis, const std::string& value, const ModernChoice& has) {
        t.AddRow(ErrorCells(axis.name, value, all, has));
      });
  t.AddNote(
      "Above 0, with sign: predicted slower than measured. What calibrates is left out: the H100 "
      "rows in bf16 of Nemotron-4 340B and GPT-3 175B of the DGX Cloud recipes and of MPT 70B of "
      "llm-foundry. The nearest row is of "
      "the same source and another model, scaled by the flops of a GPU: a yardstick.");
  return t;
}

Table MemoryTable(const ModernResults& all) {
  Table t("memory", "Peak memory of a device: predicted against measured");
  t.AddKey("axis");
  t.AddKey("value");
  t.AddColumn({"rows", "rows", "", "", Origin::kComputed, 0});
  t.AddColumn({"median_error", "median error", "median", "%", Origin::kComputed, 1});
  t.AddColumn({"bias", "mean with sign", "bias", "%", Origin::kComputed, 1});
  ForEachValue(
      all, [](const ModernResult& r) { return r.judged() && r.row->peak_gib.has_value(); },
      [&](const Axis& axis, const std::string& value, const ModernChoice& has) {
        const ErrorSummary s = Summarise(PeaksOf(all, has));
        t.AddRow({Label(axis.name), Label(value), Computed(static_cast<double>(s.rows)),
                  Computed(ToPercent(s.median)), Computed(ToPercent(s.bias))});
      });
  return t;
}

Table AssumedTable(const ModernResults& all) {
  Table t("assumed", "Rows without a printed micro-batch, taken as one sample");
  t.AddKey("row");
  t.AddColumn({"measured", "measured", "", "s", Origin::kPublished, 2});
  t.AddColumn({"predicted", "predicted", "", "s", Origin::kComputed, 2});
  t.AddColumn({"error", "error", "", "%", Origin::kComputed, 1});
  for (const ModernResult& r : all) {
    if (!r.why_not.empty() || !r.assumed) continue;
    const double measured = *r.row->Seconds();
    t.AddRow({Label(r.row->id), Published(measured, r.row->tag), Computed(r.seconds),
              Computed(ToPercent(r.seconds / measured - 1))});
  }
  t.AddNote(
      "Megatron-LM's example of 175B and torchtitan's pipelines have micro-batches of one sample. "
      "Megatron-LM's rows print neither recomputation nor chunks of a device; both are taken as "
      "none. These rows are in no other table and in no claim.");
  return t;
}

Table TooLargeTable(const ModernResults& all) {
  Table t("too_large", "Runs that do not fit by the memory model");
  t.AddKey("row");
  t.AddColumn({"memory", "fullest device", "", "GiB", Origin::kComputed, 1});
  t.AddColumn({"above", "above its memory", "", "%", Origin::kComputed, 1});
  t.AddColumn({"recompute", "recomputation as printed", "", "", Origin::kComputed, 0});
  for (const ModernResult& r : all) {
    if (!r.why_not.empty() || r.fits()) continue;
    t.AddRow({Label(r.row->id), Computed(ToGiB(r.memory)),
              Computed(ToPercent(r.memory / r.device_memory - 1)),
              Computed(r.row->recompute.empty() ? "not printed" : r.row->recompute)});
  }
  return t;
}

Table SwitchTable(const ModernResults& all) {
  Table t("switches", "Matched experiments: a step's time after one switch over that before");
  t.AddKey("row");
  t.AddKey("before");
  t.AddColumn({"measured", "measured", "", "%", Origin::kPublished, 1});
  t.AddColumn({"predicted", "predicted", "", "%", Origin::kComputed, 1});
  for (const ModernSwitch& s : SwitchesOf(all)) {
    t.AddRow({Label(s.after->row->id), Label(s.before->row->id),
              Published(ToPercent(s.measured()), s.after->row->tag),
              Computed(ToPercent(s.predicted()))});
  }
  return t;
}

Table RepeatTable(const ModernResults& all) {
  Table t("repeats", "Layouts that ran with both of ZeRO's stages 0 and 1 (nanotron)");
  t.AddKey("pipelines");
  t.AddColumn({"layouts", "layouts", "", "", Origin::kComputed, 0});
  t.AddColumn({"apart", "more than 1.5 apart", "", "", Origin::kComputed, 0});
  t.AddColumn({"median", "longer over shorter time, median", "", "", Origin::kComputed, 2});
  t.AddColumn({"largest", "largest", "", "", Origin::kComputed, 1});
  t.AddColumn({"predicted", "largest predicted", "", "", Origin::kComputed, 2});
  t.AddColumn({"best_share", "within 20 % of one price, at best", "", "%", Origin::kComputed, 0});
  t.AddColumn({"best_rank", "rank correlation, at best", "", "", Origin::kComputed, 2});
  for (const bool pipelines : {false, true}) {
    const ModernRepeats r =
        RepeatsOf(all, [&](const ModernResult& r) { return (r.row->pipeline > 1) == pipelines; });
    t.AddRow({Label(pipelines ? "with" : "without"), Computed(static_cast<double>(r.layouts)),
              Computed(static_cast<double>(r.apart)), Computed(r.median_ratio),
              Computed(r.largest_ratio), Computed(r.largest_predicted),
              Computed(ToPercent(r.best_share())), Computed(r.best_rank)});
  }
  t.AddNote(
      "Both stages sum all gradients once a step. One price for both is within 20 % of both times "
      "where they are at most 1.5 apart; at best it is the geometric mean of the two.");
  return t;
}

}  // namespace pipelab
