// Steps of models whose vocabulary is divided among the devices of the pipeline.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/vocabulary_shards.h"
#include "pipelines/cluster/catalog.h"
#include "pipelines/cluster/rank_network.h"
#include "pipelines/step/megatron_graph.h"
#include "pipelines/step/model_on_cluster.h"
#include "pipelines/step/step.h"
#include "pipelines/step/vocabulary_parts.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

constexpr int64_t kVocabularyTokens = 512, kVocabularyHidden = 1024, kBlocks = 8;

ModelGraph GptOfVocabulary(int64_t vocabulary, bool tied = false) {
  GptConfig c;
  c.layers = kBlocks;
  c.hidden = kVocabularyHidden;
  c.heads = 16;
  c.tokens = kVocabularyTokens;
  c.vocabulary = vocabulary;
  c.tied_embeddings = tied;
  return BuildGpt(c).value();
}

std::unique_ptr<ModelOnCluster> On(ModelGraph graph) {
  return ModelOnCluster::Of(std::move(graph), LoadCluster("--cluster", "dgx-a100").value(),
                            NumberType::kBf16);
}

absl::StatusOr<StepPrediction> Predict(const ModelOnCluster& on, const std::string& config) {
  return PredictStep(on.step(), ParseStepConfig("config", config).value());
}

// The same step of parts at hand: layers divided here, as many blocks in each stage of the chain.
absl::StatusOr<StepPrediction> ByHand(const ModelOnCluster& on, const StepConfig& c, int chain) {
  PIPELAB_ASSIGN_OR_RETURN(ShardedVocabulary v,
                           ShardVocabulary(on.model().graph, c.pipeline, c.vocabulary_barriers));
  std::vector<int> stages = {0};
  for (int half = 0; half < 2 * kBlocks; ++half) {
    stages.push_back(half / 2 * chain / static_cast<int>(kBlocks));
  }
  stages.push_back(chain - 1);
  stages = v.StageOfLayer(stages);
  const GroupedModel model = GroupByName(std::move(v.graph));
  StepModel step = on.step();
  step.model = &model;
  PIPELAB_ASSIGN_OR_RETURN(const ModelPartition partition, MakePartition(model.graph, stages));
  StepParts parts;
  parts.model = &step;
  parts.partition = &partition;
  parts.config = c;
  SchemeParams params{c.pipeline, c.micro_batches};
  params.stages = partition.stages;
  PIPELAB_ASSIGN_OR_RETURN(parts.schedule, MakeSchedule(c.scheme, params));
  parts.lowering = LoweringOf(c);
  PIPELAB_ASSIGN_OR_RETURN(Step assembled, AssembleStep(std::move(parts)));
  return Predict(std::move(assembled));
}

TEST(VocabularyStep, IsThatOfItsParts) {
  for (const bool tied : {false, true}) {
    const auto gpt = On(GptOfVocabulary(30001, tied));
    for (const char* scheme : {"vocab_1f1b", "vocab_interlaced", "vocab_v_half"}) {
      for (const int barriers : {1, 2}) {
        const std::string text = absl::StrCat(scheme, ":P=4,M=8,vocabulary_barriers=", barriers);
        SCOPED_TRACE(text);
        const int chain = scheme == std::string("vocab_v_half") ? 8 : 4;
        PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c, ParseStepConfig("config", text));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction by_hand, ByHand(*gpt, c, chain));
        PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction p, Predict(*gpt, text));
        EXPECT_EQ(p.step_time, by_hand.step_time);
        EXPECT_EQ(p.largest_device, by_hand.largest_device);
        EXPECT_EQ(p.step.partition.stage_of_layer, by_hand.step.partition.stage_of_layer);
      }
    }
  }
}

// What a device holds is that of its blocks and of an eighth of each table. That balances a large
// model's step, too; a small one's messages take longer.
TEST(VocabularyStep, BalancesAVocabulary) {
  for (const bool llama : {false, true}) {
    // 32 blocks and 128256 words, or 8 small ones.
    PIPELAB_ASSERT_OK_AND_ASSIGN(const auto large,
                                 ModelOnCluster::Load("llama-3-8b", "dgx-a100", "bf16"));
    const auto small = On(GptOfVocabulary(200000));
    const ModelOnCluster* const on = llama ? large.get() : small.get();
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction whole, Predict(*on, "1f1b:P=8,M=32"));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction divided,
                                 Predict(*on, "vocab_1f1b:P=8,M=32,vocabulary_barriers=1"));
    if (llama) {
      EXPECT_LT(ToSeconds(divided.step_time), 0.9 * ToSeconds(whole.step_time));
    }
    EXPECT_LT(divided.largest_device, whole.largest_device);
    // The flops are of the model's own products, whoever computes them.
    EXPECT_EQ(divided.step.model_flops.value(), whole.step.model_flops.value());
    Bytes least = divided.devices[0].peak_state, most = least, all;
    for (const DevicePrediction& d : divided.devices) {
      least = std::min(least, d.peak_state);
      most = std::max(most, d.peak_state);
      all += d.peak_state;
    }
    EXPECT_LT(static_cast<double>(most.value()), 1.02 * static_cast<double>(least.value()));
    Bytes before;
    for (const DevicePrediction& d : whole.devices) before += d.peak_state;
    EXPECT_EQ(all, before);
  }
}

