// Training put together: partitions and layouts, sends that wait for their receivers, wrong
// requests.
#include "pipelines/runtime/training.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/layers/optimizer.h"
#include "models/zoo/layer_groups.h"
#include "pipelines/schedules/catalog.h"
#include "pipelines/sim/simulate.h"
#include "pipelines/step/step.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_fields.h"
#include "tests/small_gpt.h"
#include "tests/small_training.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::AllOf;
using testing::HasSubstr;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class Training : public testing::Test {
 protected:
  std::vector<double> Losses(const TrainingOptions& options, int steps) {
    return Losses(graph_, options, steps);
  }
  std::vector<double> Losses(const ModelGraph& graph, const TrainingOptions& options, int steps) {
    auto training = PipelineTraining::Create(graph, *batches_, options);
    EXPECT_THAT(training, IsOk());
    std::vector<double> losses;
    for (int i = 0; training.ok() && i < steps; ++i) {
      const absl::StatusOr<TrainingStep> step = (*training)->Step();
      EXPECT_THAT(step, IsOk()) << options.config.scheme;
      if (!step.ok()) break;
      losses.push_back(step->loss);
    }
    return losses;
  }

  const ModelGraph graph_ = SmallGpt(/*tied=*/true);
  const ModelGraph untied_ = SmallGpt(/*tied=*/false);  // for schemes that cannot sum ties
  const std::unique_ptr<BatchSource> batches_ = SmallText();
};

// The order in which Lower posts receives: no scheme may hang when sends wait for their receivers.
TEST_F(Training, SendsMayWaitForReceivers) {
  for (const Scheme& scheme : Catalog()) {
    if ((scheme.options & kTokenPasses) != 0) continue;  // pipelines/serving/generate_test.cc
    TrainingOptions options = SmallTraining(std::string(scheme.name), 4, 8);
    if (!Serves(options.config)) continue;
    const ModelGraph& graph = scheme.asynchronous ? untied_ : graph_;
    const std::vector<double> buffered = Losses(graph, options, 3);
    options.rendezvous = true;
    EXPECT_EQ(Losses(graph, options, 3), buffered) << scheme.name;
  }
}

// Where the stages are cut changes nothing but time and memory.
TEST_F(Training, LayoutsTrainAlike) {
  TrainingOptions options = SmallTraining("1f1b", 3, 4);
  const std::vector<double> balanced = Losses(options, 3);
  for (const char* layout : {"14,1,1", "1,1,14", "5,6,5"}) {
    options.config.layout = layout;
    EXPECT_EQ(Losses(options, 3), balanced) << layout;
  }
}

// With a device for every copy it is the step that commands price with two for all.
TEST_F(Training, HasThePriceOfTheFoldedStep) {
  const GroupedModel model = GroupByName(SmallGpt(/*tied=*/true, /*words_multiple=*/4));
  for (const char* text :
       {"1f1b:P=2,D=4,M=4", "breadth_first:P=2,D=4,M=4,sharding=fully,cut=layers",
        "zbv:P=2,D=4,M=4,sharding=optimizer,cut=layers", "gpipe:P=2,D=8,M=4,recompute=full",
        "interleaved:P=2,D=4,T=2,M=4,sequence,cut=layers,sharding=gradients", "chimera:P=2,D=2,M=4",
        "1f1b:P=1,D=4,M=2,sharding=gradients,shards=2"}) {
    SCOPED_TRACE(text);
    TrainingOptions options = SmallTraining("", 1, 1);
    PIPELAB_ASSERT_OK_AND_ASSIGN(options.config, ParseStepConfig("config", text));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                 PipelineTraining::Create(model.graph, *batches_, options));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const Trace whole,
                                 Simulate(training->program(), training->costs()));
    StepModel on;
    on.model = &model;
    on.optimizer_tensors = static_cast<int>(StateNames(options.optimizer).size());
    on.step_flops_per_parameter = StepFlopsPerParameter(options.optimizer);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction folded, PredictStep(on, options.config));
    EXPECT_EQ(whole.makespan, folded.step_time);
    const size_t copies = whole.devices.size() / folded.devices.size();
    for (size_t p = 0; p < folded.devices.size(); ++p) {
      DeviceTrace most;  // the last of equal parts are padded, and smaller
      for (size_t d = p * copies; d < (p + 1) * copies; ++d) {
        const DeviceTrace& device = whole.devices[d];
        most.peak_activation = std::max(most.peak_activation, device.peak_activation);
        most.peak_state = std::max(most.peak_state, device.peak_state);
        most.bytes_sent = std::max(most.bytes_sent, device.bytes_sent);
      }
      EXPECT_EQ(most.peak_activation, folded.devices[p].peak_activation) << p;
      EXPECT_EQ(most.peak_state, folded.devices[p].peak_state) << p;
      EXPECT_EQ(most.bytes_sent, folded.devices[p].sent) << p;
    }
  }
}

