// Asynchronous schemes train as their papers say: losses and parameters of a small GPT equal, to
// the bit, a plain loop over layers that applies the published staleness rule. The loop knows
// layers and nothing else: no schedules, stage modules or messages.
//
// PipeDream (Narayanan et al., SOSP 2019): stage k of n computes with w^(t-n+k), k from 1, and each
// micro-batch makes one update; vertical sync: all stages with t - n + 1.
// PipeDream-2BW (ICML 2021): W(t+1) = W(t) - nu grad f(W(t-1)), t counting groups of micro-batches.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/types/span.h"
#include "pipelines/runtime/training.h"
#include "glog/logging.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/layers/data_view.h"
#include "models/layers/factory.h"
#include "models/layers/initialize.h"
#include "models/layers/layer.h"
#include "pipelines/ir/versions.h"
#include "pipelines/schedules/catalog.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

constexpr int kRuns = 3;

struct StalenessRule {
  int per_update;                        // micro-batches
  std::function<int(int, int)> version;  // of (stage, micro-batch): updates of the run so far in it
};

StalenessRule RuleOf(const std::string& scheme, const SchemeParams& sizes) {
  const int n = sizes.devices;
  // Counted from 0, what the papers call t is micro-batch t + 1, and k is stage k + 1.
  if (scheme == "pipedream") {
    return {1, [n](int k, int t) { return std::max(0, (t + 1) - n + k); }};
  }
  if (scheme == "pipedream_vertical_sync") {
    return {1, [n](int, int t) { return std::max(0, (t + 1) - n); }};
  }
  CHECK_EQ(scheme, "pipedream_2bw");
  const int group = sizes.update_interval == 0 ? n : sizes.update_interval;
  return {group, [group](int, int t) { return std::max(0, t / group - 1); }};
}

class StaleTrainer {
 public:
  StaleTrainer(const ModelGraph& graph, const BatchSource& data, std::vector<int> stage_of_layer,
               int micro_batches, StalenessRule rule)
      : graph_(graph),
        data_(data),
        stage_of_layer_(std::move(stage_of_layer)),
        micro_batches_(micro_batches),
        rule_(std::move(rule)) {
    for (const LayerSpec& spec : graph.layers) {
      layers_.push_back(MakeLayer(spec).value());
      state_.emplace_back();
      for (const ParameterSpec& p : spec.parameters) {
        State s;
        for (Tensor* t : {&s.gradient, &s.m, &s.v}) *t = Zeros(p);
        s.values = {Zeros(p)};
        InitializeParameter(p, /*seed=*/1, s.values[0].f32());
        state_.back().push_back(std::move(s));
      }
    }
  }

  // One run: all micro-batches, one after the other. Returns the mean loss.
  double Run() {
    double loss = 0;
    for (int t = 0; t < micro_batches_; ++t) {
      loss += MicroBatch(t);
      if ((t + 1) % rule_.per_update == 0) Update();
    }
    for (auto& layer : state_) {
      for (State& s : layer) s.values = {s.values.back()};  // version 0 of the next run
    }
    ++run_;
    return loss / static_cast<double>(micro_batches_ * kSmallSamples * kSmallTokens);
  }

  std::vector<float> Value(int layer, int parameter) const {
    const auto value = state_[layer][parameter].values.back().f32();
    return std::vector<float>(value.begin(), value.end());
  }

 private:
  struct State {
    std::vector<Tensor> values;  // [version]
    Tensor gradient, m, v;
  };

  Tensor Zeros(const ParameterSpec& p) {
    return arena_.Zeros(DataType::kFloat32, Shape(p.shape.begin(), p.shape.end()),
                        MemoryKind::kParameter);
  }

  int StageOf(int layer) const { return stage_of_layer_[layer]; }

  // Of layer i of the chain, whose input is x[i].
  static absl::Span<const Tensor> Inputs(const std::vector<Tensor>& x, int i) {
    return absl::MakeConstSpan(&x[i], i > 0 ? 1 : 0);
  }

