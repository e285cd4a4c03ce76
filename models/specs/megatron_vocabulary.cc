#include "models/specs/megatron_vocabulary.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "absl/types/optional.h"
#include "models/specs/vocabulary_parts.h"

namespace pipelab {
namespace {

// Words, positions, their sum, dropout.
LayerOperations MegatronEmbeddingOperations(int64_t tokens, int64_t c, int64_t words,
                                            int64_t samples, TokenSlice slice,
                                            TensorParallel split) {
  const SplitRows rows(samples * slice.CountOf(tokens), split);
  const int64_t all = rows.all * c, own = rows.own * c;
  LayerOperations ops;
  ops.forward = {Elementwise(2 * all), Elementwise(2 * own), Elementwise(3 * own), Dropout(own)};
  ops.backward_weight = {Dropout(own), Elementwise(2 * all), Elementwise(2 * own)};
  Accumulate({words / split.degree * c, tokens * c}, &ops.backward_weight);
  return ops;
}

// Passes over the logits, numbers of half precision each.
void AddLoss(std::initializer_list<int64_t> numbers, int64_t logits, OperationPass* pass) {
  for (int64_t n : numbers) {
    pass->push_back(MemoryOperation(OperationKind::kLoss, n * logits));
  }
}
void AddLossForward(LossImplementation loss, int64_t logits, OperationPass* pass) {
  if (loss == LossImplementation::kUnfused) return AddLoss({3, 2, 4, 4, 2, 4}, logits, pass);
  if (loss == LossImplementation::kTransformerEngine) return AddLoss({1, 2}, logits, pass);
  AddLoss({3, 2}, logits, pass);
}
void AddLossBackward(LossImplementation loss, int64_t logits, OperationPass* pass) {
  if (loss == LossImplementation::kUnfused) return AddLoss({4, 3}, logits, pass);
  AddLoss({loss == LossImplementation::kTransformerEngine ? 2 : 3}, logits, pass);
}

// With a local gradient the softmax in half precision, and the targets' rows of the table, give the
// input's gradient at once.
LayerOperations VocabularyShardOperations(int64_t m, int64_t c, int64_t v, bool local,
                                          LossImplementation loss) {
  const int64_t logits = m * v;
  LayerOperations ops;
  AddMatmul(m, v, c, &ops);
  AddLossForward(loss, logits, &ops.forward);
  OperationPass gradient;
  if (loss == LossImplementation::kUnfused) AddLoss({4}, logits, &gradient);  // the part's share
  AddLossBackward(loss, logits, &gradient);
  if (local) {
    AddLoss({3}, logits, &ops.forward);
    ops.forward.push_back(ops.backward_input[0]);
    ops.forward.push_back(Elementwise(2 * m * c));
    ops.backward_input.clear();
  }
  OperationPass& first = local ? ops.backward_weight : ops.backward_input;
  first.insert(first.begin(), gradient.begin(), gradient.end());
  AccumulateWeights({v * c}, &ops.backward_weight);
  return ops;
}

LayerOperations VocabularyEmbeddingOperations(int64_t all, int64_t words_c, int64_t positions_c) {
  LayerOperations ops;
  ops.forward = {Elementwise(2 * all), Elementwise(all), Elementwise(2 * all)};
  ops.backward_weight = {Elementwise(2 * all)};
  Accumulate({words_c}, &ops.backward_weight);
  if (positions_c > 0) {
    ops.forward.push_back(Elementwise(3 * all));
    Accumulate({positions_c}, &ops.backward_weight);
  }
  return ops;
}

LayerOperations MegatronHeadOperations(int64_t tokens, int64_t c, int64_t words,
                                       LossImplementation loss, int64_t samples, TokenSlice slice,
                                       TensorParallel split) {
  const SplitRows rows(samples * slice.CountOf(tokens), split);
  const int64_t m = rows.all, own = rows.own * c, v = words / split.degree;
  LayerOperations ops;
  ops.forward.push_back(Norm(2 * own));
  ops.backward_input.push_back(Norm(3 * own));
  ops.backward_weight.push_back(Norm(2 * own));
  AddMatmul(m, v, c, &ops);
  AddLossForward(loss, m * v, &ops.forward);
  AddLossBackward(loss, m * v, &ops.backward_input);
  Accumulate({c, c}, &ops.backward_weight);
  AccumulateWeights({v * c}, &ops.backward_weight);
  return ops;
}

// The words of a head: its largest parameter's other size.
int64_t Words(const LayerSpec& layer, int64_t hidden) {
  int64_t words = 0;
  for (const ParameterSpec& p : layer.parameters) words = std::max(words, p.size() / hidden);
  return words;
}

// The part's softmax is kept in 4 bytes a number, and not its logits in 2.
void KeepSoftmaxOfPart(LayerSpec* layer, int64_t numbers_a_sample) {
  layer->costs = [numbers_a_sample, costs = layer->costs](int64_t samples) {
    LayerCosts kept = costs(samples);
    const Bytes more = Bytes(2) * samples * numbers_a_sample;
    kept.kept += more;
    kept.forward_peak += more;
    return kept;
  };
  layer->set_costs = nullptr;
}

}  // namespace

Kernels EmbeddingOperations(const LayerSpec& layer) {
  return [tokens = layer.output_shape[0], c = layer.output_shape[1],
          words = layer.parameters[0].shape[0]](int64_t samples, TokenSlice slice,
                                                TensorParallel split) {
    return MegatronEmbeddingOperations(tokens, c, words, samples, slice, split);
  };
}

Kernels HeadKernels(const LayerSpec& layer, LossImplementation loss) {
  const int64_t c = layer.input_shapes[0][1];
  return [tokens = layer.input_shapes[0][0], c, words = Words(layer, c), loss](
             int64_t samples, TokenSlice slice, TensorParallel split) {
    return MegatronHeadOperations(tokens, c, words, loss, samples, slice, split);
  };
}

absl::optional<LossImplementation> LossImplementationOf(const ModelGraph& graph) {
  const LayerSpec& head = graph.layers.back();
  if (head.attributes.count(kLossKernels) == 0) return absl::nullopt;
  return static_cast<LossImplementation>(WholeAttribute(head, kLossKernels));
}

ModelGraph WithMegatronVocabularyParts(ModelGraph graph, LossImplementation loss) {
  for (LayerSpec& layer : graph.layers) {
    if (layer.kind == kVocabularyShard) {
      layer.operations = [t = layer.input_shapes[0][0], c = layer.input_shapes[0][1],
                          v = layer.parameters[0].shape[0],
                          local = Attribute(layer, "local_gradient") > 0,
                          loss](int64_t samples, TokenSlice) {
        return VocabularyShardOperations(samples * t, c, v, local, loss);
      };
      KeepSoftmaxOfPart(&layer, layer.input_shapes[0][0] * layer.parameters[0].shape[0]);
    }
    if (layer.kind == kVocabularyEmbedding) {
      const std::vector<ParameterSpec>& p = layer.parameters;
      layer.operations = [tc = layer.output_shape[0] * layer.output_shape[1], words_c = p[0].size(),
                          positions_c = p.size() > 1 ? p[1].size() : 0](int64_t samples,
                                                                        TokenSlice) {
        return VocabularyEmbeddingOperations(samples * tc, words_c, positions_c);
      };
    }
  }
  return graph;
}

}  // namespace pipelab
