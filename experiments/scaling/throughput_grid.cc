#include "experiments/scaling/throughput_grid.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "glog/logging.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Throughput against one micro-batch on as many devices where all stages are equal and a
// micro-batch of any size costs the same a sample: K M / (M + K - 1) devices at work.
double BubbleBound(const ThroughputCell& cell) {
  const double k = cell.devices, m = cell.micro_batches;
  return k * m / (m + k - 1);
}

absl::Status EvaluateCell(const GroupedModel& model, const ClusterSpec& cluster, int64_t batch,
                          ThroughputCell* cell) {
  StepCase c;
  c.on.model = &model;
  c.on.cluster = &cluster;
  c.on.type = TypeOn(cluster);
  c.config.pipeline = cell->devices;
  c.config.micro_batches = cell->micro_batches;
  c.config.recompute = Recompute::kFull;
  PIPELAB_ASSIGN_OR_RETURN(cell->own_point, LargestBatch(c, batch));
  c.config.cut = CutRule::kBlocks;
  PIPELAB_ASSIGN_OR_RETURN(cell->optimal_point, LargestBatch(c, batch));
  cell->layout = LayoutOf(model, cell->own_point.point);
  PIPELAB_ASSIGN_OR_RETURN(cell->overheads, OverheadsOf(cell->own_point.point));
  return absl::OkStatus();
}

constexpr int kMostSetUpMs = 278;  // tpu-v3.json

std::string CellName(const ThroughputCell& cell) {
  return absl::StrCat("K=", cell.devices, " M=", cell.micro_batches);
}

// "table_2": part of a table's id.
std::string IdOf(const ThroughputGrid& grid) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(grid.published.table), {{" ", "_"}});
}

std::string Caption(const ThroughputGrid& grid) {
  return absl::StrCat("GPipe's ", grid.published.table, " for ",
                      grid.family->ModelName(grid.published.layers, grid.published.width), " on ",
                      grid.cluster_title);
}

void AddCells(const ThroughputGrid& grid, Table* t) {
  t->AddKey("devices", "K");
  t->AddKey("micro_batches", "M");
  t->AddColumn({"published", "published", "", "x", Origin::kPublished, 2});
  t->AddColumn({"normalised", "GPipe's partitioner", "GPipe's cut", "x", Origin::kSimulated, 2});
  t->AddColumn({"error", "error", "", "%", Origin::kComputed, 1});
  t->AddColumn(
      {"normalised_optimal", "optimal partitioner", "optimal cut", "x", Origin::kSimulated, 2});
  t->AddColumn({"throughput", "throughput", "", "samples/s", Origin::kSimulated, 2});
  t->AddColumn({"batch", "batch", "", "", Origin::kComputed, 0});
  t->AddColumn({"largest_device", "largest device", "device", "GiB", Origin::kSimulated, 2});
  t->AddColumn({"layout", "layers of each stage", "layers", "", Origin::kComputed, 0});
  for (const ThroughputCell& cell : grid.cells) {
    const StepPrediction& point = cell.own_point.point;
    Cell error = Computed(ToPercent(cell.error()));
    const std::string reason = ReasonOfMiss(grid, cell);
    if (!reason.empty()) error = std::move(error).WithNote(reason);
    Cell device = Simulated(ToGiB(point.largest_device));
    if (!cell.own_point.fits) {
      device = std::move(device).WithNote(
          "more than the device has, even with one sample a micro-batch: the paper must keep less");
    }
    t->AddRow({Label(cell.devices), Label(cell.micro_batches),
               Published(cell.published, grid.published.tag), Simulated(cell.own), std::move(error),
               Simulated(cell.optimal), Simulated(point.samples_per_second()),
               Computed(static_cast<double>(point.step.config.batch())), std::move(device),
               Computed(cell.layout)});
  }
}

}  // namespace

const ThroughputCell& ThroughputGrid::At(int devices, int micro_batches) const {
  const auto cell = std::find_if(cells.begin(), cells.end(), [&](const ThroughputCell& c) {
    return c.devices == devices && c.micro_batches == micro_batches;
  });
  CHECK(cell != cells.end()) << "no cell K=" << devices << " M=" << micro_batches;
  return *cell;
}

