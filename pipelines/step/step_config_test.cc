#include "pipelines/step/step_config.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/step/execution.h"
#include "pipelines/step/step_config_json.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

StepConfig Everything() {
  StepConfig c;
  c.scheme = "interleaved";
  c.pipeline = 8;
  c.tensor = 4;
  c.context = 3;
  c.context_exchange = ContextExchange::kRing;
  c.experts = 6;
  c.whole_experts = true;
  c.data = 2;
  c.virtual_stages = 4;
  c.micro_batch_size = int64_t{1} << 40;
  c.micro_batches = 16;
  c.sharding = Sharding::kFully;
  c.recompute = Recompute::kSelective;
  c.modules = "core_attn+layernorm+mlp";
  c.state = {2, 4, /*cast=*/true};
  c.sequence_parallel = true;
  c.cut = CutRule::kMemory;
  c.layout = "0-2/3+4/5-9";
  c.group_size = 8;
  c.replicas = 2;
  c.slices = 3;
  c.update_interval = 9;
  c.concatenation = Concatenation::kForwardDoubling;
  c.residency = Residency::kMicroBatch;
  c.overlap_pipeline = c.overlap_data = false;
  c.overlap_tensor = c.whole_messages = true;
  c.execution = kGroupedCalls | kStepPasses;
  c.model = "gpt-6.6b";
  c.cluster = "my cluster.json";
  c.dtype = "bf16";
  return c;
}

TEST(StepConfig, TextAndJsonReadBackToTheSameValue) {
  StepConfig file;
  file.scheme = "/tmp/a:b/mine.csv";
  StepConfig steady, divided, rebuilt, published;
  published.published_order = published.split_head = true;
  rebuilt.recompute = Recompute::kBlocks;
  rebuilt.rebuilt_every = 3;
  rebuilt.rebuilt_together = 2;
  steady.steady_overlap = true;
  divided.vocabulary_barriers = 2;
  divided.vocabulary_exchange = VocabularyExchange::kCollectives;
  for (const StepConfig& c :
       {StepConfig(), Everything(), file, steady, divided, rebuilt, published}) {
    SCOPED_TRACE(c.ToString());
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig of_text, ParseStepConfig("config", c.ToString()));
    EXPECT_EQ(of_text, c);
    PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig of_json,
                                 StepConfigFromJson(StepConfigToJson(c), "c.json"));
    EXPECT_EQ(of_json, c);
  }
  EXPECT_EQ(Everything().batch(), (int64_t{1} << 40) * 32);
  EXPECT_EQ(Everything().devices(), 8 * 4 * 3 * 2);
}

TEST(StepConfig, WhatIsLeftOutHasItsDefault) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c, ParseStepConfig("config", "zb_h1"));
  EXPECT_EQ(c.ToString(), "zb_h1:P=1,T=1,D=1,V=0,b=1,M=1");
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const StepConfig words,
      ParseStepConfig("config", "gpipe:M=4,recompute,sharding=none,P=2,sequence"));
  EXPECT_EQ(words.ToString(), "gpipe:P=2,T=1,D=1,V=0,b=1,M=4,recompute=full,sequence");
}

// The whole mode sums gradients at the end; parts are what they say.
TEST(StepConfig, ExecutionIsAModeOrPartsOfIt) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig mode,
                               ParseStepConfig("config", "1f1b:execution=megatron2022"));
  EXPECT_EQ(mode.execution, kAllExecutionParts);
  EXPECT_FALSE(mode.overlap_data);
  EXPECT_EQ(mode.ToString(), "1f1b:P=1,T=1,D=1,V=0,b=1,M=1,no_data_overlap,execution=megatron2022");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig again, ParseStepConfig("config", mode.ToString()));
  EXPECT_EQ(again, mode);
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const StepConfig json,
      StepConfigFromJson(nlohmann::json{{"execution", "megatron2022"}}, "c.json"));
  EXPECT_FALSE(json.overlap_data);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig parts,
                               ParseStepConfig("config", "gpipe:execution=step_passes+inputs"));
  EXPECT_TRUE(parts.overlap_data);
  EXPECT_EQ(parts.ToString(), "gpipe:P=1,T=1,D=1,V=0,b=1,M=1,execution=inputs+step_passes");
  // All parts, but gradients beside compute: not the mode.
  StepConfig all = parts;
  all.execution = kAllExecutionParts;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig read, ParseStepConfig("config", all.ToString()));
  EXPECT_EQ(read, all);
  EXPECT_TRUE(read.overlap_data);
}

