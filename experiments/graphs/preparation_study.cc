#include "experiments/graphs/preparation_study.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "pipelines/sim/replay.h"
#include "pipelines/sim/simulate.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Two in line would be one; more workers than one share the two cores with the trainer.
constexpr std::pair<int, int> kRuns[] = {{0, 1}, {1, 1}, {1, 2}, {1, 8}, {2, 2}};

struct TimedRun {
  GraphEpoch epoch;
  PreparationFigures figures;
};

// [run] The epoch of the median time. Rows take turns, so that what slows the machine down for a
// while slows all of them; the first epoch of each warms up. All begin with the same weights.
struct Runs {
  std::vector<std::unique_ptr<GraphTraining>> trainings;
  std::vector<std::vector<TimedRun>> timed;
};

absl::StatusOr<Runs> TimeInTurns(const GraphData& data, const PreparationStudySize& size) {
  Runs runs;
  for (const auto& [workers, depth] : kRuns) {
    GraphTrainingOptions options = TrainingOf(size);
    options.steps_of_epoch = size.steps;
    options.sizes.workers = workers;
    options.sizes.depth = depth;
    PIPELAB_ASSIGN_OR_RETURN(runs.trainings.emplace_back(), GraphTraining::Create(&data, options));
  }
  runs.timed.resize(runs.trainings.size());
  for (int i = 0; i <= size.repeats; ++i) {
    for (size_t r = 0; r < runs.trainings.size(); ++r) {
      TimedRun run;
      PIPELAB_ASSIGN_OR_RETURN(run.epoch, runs.trainings[r]->RunEpoch());
      run.figures = FiguresOf(runs.trainings[r]->program(), run.epoch.trace);
      if (i > 0) runs.timed[r].push_back(std::move(run));
    }
  }
  return runs;
}

const TimedRun& MedianOf(std::vector<TimedRun>* runs) {
  const auto middle = runs->begin() + static_cast<int64_t>(runs->size() / 2);
  std::nth_element(runs->begin(), middle, runs->end(), [](const TimedRun& a, const TimedRun& b) {
    return a.figures.epoch < b.figures.epoch;
  });
  return *middle;
}

std::vector<double> LossesOf(const std::vector<TimedRun>& runs) {
  std::vector<double> losses;
  for (const TimedRun& run : runs) {
    losses.insert(losses.end(), run.epoch.losses.begin(), run.epoch.losses.end());
  }
  return losses;
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
  PIPELAB_ASSIGN_OR_RETURN(Runs runs, TimeInTurns(data, size));
  const std::vector<double> losses = LossesOf(runs.timed[0]);
  std::vector<BatchSeconds> in_line;
  for (size_t r = 0; r < runs.trainings.size(); ++r) {
    all.equal_losses = all.equal_losses && LossesOf(runs.timed[r]) == losses;
    const TimedRun& median = MedianOf(&runs.timed[r]);
    const Program& program = runs.trainings[r]->program();
    if (r == 0) {
      in_line = SecondsOf(program, median.epoch.trace);
      for (const BatchSeconds& s : in_line) all.prepare += s.prepare(), all.train += s.train();
    }
    OverlapRun::Row row;
    row.workers = kRuns[r].first;
    row.depth = kRuns[r].second;
    row.measured = median.figures.epoch;
    row.waiting = median.figures.waiting;
    row.queue = median.figures.queue;
    PIPELAB_ASSIGN_OR_RETURN(const Trace simulated,
                             Simulate(program, PreparationCosts(program.schedule, in_line)));
    row.simulated = ToSeconds(simulated.makespan);
    PIPELAB_ASSIGN_OR_RETURN(const Trace replayed, Replay(program, {median.epoch.trace}));
    row.replayed = ToSeconds(replayed.makespan);
    all.rows.push_back(row);
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
  add("simulated", "epoch", "s", Origin::kSimulated, 2, true);
  add("replayed", "epoch", "s", Origin::kReplayed, 2, false);
  for (const OverlapRun::Row& r : run.rows) {
    const double longer =
        r.workers == 0 ? run.prepare + run.train : std::max(run.prepare / r.workers, run.train);
    t.AddRow({Label(r.workers), Label(r.depth), Measured(r.measured),
              Measured(ToPercent(r.waiting)), Measured(r.queue), Computed(longer),
              Simulated(r.simulated), Replayed(r.replayed)});
  }
  t.AddNote(
      "Simulated from the processor times of stages in line (no workers), replayed from a "
      "row's own.");
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
  const OverlapRun::Row& row = run.rows[2];  // one worker, two batches
  const double longer = std::max(run.prepare, run.train);
  Claim epoch = OwnClaim("gnn.overlap", "epoch over the longer of preparing and training");
  epoch.unit = "x";
  Found(&epoch, Origin::kMeasured, row.measured / longer);
  MetIf(&epoch, row.measured <= 1.08 * longer, "at most 1.08 x",
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
  Found(&replayed, Origin::kReplayed, row.replayed / row.simulated);
  MetWithin(&replayed, 0.9, 1.1,
            "the trainer's own passes take longer beside a worker than in line");
  claims.push_back(std::move(replayed));
  Claim bits = OwnClaim("gnn.bits", "losses with any workers and queues are those in line");
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
