#include "pipelines/ir/schedule.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace pipelab {

char KindLetter(ActionKind kind) {
  switch (kind) {
    case ActionKind::kForward:
      return 'F';
    case ActionKind::kBackward:
      return 'B';
    case ActionKind::kBackwardInput:
      return 'I';
    case ActionKind::kBackwardWeight:
      return 'W';
    case ActionKind::kRecompute:
      return 'R';
    case ActionKind::kStep:
      return 'S';
    case ActionKind::kOffload:
      return 'O';
    case ActionKind::kReload:
      return 'L';
  }
  LOG(FATAL) << "no such action kind: " << static_cast<int>(kind);
}

std::string ToString(const Action& action) {
  const char letter[] = {KindLetter(action.kind), '\0'};
  std::string text = absl::StrCat(action.stage, letter);
  if (action.kind != ActionKind::kStep) absl::StrAppend(&text, action.micro_batch);
  if (action.slice != 0) absl::StrAppend(&text, ".", action.slice);
  if (action.version != 0) absl::StrAppend(&text, "@", action.version);
  return text;
}

StageGraph StageGraph::Chain(int num_stages) {
  std::vector<Edge> edges;
  for (int s = 0; s + 1 < num_stages; ++s) edges.push_back({s, s + 1});
  return FromEdges(num_stages, std::move(edges));
}

StageGraph StageGraph::FromEdges(int num_stages, std::vector<Edge> edges) {
  StageGraph graph;
  graph.in_edges.resize(num_stages);
  graph.out_edges.resize(num_stages);
  for (int e = 0; e < static_cast<int>(edges.size()); ++e) {
    CHECK(edges[e].from >= 0 && edges[e].from < num_stages) << "edge " << e;
    CHECK(edges[e].to >= 0 && edges[e].to < num_stages) << "edge " << e;
    graph.out_edges[edges[e].from].push_back(e);
    graph.in_edges[edges[e].to].push_back(e);
  }
  graph.edges = std::move(edges);
  return graph;
}

StageGraph StageGraph::WithChain() const {
  std::vector<bool> there(num_stages(), false);  // [stage] an edge to the next
  for (const Edge& e : edges) {
    if (e.to == e.from + 1) there[e.from] = true;
  }
  std::vector<Edge> all = edges;
  for (int s = 0; s + 1 < num_stages(); ++s) {
    if (!there[s]) all.push_back({s, s + 1});
  }
  return FromEdges(num_stages(), std::move(all));
}

bool StageGraph::IsChain() const {
  if (static_cast<int>(edges.size()) + 1 != num_stages()) return false;
  for (int e = 0; e < static_cast<int>(edges.size()); ++e) {
    if (edges[e].from != e || edges[e].to != e + 1) return false;
  }
  return true;
}

bool StageGraph::IsPlainChain() const {
  return IsChain() && AllGradientsAreOwn() &&
         std::none_of(edges.begin(), edges.end(), [](const Edge& e) { return e.output.list(); });
}

bool StageGraph::AllGradientsAreOwn() const {
  return std::all_of(edges.begin(), edges.end(), [](const Edge& e) { return e.gradient.same(); });
}

int StageGraph::ReplayWindow() const {
  for (const Edge& e : edges) {
    if (e.output.replay()) return e.output.number;
  }
  return 0;
}

void StageGraph::SetReplayWindow(int window) {
  for (Edge& e : edges) e.output = Reads::Replay(window);
}

StageGraph StageGraph::WithinMicroBatch() const {
  std::vector<Edge> within;
  for (const Edge& e : edges) {
    if (!e.output.list()) within.push_back(e);
  }
  return FromEdges(num_stages(), std::move(within));
}

bool StageGraph::IsFirst(int stage) const {
  return std::all_of(in_edges[stage].begin(), in_edges[stage].end(),
                     [&](int e) { return edges[e].output.list(); });
}

std::vector<int> StageGraph::TopologicalOrder() const {
  std::vector<int> missing(num_stages(), 0), ready;
  for (const Edge& e : edges) missing[e.to] += e.output.list() ? 0 : 1;
  for (int s = 0; s < num_stages(); ++s) {
    if (missing[s] == 0) ready.push_back(s);
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    for (int e : out_edges[ready[i]]) {
      if (!edges[e].output.list() && --missing[edges[e].to] == 0) ready.push_back(edges[e].to);
    }
  }
  return ready;
}