absl::StatusOr<ThroughputGrid> MakeThroughputGrid(const GpipeFamily& family,
                                                  const PublishedThroughput& published,
                                                  const ClusterSpec& cluster) {
  ThroughputGrid grid;
  grid.family = &family;
  grid.published = published;
  grid.cluster_title = cluster.title;
  grid.device_gib = ToGiB(cluster.device.memory.value);
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model,
                           family.build(published.layers, published.width));
  for (size_t i = 0; i < published.devices.size(); ++i) {
    for (const PublishedThroughput::Row& row : published.rows) {
      ThroughputCell cell;
      cell.devices = static_cast<int>(published.devices[i]);
      cell.micro_batches = static_cast<int>(row.micro_batches);
      cell.published = row.normalised[i];
      PIPELAB_RETURN_IF_ERROR(EvaluateCell(model, cluster, family.batch, &cell));
      // The model is this function's alone.
      cell.own_point.chosen.on.model = cell.optimal_point.chosen.on.model = nullptr;
      grid.cells.push_back(std::move(cell));
    }
    LOG(INFO) << published.table << ": " << family.title << " on " << cluster.name << ", "
              << published.devices[i] << " devices";
  }
  const double own = grid.cells[0].own_point.point.samples_per_second();
  const double optimal = grid.cells[0].optimal_point.point.samples_per_second();
  for (ThroughputCell& cell : grid.cells) {
    cell.own = cell.own_point.point.samples_per_second() / own;
    cell.optimal = cell.optimal_point.point.samples_per_second() / optimal;
  }
  return grid;
}

double WorstError(const ThroughputGrid& grid, Nanoseconds set_up) {
  const auto throughput = [&](const ThroughputCell& cell) {
    const StepPrediction& p = cell.own_point.point;
    return static_cast<double>(p.step.config.batch()) /
           static_cast<double>((p.trace.makespan + set_up).value());
  };
  double worst = 0;
  for (const ThroughputCell& cell : grid.cells) {
    const double normalised = throughput(cell) / throughput(grid.cells[0]);
    worst = std::max(worst, std::abs(normalised / cell.published - 1));
  }
  return worst;
}

std::vector<RangeValue> SetUps(const ThroughputGrid& grid, double accepted) {
  std::vector<RangeValue> intervals;
  if (grid.cells[0].own_point.point.step.set_up == Nanoseconds(0)) return intervals;
  const auto holds = [&](int ms) { return WorstError(grid, Milliseconds(ms)) <= accepted; };
  for (int first = 0; first <= kMostSetUpMs;) {
    const bool met = holds(first);
    int last = first;
    while (last < kMostSetUpMs && holds(last + 1) == met) ++last;
    intervals.push_back({absl::StrFormat("%d to %d ms", first, last), met});
    first = last + 1;
  }
  return intervals;
}

std::string WhatIsUnknown(const ThroughputGrid& grid) {
  std::string text;
  const FittedPoint& unit = grid.cells[0].own_point;
  if (!unit.fits) {
    text = absl::StrFormat(
        "%s, which all cells are normalised to, needs %.1f of %.0f GiB here even with one sample a "
        "micro-batch, so the paper kept less than whole stages of activations there; ",
        CellName(grid.cells[0]), ToGiB(unit.point.largest_device), grid.device_gib);
  }
  if (unit.point.step.set_up == Nanoseconds(0)) return text;
  return text +
         absl::StrFormat(
             "with a set-up of 0 and of %d ms a step the largest error is %.0f and %.0f %%; ",
             kMostSetUpMs, ToPercent(WorstError(grid, Nanoseconds(0))),
             ToPercent(WorstError(grid, Milliseconds(kMostSetUpMs))));
}

