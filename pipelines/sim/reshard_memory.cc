#include "pipelines/sim/reshard_memory.h"

#include <algorithm>

#include "pipelines/ir/row_split.h"

namespace pipelab {
namespace {

// Whether tensors go whole from one device to another, or stay whole, everywhere.
bool AllWhole(const Schedule& s) {
  if (!s.micro_batches_of_stage.empty()) return false;
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      if (group.size() > 1) return false;
    }
  }
  return true;
}

bool HasGradient(const Schedule& s, int edge) { return !s.stages.edges[edge].gradient.none(); }

}  // namespace

ReshardMemoryTable::ReshardMemoryTable(const Schedule& s, const CostTable& costs) : schedule_(s) {
  if (AllWhole(s)) return;
  slices_ = costs.slices.empty() ? 1 : s.num_slices;
  for (int slice = 0; slice < slices_; ++slice) {
    for (int r = 0; r < s.placement.num_replicas(); ++r) {
      for (int stage = 0; stage < s.num_stages(); ++stage) AddStage(s, costs, slice, r, stage);
    }
  }
}

std::vector<ReshardMemoryTable::End> ReshardMemoryTable::EndsOf(const Schedule& s,
                                                                const CostTable& costs, int slice,
                                                                int replica, int stage, int edge,
                                                                int phases) {
  const StageGraph::Edge& e = s.stages.edges[edge];
  const auto& groups = s.placement.groups[replica];
  std::vector<End> ends(groups[stage].size() * phases);
  const int64_t message =
      costs.EdgeBytesOf(edge, slice).value() * MessageSize(s, e) / costs.SliceParts(s);
  // How many of the stage's micro-batches one at the other end has.
  const int other = MessagesOf(s, e, e.from == stage ? e.to : e.from);
  ForEachPiece(s, replica, edge, [&](const Piece& p) {
    const int member = e.from == stage ? p.producer : p.consumer;
    const bool stays = groups[e.from][p.producer] == groups[e.to][p.consumer];
    const int64_t bytes = message * (p.row_end - p.row_begin) / p.row_parts;
    for (int phase = p.part % other; phase < phases; phase += other) {
      End& end = ends[member * phases + phase];
      ++end.parts;
      end.bytes += bytes;
      if (stays) end.local += bytes;
    }
  });
  return ends;
}

void ReshardMemoryTable::AddStage(const Schedule& s, const CostTable& costs, int slice, int replica,
                                  int stage) {
  StageTable table;
  table.phases = PhasesOf(s, stage);
  const size_t members = s.placement.groups[replica][stage].size();
  table.memory.resize(members * table.phases);
  // A forward takes its inputs along in-edges and leaves outputs along out-edges; a backward the
  // other way.
  const auto add = [&](const std::vector<int>& in, const std::vector<int>& out,
                       ReshardMemory Memory::*memory) {
    for (int edge : in) {
      if (memory == &Memory::backward && !HasGradient(s, edge)) continue;
      const std::vector<End> ends = EndsOf(s, costs, slice, replica, stage, edge, table.phases);
      for (size_t i = 0; i < ends.size(); ++i) {
        ReshardMemory& m = table.memory[i].*memory;
        if (ends[i].parts > 1) m.before = std::max(m.before, ends[i].bytes);
      }
    }
    std::vector<int64_t> level(table.memory.size(), 0);  // above that after the action
    for (int edge : out) {
      if (memory == &Memory::backward && !HasGradient(s, edge)) continue;
      const std::vector<End> ends = EndsOf(s, costs, slice, replica, stage, edge, table.phases);
      for (size_t i = 0; i < ends.size(); ++i) {
        if (ends[i].parts <= 1) continue;  // goes or stays whole
        ReshardMemory& m = table.memory[i].*memory;
        level[i] += ends[i].local;
        m.after = std::max(m.after, level[i]);
        if (ends[i].local == ends[i].bytes) level[i] -= ends[i].bytes;  // nothing is sent
      }
    }
  };
  add(s.stages.in_edges[stage], s.stages.out_edges[stage], &Memory::forward);
  add(s.stages.out_edges[stage], s.stages.in_edges[stage], &Memory::backward);
  for (const Memory& m : table.memory) {
    any_ |= m.forward.before + m.forward.after + m.backward.before + m.backward.after > 0;
  }
  stages_.push_back(std::move(table));
}

ReshardMemory ReshardMemoryTable::Of(int device, int replica, const Action& a) const {
  const bool forward = a.kind == ActionKind::kForward;
  if (!forward && a.kind != ActionKind::kBackward && a.kind != ActionKind::kBackwardInput) {
    return ReshardMemory();
  }
  const int slice = slices_ == 1 ? 0 : a.slice;
  const int replicas = schedule_.placement.num_replicas();
  const StageTable& table =
      stages_[(slice * replicas + replica) * schedule_.num_stages() + a.stage];
  const std::vector<int>& group = schedule_.placement.groups[replica][a.stage];
  const auto member = std::find(group.begin(), group.end(), device) - group.begin();
  const Memory& m = table.memory[member * table.phases + a.micro_batch % table.phases];
  return forward ? m.forward : m.backward;
}

}  // namespace pipelab
