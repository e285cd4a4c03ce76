#include "experiments/fill/fill_tables.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "glog/logging.h"
#include "pipelines/fill/fill_scheduler.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/schedules/vocabulary.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kMainScheme[] = "1f1b";
constexpr int64_t kLeastGpus = 1024;
constexpr int kMostMicroBatches = 64, kLeastMicroBatches = 8;
constexpr double kPublishedDays = 82;  // at 1 K GPUs, PipeFill
constexpr double kArrivals = 20;       // seconds between two requests: about what the gaps can do
// The table of schemes has 8 pipeline devices, whose blocks every number of stages divides.
constexpr int kSchemeMicroBatches = 16;
MainModel SchemeModel() {
  MainModel model;
  model.blocks = 32;
  model.pipeline = 8;
  return model;
}

absl::StatusOr<ScaleResults> ScaleOn(const ClusterSpec& cluster, bool all) {
  ScaleResults results;
  results.cluster = cluster.name;
  for (const NumberType type : {NumberType::kFp32, NumberType::kFp16}) {
    PIPELAB_ASSIGN_OR_RETURN(FillSet set, FillSetOn(cluster, type));
    results.sets.push_back(std::move(set));
  }
  const MainModel model;
  for (int m = kMostMicroBatches; m >= kLeastMicroBatches; m /= 2) {
    const int64_t gpus = kLeastGpus * (kMostMicroBatches / m);
    if (!all && gpus == 4 * kLeastGpus) continue;  // no claim is of it
    LOG(INFO) << gpus << " GPUs of " << cluster.name;
    ScalePoint p;
    PIPELAB_ASSIGN_OR_RETURN(p.equal, EqualStages(model, cluster, kMainScheme, gpus, m));
    PIPELAB_ASSIGN_OR_RETURN(p.whole, WholeStep(model, cluster, kMainScheme, gpus, m));
    for (const FillSet& set : results.sets) {
      p.equal_gains.push_back(GainsOf(set, p.equal));
      p.whole_gains.push_back(GainsOf(set, p.whole));
    }
    results.points.push_back(std::move(p));
  }
  return results;
}

SchemePointOfFill SchemeOf(const FillStudy& study, const std::string& scheme) {
  SchemePointOfFill p;
  const MainModel model = SchemeModel();
  p.run.scheme = scheme;
  absl::StatusOr<MainRun> run =
      EqualStages(model, study.options.cluster, scheme, int64_t{model.pipeline} * model.tensor,
                  kSchemeMicroBatches);
  if (!run.ok()) {
    p.missing = std::string(run.status().message());
    return p;
  }
  p.run = *std::move(run);
  if (p.run.largest_device > p.run.memory) {
    p.missing = absl::StrFormat("needs %.1f GiB of a GPU", ToGiB(p.run.largest_device));
    return p;
  }
  p.mean = MeanOf(GainsOf(study.scale.sets[0], p.run));
  return p;
}

}  // namespace

double ScaleResults::DaysAt(const ScalePoint& point) const {
  return kPublishedDays * (point.whole.step / points[0].whole.step);
}

absl::StatusOr<FillStudy> RunFillStudy(const FillStudyOptions& options) {
  FillStudy study;
  study.options = options;
  PIPELAB_ASSIGN_OR_RETURN(study.scale, ScaleOn(options.cluster, /*all=*/true));
  for (const ClusterSpec& other : options.others) {
    PIPELAB_ASSIGN_OR_RETURN(ScaleResults scale, ScaleOn(other, /*all=*/false));
    study.others.push_back(std::move(scale));
  }
  std::vector<std::string> schemes = options.schemes;
  if (schemes.empty()) {
    for (const Scheme& scheme : Catalog()) {
      if (TakesVocabularyParts(scheme)) continue;  // the model has none
      if ((scheme.options & kForwardOnly) == 0) schemes.emplace_back(scheme.name);
    }
  }
  for (const std::string& scheme : schemes) {
    LOG(INFO) << scheme;
    study.schemes.push_back(SchemeOf(study, scheme));
  }
  return study;
}

