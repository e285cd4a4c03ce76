#include "pipelines/swarm/swarm_costs.h"

#include "kernels/messages/int8_bytes.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/gpt.h"
#include "pipelines/cluster/device.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kHeadSize = 64;

}  // namespace

absl::StatusOr<SwarmStage> BlockStage(const BlockStageSizes& sizes, const Machine& machine) {
  GptConfig config;
  config.layers = sizes.blocks;
  config.hidden = sizes.hidden;
  config.heads = sizes.hidden / kHeadSize;
  config.tokens = sizes.tokens;
  config.vocabulary = 2;  // embedding and head are other stages'
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(config));
  SwarmStage stage;
  int64_t parameters = 0;
  for (int64_t i = 1; i <= 2 * sizes.blocks; ++i) {
    const LayerSpec& layer = graph.layers[i];
    PIPELAB_ASSIGN_OR_RETURN(const LayerTimes times, TimesOf(layer, machine, sizes.samples));
    stage.forward.compute += times.forward;
    stage.backward.compute += times.forward + times.backward_input + times.backward_weight;
    for (const ParameterSpec& p : layer.parameters) parameters += p.size();
  }
  const int64_t numbers = sizes.samples * sizes.tokens * sizes.hidden;
  const Bytes message(sizes.eight_bits ? Int8MessageBytes(numbers, kInt8Block)
                                       : BytesOf(machine.type) * numbers);
  stage.forward.request = stage.forward.result = stage.backward.result = message;
  stage.backward.request = message * 2;
  stage.state = Bytes(3 * 4 * parameters);
  stage.gradients = Bytes(2 * parameters);
  return stage;
}

}  // namespace pipelab
