#include "experiments/graph_plans/comparison.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

const PlanRun* Better(const PlanRun* a, const PlanRun* b) {
  if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
  return a->throughput > b->throughput ? a : b;
}

Cell Throughput(const PlanRun* run, const PlanSweep& sweep) {
  return run == nullptr ? Missing(sweep.WhyNone()) : Simulated(run->throughput);
}

Cell RatioCell(double ratio) { return ratio > 0 ? Computed(ratio) : Missing("nothing to compare"); }

struct Method {
  const char* name;
  const char* metric;
  PlanSweep Comparison::*sweep;
};
constexpr Method kMethods[] = {{"PipeDream", "pipedream", &Comparison::pipedream},
                               {"Piper", "piper", &Comparison::piper},
                               {"GraphPipe", "graphpipe", &Comparison::graphpipe}};

std::string SizeText(const PlanRun& run) {
  if (run.micro_batch_size == 0) return absl::StrCat("up to ", run.largest_micro_batch);
  return absl::StrCat(run.micro_batch_size);
}

}  // namespace

const PlanRun* Comparison::baseline() const {
  return Better(Better(pipedream.best(), piper.best()), once_per_step.best());
}

const PlanRun* Comparison::parallel_stages() const {
  const PlanRun* best = sequential.best_of_one_size();
  return best == nullptr ? nullptr : graphpipe.Find(best->micro_batch_size);
}

double Comparison::Gain() const { return ThroughputRatio(graphpipe.best(), baseline()); }
double Comparison::GainOfParallel() const {
  return ThroughputRatio(parallel_stages(), sequential.best_of_one_size());
}
double Comparison::GainOfSizes() const {
  return ThroughputRatio(graphpipe.best(), sequential.best_of_one_size());
}
double Comparison::GainOfGraph() const {
  return ThroughputRatio(graphpipe.best(), sequential.best());
}
double Comparison::GainAsPublished() const {
  return ThroughputRatio(graphpipe.best(), Better(pipedream.best(), piper.best()));
}

int Comparison::Stopped() const {
  return pipedream.Stopped() + piper.Stopped() + graphpipe.Stopped() + once_per_step.Stopped() +
         sequential.Stopped();
}

int Stopped(const std::vector<Comparison>& all) {
  int stopped = 0;
  for (const Comparison& c : all) stopped += c.Stopped();
  return stopped;
}

absl::StatusOr<Comparison> ComparePlanners(const StudyNet& net, const PlanSweepOptions& options) {
  Comparison c;
  c.net = net.name;
  c.devices = options.devices;
  c.batch = BatchOf(net, options);
  c.batch_factor = options.batch_factor;
  const PlanMethod methods[] = {PipeDreamMethod(), PiperMethod(), GraphPipeMethod(),
                                SequentialMethod(), PipeDreamOnceAStepMethod()};
  PlanSweep* const sweeps[] = {&c.pipedream, &c.piper, &c.graphpipe, &c.sequential,
                               &c.once_per_step};
  for (int i = 0; i < 5; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(*sweeps[i], SweepPlans(net, methods[i], options));
  }
  if (const PlanRun* best = c.baseline(); best != nullptr) {
    // Times and sizes alone are read of it, which are Piper's and PipeDream's.
    PIPELAB_ASSIGN_OR_RETURN(const PlanProblem problem,
                             StudyProblem(net, PiperMethod(), best->micro_batch_size, options));
    c.straight = RunPlan(net, problem, best->plan, /*chain=*/false, options);
  }
  return c;
}