TEST(StepConfig, ExecutionSaysWhatItDoesNotSuit) {
  const auto message = [](const char* text) {
    return std::string(CheckExecution(ParseStepConfig("config", text).value()).message());
  };
  EXPECT_EQ(message("interleaved:P=4,V=2,M=8,execution=megatron2022"), "");
  EXPECT_EQ(message("1f1b:P=2,M=3,execution=megatron2022"), "");
  EXPECT_EQ(message("gpipe:execution=inputs"), "");
  EXPECT_EQ(message("seq1f1b:P=2,M=3,slices=4,no_data_overlap,execution=calls"), "");
  EXPECT_THAT(message("interleaved_seq1f1b:P=4,M=6,slices=4,no_data_overlap,execution=calls"),
              HasSubstr("interleaved needs a multiple of P=4"));
  EXPECT_THAT(
      message("gpipe:execution=megatron2022"),
      HasSubstr("execution=megatron2022: its calls are those of 1f1b, seq1f1b, interleaved"));
  EXPECT_THAT(message("1f1b:execution=calls"), HasSubstr("need no_data_overlap"));
  EXPECT_THAT(message("1f1b:execution=megatron2022,no_pipeline_overlap"),
              HasSubstr("leave out no_pipeline_overlap"));
  EXPECT_THAT(message("1f1b:D=2,sharding=fully,execution=megatron2022"),
              HasSubstr("sharding=fully: Megatron-LM of 2022 sharded the optimizer alone"));
  EXPECT_THAT(message("interleaved:P=2,M=4,execution=megatron2022"),
              HasSubstr("needs P of at least 3, not 2"));
  EXPECT_THAT(message("interleaved:P=4,M=6,execution=megatron2022"),
              HasSubstr("M=6: interleaved needs a multiple of P=4"));
  EXPECT_THAT(message("interleaved:P=4,M=8,group=8,execution=megatron2022"),
              HasSubstr("group=8: its groups are of P=4"));
  EXPECT_THAT(std::string(ParseStepConfig("config", "1f1b:execution=fast").status().message()),
              HasSubstr("\"execution=fast\": must be plain, megatron2022, or parts of it"));
}

TEST(StepConfig, WhatIsRebuiltFitsTheKindOfRecomputation) {
  const auto message = [](const char* text) {
    return std::string(CheckRebuiltBlocks(ParseStepConfig("config", text).value()).message());
  };
  for (const char* right : {"1f1b", "1f1b:recompute=selective", "1f1b:recompute=blocks,rebuilt=2",
                            "1f1b:recompute=blocks,rebuilt_every=2,rebuilt_together=3",
                            "1f1b:recompute=selective,modules=mlp"}) {
    EXPECT_EQ(message(right), "") << right;
  }
  EXPECT_EQ(message("1f1b:rebuilt=2"), "rebuilt=2: requires recompute=blocks, not recompute=none");
  EXPECT_EQ(message("1f1b:recompute=full,rebuilt_every=2"),
            "rebuilt_every=2: requires recompute=blocks, not recompute=full");
  EXPECT_EQ(message("1f1b:recompute=selective,rebuilt_together=2"),
            "rebuilt_together=2: requires recompute=blocks, not recompute=selective");
  EXPECT_EQ(message("1f1b:recompute=blocks,modules=mlp"),
            "modules=mlp: requires recompute=selective, not recompute=blocks");
  EXPECT_EQ(ParseStepConfig("config", "1f1b:modules=mlp+core_attn+mlp")->modules, "core_attn+mlp");
}

TEST(StepConfig, AScheduleFileIsAScheme) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig c, ParseStepConfig("config", "a/mine.txt:D=2,b=4"));
  EXPECT_TRUE(c.has_schedule_file());
  EXPECT_EQ(c.scheme, "a/mine.txt");
  PIPELAB_ASSERT_OK_AND_ASSIGN(const StepConfig alone, ParseStepConfig("config", "C:mine.json"));
  EXPECT_EQ(alone.scheme, "C:mine.json");
  EXPECT_FALSE(Everything().has_schedule_file());
}

TEST(StepConfig, FaultsNameOptionAndWord) {
  const auto message = [](const char* text) {
    return std::string(ParseStepConfig("--explain", text).status().message());
  };
  EXPECT_THAT(message("1f1b:Q=2"),
              HasSubstr("--explain=1f1b:Q=2: \"Q=2\": is unknown; known are P="));
  EXPECT_THAT(message("1f1b:P=x"), HasSubstr("\"P=x\": must be a whole number of at least 1"));
  EXPECT_THAT(message("1f1b:V=-1"), HasSubstr("\"V=-1\": must be a whole number of at least 0"));
  EXPECT_THAT(message("vocab_1f1b:vocabulary_barriers=3"),
              HasSubstr("must be a whole number from 0 to 2"));
  EXPECT_THAT(message("1f1b:P=99999999999"), HasSubstr("must be a whole number"));
  EXPECT_THAT(message("1f1b:fast"), HasSubstr("\"fast\": is unknown"));
  EXPECT_THAT(message("1f1b:P"), HasSubstr("\"P\": is unknown"));
  EXPECT_THAT(message("1f1b:P=2,P=2"), HasSubstr("\"P=2\": P is given twice"));
  EXPECT_THAT(message("1f1b:sequence=1"), HasSubstr("is a word without a value"));
  EXPECT_THAT(message("1f1b:sharding=all"), HasSubstr("sharding"));
  EXPECT_THAT(message("1f1b:recompute=some"), HasSubstr("there are none, selective, full, blocks"));
  EXPECT_THAT(message("1f1b:modules=mpl"), HasSubstr("\"mpl\" is unknown; did you mean mlp?"));
  EXPECT_THAT(message("1f1b:rebuilt_every=0"), HasSubstr("must be a whole number of at least 1"));
  EXPECT_THAT(message(":P=2"), HasSubstr("a scheme's name is missing"));
  const auto json = [](const char* text) {
    return std::string(
        StepConfigFromJson(nlohmann::json::parse(text), "c.json").status().message());
  };
  EXPECT_THAT(json("[]"), HasSubstr("c.json: must be an object"));
  EXPECT_THAT(json(R"({"pipeline": "4"})"), HasSubstr("pipeline: must be a whole number"));
  EXPECT_THAT(json(R"({"devices": 4})"), HasSubstr("devices: is unknown"));
  EXPECT_THAT(json(R"({"sequence": 1})"), HasSubstr("sequence: must be true or false"));
}

}  // namespace
}  // namespace pipelab