  double MicroBatch(int t) {
    const int n = static_cast<int>(layers_.size());
    double loss = 0;
    LayerContext ctx;
    ctx.backend = backend_.get();
    ctx.step = run_;
    ctx.first_sample = t * kSmallSamples;
    ctx.samples = kSmallSamples;
    ctx.seed = 1;
    ctx.loss_scale = 1.0f / static_cast<float>(rule_.per_update * kSmallSamples * kSmallTokens);
    ctx.loss_sum = &loss;
    const auto load = [&](int i) {
      return LoadData(graph_.layers[i], data_, &arena_, run_, ctx.first_sample, kSmallSamples);
    };
    std::vector<Tensor> x(n + 1);
    std::vector<LayerStash> stashes(n);
    for (int i = 0; i < n; ++i) {
      std::vector<Parameter> parameters;
      for (State& s : state_[i]) {
        parameters.push_back({s.values.at(rule_.version(StageOf(i), t)), s.gradient});
      }
      layers_[i]->SetParameters(std::move(parameters));
      const BatchView view = load(i);
      ctx.batch = &view;
      x[i + 1] = layers_[i]->Forward(ctx, Inputs(x, i), &stashes[i]);
    }
    Tensor dy;
    for (int i = n - 1; i >= 0; --i) {
      const BatchView view = load(i);
      ctx.batch = &view;
      std::vector<Tensor> dx =
          layers_[i]->BackwardInput(ctx, Inputs(x, i), std::move(dy), &stashes[i]);
      layers_[i]->BackwardWeight(ctx, Inputs(x, i), &stashes[i]);
      if (i > 0) dy = std::move(dx[0]);
    }
    return loss;
  }

  void Update() {
    AdamOptions adam = SmallAdam().adam;
    adam.step = ++updates_;
    for (auto& layer : state_) {
      for (State& s : layer) {
        const auto newest = s.values.back().f32();
        Tensor next =
            arena_.Zeros(DataType::kFloat32, s.values.back().shape(), MemoryKind::kParameter);
        std::copy(newest.begin(), newest.end(), next.f32().begin());
        backend_->optimizer().Adam(adam, next, s.gradient, s.m, s.v);
        backend_->Fill(s.gradient, 0);
        s.values.push_back(next);
      }
    }
    CHECK(backend_->Finish().ok());
  }

  const ModelGraph& graph_;
  const BatchSource& data_;
  const std::vector<int> stage_of_layer_;
  const int micro_batches_;
  const StalenessRule rule_;
  Arena arena_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend(&arena_);
  std::vector<std::unique_ptr<Layer>> layers_;
  std::vector<std::vector<State>> state_;  // [layer][parameter]
  int run_ = 0, updates_ = 0;
};

class Asynchronous : public testing::Test {
 protected:
  // Trains both ways and returns the pipeline's losses.
  std::vector<double> Compare(const TrainingOptions& options) {
    auto training = PipelineTraining::Create(graph_, *batches_, options);
    EXPECT_THAT(training, IsOk());
    if (!training.ok()) return {};
    StaleTrainer plain(graph_, *batches_, (*training)->partition().stage_of_layer,
                       options.sizes.micro_batches, RuleOf(options.scheme, options.sizes));
    std::vector<double> losses;
    for (int run = 0; run < kRuns; ++run) {
      const absl::StatusOr<TrainingStep> step = (*training)->Step();
      EXPECT_THAT(step, IsOk());
      if (!step.ok()) return {};
      EXPECT_EQ(step->loss, plain.Run()) << "run " << run;
      losses.push_back(step->loss);
    }
    for (int i = 0; i < static_cast<int>(graph_.layers.size()); ++i) {
      const std::vector<ParameterSpec>& parameters = graph_.layers[i].parameters;
      for (int p = 0; p < static_cast<int>(parameters.size()); ++p) {
        EXPECT_EQ((*training)->ParameterValue(parameters[p].name).value(), plain.Value(i, p))
            << parameters[p].name;
      }
    }
    return losses;
  }

  const ModelGraph graph_ = SmallGpt(/*tied=*/false);
  const std::unique_ptr<BatchSource> batches_ = SmallText();
};