Table ScaleTable(const FillStudy& study) {
  Table t("scale", "A training of 39.7 B parameters on more and more GPUs, its batch unchanged");
  t.AddKey("gpus", "GPUs");
  t.AddKey("micro_batches", "M");
  t.AddColumn({"bubble_formula", "15 / (M + 15)", "", "%", Origin::kComputed, 1});
  t.AddColumn({"bubble_equal", "bubble, equal stages", "equal", "%", Origin::kSimulated, 1});
  t.AddColumn({"bubble", "bubble, whole step", "whole", "%", Origin::kSimulated, 1});
  t.AddColumn({"days", "days", "", "", Origin::kSimulated, 1});
  t.AddColumn({"days_published", "days", "", "", Origin::kPublished, 0});
  for (const FillSet& set : study.scale.sets) {
    t.AddColumn({absl::StrCat("gain_equal_", set.name),
                 absl::StrCat("gain, equal stages, ", set.name), absl::StrCat("equal ", set.name),
                 "%", Origin::kSimulated, 1});
    t.AddColumn({absl::StrCat("gain_", set.name), absl::StrCat("gain, whole step, ", set.name),
                 absl::StrCat("whole ", set.name), "%", Origin::kSimulated, 1});
    t.AddColumn({absl::StrCat("worth_", set.name), absl::StrCat("worth, whole step, ", set.name),
                 absl::StrCat("worth ", set.name), "GPUs", Origin::kSimulated, 0});
  }
  for (const ScalePoint& p : study.scale.points) {
    const int m = p.equal.micro_batches;
    std::vector<Cell> row = {
        Label(static_cast<double>(p.equal.gpus)), Label(m),
        Computed(ToPercent(15.0 / (m + 15))),     Simulated(ToPercent(p.equal.bubble)),
        Simulated(ToPercent(p.whole.bubble)),     Simulated(study.scale.DaysAt(p))};
    if (p.equal.gpus == 1024) {
      row.push_back(Published(kPublishedDays, "read-2nd"));
    } else if (p.equal.gpus == 8192) {
      row.push_back(Published(26, "read-2nd"));
    } else {
      row.push_back(Missing("not at hand"));
    }
    for (size_t set = 0; set < study.scale.sets.size(); ++set) {
      row.push_back(Simulated(ToPercent(MeanOf(p.equal_gains[set]).gain)));
      row.push_back(Simulated(ToPercent(MeanOf(p.whole_gains[set]).gain)));
      row.push_back(Simulated(MeanOf(p.whole_gains[set]).gpus_worth));
    }
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "Days are 82, the published ones at 1,024 GPUs, times the whole step's length over that "
      "at 1,024.");
  return t;
}

Table KindTable(const FillStudy& study) {
  const ScalePoint& p = study.scale.points.back();
  Table t("fill_jobs",
          absl::StrCat("Each fill job in all gaps of ", p.whole.gpus, " GPUs, whole step"));
  t.AddKey("numbers");
  t.AddKey("job");
  t.AddColumn({"alone", "on a GPU of its own", "alone", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"time_share", "share of the gaps' time", "time", "%", Origin::kSimulated, 1});
  t.AddColumn({"memory_share", "gaps with the memory", "memory", "%", Origin::kSimulated, 1});
  t.AddColumn({"retained", "of its own speed", "speed", "%", Origin::kSimulated, 1});
  t.AddColumn({"samples", "samples of a round", "samples", "", Origin::kSimulated, 0});
  t.AddColumn({"gain", "gain", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"worth", "worth", "", "GPUs", Origin::kSimulated, 0});
  for (size_t s = 0; s < study.scale.sets.size(); ++s) {
    const FillSet& set = study.scale.sets[s];
    for (size_t k = 0; k < set.kinds.size(); ++k) {
      const FillGain& g = p.whole_gains[s][k];
      if (!g.fits()) {
        std::vector<Cell> row = {Label(set.name), Label(set.kinds[k].name),
                                 Simulated(set.kinds[k].rate().value() * 1e-12)};
        row.insert(row.end(), 6, Missing("too large for every gap"));
        t.AddRow(std::move(row));
        continue;
      }
      t.AddRow({Label(set.name), Label(set.kinds[k].name),
                Simulated(set.kinds[k].rate().value() * 1e-12), Simulated(ToPercent(g.time_share)),
                Simulated(ToPercent(g.memory_share)), Simulated(ToPercent(g.retained)),
                Value(Origin::kSimulated, absl::StrCat(g.least_samples, " to ", g.most_samples)),
                Simulated(ToPercent(g.gain)), Simulated(g.gpus_worth)});
    }
  }
  return t;
}

