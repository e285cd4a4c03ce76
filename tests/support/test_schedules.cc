#include "tests/support/test_schedules.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "glog/logging.h"
#include "pipelines/ir/dependency.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

// Deliberately unlike the parser of the text form, which these tests also check.
Action OneAction(const std::string& word) {
  Action a;
  char letter = 0, mark = 0;
  std::istringstream in(word);
  in >> a.stage >> letter;
  const std::string letters = "FBIWRSOL";
  const size_t kind = letters.find(letter);
  CHECK(in && kind != std::string::npos) << word;
  a.kind = static_cast<ActionKind>(kind);
  if (a.kind != ActionKind::kStep) CHECK(in >> a.micro_batch) << word;
  while (in >> mark) {
    CHECK(mark == '.' || mark == '@') << word;
    CHECK(in >> (mark == '.' ? a.slice : a.version)) << word;
  }
  return a;
}

Action Make(ActionKind kind, int stage, int micro_batch, int slice) {
  return {kind, static_cast<int16_t>(stage), micro_batch, static_cast<int16_t>(slice), 0};
}

}  // namespace

std::vector<Action> Actions(const std::string& line) {
  std::vector<Action> actions;
  std::istringstream in(line);
  for (std::string word; in >> word;) actions.push_back(OneAction(word));
  return actions;
}

Schedule ChainOf(int num_micro_batches, const std::vector<std::string>& lines) {
  Schedule s;
  s.name = "test";
  const int n = static_cast<int>(lines.size());
  std::vector<int> device(n);
  for (int d = 0; d < n; ++d) device[d] = d;
  s.stages = StageGraph::Chain(n);
  s.placement = Placement::Single(device, n, num_micro_batches);
  s.num_micro_batches = num_micro_batches;
  for (const std::string& line : lines) s.order.push_back(Actions(line));
  return s;
}

Schedule OneStageOnFour() {
  Schedule s = ChainOf(1, {"0F0 0B0"});
  s.placement.groups = {{{0, 1, 2, 3}}};
  s.placement.num_devices = 4;
  s.order.resize(4, s.order[0]);
  return s;
}

namespace {

// F, O, L, B or I on a device of the action's group: members do the same.
bool HostReady(const Schedule& s, const Action& a) {
  const auto& list = s.order[s.Group(a.stage, a.micro_batch)[0]];
  const auto did = [&](ActionKind kind) {
    return std::count(list.begin(), list.end(), Make(kind, a.stage, a.micro_batch, a.slice)) > 0;
  };
  switch (a.kind) {
    case ActionKind::kReload:
      return did(ActionKind::kOffload);
    case ActionKind::kBackward:
    case ActionKind::kBackwardInput:
      return did(ActionKind::kReload) || !did(ActionKind::kOffload);
    case ActionKind::kOffload:
      return !did(ActionKind::kBackward) && !did(ActionKind::kBackwardInput);
    default:
      return true;
  }
}

}  // namespace

Schedule RandomOrder(const RandomShape& shape, uint64_t seed) {
  Schedule s;
  s.name = "random";
  s.stages = shape.stages;
  s.placement = shape.placement;
  s.num_micro_batches = static_cast<int>(shape.placement.replica_of_micro_batch.size());
  s.micro_batches_of_stage = shape.micro_batches_of_stage;
  s.num_slices = shape.num_slices;
  s.order.resize(s.num_devices());
  std::vector<Action> open;
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    for (int m = 0; m < s.MicroBatches(stage); ++m) {
      for (int slice = 0; slice < s.num_slices; ++slice) {
        open.push_back(Make(ActionKind::kForward, stage, m, slice));
        if (shape.offload && m % 2 == 0) {
          open.push_back(Make(ActionKind::kOffload, stage, m, slice));
          open.push_back(Make(ActionKind::kReload, stage, m, slice));
        }
        if (shape.recompute) open.push_back(Make(ActionKind::kRecompute, stage, m, slice));
        if (shape.split_backward) {
          open.push_back(Make(ActionKind::kBackwardInput, stage, m, slice));
          open.push_back(Make(ActionKind::kBackwardWeight, stage, m, slice));
        } else {
          open.push_back(Make(ActionKind::kBackward, stage, m, slice));
        }
      }
    }
  }
  const CounterRng rng(seed, "random order");
  std::set<std::tuple<int, int, int, int>> over;
  const auto key = [](const Event& e) {
    return std::make_tuple(static_cast<int>(e.kind), e.stage, e.micro_batch, e.slice);
  };
  for (uint64_t step = 0; !open.empty(); ++step) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < open.size(); ++i) {
      bool ok = true;
      ForEachDependency(s, shape.recompute, open[i],
                        [&](const Event& e) { ok &= over.count(key(e)) > 0; });
      if (ok && HostReady(s, open[i])) ready.push_back(i);
    }
    CHECK(!ready.empty());
    const size_t pick = ready[rng.Below(step, ready.size())];
    const Action a = open[pick];
    open.erase(open.begin() + static_cast<std::ptrdiff_t>(pick));
    for (int d : s.Group(a.stage, a.micro_batch)) s.order[d].push_back(a);
    ForEachResult(a, [&](const Event& e) { over.insert(key(e)); });
    if (a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) continue;
    // What is not offloaded by now never is.
    open.erase(std::remove_if(open.begin(), open.end(),
                              [&](const Action& o) {
                                return IsHostTransfer(o.kind) && o.stage == a.stage &&
                                       o.micro_batch == a.micro_batch && o.slice == a.slice;
                              }),
               open.end());
  }
  return s;
}