Placement Placement::Single(absl::Span<const int> device_of_stage, int num_devices,
                            int num_micro_batches) {
  Placement placement;
  placement.num_devices = num_devices;
  placement.groups.resize(1);
  for (int device : device_of_stage) placement.groups[0].push_back({device});
  placement.replica_of_micro_batch.assign(num_micro_batches, 0);
  return placement;
}

int Schedule::GroupSize(int stage) const {
  size_t fewest = placement.groups[0][stage].size();
  for (const auto& replica : placement.groups) fewest = std::min(fewest, replica[stage].size());
  return static_cast<int>(fewest);
}

int Schedule::SampleOf(int stage, int pass) const {
  while (!stages.in_edges[stage].empty()) {
    const StageGraph::Edge& e = stages.edges[stages.in_edges[stage][0]];
    if (!e.output.replay()) break;
    pass = Outputs(e).Sources(pass).first;
    stage = e.from;
  }
  return pass;
}

std::vector<bool> Schedule::RecomputedStages() const {
  std::vector<bool> recomputed(num_stages(), false);
  for (const std::vector<Action>& actions : order) {
    for (const Action& a : actions) {
      if (a.kind == ActionKind::kRecompute) recomputed[a.stage] = true;
    }
  }
  return recomputed;
}

namespace {

// Gives an edge of a model the reads that it has under a schedule with these edges.
void TakeReads(const StageGraph& scheduled, StageGraph::Edge* edge) {
  const bool chain = scheduled.IsChain();
  int late = 0;
  for (const StageGraph::Edge& e : scheduled.edges) {
    const bool between =
        chain ? e.from >= edge->from && e.to <= edge->to : e.from == edge->from && e.to == edge->to;
    if (!between) continue;
    if (e.output.replay()) edge->output = e.output;
    if (e.gradient.none()) edge->gradient = e.gradient;
    late += e.gradient.number;
    if (!chain) break;
  }
  if (!scheduled.AllGradientsAreOwn() && !edge->gradient.none()) {
    edge->gradient = Reads::Late(late);
  }
}

}  // namespace

absl::StatusOr<Schedule> WithStages(Schedule schedule, StageGraph stages) {
  if (schedule.num_stages() != stages.num_stages()) {
    return absl::InvalidArgumentError(absl::StrCat("the layers are in ", stages.num_stages(),
                                                   " stages, but the schedule has ",
                                                   schedule.num_stages()));
  }
  const StageGraph scheduled = schedule.stages.WithinMicroBatch();
  if (scheduled.IsChain()) {
    for (const StageGraph::Edge& e : stages.edges) {
      if (e.from < e.to) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("edge ", e.from, "-", e.to,
                       " of the layers' stages leads back, and the schedule is of a chain"));
    }
  } else {
    const auto edges = [](const StageGraph& graph) {
      std::set<std::pair<int, int>> edges;
      for (const StageGraph::Edge& e : graph.edges) edges.emplace(e.from, e.to);
      return edges;
    };
    const auto given = edges(scheduled), made = edges(stages);
    std::vector<std::pair<int, int>> different;
    std::set_symmetric_difference(given.begin(), given.end(), made.begin(), made.end(),
                                  std::back_inserter(different));
    if (!different.empty()) {
      const auto& [from, to] = different[0];
      return absl::InvalidArgumentError(absl::StrCat(
          "edge ", from, "-", to, " of the stage graph is in ",
          given.count(different[0]) > 0 ? "the schedule, and not in the layers' stages"
                                        : "the layers' stages, and not in the schedule"));
    }
  }
  if (!scheduled.AllGradientsAreOwn() || scheduled.ReplayWindow() > 0) {
    for (StageGraph::Edge& e : stages.edges) TakeReads(scheduled, &e);
  }
  if (scheduled.edges.size() < schedule.stages.edges.size()) {
    for (const StageGraph::Edge& e : schedule.stages.edges) {
      if (e.output.list()) stages.edges.push_back(e);
    }
    stages = StageGraph::FromEdges(stages.num_stages(), std::move(stages.edges));
  }
  schedule.stages = std::move(stages);
  return schedule;
}

}  // namespace pipelab
