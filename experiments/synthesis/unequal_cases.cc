// Models whose stages are unequal, and devices that are; and token slices.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/synthesis/synthesis_study.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"
#include "pipelines/synthesis/check_proof.h"
#include "pipelines/synthesis/problem.h"
#include "pipelines/synthesis/step_synthesis.h"
#include "pipelines/synthesis/synthesize.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct UnequalCase {
  std::string model, cluster, config;
  int slow = -1;  // a device at half speed
  int most_slices = 1;
};

// What it takes for some schedule of the catalogue to fit.
std::vector<UnequalCase> Cases() {
  struct Sizes {
    const char *model, *cluster;
    std::vector<const char*> configs;
  };
  const std::vector<Sizes> models = {
      {"llama-3-8b",
       "dgx-h100",
       {"1f1b:P=4,T=2,M=8", "1f1b:P=4,T=2,M=16", "1f1b:P=8,M=16", "1f1b:P=8,M=32"}},
      {"llama-3-70b", "dgx-h100", {"1f1b:P=4,T=8,M=8", "1f1b:P=8,T=8,M=16", "1f1b:P=8,T=8,M=32"}},
      {"deepseek-v3",
       "dgx-b200",
       {"1f1b:P=4,D=64,E=64,M=8,recompute=blocks", "1f1b:P=8,D=32,E=32,M=16,recompute=blocks",
        "1f1b:P=8,D=32,E=32,M=32,recompute=blocks"}}};
  std::vector<UnequalCase> cases;
  for (const int slow : {-1, 1}) {
    for (const Sizes& sizes : models) {
      for (const char* config : sizes.configs) {
        cases.push_back({sizes.model, sizes.cluster, config, slow});
      }
    }
  }
  return cases;
}

absl::StatusOr<UnequalCaseRow> RunUnequalCase(const UnequalCase& c,
                                              const SynthesisStudySize& size) {
  PIPELAB_ASSIGN_OR_RETURN(const auto on, ModelOnCluster::Load(c.model, c.cluster, "bf16"));
  PIPELAB_ASSIGN_OR_RETURN(const StepConfig config, ParseStepConfig("", c.config));
  StepCache cache(on->step());
  StepSynthesisOptions options;
  options.search.rounds = size.rounds;
  options.search.widest = size.widest;
  options.search.time_limit = absl::Seconds(size.unequal_limit_s);
  options.most_slices = c.most_slices;
  if (c.slow >= 0) {
    options.limits.speeds.assign(config.pipeline, 1);
    options.limits.speeds[c.slow] = 0.5;
  }
  PIPELAB_ASSIGN_OR_RETURN(const StepSynthesis found, SynthesizeStep(&cache, config, options));
  UnequalCaseRow row;
  row.name = absl::StrCat(c.model, " ", c.config.substr(c.config.find(':') + 1),
                          c.slow < 0 ? "" : absl::StrCat(", device ", c.slow, " at half speed"));
  row.placement = found.best().placement;
  row.scheme = found.catalogue.scheme;
  row.step_ms = ToMs(found.best().prediction.step_time);
  row.passes_ms = ToMs(Nanoseconds(found.best().synthesis.proof.makespan));
  row.bound_ms = ToMs(Nanoseconds(found.best().synthesis.proof.lower_bound()));
  row.stopped = found.best().synthesis.stopped;
  if (!row.scheme.empty()) row.catalogue_ms = ToMs(found.catalogue.prediction.step_time);
  return row;
}

// P = 8, M = 16, F = I = W = 1 ms of a whole micro-batch, room for two; a slice takes its part of
// both.
absl::StatusOr<UnequalCaseRow> RunEqualSlices(int most_slices, const SynthesisStudySize& size) {
  constexpr int kDevices = 8, kMicroBatches = 16, kParts = 4;
  UnequalCaseRow row;
  row.name = "equal times P=8,M=16, room for 2";
  const auto ms = [](int64_t parts) { return static_cast<double>(parts) / kParts; };
  for (int slices = 1; slices <= most_slices; slices *= 2) {
    const int part = kParts / slices;
    SynthesisProblem p = UnitProblem(kDevices, kMicroBatches, LoopedDevices(kDevices, 1));
    p.slices = slices;
    const auto parts = static_cast<size_t>(kDevices) * slices;
    for (auto* list : {&p.lengths.forward, &p.lengths.recompute, &p.lengths.backward_input,
                       &p.lengths.backward_weight}) {
      list->assign(parts, part);
    }
    p.limits.forward.assign(parts, {Bytes(part), Bytes(part)});
    p.limits.backward_input.assign(parts, {});
    p.limits.backward_weight.assign(parts, {Bytes(0), Bytes(-part)});
    p.limits.free.assign(kDevices, Bytes(2 * kParts));
    SynthesisOptions options;
    options.rounds = size.rounds;
    options.widest = size.widest;
    options.exact_nodes = size.exact_nodes;
    options.time_limit = absl::Seconds(size.small_limit_s);
    PIPELAB_ASSIGN_OR_RETURN(const Synthesis found, Synthesize(p, options));
    PIPELAB_RETURN_IF_ERROR(CheckProof(p, found.proof));
    row.stopped = row.stopped || found.stopped;
    const double own = ms(found.catalogue.makespan);
    if (!found.catalogue.words.empty() && (row.scheme.empty() || own < row.catalogue_ms)) {
      row.scheme = found.catalogue.scheme;
      row.catalogue_ms = own;
    }
    if (slices > 1 && ms(found.proof.makespan) >= row.step_ms) continue;
    row.placement = absl::StrCat("looped V=1, ", slices, slices == 1 ? " slice" : " slices");
    row.step_ms = row.passes_ms = ms(found.proof.makespan);
    row.bound_ms = ms(found.proof.lower_bound());
  }
  return row;
}

}  // namespace

