#include "tests/support/fake_serial.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "glog/logging.h"
#include "tests/support/fake_module.h"

namespace pipelab {

std::string TiedParameter(const std::vector<Tie>& ties, int stage) {
  for (const Tie& tie : ties) {
    if (std::count(tie.stages.begin(), tie.stages.end(), stage) > 0) return tie.parameter;
  }
  return "";
}

namespace {

// By micro-batch, edge and slice.
using Values = std::map<std::tuple<int, int, int>, Tensor>;

// One micro-batch forward and backward through all stages, one after the other. `gradients` are
// those of the step so far that were not taken.
void SerialMicroBatch(const Schedule& s, int micro_batch, Arena* arena, Values* gradients,
                      std::vector<std::unique_ptr<FakeStage>>& stages) {
  Values values;
  const auto take = [&](const std::vector<int>& edges, int slice) {
    std::vector<Tensor> tensors;
    for (int e : edges) tensors.push_back(std::move(values[{micro_batch, e, slice}]));
    return tensors;
  };
  const auto take_gradients = [&](int stage, int slice) {
    std::vector<Tensor> tensors;
    for (int e : s.stages.out_edges[stage]) {
      const int lag = s.stages.edges[e].gradient.number;
      Tensor& gradient = (*gradients)[{micro_batch - lag, e, slice}];
      if (lag > micro_batch) {
        gradient = arena->Zeros(DataType::kFloat32, stages[stage]->OutputSpec(0, slice).shape,
                                MemoryKind::kActivation);
      }
      tensors.push_back(std::move(gradient));
    }
    return tensors;
  };
  const auto put = [&](const std::vector<int>& edges, int slice, std::vector<Tensor> tensors,
                       Values* to) {
    for (size_t k = 0; k < edges.size(); ++k) {
      (*to)[{micro_batch, edges[k], slice}] = std::move(tensors[k]);
    }
  };
  Action a;
  a.micro_batch = micro_batch;
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    a.stage = static_cast<int16_t>(stage);
    a.kind = ActionKind::kForward;
    for (a.slice = 0; a.slice < s.num_slices; ++a.slice) {
      auto y = stages[stage]->Forward(a, take(s.stages.in_edges[stage], a.slice), false);
      put(s.stages.out_edges[stage], a.slice, std::move(y).value(), &values);
    }
  }
  for (int stage = s.num_stages() - 1; stage >= 0; --stage) {
    a.stage = static_cast<int16_t>(stage);
    a.kind = ActionKind::kBackward;
    for (a.slice = static_cast<int16_t>(s.num_slices - 1); a.slice >= 0; --a.slice) {
      auto dx = stages[stage]->Backward(a, take_gradients(stage, a.slice));
      put(s.stages.in_edges[stage], a.slice, std::move(dx).value(), gradients);
    }
  }
}

// Each stage's own gradient once, and each tie's with its first stage.
void SerialNorm(const std::vector<Tie>& ties, int64_t norm_values, Arena* arena,
                std::vector<std::unique_ptr<FakeStage>>& stages) {
  const Tensor sum = arena->Zeros(DataType::kFloat32, {norm_values}, MemoryKind::kActivation);
  for (size_t s = 0; s < stages.size(); ++s) {
    NormShare share;
    share.own = true;
    for (const Tie& tie : ties) {
      if (*std::min_element(tie.stages.begin(), tie.stages.end()) == static_cast<int>(s)) {
        share.ties.push_back(tie.parameter);
      }
    }
    const Tensor terms = *stages[s]->BeginNorm(share);
    for (int64_t i = 0; i < norm_values; ++i) sum.f32()[i] += terms.f32()[i];
  }
  for (auto& stage : stages) CHECK(stage->EndNorm(sum).ok());
}

}  // namespace

std::vector<std::vector<float>> SerialParameters(const Schedule& s, const std::vector<Tie>& ties,
                                                 int steps, int64_t norm_values) {
  Arena arena;
  std::vector<std::unique_ptr<FakeStage>> stages;
  for (int stage = 0; stage < s.num_stages(); ++stage) {
    FakeStageConfig config;
    config.graph = &s.stages;
    config.stage = stage;
    config.tied = TiedParameter(ties, stage);
    config.norm_values = norm_values;
    stages.push_back(std::make_unique<FakeStage>(&arena, config));
  }
  for (int step = 0; step < steps; ++step) {
    Values gradients;
    for (int m = 0; m < s.num_micro_batches; ++m) {
      SerialMicroBatch(s, m, &arena, &gradients, stages);
    }
    for (const Tie& tie : ties) {
      std::vector<Tensor> copies;
      for (int stage : tie.stages) copies.push_back(*stages[stage]->Gradients(tie.parameter));
      for (int64_t i = 0; i < copies[0].size(); ++i) {
        float sum = 0;
        for (const Tensor& t : copies) sum += t.f32()[i];
        for (Tensor& t : copies) t.f32()[i] = sum;
      }
    }
    if (norm_values > 0) SerialNorm(ties, norm_values, &arena, stages);
    for (auto& stage : stages) CHECK(stage->Step(Action()).ok());
  }
  std::vector<std::vector<float>> parameters;
  for (auto& stage : stages) parameters.push_back(stage->parameters());
  return parameters;
}

}  // namespace pipelab