// [key] A configuration that sets it; empty: it says nothing of what runs, or needs what this
// network has not (tensor_parallel_test.cc and expert_parallel_test.cc have that).
const std::map<absl::string_view, const char*>& ConfigurationsByKey() {
  static const auto* const by_key = new std::map<absl::string_view, const char*>{
      {"P", "1f1b:P=3"},
      {"T", ""},
      {"D", "1f1b:P=2,D=2"},
      {"V", "interleaved:P=2,V=3"},
      {"b", "1f1b:P=2,b=2"},
      {"M", "1f1b:P=2,M=6"},
      {"C", "1f1b:P=2,C=2"},
      {"context_exchange", "1f1b:P=2,C=2,context_exchange=ring"},
      {"E", ""},
      {"whole_experts", ""},
      {"dispatch", ""},
      {"exchanges", ""},
      {"sharding", "1f1b:P=2,D=2,sharding=gradients"},
      {"shards", "1f1b:P=1,D=4,sharding=gradients,shards=2"},
      {"state", "1f1b:P=2,state=2+4"},
      {"recompute", "gpipe:P=2,recompute=full"},
      {"modules", ""},
      {"rebuilt", "1f1b:P=2,recompute=blocks,rebuilt=1"},
      {"rebuilt_every", "1f1b:P=2,recompute=blocks,rebuilt_every=2"},
      {"rebuilt_together", "1f1b:P=2,recompute=blocks,rebuilt_together=2"},
      {"early_recompute", "1f1b:P=2,recompute=full,early_recompute=1"},
      {"published", "zb1p:P=2,published"},
      {"split_head", "zb_h1:P=2,split_head"},
      {"sequence", ""},
      {"batch_norm", "1f1b:P=2,D=2,batch_norm=own"},
      {"local_heads", "local:P=2,local_heads=linear"},
      {"cut", "1f1b:P=2,cut=memory"},
      {"layout", "1f1b:P=2,layout=6+10"},
      {"group", "interleaved:P=2,group=4"},
      {"replicas", "chimera:P=4,M=8,replicas=4"},
      {"slices", "terapipe:P=2,slices=3"},
      {"slice_exchange", ""},
      {"vocabulary_barriers", "vocab_1f1b:P=2,vocabulary_barriers=1"},
      {"vocabulary_exchange", ""},
      {"update", "local:P=2,update=2"},
      {"concatenation", "chimera:P=2,M=8,concatenation=forward_doubling"},
      {"gathers_each", "1f1b:P=2,D=2,sharding=fully,gathers_each"},
      {"no_pipeline_overlap", "1f1b:P=2,no_pipeline_overlap"},
      {"steady_overlap", "1f1b:P=2,steady_overlap"},
      {"no_data_overlap", "1f1b:P=2,D=2,sharding=fully,no_data_overlap"},
      {"tensor_overlap", ""},
      {"whole_messages", "1f1b:P=2,whole_messages"},
      {"ranks", "1f1b:P=2,D=2,ranks=tp-pp-dp"},
      {"execution", "1f1b:P=2,execution=megatron2022"},
      {"model", ""},
      {"cluster", ""},
      {"dtype", ""}};
  return *by_key;
}

