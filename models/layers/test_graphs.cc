#include "models/layers/test_graphs.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"
#include "models/specs/add_spec.h"
#include "models/specs/concat_spec.h"
#include "models/specs/dense_spec.h"
#include "models/specs/gpt_attention_spec.h"
#include "models/specs/gpt_embedding_spec.h"
#include "models/specs/gpt_head_spec.h"
#include "models/specs/gpt_mlp_spec.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int64_t kBuiltTokens = 6, kHidden = 16, kVocabulary = 11;

class Builder {
 public:
  Builder(uint64_t seed, double dropout) : rng_(seed, "random graph"), dropout_(dropout) {}

  ModelGraph Make(int layers) {
    graph_.name = "random";
    AddEmbedding();
    while (static_cast<int>(graph_.layers.size()) < layers) AddOne();
    AddHead();
    const absl::Status status = Validate(graph_);
    CHECK(status.ok()) << status;
    return std::move(graph_);
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(rng_.Below(draw_++, n)); }
  int size() const { return static_cast<int>(graph_.layers.size()); }
  int last() const { return size() - 1; }
  std::string Name(const char* kind) const { return absl::StrCat(kind, size()); }

  // A layer of the common width: mostly a late one.
  int Earlier() {
    for (;;) {
      const int layer = Below(3) == 0 ? static_cast<int>(Below(size()))
                                      : last() - static_cast<int>(Below(std::min(3, size())));
      if (graph_.layers[layer].output_shape[1] == kHidden) return layer;
    }
  }
  std::vector<int> SeveralEarlier() {
    std::set<int> chosen;
    const int64_t wanted = 1 + Below(3);
    for (int64_t i = 0; i < wanted; ++i) chosen.insert(Earlier());
    std::vector<int> inputs(chosen.begin(), chosen.end());
    if (inputs.size() > 1 && Below(2) == 0) std::swap(inputs[0], inputs[1]);
    return inputs;
  }

  void AddEmbedding() {
    GptEmbeddingSizes s;
    s.name = Name("embedding");
    s.tokens = kBuiltTokens;
    s.hidden = kHidden;
    s.vocabulary = kVocabulary;
    s.stddev = 0.5;
    graph_.layers.push_back(GptEmbeddingSpec(s));
  }
  void AddAttention(int input) {
    GptAttentionSizes s;
    s.name = Name("attention");
    s.input = input;
    s.tokens = kBuiltTokens;
    s.hidden = kHidden;
    s.heads = 2;
    s.dropout = dropout_;
    s.stddev = s.projection_stddev = 0.3;
    graph_.layers.push_back(GptAttentionSpec(s));
  }
  void AddMlp(int input) {
    GptMlpSizes s;
    s.name = Name("mlp");
    s.input = input;
    s.tokens = kBuiltTokens;
    s.hidden = kHidden;
    s.inner = 20;
    s.dropout = dropout_;
    s.stddev = s.projection_stddev = 0.3;
    graph_.layers.push_back(GptMlpSpec(s));
  }
  void AddDense(int input, Activation activation) {
    DenseSizes s;
    s.name = Name("dense");
    s.input = input;
    s.tokens = kBuiltTokens;
    s.in = graph_.layers[input].output_shape[1];
    s.out = kHidden;
    s.activation = activation;
    s.stddev = 0.3;
    graph_.layers.push_back(DenseSpec(s));
  }
  void AddSum(std::vector<int> inputs) {
    AddSizes s;
    s.name = Name("add");
    s.inputs = std::move(inputs);
    s.shape = {kBuiltTokens, kHidden};
    graph_.layers.push_back(AddSpec(s));
  }
  void AddJoin(std::vector<int> inputs) {
    ConcatSizes s;
    s.name = Name("concat");
    s.tokens = kBuiltTokens;
    for (int input : inputs) s.widths.push_back(graph_.layers[input].output_shape[1]);
    s.inputs = std::move(inputs);
    graph_.layers.push_back(ConcatSpec(s));
    AddDense(last(), Activation::kNone);
  }

  void AddOne() {
    switch (Below(8)) {
      case 0:
        return AddEmbedding();
      case 1:
      case 2:
        return AddAttention(Earlier());
      case 3:
        return AddMlp(Earlier());
      case 4:
        return AddDense(Earlier(), Activation::kGelu);
      case 5:
      case 6:
        return AddSum(SeveralEarlier());
      default:
        return AddJoin(SeveralEarlier());
    }
  }

  void AddHead() {
    const std::vector<std::vector<int>> consumers = Consumers(graph_);
    std::vector<int> unused;
    for (int i = 0; i < size(); ++i) {
      if (consumers[i].empty()) unused.push_back(i);
    }
    AddJoin(std::move(unused));
    GptHeadSizes s;
    s.name = "head";
    s.input = last();
    s.tokens = kBuiltTokens;
    s.hidden = kHidden;
    s.vocabulary = kVocabulary;
    s.stddev = 0.3;
    graph_.layers.push_back(GptHeadSpec(s));
  }

  const CounterRng rng_;
  const double dropout_;
  uint64_t draw_ = 0;
  ModelGraph graph_;
};

}  // namespace

ModelGraph RandomGraph(int layers, uint64_t seed, double dropout) {
  return Builder(seed, dropout).Make(layers);
}

std::vector<LayerSpec> JoinLayers() {
  std::vector<LayerSpec> layers;
  for (int n : {1, 2, 3}) {
    AddSizes add;
    add.name = absl::StrCat("add", n);
    add.shape = {5, 7};
    ConcatSizes concat;
    concat.name = absl::StrCat("concat", n);
    concat.tokens = 5;
    for (int i = 0; i < n; ++i) {
      add.inputs.push_back(i);
      concat.inputs.push_back(i);
      concat.widths.push_back(3 + 4 * i);
    }
    layers.push_back(AddSpec(add));
    layers.push_back(ConcatSpec(concat));
  }
  for (Activation activation : {Activation::kNone, Activation::kGelu, Activation::kRelu}) {
    for (int64_t in : {4, 17}) {
      DenseSizes dense;
      dense.name = absl::StrCat("dense", in, "/", static_cast<int>(activation));
      dense.tokens = 5;
      dense.in = in;
      dense.out = 9;
      dense.activation = activation;
      layers.push_back(DenseSpec(dense));
    }
  }
  return layers;
}

std::vector<int> RandomStages(const ModelGraph& graph, int most_stages, uint64_t seed) {
  const CounterRng rng(seed, "random stages");
  std::vector<int> stages;
  for (size_t i = 0; i < graph.layers.size(); ++i) {
    int64_t lowest = 0;
    for (int input : graph.layers[i].inputs) {
      lowest = std::max<int64_t>(lowest, stages[input]);
    }
    // One step of up to three stages every other time, so that branches come to lie apart.
    if (rng.Below(2 * i, 2) == 0) lowest += static_cast<int64_t>(rng.Below(2 * i + 1, 4));
    stages.push_back(static_cast<int>(std::min<int64_t>(lowest, most_stages - 1)));
  }
  const std::set<int> used(stages.begin(), stages.end());
  for (int& stage : stages) {
    stage = static_cast<int>(std::distance(used.begin(), used.find(stage)));
  }
  return stages;
}

}  // namespace pipelab
