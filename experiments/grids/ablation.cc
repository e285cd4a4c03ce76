#include "experiments/grids/ablation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kBreadthFirst[] = "breadth-first", kDepthFirst[] = "depth-first",
               kWholeMessages[] = "depth-first, whole messages";

double Gain(const RankedStep& a, const RankedStep& b) {
  return ToPercent(a.tflops_per_device / b.tflops_per_device - 1);
}

// The gain of breadth-first over another method at one batch, where both fit.
absl::optional<double> GainAt(const BatchSweep& sweep, int64_t batch, const char* over) {
  const RankedStep* breadth = sweep.Find(kBreadthFirst, batch);
  const RankedStep* other = sweep.Find(over, batch);
  if (breadth == nullptr || other == nullptr) return absl::nullopt;
  return Gain(*breadth, *other);
}

void AddGainNotes(const BatchSweep& sweep, const std::vector<int64_t>& batches,
                  std::vector<std::string>* notes) {
  const double devices = static_cast<double>(sweep.devices);
  const absl::optional<double> whole = GainAt(sweep, batches.front(), kWholeMessages);
  if (whole.has_value()) {
    notes->push_back(absl::StrFormat(
        "Breadth-first at the smallest batch: %+.0f %% over a depth-first that loses nothing but "
        "the overlap, and whose devices all send whole messages.",
        *whole));
  }
  double most = 0, most_at = 0;
  for (const int64_t batch : batches) {
    const absl::optional<double> gain = GainAt(sweep, batch, kDepthFirst);
    if (!gain.has_value() || *gain <= most) continue;
    most = *gain;
    most_at = static_cast<double>(batch) / devices;
  }
  notes->push_back(absl::StrFormat(
      "The largest gain over all batches: %+.0f %%, at %.3f samples a GPU.", most, most_at));
}

Claim LeadClaim(const BatchSweep& sweep, const std::vector<int64_t>& batches) {
  Claim c = OwnClaim("breadth_first.leads",
                     "breadth-first is the fastest method below one sample a GPU, as its paper's "
                     "figures have it (recalled)");
  int64_t below = 0;
  for (const int64_t batch : batches) below += batch < sweep.devices ? 1 : 0;
  if (below == 0) {
    NotMade(&c, "no batch is below one sample a GPU");
    return c;
  }
  const std::vector<std::string> faster = FasterThan(sweep, kBreadthFirst, batches);
  c.unit = "batches";
  Found(
      &c, Origin::kSimulated, static_cast<double>(faster.size()),
      absl::StrCat("another method is faster ", faster.size(), " times over ", below, " batches"));
  MetIf(&c, faster.empty(), "no other method is faster", absl::StrJoin(faster, "; "));
  return c;
}

Claim GapClaim(const BatchSweep& sweep, const std::vector<int64_t>& batches) {
  Claim c = OwnClaim(
      "breadth_first.gap",
      "the gap to depth-first closes as the batch grows, as in the paper's figures (recalled)");
  const absl::optional<double> first = GainAt(sweep, batches.front(), kDepthFirst);
  absl::optional<double> last;
  int64_t largest = 0;
  for (const int64_t batch : batches) {
    const absl::optional<double> gain = GainAt(sweep, batch, kDepthFirst);
    if (!gain.has_value() || batch == batches.front()) continue;
    last = gain;
    largest = batch;
  }
  if (!first.has_value() || !last.has_value()) {
    NotMade(&c, "there are not two batches at which both fit");
    return c;
  }
  c.unit = "%";
  Found(&c, Origin::kSimulated, *last - *first,
        absl::StrFormat("%+.1f %% at batch %d, %+.1f %% at %d", *first, batches.front(), *last,
                        largest));
  MetIf(
      &c, *last < *first, "less at the largest batch at which both fit than at the smallest",
      "with as many micro-batches as pipeline devices the two orders are one, and the gap is that "
      "of messages alone; with more, breadth-first idles less");
  return c;
}

struct Change {
  std::string name;
  StepConfig config;
};

