#include "experiments/graphs/preparation_study.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/graphs/graph_figures.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

struct RunOf {
  int workers, depth, threads;
  bool first_come;
};
// Two in line would be one; more threads than two share the two cores.
constexpr RunOf kRuns[] = {{0, 1, 1, false}, {1, 1, 1, false}, {1, 2, 1, false}, {1, 8, 1, false},
                           {2, 2, 1, false}, {2, 2, 1, true},  {0, 1, 2, false}, {1, 2, 2, false}};
constexpr int kInLine = 0, kInLineOfTwo = 6;
constexpr double kPaperPreparing = 2.4;  // over training, ogbn-products' baseline

double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A row's training, and what came out round by round.
struct Timed {
  RunOf run;
  GraphTrainingOptions options;
  std::unique_ptr<GraphTraining> training;
  std::vector<double> losses;         // all rounds'
  std::vector<BatchSeconds> seconds;  // this round's
  std::vector<double> measured, waiting, queue, longer, simulated, replayed, over_longer, drift;
};

absl::StatusOr<std::vector<Timed>> MakeRuns(const GraphData& data,
                                            const PreparationStudySize& size) {
  std::vector<Timed> runs;
  for (const RunOf& run : kRuns) {
    Timed timed;
    timed.run = run;
    timed.options = TrainingOf(size);
    timed.options.steps_of_epoch = size.steps;
    timed.options.sizes.workers = run.workers;
    timed.options.sizes.depth = run.depth;
    timed.options.threads = run.threads;
    timed.options.first_come = run.first_come;
    PIPELAB_ASSIGN_OR_RETURN(timed.training, GraphTraining::Create(&data, timed.options));
    runs.push_back(std::move(timed));
  }
  return runs;
}

PreparationSizes SizesOf(const Timed& timed) {
  PreparationSizes sizes = timed.options.sizes;
  sizes.batches = timed.training->program().schedule.num_micro_batches;
  return sizes;
}

absl::StatusOr<double> SimulatedEpoch(const Timed& timed, absl::Span<const BatchSeconds> in_line) {
  if (timed.run.first_come) {
    PIPELAB_ASSIGN_OR_RETURN(const FirstComeRun run, SimulateFirstCome(SizesOf(timed), in_line));
    return ToSeconds(run.trace.makespan);
  }
  const Program& program = timed.training->program();
  PIPELAB_ASSIGN_OR_RETURN(const Trace trace,
                           Simulate(program, PreparationCosts(program.schedule, in_line)));
  return ToSeconds(trace.makespan);
}

struct Sums {
  double prepare = 0, train = 0;
};
Sums SumsOf(absl::Span<const BatchSeconds> seconds) {
  Sums sums;
  for (const BatchSeconds& s : seconds) sums.prepare += s.prepare(), sums.train += s.train();
  return sums;
}

// One epoch of each row. The first round warms up and does not count.
absl::Status RunRound(bool counts, std::vector<Timed>* runs) {
  std::vector<Trace> traces;
  for (Timed& timed : *runs) {
    PIPELAB_ASSIGN_OR_RETURN(GraphEpoch epoch, timed.training->RunEpoch());
    timed.losses.insert(timed.losses.end(), epoch.losses.begin(), epoch.losses.end());
    timed.seconds = SecondsOf(timed.training->program(), epoch.trace, timed.run.threads > 1);
    traces.push_back(std::move(epoch.trace));
  }
  for (size_t r = 0; r < runs->size() && counts; ++r) {
    Timed& timed = (*runs)[r];
    const auto& in_line = (*runs)[timed.run.threads > 1 ? kInLineOfTwo : kInLine].seconds;
    const PreparationFigures figures = FiguresOf(timed.training->program(), traces[r]);
    const Sums sums = SumsOf(in_line);
    timed.measured.push_back(figures.epoch);
    timed.waiting.push_back(figures.waiting);
    timed.queue.push_back(figures.queue);
    timed.longer.push_back(timed.run.workers == 0
                               ? sums.prepare + sums.train
                               : std::max(sums.prepare / timed.run.workers, sums.train));
    timed.over_longer.push_back(figures.epoch / timed.longer.back());
    PIPELAB_ASSIGN_OR_RETURN(timed.simulated.emplace_back(), SimulatedEpoch(timed, in_line));
    if (timed.run.threads > 1 || timed.run.first_come) continue;
    PIPELAB_ASSIGN_OR_RETURN(const Trace replayed, Replay(timed.training->program(), {traces[r]}));
    timed.replayed.push_back(ToSeconds(replayed.makespan));
    timed.drift.push_back(timed.replayed.back() / timed.simulated.back());
  }
  return absl::OkStatus();
}