TEST_F(Training, EveryKeyRunsAsPredicted) {
  int runs = 0;
  for (const StepField& field : StepFields()) {
    const auto found = ConfigurationsByKey().find(field.key);
    ASSERT_TRUE(found != ConfigurationsByKey().end()) << field.key << " has no configuration here";
    if (*found->second == 0) continue;
    TrainingOptions options = SmallTraining("", 1, 1);
    const std::string text =
        absl::StrCat(found->second, absl::StrContains(found->second, "M=") ? "" : ",M=4",
                     absl::StrContains(found->second, "cut=") ? "" : ",cut=layers");
    SCOPED_TRACE(text);
    PIPELAB_ASSERT_OK_AND_ASSIGN(options.config, ParseStepConfig("config", text));
    PIPELAB_ASSERT_OK_AND_ASSIGN(auto training,
                                 PipelineTraining::Create(untied_, *batches_, options));
    EXPECT_EQ(LossesAsPredicted(training.get(), 2).size(), 2u);
    ++runs;
  }
  EXPECT_GT(runs, 30);
}

TEST_F(Training, BadRequestsNameTheOption) {
  const auto refusal = [&](TrainingOptions options, const char* layout) {
    options.config.layout = layout;
    return PipelineTraining::Create(graph_, *batches_, options).status();
  };
  EXPECT_THAT(refusal(SmallTraining("1f1b", 3, 4), "8,0,8"),
              StatusIs(kInvalid, HasSubstr("--layout=8,0,8: stage 1 is without layers")));
  EXPECT_THAT(
      refusal(SmallTraining("1f1b", 3, 4), "8,8"),
      StatusIs(kInvalid, AllOf(HasSubstr("--layout=8,8"), HasSubstr("2 stages"), HasSubstr("3"))));
  EXPECT_THAT(refusal(SmallTraining("1f1b", 17, 4), ""),
              StatusIs(kInvalid, AllOf(HasSubstr("17 stages"), HasSubstr("16 layers"))));
  EXPECT_THAT(refusal(SmallTraining("zigzag", 2, 4), ""),
              StatusIs(kInvalid, HasSubstr("--scheme=zigzag")));
}

TEST_F(Training, PartitionIsBalancedByFlops) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition one,
                               ChoosePartition(graph_, 1, kSmallSamples, ""));
  EXPECT_EQ(one.layers[0].size(), 16u);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const ModelPartition two,
                               ChoosePartition(graph_, 2, kSmallSamples, ""));
  ASSERT_EQ(two.num_stages(), 2);
  EXPECT_TRUE(two.stages.IsChain());
  EXPECT_GE(two.layers[1][0], 7);  // 16 layers, of which the first is nearly free
  EXPECT_LE(two.layers[1][0], 9);
}

TEST(KeepsMicroBatchOrder, OnlyWithOneCopyOfEachStage) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s, MakeSchedule("1f1b", {2, 4}));
  EXPECT_TRUE(KeepsMicroBatchOrder(s));
  // Two backwards of device 0 the other way round: still a sum of the same terms, in another order.
  auto& order = s.order[0];
  std::vector<size_t> backwards;
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i].kind == ActionKind::kBackward) backwards.push_back(i);
  }
  std::swap(order[backwards[0]], order[backwards[1]]);
  EXPECT_FALSE(KeepsMicroBatchOrder(s));
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule two, MakeSchedule("chimera", {2, 4}));
  EXPECT_FALSE(KeepsMicroBatchOrder(two));
}

}  // namespace
}  // namespace pipelab
