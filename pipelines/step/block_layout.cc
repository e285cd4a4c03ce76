#include "pipelines/step/block_layout.h"

#include <vector>

#include "absl/strings/str_join.h"

namespace pipelab {

std::string EvenBlocks(int64_t blocks, int64_t stages) {
  if (stages <= 1 || blocks % stages != 0) return "";
  std::vector<int64_t> layers(stages, 2 * blocks / stages);
  ++layers.front();
  ++layers.back();
  return absl::StrJoin(layers, "+");
}

namespace {

void TakeStageOfEachBlock(int64_t blocks, StepConfig* config) {
  config->scheme = "interleaved";
  config->virtual_stages = static_cast<int>(blocks);
  config->layout = EvenBlocks(blocks, blocks);
}

}  // namespace

bool GatherByBlock(int64_t blocks, StepConfig* config) {
  if (config->pipeline > 1 || config->sharding != Sharding::kFully || blocks <= 1) return false;
  TakeStageOfEachBlock(blocks, config);
  config->residency = Residency::kMicroBatch;
  return true;
}

void SumByBlock(int64_t blocks, StepConfig* config) {
  if (config->pipeline > 1 || config->copies() == 1 || blocks <= 1) return;
  TakeStageOfEachBlock(blocks, config);
}

}  // namespace pipelab