std::vector<RandomShape> Shapes() {
  std::vector<RandomShape> shapes;
  const auto add = [&](const StageGraph& stages, int devices,
                       const std::vector<std::vector<std::vector<int>>>& groups,
                       const std::vector<int>& replicas, const std::vector<int32_t>& counts = {}) {
    for (int variant = 0; variant < 6; ++variant) {
      RandomShape shape;
      shape.stages = stages;
      shape.placement.num_devices = devices;
      shape.placement.groups = groups;
      shape.placement.replica_of_micro_batch = replicas;
      shape.micro_batches_of_stage = counts;
      shape.num_slices = variant == 3 || variant == 5 ? 2 : 1;
      shape.offload = variant >= 4;
      shape.split_backward = variant % 2 == 1;
      shape.recompute = variant == 2;
      shapes.push_back(shape);
    }
  };
  add(StageGraph::Chain(1), 1, {{{0}}}, {0, 0});
  add(StageGraph::Chain(3), 3, {{{0}, {1}, {2}}}, {0, 0, 0, 0});
  add(StageGraph::Chain(4), 2, {{{0}, {1}, {1}, {0}}}, {0, 0, 0});    // a V: a local edge
  add(StageGraph::Chain(4), 2, {{{0}, {0}, {1}, {1}}}, {0, 0, 0});    // local edges
  add(StageGraph::FromEdges(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}), 4,  // a diamond
      {{{0}, {1}, {2}, {3}}}, {0, 0, 0});
  // Skip connections, one doubled.
  add(StageGraph::FromEdges(3, {{0, 1}, {1, 2}, {0, 2}, {0, 2}}), 3, {{{0}, {1}, {2}}}, {0, 0, 0});
  add(StageGraph::FromEdges(3, {{0, 2}, {1, 2}}), 2, {{{0}, {1}, {0}}}, {0, 0});  // two sources
  add(StageGraph::Chain(2), 5, {{{0, 1}, {2, 3, 4}}}, {0, 0, 0});    // 2 to 3: rows in sixths
  add(StageGraph::Chain(3), 3, {{{0, 1, 2}, {1}, {2, 0}}}, {0, 0});  // overlapping groups
  add(StageGraph::Chain(3), 3, {{{0}, {1}, {2}}, {{2}, {1}, {0}}}, {0, 1, 0, 1});  // bidirectional
  add(StageGraph::Chain(2), 4, {{{0, 1}, {2}}, {{2, 3}, {1}}}, {0, 1, 1});
  // Micro-batches of different size: down and up a chain, and in a diamond.
  add(StageGraph::Chain(4), 4, {{{0}, {1}, {2}, {3}}}, {0, 0, 0, 0}, {4, 2, 1, 4});
  add(StageGraph::FromEdges(5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {0, 4}, {3, 4}}), 5,
      {{{0}, {1}, {2}, {3}, {4}}}, {0, 0, 0, 0, 0, 0}, {2, 6, 1, 3, 6});
  // And groups, in which parts of a micro-batch begin and end between members.
  add(StageGraph::Chain(3), 6, {{{0}, {1, 2, 3}, {4, 5}}}, {0, 0, 0, 0}, {4, 2, 4});
  add(StageGraph::Chain(2), 5, {{{0, 1, 2, 3}, {4}}}, {0, 0}, {1, 2});
  // On one device: edges that stay there, with groups that overlap, and in two directions.
  add(StageGraph::Chain(3), 2, {{{0}, {1}, {0}}}, {0, 0, 0, 0}, {2, 4, 1});
  add(StageGraph::Chain(3), 1, {{{0}, {0}, {0}}}, {0, 0, 0, 0}, {4, 1, 2});
  add(StageGraph::Chain(2), 3, {{{0, 1, 2}, {2, 1}}}, {0, 0, 0, 0}, {2, 4});
  add(StageGraph::Chain(2), 2, {{{0}, {1}}, {{1}, {0}}}, {0, 0, 1, 1}, {2, 4});
  // Gradients that never come, on another device and on the same one, or come late.
  constexpr Reads kNone = Reads::None();
  add(StageGraph::FromEdges(3, {{0, 1, kNone}, {1, 2, kNone}}), 3, {{{0}, {1}, {2}}}, {0, 0, 0});
  add(StageGraph::FromEdges(4, {{0, 1}, {1, 2, kNone}, {2, 3}, {0, 3, kNone}}), 2,
      {{{0}, {0}, {1}, {1}}}, {0, 0, 0});
  add(StageGraph::FromEdges(3, {{0, 1, kNone}, {1, 2}}), 5, {{{0, 1}, {2, 3, 4}, {1}}}, {0, 0});
  add(StageGraph::FromEdges(3, {{0, 1, Reads::Late(2)}, {1, 2, Reads::Late(2)}}), 3,
      {{{0}, {1}, {2}}}, {0, 0, 0, 0, 0});
  add(StageGraph::FromEdges(
          4, {{0, 1, Reads::Late(1)}, {1, 2}, {2, 3, Reads::Late(3)}, {0, 3, Reads::Late(4)}}),
      2, {{{0}, {0}, {1}, {1}}}, {0, 0, 0, 0});
  add(StageGraph::FromEdges(3, {{0, 1, Reads::Late(2)}, {1, 2, Reads::Late(1)}}), 4,
      {{{0, 1}, {2, 3}, {1, 0}}}, {0, 0, 0, 0});
  return shapes;
}

}  // namespace pipelab