std::string ReasonOfMiss(const ThroughputGrid& grid, const ThroughputCell& cell) {
  if (std::abs(cell.error()) <= 0.25) return "";
  const ThroughputCell& one = grid.At(cell.devices, grid.cells[0].micro_batches);
  if (&cell == &one) {
    return absl::StrFormat(
        "one device works at a time, so only batch and set-up can make %d of them faster than %d",
        cell.devices, grid.cells[0].devices);
  }
  const double published = cell.published / one.published, own = cell.own / one.own;
  const double bound = BubbleBound(cell) / BubbleBound(one);
  if (published > bound) {
    return absl::StrFormat(
        "the paper gains %.2fx over %s, more than the %.2fx that the bubble leaves to equal "
        "stages: "
        "no schedule of GPipe's does this unless a sample costs less in this cell's batch, which "
        "the paper does not print",
        published, CellName(one), bound);
  }
  if (std::abs(own / published - 1) <= 0.25) {
    return absl::StrFormat(
        "against %s, the paper gains %.2fx and this model %.2fx (%+.0f %%): the miss is that "
        "cell's, %.2fx published and %.2fx here, where one device works at a time and only a "
        "larger batch can make %d of them faster than %d",
        CellName(one), published, own, ToPercent(own / published - 1), one.published, one.own,
        cell.devices, grid.cells[0].devices);
  }
  return absl::StrFormat(
      "against %s, the paper gains %.2fx and this model %.2fx of the %.2fx that the bubble leaves "
      "to equal stages; what else slowed the paper's run is not explained by imbalance (%.0f %% of "
      "the time here), and its batch is not printed",
      CellName(one), published, own, bound, ToPercent(cell.overheads.imbalance));
}

Orderings CompareOrderings(const ThroughputGrid& grid) {
  Orderings orderings;
  for (const ThroughputCell& a : grid.cells) {
    for (const ThroughputCell& b : grid.cells) {
      if (!(a.published < b.published)) continue;
      ++orderings.pairs;
      if (a.own < b.own) {
        ++orderings.alike;
      } else {
        orderings.others.push_back(
            absl::StrFormat("%s (%.2fx, published %.2fx) is not below %s (%.2fx, published %.2fx)",
                            CellName(a), a.own, a.published, CellName(b), b.own, b.published));
      }
    }
  }
  return orderings;
}

Table ThroughputTable(const ThroughputGrid& grid) {
  Table t(absl::StrCat("throughput_", IdOf(grid)), Caption(grid));
  AddCells(grid, &t);
  const Orderings orderings = CompareOrderings(grid);
  t.AddNote(absl::StrCat("Of ", orderings.pairs, " pairs of cells that the paper orders, ",
                         orderings.alike, " are ordered alike here."));
  for (const std::string& other : orderings.others) t.AddNote(other);
  return t;
}

Table OverheadTable(const ThroughputGrid& grid, const PublishedOverheads& published) {
  Table t(absl::StrCat("overheads_", IdOf(grid)),
          absl::StrCat("Where the time goes: ", Caption(grid)));
  t.AddKey("devices", "K");
  t.AddKey("micro_batches", "M");
  const Origin simulated = Origin::kSimulated;
  t.AddColumn({"compute", "compute", "", "%", simulated, 1});
  t.AddColumn({"recompute", "recompute", "", "%", simulated, 1});
  t.AddColumn({"bubble", "bubble and transfers", "bubble", "%", simulated, 1});
  t.AddColumn({"imbalance", "load imbalance", "imbalance", "%", simulated, 1});
  t.AddColumn({"set_up", "set-up", "set-up", "%", simulated, 1});
  t.AddColumn({"update", "weight update", "update", "%", simulated, 1});
  for (const ThroughputCell& cell : grid.cells) {
    const Overheads& o = cell.overheads;
    t.AddRow({Label(cell.devices), Label(cell.micro_batches), Simulated(ToPercent(o.compute)),
              Simulated(ToPercent(o.recompute)), Simulated(ToPercent(o.bubble)),
              Simulated(ToPercent(o.imbalance)), Simulated(ToPercent(o.set_up)),
              Simulated(ToPercent(o.update))});
  }
  t.AddNote(absl::StrFormat(
      "Published for one case that the paper does not name (%s): compute %.1f %%, recompute %.1f "
      "%%, bubble %.1f %%, load imbalance %.1f %%, set-up %.1f %%, weight update %.1f %%. Set-up "
      "is the machine's. Recomputation that fits into the bubble counts as "
      "recomputation. Imbalance is below 0 where unequal stages help: the last stage's "
      "recomputation has no bubble to hide in, so a smaller last stage is better.",
      published.tag, published.compute, published.recompute, published.bubble, published.imbalance,
      published.set_up, published.update));
  return t;
}

}  // namespace pipelab
