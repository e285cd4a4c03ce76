#include "experiments/graphs/paper_epochs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/published/salient.h"
#include "pipelines/graphs/preparation.h"
#include "pipelines/ir/program.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "SALIENT (arXiv 2110.08450)";
// The paper has a queue of 100 batches.
constexpr int kQueue = 100;
// The 16 GPUs are in g5.24xlarge with 50 Gb/s, which the rings of a machine pass one way each.
constexpr double kLink = 50e9 / 8, kLatency = 50e-6;
// They are A10G, with 600 GB/s of memory where the V100 of the other epochs has 900, and layers
// that read and write memory.
constexpr double kLongerTraining = 900.0 / 600;

absl::StatusOr<PreparationFigures> Simulated(const PreparationSizes& sizes,
                                             const BatchSeconds& seconds, double reduce) {
  PIPELAB_ASSIGN_OR_RETURN(Schedule schedule, MakePreparation(sizes));
  CostTable costs = PreparationCosts(schedule, {seconds});
  costs.reduce = Nanoseconds(std::llround(reduce * 1e9));
  PIPELAB_ASSIGN_OR_RETURN(const Program program, Lower(std::move(schedule), {}));
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace, Simulate(program, costs));
  return FiguresOf(program, trace);
}

// The phases of a batch: a third of a training batch is its forward.
BatchSeconds Phases(double prepare, double transfer, double train) {
  BatchSeconds s;
  s.sample = prepare;
  s.move = transfer;
  s.forward = train / 3;
  s.backward = train - s.forward;
  return s;
}