// A broadcast in 4 bytes a number, or an all-reduce, has an activation's bytes twice on the link of
// the chain's end.
TEST(VocabularyStep, CollectivesTakeTheBytesTwice) {
  const auto on = On(GptOfVocabulary(30001));
  const Bytes activation(2 * 2 * kVocabularyTokens *
                         kVocabularyHidden);  // two samples, two bytes a number
  for (const int barriers : {1, 2}) {
    const std::string text =
        absl::StrCat("vocab_1f1b:P=5,b=2,M=8,layout=Et|(t*2|)*3tL,vocabulary_barriers=", barriers);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction messages, Predict(*on, text));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction collectives,
                                 Predict(*on, text + ",vocabulary_exchange=collectives"));
    const std::vector<StageGraph::Edge>& edges = messages.step.program.schedule.stages.edges;
    ASSERT_EQ(messages.step.costs.edge_bytes.size(), edges.size());
    // Stages: 5 parts, 5 of the chain, 5 parts, the loss.
    for (size_t e = 0; e < edges.size(); ++e) {
      const int from = edges[e].from, to = edges[e].to;
      SCOPED_TRACE(absl::StrCat(from, " to ", to));
      const Bytes sent = messages.step.costs.edge_bytes[e];
      const Bytes twice = collectives.step.costs.edge_bytes[e];
      if (from < 5 || (to >= 10 && to < 15)) {
        EXPECT_EQ(sent, activation);
        EXPECT_EQ(twice, Bytes(2 * activation.value() / 4));
      } else if (from >= 10) {  // two numbers a row, or two rows more
        const int64_t numbers = 2 + (barriers == 1 ? 2 * kVocabularyHidden : 0);
        EXPECT_EQ(sent, Bytes(2 * 2 * kVocabularyTokens * numbers));
        EXPECT_EQ(twice, Bytes(2 * std::min(sent, activation).value() / 4));
      } else {
        EXPECT_EQ(sent, activation);
        EXPECT_EQ(twice, activation);
      }
    }
  }
}

// A broadcast has P - 1 steps of the ring and an all-reduce twice as many; the parts' sums are two
// all-reduces, or three. One step and one call are the message's own.
TEST(VocabularyStep, CollectivesHaveTheirSteps) {
  const auto on = On(GptOfVocabulary(30001));
  const ClusterSpec& cluster = *on->step().cluster;
  const Nanoseconds step = RingStep(cluster, {5, 1}).latency;
  const Nanoseconds call = cluster.device.collective_overhead->value;
  ASSERT_GT(step, Nanoseconds(0));
  for (const int barriers : {1, 2}) {
    const std::string text =
        absl::StrCat("vocab_1f1b:P=5,b=2,M=8,layout=Et|(t*2|)*3tL,vocabulary_barriers=", barriers);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction messages, Predict(*on, text));
    EXPECT_TRUE(messages.step.costs.edge_latency.empty());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction collectives,
                                 Predict(*on, text + ",vocabulary_exchange=collectives"));
    const std::vector<StageGraph::Edge>& edges = collectives.step.program.schedule.stages.edges;
    const int calls = barriers == 1 ? 3 : 2;
    for (size_t e = 0; e < edges.size(); ++e) {
      const int from = edges[e].from, to = edges[e].to;
      SCOPED_TRACE(absl::StrCat(from, " to ", to));
      const EdgeLatency latency = collectives.step.costs.edge_latency[e];
      EdgeLatency expected;
      if (from < 5) expected = {step * 7, step * 3};
      if (to >= 10 && to < 15) expected = {step * 3, step * 7};
      if (from >= 10) expected.forward = step * (8 * calls - 1) + call * (calls - 1);
      EXPECT_EQ(latency.forward, expected.forward);
      EXPECT_EQ(latency.gradient, expected.gradient);
    }
  }
}

// The chain is cut as any model: by a rule, or by a layout of the user's layers.
TEST(VocabularyStep, LayoutsAreOfTheWholeModel) {
  const auto on = On(GptOfVocabulary(30001));
  const std::string text = "vocab_1f1b:P=4,M=8,vocabulary_barriers=2";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction cut, Predict(*on, text));
  for (const char* layout : {"5+4+4+5", "Et*2|t*2|t*2|t*2L"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction p,
                                 Predict(*on, absl::StrCat(text, ",layout=", layout)));
    EXPECT_EQ(p.step.partition.stage_of_layer, cut.step.partition.stage_of_layer) << layout;
    EXPECT_EQ(p.step_time, cut.step_time);
  }
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction memory, Predict(*on, text + ",cut=memory"));
  EXPECT_EQ(memory.step.partition.num_stages(), 2 * 4 + 4 + 1);
  EXPECT_THAT(
      Predict(*on, text + ",layout=9+9").status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "--layout=9,9: 2 stages, but the scheme has 4"));
  EXPECT_THAT(Predict(*on, "vocab_1f1b:P=16,M=8,vocabulary_barriers=2").status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("16 stages, but the model has 10 blocks to cut between")));
}