// Two workers for a trainer as fast as the paper's, on batches that take as long as these.
absl::Status SimulateOrders(const Timed& two_workers, std::vector<BatchSeconds> seconds,
                            OverlapRun* all) {
  const Sums sums = SumsOf(seconds);
  const double faster = sums.prepare / sums.train / kPaperPreparing;
  for (BatchSeconds& s : seconds) s.forward *= faster, s.backward *= faster, s.step *= faster;
  const Program& program = two_workers.training->program();
  PIPELAB_ASSIGN_OR_RETURN(const Trace in_order,
                           Simulate(program, PreparationCosts(program.schedule, seconds)));
  PIPELAB_ASSIGN_OR_RETURN(const FirstComeRun first,
                           SimulateFirstCome(SizesOf(two_workers), seconds));
  all->in_order = ToSeconds(in_order.makespan);
  all->first_come = ToSeconds(first.trace.makespan);
  return absl::OkStatus();
}

}  // namespace

GraphTrainingOptions TrainingOf(const PreparationStudySize& size) {
  GraphTrainingOptions options;
  options.batches.batch = size.batch;
  options.batches.fanouts = {15, 10, 5};
  options.model.hidden = size.hidden;
  options.model.dropout = size.dropout;
  options.train.optimizer.adam.learning_rate = static_cast<float>(size.rate);
  return options;
}

absl::StatusOr<OverlapRun> MeasureOverlap(const GraphData& data, const PreparationStudySize& size) {
  OverlapRun all;
  all.data = data.name;
  PIPELAB_ASSIGN_OR_RETURN(std::vector<Timed> runs, MakeRuns(data, size));
  std::vector<double> prepare, train;
  for (int round = 0; round <= size.repeats; ++round) {
    PIPELAB_RETURN_IF_ERROR(RunRound(round > 0, &runs));
    if (round == 0) continue;
    const Sums sums = SumsOf(runs[kInLine].seconds);
    prepare.push_back(sums.prepare);
    train.push_back(sums.train);
  }
  all.prepare = MedianOf(prepare);
  all.train = MedianOf(train);
  for (const Timed& timed : runs) {
    const RunOf& run = timed.run;
    if (!run.first_come) all.equal_losses = all.equal_losses && timed.losses == runs[0].losses;
    OverlapRun::Row row{run.workers, run.depth, run.threads, run.first_come};
    row.measured = MedianOf(timed.measured);
    row.waiting = MedianOf(timed.waiting);
    row.queue = MedianOf(timed.queue);
    row.longer = MedianOf(timed.longer);
    row.simulated = MedianOf(timed.simulated);
    row.over_longer = MedianOf(timed.over_longer);
    if (!timed.replayed.empty()) row.replayed = MedianOf(timed.replayed);
    if (!timed.drift.empty()) row.replayed_over_simulated = MedianOf(timed.drift);
    all.rows.push_back(row);
    if (run.workers == 2 && !run.first_come) {
      PIPELAB_RETURN_IF_ERROR(SimulateOrders(timed, runs[kInLine].seconds, &all));
    }
  }
  return all;
}