TEST_F(Asynchronous, EverySchemeFollowsItsStalenessRule) {
  int schemes = 0;
  for (const Scheme& scheme : Catalog()) {
    if (!scheme.asynchronous) continue;
    ++schemes;
    for (int devices : {1, 2, 4}) {
      for (int micro_batches : {4, 8, 12}) {
        SCOPED_TRACE(testing::Message()
                     << scheme.name << " P=" << devices << " M=" << micro_batches);
        TrainingOptions options = SmallTraining(std::string(scheme.name), devices, micro_batches);
        const std::vector<double> losses = Compare(options);
        ASSERT_EQ(losses.size(), size_t{kRuns});
        EXPECT_LT(losses.back(), losses.front()) << "the test must train something";
        if (micro_batches == 8) {
          options.sizes.recompute = true;
          EXPECT_EQ(Compare(options), losses);
        }
      }
    }
  }
  EXPECT_EQ(schemes, 3);
}

// Groups of two devices sum their gradients before each step: the same rule, but for rounding.
TEST_F(Asynchronous, GroupsFollowTheRule) {
  for (const Scheme& scheme : Catalog()) {
    if (!scheme.asynchronous) continue;
    TrainingOptions options = SmallTraining(std::string(scheme.name), 2, 8);
    options.sizes.data_parallel = 2;
    for (bool rendezvous : {false, true}) {
      options.rendezvous = rendezvous;
      PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                   PipelineTraining::Create(graph_, *batches_, options));
      StaleTrainer plain(graph_, *batches_, training->partition().stage_of_layer, 8,
                         RuleOf(options.scheme, options.sizes));
      for (int run = 0; run < kRuns; ++run) {
        PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
        // Rounding of 8 x 2 terms an update, 8 updates a run; another rule is off by 1e-3 and more.
        EXPECT_NEAR(step.loss, plain.Run(), 1e-5) << scheme.name << " run " << run;
      }
    }
  }
}

// The rules differ where the pipeline is deep enough, so equality with one says something.
TEST_F(Asynchronous, RulesDiffer) {
  const std::vector<double> stashed = Compare(SmallTraining("pipedream", 4, 8)),
                            synchronised = Compare(SmallTraining("pipedream_vertical_sync", 4, 8)),
                            two = Compare(SmallTraining("pipedream_2bw", 4, 8));
  EXPECT_NE(stashed, synchronised);
  EXPECT_NE(stashed, two);
  EXPECT_NE(stashed, Compare(SmallTraining("pipedream", 1, 8)));
}

// PipeDream-2BW with more micro-batches an update than stages.
TEST_F(Asynchronous, UpdateEvery) {
  TrainingOptions options = SmallTraining("pipedream_2bw", 3, 12);
  const std::vector<double> every_three = Compare(options);
  for (int every : {4, 6}) {
    options.sizes.update_interval = every;
    const std::vector<double> losses = Compare(options);
    ASSERT_EQ(losses.size(), size_t{kRuns});
    EXPECT_NE(losses, every_three) << every;
  }
}

// What arenas measure beyond a synchronous schedule's weights: the versions read off the schedule.
TEST_F(Asynchronous, MemoryOfOlderVersions) {
  for (const auto& [scheme, live] :
       {std::make_tuple("pipedream", std::vector<int>{4, 3, 2, 1}),
        std::make_tuple("pipedream_vertical_sync", std::vector<int>{4, 4, 4, 4}),
        std::make_tuple("pipedream_2bw", std::vector<int>{2, 2, 2, 2})}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        auto training, PipelineTraining::Create(graph_, *batches_, SmallTraining(scheme, 4, 12)));
    EXPECT_EQ(LiveVersions(training->program().schedule), live) << scheme;
    for (int run = 0; run < 2; ++run) {
      PIPELAB_ASSERT_OK_AND_ASSIGN(const TrainingStep step, training->Step());
      for (int d = 0; d < 4; ++d) {
        const StageMemory& memory = training->costs().stages[d].memory;
        EXPECT_GT(memory.weights, Bytes(0));
        EXPECT_EQ(step.trace.devices[d].peak_state, memory.state + memory.weights * (live[d] - 1))
            << scheme << " device " << d << " run " << run;
      }
    }
  }
}

TEST_F(Asynchronous, TiesBetweenStagesAreRefused) {
  const ModelGraph tied = SmallGpt(/*tied=*/true);
  EXPECT_THAT(PipelineTraining::Create(tied, *batches_, SmallTraining("pipedream", 2, 4)).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       testing::HasSubstr("is tied between stages, and the schedule has its own")));
}

}  // namespace
}  // namespace pipelab