// Two copies stand for all, and sharding takes the tables' parts too.
TEST(VocabularyStep, HasCopies) {
  const auto on = On(GptOfVocabulary(30001, /*tied=*/true));
  StepModel every = on->step();
  every.fold_data = false;
  Bytes replicated(std::numeric_limits<int64_t>::max());
  for (const char* sharding : {"replicated", "optimizer", "gradients", "fully"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(
        const StepConfig c,
        ParseStepConfig("config", absl::StrCat("vocab_1f1b:P=4,D=4,M=4,vocabulary_barriers=1,"
                                               "vocabulary_exchange=collectives,sharding=",
                                               sharding)));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction two, PredictStep(on->step(), c));
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction all, PredictStep(every, c));
    EXPECT_EQ(two.step_time, all.step_time) << sharding;
    EXPECT_EQ(two.largest_device, all.largest_device) << sharding;
    EXPECT_LT(two.largest_device, replicated) << sharding;
    if (c.sharding == Sharding::kReplicated) replicated = two.largest_device;
  }
}

// Blocks alone are rebuilt: not the tables, the sum of the embedding's parts or the head's norm.
TEST(VocabularyStep, RebuildsItsBlocks) {
  const auto on = On(
      MegatronGraph(GptOfVocabulary(30001), AttentionImplementation::kUnfused, NumberType::kBf16));
  const std::string text = "vocab_1f1b:P=4,M=8,vocabulary_barriers=2";
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction none, Predict(*on, text));
  Bytes most = none.largest_device;
  for (const char* recompute : {"selective", "blocks"}) {
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepPrediction p,
                                 Predict(*on, absl::StrCat(text, ",recompute=", recompute)));
    EXPECT_LT(p.largest_device, most) << recompute;
    EXPECT_GT(p.step_time, none.step_time) << recompute;
    most = p.largest_device;
    const std::vector<int>& blocks = p.step.partition.block_of_layer;
    if (blocks.empty()) continue;
    for (size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_EQ(blocks[i] >= 0, i > 4 && i < blocks.size() - 6) << i;
    }
  }
}

TEST(VocabularyStep, SaysWhatCannotBeDivided) {
  const auto gpt = On(GptOfVocabulary(30001));
  const auto error = [](const ModelOnCluster& on, const std::string& config) {
    const absl::Status status = Predict(on, config).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(error(*gpt, "1f1b:P=4,M=8,vocabulary_barriers=2"),
            "vocabulary_barriers=2: 1f1b has no passes for parts of the vocabulary; vocab_1f1b, "
            "vocab_interlaced, vocab_v_half have");
  EXPECT_EQ(error(*gpt, "vocab_1f1b:P=4,M=8,vocabulary_exchange=collectives"),
            "vocabulary_exchange=collectives: requires vocabulary_barriers=1 or 2");
  EXPECT_EQ(error(*gpt, "vocab_1f1b:P=4,T=2,M=8,vocabulary_barriers=1"),
            "vocabulary_barriers=1: T=2: parts of the vocabulary are not divided again; leave out "
            "one of the two");
  EXPECT_EQ(error(*gpt, "vocab_1f1b:P=4,C=2,M=8,vocabulary_barriers=1"),
            "vocabulary_barriers=1: C=2: parts of the vocabulary are not divided again; leave out "
            "one of the two");
  const auto words = On(GptOfVocabulary(3));
  EXPECT_EQ(error(*words, "vocab_1f1b:P=4,M=8,vocabulary_barriers=2"),
            "vocabulary_barriers=2, P=4: vocabulary of model \"gpt\": parts=4: must be from 1 to "
            "its 3 words");
  BertConfig config;
  config.layers = 4;
  config.hidden = 64;
  config.heads = 4;
  config.tokens = 32;
  config.vocabulary = 100;
  const auto bert = On(BuildBert(config).value());
  EXPECT_THAT(error(*bert, "vocab_1f1b:P=4,M=8,vocabulary_barriers=2"),
              HasSubstr("vocabulary_barriers=2, P=4: vocabulary of model"));
  StepConfig huge = ParseStepConfig("config", "vocab_1f1b:vocabulary_barriers=2").value();
  huge.pipeline = 1 << 30;
  EXPECT_THAT(CheckVocabularyParts(huge),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("P=1073741824: must be at least 1, with at most 32767 stages")));
  EXPECT_EQ(StagesWithVocabulary(huge).num_stages(), 0);
}

}  // namespace
}  // namespace pipelab