absl::StatusOr<LearnedGraph> Learn(const TextGraph& text, const PreparationStudySize& size) {
  const GraphData data = ToGraphData(text, size.width);
  LearnedGraph learned;
  learned.data = text.name;
  learned.largest_class = LargestClassAccuracy(data);
  learned.neighbours = NeighbourAccuracy(data);
  learned.naive_bayes = NaiveBayesAccuracy(text, data);
  GraphTrainingOptions options = TrainingOf(size);
  options.sizes.workers = 1;
  options.threads = 2;  // faster, and the same bits
  PIPELAB_ASSIGN_OR_RETURN(auto training, GraphTraining::Create(&data, options));
  const absl::Time start = absl::Now();
  for (int e = 0; e < size.epochs; ++e) {
    PIPELAB_ASSIGN_OR_RETURN(const GraphEpoch epoch, training->RunEpoch());
    learned.losses.insert(learned.losses.end(), epoch.losses.begin(), epoch.losses.end());
  }
  learned.seconds = absl::ToDoubleSeconds(absl::Now() - start);
  PIPELAB_ASSIGN_OR_RETURN(learned.sampled, training->Accuracy(data.test, {20, 20, 20}));
  PIPELAB_ASSIGN_OR_RETURN(learned.whole, training->Accuracy(data.test, {kAllNeighbours}));
  return learned;
}

Table OverlapTable(const OverlapRun& run) {
  Table t("overlap", absl::StrCat("An epoch on the graph of ", run.data,
                                  ": preparing beside training, on this machine"));
  t.AddKey("workers");
  t.AddKey("depth");
  t.AddKey("threads", "trainer's threads");
  t.AddKey("order");
  const auto add = [&](const char* metric, const char* title, const char* unit, Origin origin,
                       int decimals, bool varies) {
    t.AddColumn({.metric = metric,
                 .title = title,
                 .unit = unit,
                 .origin = origin,
                 .decimals = decimals,
                 .varies = varies});
  };
  add("measured", "epoch", "s", Origin::kMeasured, 2, false);
  add("waiting", "trainer waits", "%", Origin::kMeasured, 1, false);
  add("queue", "ready", "batches", Origin::kMeasured, 2, false);
  add("longer", "longer of preparing and training", "s", Origin::kComputed, 2, true);
  add("over_longer", "epoch over it", "x", Origin::kMeasured, 3, false);
  add("simulated", "epoch", "s", Origin::kSimulated, 2, true);
  add("replayed", "epoch", "s", Origin::kReplayed, 2, false);
  for (const OverlapRun::Row& r : run.rows) {
    t.AddRow({Label(r.workers), Label(r.depth), Label(r.threads),
              Label(r.first_come ? "first come" : "in order"), Measured(r.measured),
              Measured(ToPercent(r.waiting)), Measured(r.queue), Computed(r.longer),
              Measured(r.over_longer), Simulated(r.simulated),
              r.replayed > 0 ? Replayed(r.replayed)
                             : Missing(r.first_come ? "another order than the program's"
                                                    : "the time of one of the threads is known")});
  }
  t.AddNote(
      "Simulated from the times of stages in line (no workers) with as many threads, replayed from "
      "a "
      "row's own. The simulator has a core for each thread; this machine has two.");
  t.AddNote(
      "Medians over rounds, in each of which all rows take turns; ratios are of the same round.");
  t.AddNote(
      absl::StrFormat("Two workers, and a trainer so fast that preparing takes 2.4 times as long, "
                      "as on the paper's "
                      "GPUs, simulated: %.4f s in order, %.4f s first come.",
                      run.in_order, run.first_come));
  t.AddNote(absl::StrFormat("In line preparing takes %.2f s of an epoch, training %.2f s.",
                            run.prepare, run.train));
  return t;
}

