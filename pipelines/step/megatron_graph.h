// A language model as Megatron-LM trains it: its kernels (megatron_kernels.h) and what they keep
// for the backward (kept_activations.h), in the numbers that the step computes with. Every command
// and study that prices such a model takes it from here, so that one step has one memory.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildGpt(config));
//   g = MegatronGraph(std::move(g), AttentionImplementation::kFused, NumberType::kFp8);
//
// Under fp8 the inputs of products are kept as they were cast, in 1 byte (Transformer Engine).
#ifndef PIPELAB_PIPELINES_STEP_MEGATRON_GRAPH_H_
#define PIPELAB_PIPELINES_STEP_MEGATRON_GRAPH_H_

#include "models/graph/layer_spec.h"
#include "models/specs/kept_activations.h"
#include "models/specs/megatron_kernels.h"
#include "pipelines/cluster/device.h"

namespace pipelab {

// How inputs of products are kept.
ProductInputs ProductInputsUnder(NumberType type);

ModelGraph MegatronGraph(ModelGraph graph, AttentionImplementation attention, NumberType type,
                         LossImplementation loss = LossImplementation::kFused);

// With Transformer Engine's products, as today's Megatron-Core has them: they sum gradients
// themselves (fused_sums.h). Attention that is not fused is of the time before it.
ModelGraph MegatronCoreGraph(ModelGraph graph, AttentionImplementation attention, NumberType type,
                             LossImplementation loss = LossImplementation::kFused);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_STEP_MEGATRON_GRAPH_H_
