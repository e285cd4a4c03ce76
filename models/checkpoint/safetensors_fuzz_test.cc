// 20,000 damaged inputs from one seed: none may crash.
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "models/checkpoint/safetensors.h"
#include "models/checkpoint/training_state.h"
#include "models/checkpoint/weight_files.h"
#include "tools/base/fuzz_mutations.h"

namespace pipelab {
namespace {

TEST(SafetensorsFuzz, TwentyThousandMutations) {
  Safetensors file;
  file.metadata = {{"step", "3"}, {"model", "gpt"}};
  file.tensors["w"] = {{2, 3}, std::vector<float>{1, 2, 3, 4, 5, 6}};
  file.tensors["ids"] = {{2}, std::vector<int32_t>{-1, 7}};
  Safetensors other;
  other.tensors["scalar"] = {{}, std::vector<int64_t>{int64_t{1} << 40}};
  other.tensors["none"] = {{0, 4}, std::vector<float>()};
  TrainingState state;
  state.model = "net";
  state.tensors["fc/w/value"] = {{2}, std::vector<float>{1, 2}};
  state.records["losses"] = {3, 2};
  const std::vector<std::string> samples = {SerializeSafetensors(file), SerializeSafetensors(other),
                                            SerializeTrainingState(state)};
  ASSERT_TRUE(ParseTrainingState(samples[2], "f").ok());
  for (const std::string& sample : samples) ASSERT_TRUE(ParseSafetensors(sample, "f").ok());
  RunMutations(samples, 20000);
}

TEST(ShardIndexFuzz, TwentyThousandMutations) {
  const std::string index = R"({"metadata":{"total_size":8},"weight_map":{)"
                            R"("a":"model-00001-of-00002.safetensors","b":"x.safetensors"}})";
  ASSERT_TRUE(ParseShardIndex(index, "f").ok());
  RunMutations({index}, 20000);
}

}  // namespace
}  // namespace pipelab