absl::Status AddEpoch(PaperEpoch epoch, int batches, const BatchSeconds& seconds, double reduce,
                      std::vector<PaperEpoch>* epochs) {
  PreparationSizes sizes;
  sizes.workers = epoch.workers;
  sizes.depth = std::max(1, kQueue / std::max(1, epoch.workers));
  sizes.batches = batches;
  sizes.copies = epoch.gpus > 1 ? 2 : 1;  // two stand for all, which do the same
  sizes.copy_engine = true;
  PIPELAB_ASSIGN_OR_RETURN(epoch.figures, Simulated(sizes, seconds, reduce));
  sizes.workers = 0;
  sizes.copy_engine = false;
  PIPELAB_ASSIGN_OR_RETURN(const PreparationFigures line, Simulated(sizes, seconds, reduce));
  epoch.in_line = line.epoch;
  epochs->push_back(std::move(epoch));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<PaperEpoch>> PaperEpochs() {
  PIPELAB_ASSIGN_OR_RETURN(const SalientPaper paper, PublishedSalient());
  std::vector<PaperEpoch> epochs;
  const auto batches_of = [&](int64_t targets) {
    return static_cast<int>((targets + paper.batch - 1) / paper.batch);
  };
  for (const PublishedSalientEpoch& e : paper.epochs) {
    const double per_batch = 1e-3 / batches_of(e.targets);
    const bool also_on_16 = e.data == paper.gpus16.data;
    for (int gpus : also_on_16 ? std::vector<int>{1, 16} : std::vector<int>{1}) {
      PaperEpoch epoch;
      epoch.data = e.data;
      epoch.gpus = gpus;
      epoch.workers = paper.workers;
      epoch.baseline = gpus == 1 ? e.total_ms / 1e3 : 0;
      epoch.published = gpus == 1 ? e.salient_ms / 1e3 : paper.gpus16.seconds;
      const double train = e.train_ms * per_batch * (gpus == 1 ? 1 : kLongerTraining);
      const double bytes = 4.0 * static_cast<double>(paper.gpus16.parameters);
      const double reduce =
          gpus == 1 ? 0 : 2 * (gpus - 1) * kLatency + 2 * bytes * (gpus - 1) / gpus / kLink;
      const BatchSeconds phases =
          Phases(e.prepare_ms * per_batch, e.transfer_ms * per_batch, train);
      epoch.worker_slack = paper.workers * std::max(train, phases.move) / phases.sample;
      PIPELAB_RETURN_IF_ERROR(
          AddEpoch(epoch, batches_of((e.targets + gpus - 1) / gpus), phases, reduce, &epochs));
    }
  }
  return epochs;
}

Table PaperTable(const std::vector<PaperEpoch>& epochs) {
  Table t("salient", "SALIENT's epochs, simulated from the phases of its baseline");
  t.AddKey("data");
  t.AddKey("gpus", "GPUs");
  const auto seconds = [](const char* metric, const char* title, Origin origin) {
    return Column{.metric = metric, .title = title, .unit = "s", .origin = origin, .decimals = 3};
  };
  t.AddColumn(seconds("baseline", "baseline", Origin::kPublished));
  t.AddColumn(seconds("in_line", "without overlap", Origin::kSimulated));
  t.AddColumn(seconds("published", "SALIENT", Origin::kPublished));
  t.AddColumn(seconds("simulated", "SALIENT", Origin::kSimulated));
  t.AddColumn({.metric = "waiting",
               .title = "trainer waits",
               .unit = "%",
               .origin = Origin::kSimulated,
               .decimals = 1});
  t.AddColumn({.metric = "queue",
               .title = "ready",
               .unit = "batches",
               .origin = Origin::kSimulated,
               .decimals = 1});
  t.AddColumn({.metric = "worker_slack",
               .title = "a worker may take",
               .unit = "x",
               .origin = Origin::kComputed,
               .decimals = 1});
  for (const PaperEpoch& e : epochs) {
    t.AddRow({Label(e.data), Label(e.gpus),
              e.baseline > 0 ? Published(e.baseline, "read") : Missing("not compared"),
              Simulated(e.in_line), Published(e.published, "read"), Simulated(e.figures.epoch),
              Simulated(ToPercent(e.figures.waiting)), Simulated(e.figures.queue),
              Computed(e.worker_slack)});
  }
  t.AddNote(
      "A worker is taken to need as long for a batch as the baseline's epoch waits for sampling "
      "and "
      "slices it. That is the wall time of a process with worker processes beside it, so a worker "
      "may need longer: up to so many times as long, and the epoch stays but for its first batch.");
  return t;
}

std::vector<Claim> PaperClaims(const std::vector<PaperEpoch>& epochs) {
  std::vector<Claim> claims;
  const auto add = [&](const char* id, const char* text, const PaperEpoch& e, double limit,
                       const char* why) {
    Claim c = PaperClaim(id, text, absl::StrCat(kPaper, ", artifact"), "read");
    c.unit = "s";
    Published(&c, e.published);
    Found(&c, Origin::kSimulated, e.figures.epoch);
    MetWithin(&c, e.published * (1 - limit), e.published * (1 + limit), why);
    claims.push_back(std::move(c));
  };
  const char* const host =
      "between two steps the paper's trainer takes the next batch from the queue and starts its "
      "copy "
      "(read: DevicePrefetcher.preload), 0.5 to 2 ms of a batch; the baseline's phases do not tell "
      "how long, and only what workers do is hidden";
  add("salient.arxiv", "an epoch of ogbn-arxiv on one GPU", epochs[0], 0.10, host);
  add("salient.products", "an epoch of ogbn-products on one GPU", epochs[1], 0.10, host);
  add("salient.papers100m", "an epoch of papers100M on one GPU", epochs[2], 0.10, host);
  add("salient.gpus16", "an epoch of papers100M on 16 GPUs", epochs[3], 0.15,
      "training by the memory of A10G, and sums of gradients, are simulated; host work of the "
      "trainer, and waiting for the largest of 16 batches, are not");
  Claim scaling = PaperClaim("salient.scaling", "16 GPUs over one", kPaper, "read");
  scaling.unit = "x";
  Published(&scaling, 8);
  Found(&scaling, Origin::kSimulated, epochs[2].figures.epoch / epochs[3].figures.epoch);
  MetWithin(&scaling, 7, 9, "as for the epoch on 16 GPUs, of another kind than the one");
  claims.push_back(std::move(scaling));
  return claims;
}

}  // namespace pipelab