Table LearnedTable(const std::vector<LearnedGraph>& learned) {
  Table t("accuracy", "Share of held-out vertices that are labelled right");
  t.AddKey("data");
  const auto add = [&](const char* metric, const char* title, Origin origin) {
    t.AddColumn({.metric = metric, .title = title, .unit = "%", .origin = origin, .decimals = 1});
  };
  add("largest_class", "largest class", Origin::kComputed);
  add("neighbours", "neighbours' label", Origin::kComputed);
  add("naive_bayes", "naive Bayes", Origin::kComputed);
  add("sampled", "GraphSAGE, 20 of each hop", Origin::kMeasured);
  add("whole", "GraphSAGE, all neighbours", Origin::kMeasured);
  for (const LearnedGraph& l : learned) {
    t.AddRow({Label(l.data), Computed(ToPercent(l.largest_class)),
              Computed(ToPercent(l.neighbours)), Computed(ToPercent(l.naive_bayes)),
              Measured(ToPercent(l.sampled)), Measured(ToPercent(l.whole))});
  }
  return t;
}

std::vector<Claim> OverlapClaims(const OverlapRun& run) {
  std::vector<Claim> claims;
  const OverlapRun::Row& row = run.rows[2];  // one worker, two batches, a trainer of one thread
  Claim epoch = OwnClaim("gnn.overlap", "epoch over the longer of preparing and training");
  epoch.unit = "x";
  Found(&epoch, Origin::kMeasured, row.over_longer);
  MetIf(&epoch, row.over_longer <= 1.08, "at most 1.08 x",
        "the trainer's own passes take longer beside a worker, with whom they share caches and "
        "memory");
  claims.push_back(std::move(epoch));
  Claim waiting = OwnClaim("gnn.waiting", "share of the epoch that the trainer waits");
  waiting.unit = "%";
  Found(&waiting, Origin::kMeasured, ToPercent(row.waiting));
  MetIf(&waiting, row.waiting <= 0.05, "at most 5 %",
        "the worker has too little of the machine to keep up");
  claims.push_back(std::move(waiting));
  Claim replayed = OwnClaim("gnn.replayed", "replayed epoch over the simulated one");
  replayed.unit = "x";
  Found(&replayed, Origin::kReplayed, row.replayed_over_simulated);
  MetWithin(&replayed, 0.9, 1.1,
            "the trainer's own passes take longer beside a worker than in line");
  claims.push_back(std::move(replayed));
  Claim bits =
      OwnClaim("gnn.bits", "losses with any workers, queues and threads are those in line");
  MetIf(&bits, run.equal_losses, "the same bits", "losses differ");
  bits.ours = run.equal_losses ? "all equal" : "they differ";
  claims.push_back(std::move(bits));
  return claims;
}

std::vector<Claim> LearnedClaims(const std::vector<LearnedGraph>& learned) {
  std::vector<Claim> claims;
  for (const LearnedGraph& l : learned) {
    const double least = l.data == "theorems" ? 72 : 75;
    Claim c = OwnClaim(absl::StrCat("gnn.accuracy.", l.data),
                       absl::StrCat("accuracy on held-out vertices of ", l.data));
    c.unit = "%";
    Found(&c, Origin::kMeasured, ToPercent(l.sampled));
    MetIf(&c, ToPercent(l.sampled) >= least, absl::StrCat("at least ", least, " %"),
          "rows are hashed to 128 numbers, and the network trains for a few epochs");
    claims.push_back(std::move(c));
    Claim s = OwnClaim(absl::StrCat("gnn.sampled.", l.data),
                       absl::StrCat("sampled inference over all neighbours', ", l.data));
    s.unit = "points";
    Found(&s, Origin::kMeasured, ToPercent(l.sampled - l.whole));
    MetIf(&s, ToPercent(l.whole - l.sampled) <= 0.5, "at most half a point less",
          "means of 20 neighbours are not means of all");
    claims.push_back(std::move(s));
  }
  return claims;
}

}  // namespace pipelab