// What each end is without one of its parts, and between them the way from one to the other.
std::vector<Change> Changes(const StepConfig& depth, const StepConfig& breadth) {
  std::vector<Change> steps;
  StepConfig c = depth;
  c.whole_messages = true;
  steps.push_back({"depth-first, every device sending whole messages", c});
  steps.push_back({"depth-first, its best", depth});
  c = depth;
  c.overlap_pipeline = true;
  steps.push_back({"+ messages beside compute", c});
  c.overlap_data = true;
  steps.push_back({"+ reductions beside compute", c});
  c.virtual_stages =
      std::max(c.virtual_stages, breadth.pipeline * breadth.virtual_stages / c.pipeline);
  steps.push_back({"+ stages as short as breadth-first's: a smaller bubble", c});
  c.scheme = breadth.scheme;
  steps.push_back({"+ breadth-first order", c});
  c.sharding = breadth.sharding;
  steps.push_back({"+ breadth-first's sharding", c});
  c = breadth;
  if (breadth.sharding == Sharding::kFully) {
    c.residency = Residency::kMicroBatch;
    steps.push_back({"breadth-first, weights gathered for each micro-batch", c});
  }
  c = breadth;
  c.overlap_pipeline = c.overlap_data = false;
  steps.push_back({"breadth-first, nothing beside compute", c});
  steps.push_back({"breadth-first, its best", breadth});
  return steps;
}

}  // namespace

std::vector<std::string> HeadlineNotes(const BatchSweep& sweep,
                                       const std::vector<int64_t>& batches) {
  std::vector<std::string> notes;
  if (batches.empty()) return notes;
  AddGainNotes(sweep, batches, &notes);
  return notes;
}

std::vector<Claim> OrderingClaims(const BatchSweep& sweep, const std::vector<int64_t>& batches) {
  if (batches.empty()) return {};
  return {LeadClaim(sweep, batches), GapClaim(sweep, batches)};
}

std::vector<std::string> FasterThan(const BatchSweep& sweep, const std::string& method,
                                    const std::vector<int64_t>& batches) {
  std::vector<std::string> faster;
  for (const int64_t batch : batches) {
    const RankedStep* one = sweep.Find(method, batch);
    const double a_device = static_cast<double>(batch) / static_cast<double>(sweep.devices);
    if (one == nullptr || a_device >= 1) continue;
    for (const SweepCell& cell : sweep.cells) {
      if (cell.batch != batch || !cell.best.has_value()) continue;
      if (cell.best->step_time >= one->step_time) continue;
      faster.push_back(absl::StrFormat("At %.3f samples a GPU %s is faster than %s, by %.1f %%",
                                       a_device, cell.method, method, Gain(*cell.best, *one)));
    }
  }
  return faster;
}

absl::StatusOr<Table> AblationTable(const StepModel& model, const BatchSweep& sweep,
                                    int64_t batch) {
  Table t(absl::StrCat("ablation_", batch),
          absl::StrCat("From depth-first to breadth-first, batch ", batch));
  t.AddKey("change");
  t.AddColumn({"tflops", "Tflop/s a GPU", "", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"gain", "over depth-first", "", "%", Origin::kComputed, 1});
  t.AddColumn({"idle", "idle", "", "%", Origin::kSimulated, 1});
  t.AddColumn(
      {"pipeline", "pipeline communication exposed", "pipeline", "%", Origin::kSimulated, 1});
  t.AddColumn({"data", "data-parallel communication exposed", "data", "%", Origin::kSimulated, 1});
  t.AddColumn({"config", "configuration", "", "", Origin::kComputed, 0});
  const RankedStep* breadth = sweep.Find(kBreadthFirst, batch);
  const RankedStep* depth = sweep.Find(kDepthFirst, batch);
  if (breadth == nullptr || depth == nullptr) {
    t.AddNote("One of the two does not fit at this batch.");
    return t;
  }
  for (const Change& step : Changes(depth->config, breadth->config)) {
    const absl::StatusOr<StepPrediction> point = PredictStep(model, step.config);
    if (!point.ok()) {
      const Cell missing = Missing(std::string(point.status().message()));
      t.AddRow({Label(step.name), missing, missing, missing, missing, missing,
                Computed(step.config.ToString())});
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const StepBreakdown b, BreakDown(model, *point));
    t.AddRow({Label(step.name), Simulated(point->tflops_per_device),
              Computed(ToPercent(point->tflops_per_device / depth->tflops_per_device - 1)),
              Simulated(ToPercent(b.idle)), Simulated(ToPercent(b.pipeline)),
              Simulated(ToPercent(b.data)), Computed(step.config.ToString())});
  }
  t.AddNote(
      "Memory is not looked at between the two bests. With whole messages, as without "
      "Megatron-LM's scatter and gather, all devices of a tensor-parallel group send the same "
      "rows.");
  return t;
}

}  // namespace pipelab