Table ThroughputTable(std::string id, std::string caption, const std::vector<Comparison>& all) {
  Table t(std::move(id), std::move(caption));
  t.AddKey("net");
  t.AddKey("devices");
  for (const Method& m : kMethods) {
    t.AddColumn({m.metric, m.name, "", "samples/s", Origin::kSimulated, 1});
  }
  t.AddColumn({"gain", "GraphPipe over the best of the others", "gain", "", Origin::kComputed, 2});
  t.AddColumn({"graph", "of that graph stages: GraphPipe's planner, sequential to graph",
               "of graph stages", "", Origin::kComputed, 2});
  t.AddColumn({"as_published", "GraphPipe over Piper and PipeDream as published", "as published",
               "", Origin::kComputed, 2});
  t.AddColumn({"straight", "the best of the others, stages waiting for what they take alone",
               "straight", "samples/s", Origin::kSimulated, 1});
  t.AddColumn({"once_a_step", "PipeDream's planner with gradients summed once a step",
               "PipeDream, once a step", "samples/s", Origin::kSimulated, 1});
  for (const Comparison& c : all) {
    std::vector<Cell> row = {Label(c.net), Label(static_cast<double>(c.devices))};
    for (const Method& m : kMethods) row.push_back(Throughput((c.*m.sweep).best(), c.*m.sweep));
    row.push_back(RatioCell(c.Gain()));
    row.push_back(RatioCell(c.GainOfGraph()));
    row.push_back(RatioCell(c.GainAsPublished()));
    const bool straight = c.straight.has_value() && c.straight->missing.empty();
    row.push_back(straight ? Simulated(c.straight->throughput) : Missing("no plan that fits"));
    row.push_back(Throughput(c.once_per_step.best(), c.once_per_step));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "PipeDream's planner as published sums gradients after every mini-batch that goes through "
      "its pipeline, here a micro-batch, and so has few copies; with the sum once a step, as "
      "synchronous training has it, its plans are others. The others are both and Piper.");
  return t;
}

Table BatchesTable(const std::vector<Comparison>& all) {
  Table t("batches", "Gains in smaller and larger batches");
  t.AddKey("net");
  t.AddKey("devices");
  t.AddKey("batch");
  t.AddColumn({"per_device", "samples a device", "a device", "samples", Origin::kComputed, 0});
  t.AddColumn({"gain", "GraphPipe over the best of PipeDream, once a step too, and Piper", "gain",
               "", Origin::kComputed, 2});
  t.AddColumn({"as_published", "over Piper and PipeDream as published", "as published", "",
               Origin::kComputed, 2});
  t.AddColumn(
      {"parallel", "parallel stages, same micro-batch", "parallel", "", Origin::kComputed, 2});
  t.AddColumn({"sizes", "and a micro-batch of their own", "own size", "", Origin::kComputed, 2});
  for (const Comparison& c : all) {
    t.AddRow({Label(c.net), Label(static_cast<double>(c.devices)),
              Label(static_cast<double>(c.batch)),
              Computed(static_cast<double>(c.batch) / static_cast<double>(c.devices)),
              RatioCell(c.Gain()), RatioCell(c.GainAsPublished()), RatioCell(c.GainOfParallel()),
              RatioCell(c.GainOfSizes())});
  }
  t.AddNote(
      "The more micro-batches a step has, the less fill and drain weigh, and the less a shorter "
      "pipeline saves. The paper's batches are not known.");
  return t;
}

Table PlansTable(const std::vector<Comparison>& all) {
  Table t("plans", "The plans behind the throughputs");
  t.AddKey("net");
  t.AddKey("devices");
  t.AddKey("planner");
  t.AddColumn({"micro_batch", "micro-batch", "", "samples", Origin::kComputed, 0});
  t.AddColumn({"stages", "stages", "", "", Origin::kComputed, 0});
  t.AddColumn({"depth", "depth", "", "", Origin::kComputed, 0});
  t.AddColumn({"copies", "most copies of a stage", "copies", "", Origin::kComputed, 0});
  t.AddColumn({"memory", "memory of the fullest device", "memory", "GiB", Origin::kSimulated, 2});
  t.AddColumn({"bubble", "not computing", "", "%", Origin::kSimulated, 1});
  t.AddColumn({"state", "search", "", "", Origin::kComputed, 0});
  for (const Comparison& c : all) {
    for (const Method& m : kMethods) {
      const PlanRun* best = (c.*m.sweep).best();
      if (best == nullptr) continue;
      t.AddRow({Label(c.net), Label(static_cast<double>(c.devices)), Label(m.name),
                Computed(SizeText(*best)), Computed(best->stages), Computed(best->depth),
                Computed(static_cast<double>(best->most_copies)), Simulated(ToGiB(best->memory)),
                Simulated(ToPercent(best->bubble)), Computed(PlanStateName(best->state))});
    }
  }
  t.AddNote(
      "Micro-batches of sequential planners are those of one copy. What is not computing is fill, "
      "drain, imbalance, messages, sums of gradients and the optimizer's steps.");
  return t;
}

