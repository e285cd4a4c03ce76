// ComputeStageMemory: what one device of a stage holds, layer by layer through each pass.
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "pipelines/cost/stage_bytes.h"
#include "pipelines/cost/stage_costs.h"
#include "pipelines/cost/stage_plan.h"

namespace pipelab {
namespace {

// Height of the memory above its level at the start of an action, and the highest it was.
struct Walk {
  Bytes level, peak;
  Bytes kept, kept_at_peak;  // of these, for the backward

  void Reach(Bytes above) {
    if (level + above < peak) return;
    peak = level + above;
    kept_at_peak = std::min(kept, peak);
  }
};

Walk WalkForward(const StageBytes& stage, StagePass pass) {
  const bool drop = pass == StagePass::kForwardDrop;
  const StagePlan& plan = stage.plan;
  Walk walk;
  for (const StagePlan::Block& block : plan.blocks) {
    for (int place = block.begin; place < block.end; ++place) {
      const LayerCosts& layer = stage.costs[place];
      const bool again = pass == StagePass::kRecompute && layer.kept_when_dropped > Bytes(0);
      walk.Reach(stage.data[place] + (again ? layer.recompute_peak : layer.forward_peak));
      Bytes kept = drop && plan.Drops(block) ? layer.kept_when_dropped : layer.kept;
      if (again) kept -= layer.kept_when_dropped;
      walk.level += layer.output - stage.Released(pass, place) + kept;
      walk.kept += kept;
      if (plan.values[plan.output(place)].stays(drop)) walk.kept += layer.output;
    }
  }
  if (pass == StagePass::kRecompute) return walk;
  for (size_t v = 0; v < stage.value.size(); ++v) {
    walk.level += stage.value[v] * plan.values[v].copies(drop);
  }
  walk.Reach(Bytes(0));
  return walk;
}

// The forward of a block of a stage that rebuilds blocks, within this backward.
void WalkRebuild(const StageBytes& stage, const StagePlan::Block& block, StagePass backward,
                 Walk* walk) {
  for (int place = block.begin; place < block.end; ++place) {
    const LayerCosts& layer = stage.costs[place];
    walk->Reach(stage.data[place] + layer.forward_peak);
    walk->level += layer.kept - stage.Released(StagePass::kRecompute, place);
    if (!stage.plan.FindsValue(stage.plan.output(place), backward)) walk->level += layer.output;
  }
}

// Each layer gives up what it kept and the gradient of its output, and leaves the gradients of its
// inputs, which become one with those that are there already; between input and weight part it
// holds kept_for_weight as well.
Bytes BackwardPeak(const StageBytes& stage, StagePass pass) {
  const bool fused = pass == StagePass::kBackward;
  const StagePlan& plan = stage.plan;
  Walk walk;
  std::vector<bool> has_gradient;
  for (size_t v = 0; v < plan.values.size(); ++v) {
    const int edges = plan.values[v].back_edges;
    has_gradient.push_back(edges > 0);
    if (edges > 1) walk.level -= stage.value[v] * (edges - 1);
  }
  for (auto block = plan.blocks.rbegin(); block != plan.blocks.rend(); ++block) {
    if (block->rebuilt) WalkRebuild(stage, *block, pass, &walk);
    for (int place = block->end - 1; place >= block->begin; --place) {
      const LayerCosts& layer = stage.costs[place];
      walk.Reach(stage.data[place] + (fused ? layer.backward_peak : layer.backward_input_peak));
      walk.level += layer.carried - layer.output - layer.kept - stage.Released(pass, place);
      if (!fused) walk.level += layer.kept_for_weight;
      for (size_t k = 0; k < plan.inputs[place].size(); ++k) {
        const int v = plan.inputs[place][k];
        if (!plan.gives[place][k]) continue;
        if (!has_gradient[v]) walk.level += stage.value[v];
        has_gradient[v] = true;
      }
    }
  }
  return walk.peak;
}

Bytes BackwardWeightPeak(const StageBytes& stage) {
  Walk walk;
  for (int place = static_cast<int>(stage.costs.size()) - 1; place >= 0; --place) {
    walk.Reach(stage.data[place] + stage.costs[place].backward_weight_peak);
    walk.level -=
        stage.costs[place].kept_for_weight + stage.Released(StagePass::kBackwardWeight, place);
  }
  return walk.peak;
}

StageMemory ForwardAndRecompute(const StageBytes& stage) {
  StageMemory memory;
  for (const LayerCosts& layer : stage.costs) {
    memory.kept += layer.kept;
    memory.kept_when_dropped += layer.kept_when_dropped;
  }
  const StagePlan& plan = stage.plan;
  for (int v = 0; v < static_cast<int>(plan.values.size()); ++v) {
    const bool in_edge = v < plan.num_in_edges;
    if (in_edge && !plan.values[v].kept()) memory.kept -= stage.value[v];
    if (!in_edge && plan.values[v].kept()) memory.kept += stage.value[v];
  }
  const Walk forward = WalkForward(stage, StagePass::kForward);
  const Walk recompute = WalkForward(stage, StagePass::kRecompute);
  memory.forward_peak = forward.peak;
  memory.forward_peak_kept = forward.kept_at_peak;
  memory.forward_drop_peak = WalkForward(stage, StagePass::kForwardDrop).peak;
  memory.recompute_peak = recompute.peak;
  memory.recompute_peak_kept = recompute.kept_at_peak;
  return memory;
}

// Every forward drops; what is rebuilt is part of the backwards' peaks.
StageMemory ForwardOfBlocks(const StageBytes& stage) {
  StageMemory memory;
  const StagePlan& plan = stage.plan;
  for (const StagePlan::Block& block : plan.blocks) {
    for (int place = block.begin; place < block.end && !block.rebuilt; ++place) {
      memory.kept += stage.costs[place].kept;
    }
  }
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].held) memory.kept += stage.value[v];
  }
  const Walk forward = WalkForward(stage, StagePass::kForwardDrop);
  memory.forward_peak = memory.forward_drop_peak = forward.peak;
  memory.forward_peak_kept = forward.kept_at_peak;
  return memory;
}