Table SchemeTable(const FillStudy& study) {
  Table t(
      "schemes",
      absl::StrCat("What each scheme's bubble holds: 26 B parameters, P = 8, T = 8, M "
                   "= ",
                   kSchemeMicroBatches, ", equal stages, fill jobs in ", study.scale.sets[0].name));
  t.AddKey("scheme");
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"idle", "idle of the step", "idle", "%", Origin::kSimulated, 1});
  t.AddColumn({"memory", "largest GPU", "memory", "GiB", Origin::kSimulated, 1});
  t.AddColumn({"time_share", "share of the gaps' time", "time", "%", Origin::kSimulated, 1});
  t.AddColumn({"memory_share", "gaps with the memory", "fits", "%", Origin::kSimulated, 1});
  t.AddColumn({"gain", "gain", "", "%", Origin::kSimulated, 1});
  for (const SchemePointOfFill& p : study.schemes) {
    std::vector<Cell> row = {Label(p.run.scheme)};
    if (p.run.gaps.empty()) {
      row.insert(row.end(), 6, Missing(p.missing));
    } else {
      row.push_back(Simulated(ToPercent(p.run.bubble)));
      row.push_back(Simulated(ToPercent(p.run.idle_share())));
      row.push_back(Simulated(ToGiB(p.run.largest_device)));
      if (p.missing.empty()) {
        row.push_back(Simulated(ToPercent(p.mean.time_share)));
        row.push_back(Simulated(ToPercent(p.mean.memory_share)));
        row.push_back(Simulated(ToPercent(p.mean.gain)));
      } else {
        row.insert(row.end(), 3, Missing(p.missing));
      }
    }
    t.AddRow(std::move(row));
  }
  return t;
}

absl::StatusOr<Table> PolicyTable(const FillStudy& study) {
  const ScalePoint& p = study.scale.points.back();
  Table t("policies", absl::StrCat("Policies for ", study.options.requests,
                                   " jobs on the 16 devices of one pipeline, GPU t of each group"));
  t.AddKey("policy");
  t.AddColumn({"mean_wait", "from arrival to end", "wait", "h", Origin::kSimulated, 2});
  t.AddColumn({"missed", "missed deadlines", "missed", "%", Origin::kSimulated, 1});
  t.AddColumn({"busy", "devices busy", "busy", "%", Origin::kSimulated, 1});
  t.AddColumn({"end", "last end", "", "h", Origin::kSimulated, 1});
  FillRequestOptions options;
  options.count = study.options.requests;
  options.kinds = 0;
  options.mean_gap_s = kArrivals;
  std::vector<std::vector<double>> rates(p.whole.gaps.size());
  for (const FillGain& g : p.whole_gains[0]) {
    if (!g.fits()) continue;  // nobody would ask for it
    ++options.kinds;
    for (size_t d = 0; d < rates.size(); ++d) rates[d].push_back(g.speeds[d]);
  }
  if (options.kinds == 0) {
    t.AddNote("No fill job fits into a gap.");
    return t;
  }
  const std::vector<FillRequest> requests = GenerateFillRequests(/*seed=*/1, options);
  for (const NamedFillPolicy& policy : FillPolicies()) {
    PIPELAB_ASSIGN_OR_RETURN(const FillOutcome o, ScheduleFill(requests, rates, policy.before));
    t.AddRow({Label(std::string(policy.name)), Simulated(o.mean_wait_s / 3600),
              Simulated(ToPercent(static_cast<double>(o.missed_deadlines) /
                                  static_cast<double>(options.count))),
              Simulated(ToPercent(o.busy_share)), Simulated(o.end_s / 3600)});
  }
  t.AddNote(
      "Arrivals and sizes are generated (seed 1, Pareto 1.2 from a minute to a day on a GPU of "
      "its own): no trace of a cluster's jobs is in a package.");
  return t;
}

}  // namespace pipelab