Table SizesTable(const std::vector<Comparison>& all) {
  Table t("sizes", "Throughput at each size of micro-batches");
  t.AddKey("net");
  t.AddKey("devices");
  t.AddKey("micro_batch", "micro-batch");
  for (const Method& m : kMethods) {
    t.AddColumn({m.metric, m.name, "", "samples/s", Origin::kSimulated, 1});
  }
  for (const Comparison& c : all) {
    std::set<int64_t> sizes;
    for (const Method& m : kMethods) {
      for (const PlanRun& run : (c.*m.sweep).runs) sizes.insert(run.micro_batch_size);
    }
    for (const int64_t size : sizes) {
      std::vector<Cell> row = {Label(c.net), Label(static_cast<double>(c.devices)),
                               size == 0 ? Label("chosen") : Label(static_cast<double>(size))};
      for (const Method& m : kMethods) {
        const auto& runs = (c.*m.sweep).runs;
        const auto run = std::find_if(runs.begin(), runs.end(),
                                      [&](const PlanRun& r) { return r.micro_batch_size == size; });
        if (run == runs.end()) {
          row.push_back(Missing("has one size for all stages"));
        } else {
          row.push_back(run->missing.empty() ? Simulated(run->throughput) : Missing(run->missing));
        }
      }
      t.AddRow(std::move(row));
    }
  }
  return t;
}

Table AblationTable(const std::vector<Comparison>& all) {
  Table t("ablation", "From sequential to parallel stages, GraphPipe's planner throughout");
  t.AddKey("net");
  t.AddKey("devices");
  t.AddColumn({"sequential", "sequential", "", "samples/s", Origin::kSimulated, 1});
  t.AddColumn({"depth", "depth", "", "", Origin::kComputed, 0});
  t.AddColumn({"micro_batch", "micro-batch", "", "samples", Origin::kComputed, 0});
  t.AddColumn(
      {"parallel", "parallel stages, same micro-batch", "parallel", "", Origin::kComputed, 2});
  t.AddColumn({"sizes", "and a micro-batch of their own", "own size", "", Origin::kComputed, 2});
  t.AddColumn({"graph_depth", "depth then", "", "", Origin::kComputed, 0});
  t.AddColumn({"graph_micro_batch", "micro-batch then", "", "samples", Origin::kComputed, 0});
  for (const Comparison& c : all) {
    const PlanRun *line = c.sequential.best_of_one_size(), *graph = c.graphpipe.best();
    if (line == nullptr || graph == nullptr) continue;
    t.AddRow({Label(c.net), Label(static_cast<double>(c.devices)), Simulated(line->throughput),
              Computed(line->depth), Computed(SizeText(*line)), RatioCell(c.GainOfParallel()),
              RatioCell(c.GainOfSizes()), Computed(graph->depth), Computed(SizeText(*graph))});
  }
  t.AddNote(
      "Sequential: the best plan of the operators in one line, each stage after the one before. "
      "Published for 32 GPUs (read): parallel stages 1.12 to 1.40, with the larger micro-batch "
      "1.25 to 1.61.");
  return t;
}

Table SearchTable(const std::vector<Comparison>& all) {
  Table t("search", "Search time, all sizes of micro-batches together");
  t.AddKey("net");
  t.AddKey("devices");
  for (const Method& m : kMethods) {
    t.AddColumn({m.metric, m.name, "", "s", Origin::kMeasured, 3});
  }
  t.AddColumn({"over_pipedream", "PipeDream over GraphPipe", "", "", Origin::kComputed, 2, true});
  t.AddColumn({"over_piper", "Piper over GraphPipe", "", "", Origin::kComputed, 2, true});
  for (const Comparison& c : all) {
    std::vector<Cell> row = {Label(c.net), Label(static_cast<double>(c.devices))};
    std::vector<double> seconds;
    for (const Method& m : kMethods) {
      seconds.push_back(absl::ToDoubleSeconds((c.*m.sweep).search_time));
      row.push_back(Measured(seconds.back()));
    }
    row.push_back(Computed(seconds[0] / seconds[2]));
    row.push_back(Computed(seconds[1] / seconds[2]));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "One core of this machine. GraphPipe is asked once more than the others, for sizes of its "
      "own.");
  return t;
}

}  // namespace pipelab