// The bytes of gradients: one for each use of a value.
Bytes GradientBytes(const ModelGraph& graph, const std::vector<int>& layers, TensorParallel split) {
  Bytes gradients;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      gradients += Bytes(4) * p.size_on(split);
    }
  }
  return gradients;
}

Bytes StatisticsBytes(const ModelGraph& graph, const std::vector<int>& layers) {
  Bytes statistics;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].statistics) statistics += Bytes(4) * p.size();
  }
  return statistics;
}

// Gradients of the experts of these layers, where devices divide them.
Bytes ExpertGradientBytes(const ModelGraph& graph, const std::vector<int>& layers,
                          TensorParallel split) {
  Bytes bytes;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      bytes += Bytes(4) * p.experts_on(split);
    }
  }
  return split.expert_copies() > 1 ? bytes : Bytes(0);
}

// Gradients of the values that only these layers hold: what copies of the stage sum. Values of a
// tie with other stages are summed with those.
Bytes OwnGradientBytes(const ModelGraph& graph, const ModelPartition& partition, int stage,
                       TensorParallel split) {
  std::set<std::string> elsewhere, ties;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    if (partition.stage_of_layer[i] == stage) continue;
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (!p.tie.empty()) elsewhere.insert(p.tie);
    }
  }
  Bytes bytes;
  for (int i : partition.layers[stage]) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (elsewhere.count(p.tie) > 0) continue;
      if (p.tie.empty() || ties.insert(p.tie).second) bytes += Bytes(4) * p.size_on(split);
    }
  }
  return bytes;
}

uint64_t GradientBuffers(const ModelGraph& graph, const std::vector<int>& layers) {
  uint64_t buffers = 0;
  for (int i : layers) {
    for (const ParameterSpec& p : graph.layers[i].parameters) {
      if (p.gradient_buffer >= 0) buffers |= uint64_t{1} << p.gradient_buffer;
    }
  }
  return buffers;
}

}  // namespace

StageMemory ComputeStageMemory(const ModelGraph& graph, const ModelPartition& partition, int stage,
                               int64_t samples, TokenSlice slice, int optimizer_tensors,
                               TensorParallel split) {
  const StagePlan plan = MakeStagePlan(graph, partition, stage);
  return MemoryOf(graph, partition, stage, BytesOf(graph, plan, samples, slice, split),
                  optimizer_tensors, split);
}

StageMemory MemoryOf(const ModelGraph& graph, const ModelPartition& partition, int stage,
                     const StageBytes& bytes, int optimizer_tensors, TensorParallel split) {
  const StagePlan& plan = bytes.plan;
  StageMemory memory = plan.rebuilds ? ForwardOfBlocks(bytes) : ForwardAndRecompute(bytes);
  for (const LayerCosts& layer : bytes.costs) {
    memory.kept_for_weight += layer.kept_for_weight;
    memory.carried += layer.carried;
  }
  for (size_t v = 0; v < plan.values.size(); ++v) {
    if (plan.values[v].use == InputUse::kWeightGradient) memory.kept_for_weight += bytes.value[v];
  }
  memory.backward_peak = BackwardPeak(bytes, StagePass::kBackward);
  memory.backward_input_peak = BackwardPeak(bytes, StagePass::kBackwardInput);
  memory.backward_weight_peak = BackwardWeightPeak(bytes);
  memory.statistics = StatisticsBytes(graph, plan.layers);
  const int64_t values = NumValues(graph, plan.layers, split);  // tied ones once
  const int masters = graph.width.bytes < 4 ? 1 : 0;
  memory.numbers.weights = graph.width.bytes;
  memory.weights = graph.width(values);
  memory.optimizer = Bytes(4) * values * (optimizer_tensors + masters);
  memory.state = memory.weights + GradientBytes(graph, plan.layers, split) + memory.optimizer +
                 memory.statistics;
  memory.expert_gradients = ExpertGradientBytes(graph, plan.layers, split);
  memory.gradients = OwnGradientBytes(graph, partition, stage, split) - memory.expert_gradients;
  memory.gradient_buffers = GradientBuffers(graph, plan.layers);
  return memory;
}

}  // namespace pipelab
