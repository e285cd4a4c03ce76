#include "experiments/grids/ablation.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kBreadthFirst[] = "breadth-first", kDepthFirst[] = "depth-first",
               kWholeMessages[] = "depth-first, whole messages";
// Lamy-Poirier 2023, abstract; the study accepts 8 points to either side.
constexpr double kPublishedGain = 43, kAccepted = 8;

double Gain(const GridResult& a, const GridResult& b) {
  return ToPercent(a.tflops_a_device / b.tflops_a_device - 1);
}

// Of breadth-first over another method at one batch, where both fit.
absl::optional<double> GainAt(const BatchSweep& sweep, int64_t batch, const char* over) {
  const GridResult* breadth = sweep.Find(kBreadthFirst, batch);
  const GridResult* other = sweep.Find(over, batch);
  if (breadth == nullptr || other == nullptr) return absl::nullopt;
  return Gain(*breadth, *other);
}

void AddGainNotes(const BatchSweep& sweep, const std::vector<int64_t>& batches,
                  std::vector<std::string>* notes) {
  const double devices = static_cast<double>(sweep.devices);
  const absl::optional<double> smallest = GainAt(sweep, batches.front(), kDepthFirst);
  if (smallest.has_value()) {
    notes->push_back(absl::StrFormat(
        "Breadth-first over depth-first as Megatron-LM runs it, at the smallest batch, %.3f a GPU: "
        "%+.0f %% here; published (read): up to +%.0f %%%s",
        static_cast<double>(batches.front()) / devices, *smallest, kPublishedGain,
        *smallest >= kPublishedGain - kAccepted && *smallest <= kPublishedGain + kAccepted
            ? "."
            : ": a miss. Where there are as many micro-batches as pipeline devices both orders are "
              "the same, and a message that overlaps nothing delays both alike; the ablation says "
              "what is left."));
  }
  const absl::optional<double> whole = GainAt(sweep, batches.front(), kWholeMessages);
  if (whole.has_value()) {
    notes->push_back(absl::StrFormat(
        "%+.0f %% over a depth-first whose devices all send whole messages (Megatron-LM without "
        "its scatter and gather; which of the two was measured is not in the sources at hand).",
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

struct Step {
  std::string name;
  GridConfig config;
};

// What each end is without one of its parts, and between them the way from one to the other.
std::vector<Step> Steps(const GridConfig& depth, const GridConfig& breadth) {
  std::vector<Step> steps;
  GridConfig c = depth;
  c.whole_messages = true;
  steps.push_back({"depth-first, every device sending whole messages", c});
  steps.push_back({"depth-first, its best", depth});
  c = depth;
  c.overlap_pipeline = true;
  steps.push_back({"+ messages beside compute", c});
  c.overlap_data = true;
  steps.push_back({"+ reductions beside compute", c});
  c.loops = std::max(c.loops, breadth.pipeline * breadth.loops / c.pipeline);
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
  for (const std::string& faster : FasterThan(sweep, kBreadthFirst, batches)) {
    notes.push_back(absl::StrCat(faster, ": not as in the paper."));
  }
  return notes;
}

std::vector<std::string> FasterThan(const BatchSweep& sweep, const std::string& method,
                                    const std::vector<int64_t>& batches) {
  std::vector<std::string> faster;
  for (const int64_t batch : batches) {
    const GridResult* one = sweep.Find(method, batch);
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

absl::StatusOr<Table> AblationTable(const GridModel& model, const BatchSweep& sweep,
                                    int64_t batch) {
  Table t(absl::StrCat("ablation_", batch),
          absl::StrCat("From depth-first to breadth-first, batch ", batch));
  t.AddKey("change");
  t.AddColumn({"tflops", "Tflop/s a GPU", "", "Tflop/s", Origin::kSimulated, 1});
  t.AddColumn({"gain", "over depth-first", "", "%", Origin::kComputed, 1});
  t.AddColumn({"bubble", "bubble", "", "%", Origin::kSimulated, 1});
  t.AddColumn(
      {"pipeline", "pipeline communication exposed", "pipeline", "%", Origin::kSimulated, 1});
  t.AddColumn({"data", "data-parallel communication exposed", "data", "%", Origin::kSimulated, 1});
  t.AddColumn({"config", "configuration", "", "", Origin::kComputed, 0});
  const GridResult* breadth = sweep.Find(kBreadthFirst, batch);
  const GridResult* depth = sweep.Find(kDepthFirst, batch);
  if (breadth == nullptr || depth == nullptr) {
    t.AddNote("One of the two does not fit at this batch.");
    return t;
  }
  for (const Step& step : Steps(depth->config, breadth->config)) {
    const absl::StatusOr<GridPoint> point = EvaluateGrid(model, step.config);
    if (!point.ok()) {
      const Cell missing = Missing(std::string(point.status().message()));
      t.AddRow({Label(step.name), missing, missing, missing, missing, missing,
                Computed(step.config.ToString())});
      continue;
    }
    PIPELAB_ASSIGN_OR_RETURN(const GridBreakdown b, BreakDown(model, *point));
    t.AddRow({Label(step.name), Simulated(point->tflops_a_device),
              Computed(ToPercent(point->tflops_a_device / depth->tflops_a_device - 1)),
              Simulated(ToPercent(b.bubble)), Simulated(ToPercent(b.pipeline)),
              Simulated(ToPercent(b.data)), Computed(step.config.ToString())});
  }
  t.AddNote(
      "Memory is not looked at between the two bests. With whole messages, as without "
      "Megatron-LM's scatter and gather, all devices of a tensor-parallel group send the same "
      "rows.");
  return t;
}

}  // namespace pipelab