absl::StatusOr<std::vector<SlicesRow>> RunSliceCases(const SynthesisStudySize& size) {
  std::vector<SlicesRow> rows;
  for (int i = 0; i < std::min(size.slice_cases, 4); ++i) {
    for (const int slices : {1, 2, 4}) {
      UnequalCase c{"llama-3-8b", "dgx-h100", absl::StrCat("1f1b:P=8,M=", 2 << i)};
      c.most_slices = slices;
      PIPELAB_ASSIGN_OR_RETURN(UnequalCaseRow row,
                               i == 0 ? RunEqualSlices(slices, size) : RunUnequalCase(c, size));
      rows.push_back({slices, std::move(row)});
    }
  }
  return rows;
}

Table SlicesTable(const std::vector<SlicesRow>& rows) {
  Table t("slices", "With up to so many token slices of a micro-batch");
  t.AddKey("case");
  t.AddKey("slices");
  const auto column = [&t](const char* metric, const char* heading, const char* unit) {
    t.AddColumn({.metric = metric,
                 .title = heading,
                 .unit = unit,
                 .origin = Origin::kSimulated,
                 .decimals = 2});
  };
  column("catalogue", "step, best of the catalogue", "ms");
  column("synthesized", "step, synthesized", "ms");
  column("bound", "lower bound of its placement's passes", "ms");
  column("gain", "shorter by", "%");
  for (const SlicesRow& row : rows) {
    const UnequalCaseRow& r = row.found;
    const Cell none = Missing("no schedule of the catalogue fits");
    t.AddRow({Label(r.name), Label(absl::StrCat(row.slices)),
              r.scheme.empty() ? none : Simulated(r.catalogue_ms).WithNote(r.scheme),
              Simulated(r.step_ms).WithNote(absl::StrCat(
                  r.placement, r.stopped ? "; the limit of time ended the search" : "")),
              Simulated(r.bound_ms), r.scheme.empty() ? none : Simulated(ToPercent(r.gain()))});
  }
  return t;
}

// Rows of a case follow one another, from whole micro-batches on.
Claim SlicesClaim(const std::vector<SlicesRow>& rows) {
  int longer = 0, shorter = 0, compared = 0;
  double without = 0;
  for (const SlicesRow& row : rows) {
    const UnequalCaseRow& r = row.found;
    if (row.slices == 1) without = r.step_ms;
    longer += r.step_ms > without || (!r.scheme.empty() && r.step_ms > r.catalogue_ms) ? 1 : 0;
    if (row.slices == 1) continue;
    ++compared;
    shorter += r.step_ms < without ? 1 : 0;
  }
  Claim c = OwnClaim("synthesis.slices",
                     "with token slices free, steps shorter than without; none is longer than "
                     "without, or than the catalogue's best at the same memory");
  c.unit = "steps";
  Found(&c, Origin::kSimulated, shorter,
        absl::StrFormat("%d of %d shorter, %d longer", shorter, compared, longer));
  MetIf(&c, longer == 0 && shorter > 0, "none longer, some shorter",
        "what is left of the search goes to one placement, and slices make others the first");
  return c;
}

absl::StatusOr<std::vector<UnequalCaseRow>> RunUnequalCases(const SynthesisStudySize& size) {
  std::vector<UnequalCaseRow> rows;
  const std::vector<UnequalCase> all = Cases();
  for (size_t i = 0; i < all.size() && static_cast<int>(i) < size.cases; ++i) {
    absl::StatusOr<UnequalCaseRow> row = RunUnequalCase(all[i], size);
    if (!row.ok()) {
      return absl::Status(row.status().code(), absl::StrCat(all[i].model, " ", all[i].config, ": ",
                                                            row.status().message()));
    }
    rows.push_back(*std::move(row));
  }
  return rows;
}

}  // namespace pipelab
