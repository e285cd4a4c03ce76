#include "models/zoo/gnmt.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/graph/cost_math.h"
#include "models/graph/translation_fields.h"
#include "models/specs/add_spec.h"
#include "models/specs/concat_spec.h"
#include "models/zoo/size_check.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr double kStddev = 0.02;

absl::Status CheckGnmt(const GnmtConfig& c) {
  if (c.layers < 2 || c.layers > kMostLayers) {  // the first one's output is twice as wide
    return absl::InvalidArgumentError(
        absl::StrCat("--layers=", c.layers, ": must be from 2 to ", kMostLayers));
  }
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("hidden", c.hidden, kMostHidden));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("source_tokens", c.source_tokens, kMostTokens));
  PIPELAB_RETURN_IF_ERROR(CheckModelSize("target_tokens", c.target_tokens, kMostTokens));
  return CheckModelSize("vocabulary", c.vocabulary, kMostVocabulary);
}

class GnmtBuilder {
 public:
  explicit GnmtBuilder(const GnmtConfig& config) : c_(config) { graph_.name = "gnmt"; }

  ModelGraph Make() {
    const int memory = AddEncoder();
    const int last = AddDecoder(memory);
    AddLoss(last);
    return std::move(graph_);
  }

 private:
  int Add(LayerSpec layer) {
    for (int input : layer.inputs) {
      if (layer.input_shapes.size() == layer.inputs.size()) break;
      layer.input_shapes.push_back(graph_.layers[input].output_shape);
    }
    graph_.layers.push_back(std::move(layer));
    return static_cast<int>(graph_.layers.size()) - 1;
  }
  int64_t RowsOf(int layer) const { return graph_.layers[layer].output_shape[0]; }
  int64_t WidthOf(int layer) const { return graph_.layers[layer].output_shape[1]; }
  ParameterSpec Matrix(const std::string& name, int64_t in, int64_t out) const {
    return {name, {in, out}, InitKind::kNormal, kStddev, ""};
  }

  int AddLookup(const std::string& name, const char* field, int64_t tokens) {
    LayerSpec layer;
    layer.name = name;
    layer.kind = "lookup";
    layer.output_shape = {tokens, c_.hidden};
    layer.parameters = {Matrix(name + "/table", c_.vocabulary, c_.hidden)};
    layer.data = {{field, FieldType::kId, {tokens}, c_.vocabulary}};
    layer.costs = [size = tokens * c_.hidden](int64_t samples) {
      LayerCosts costs;
      costs.output = costs.forward_peak = costs.kept_for_weight = FloatBytes(samples * size);
      return costs;
    };
    layer.operations = [size = tokens * c_.hidden](int64_t samples, TokenSlice) {
      LayerOperations ops;
      ops.forward = {ElementwiseOperation(2 * samples * size)};
      ops.backward_weight = {ElementwiseOperation(3 * samples * size)};
      return ops;
    };
    return Add(std::move(layer));
  }

  int AddLstm(const std::string& name, int input) {
    const int64_t in = WidthOf(input), tokens = RowsOf(input), h = c_.hidden;
    LayerSpec layer;
    layer.name = name;
    layer.kind = "lstm";
    layer.inputs = {input};
    layer.output_shape = {tokens, h};
    layer.parameters = {Matrix(name + "/w", in, 4 * h),
                        Matrix(name + "/u", h, 4 * h),
                        {name + "/b", {4 * h}, InitKind::kZeros, 0, ""}};
    layer.costs = [in, tokens, h](int64_t samples) {
      const int64_t m = samples * tokens;
      LayerCosts costs;
      costs.forward = MatmulFlops(m, 4 * h, in + h);
      costs.backward_input = costs.backward_weight = costs.forward;
      costs.output = FloatBytes(m * h);
      costs.kept = FloatBytes(6 * m * h);             // gates, cell, output
      costs.kept_for_weight = FloatBytes(5 * m * h);  // the gates' gradients, output
      costs.forward_peak = costs.kept + costs.output;
      costs.backward_input_peak = costs.backward_peak = FloatBytes(4 * m * h + m * in);
      return costs;
    };
    // The input's product is one for all tokens; the state's is one a token, and so are the gates.
    layer.operations = [in, tokens, h](int64_t samples, TokenSlice) {
      LayerOperations ops;
      AddMatmul(samples * tokens, 4 * h, in, &ops);
      for (int64_t i = 0; i < tokens; ++i) {
        ops.forward.push_back(MatmulOperation(samples, 4 * h, h));
        ops.backward_input.push_back(InputGradientOperation(samples, 4 * h, h));
        AddElementwise(7 * samples * h, 12 * samples * h, &ops);
      }
      ops.backward_weight.push_back(WeightGradientOperation(samples * tokens, 4 * h, h));
      return ops;
    };
    return Add(std::move(layer));
  }

  // Bahdanau's: softmax(v . tanh(q w + k u)) k.
  int AddAttention(int query, int memory) {
    const int64_t t = RowsOf(query), s = RowsOf(memory), h = c_.hidden;
    LayerSpec layer;
    layer.name = "attention";
    layer.kind = "additive_attention";
    layer.inputs = {query, memory};
    layer.output_shape = {t, h};
    layer.parameters = {Matrix("attention/wq", h, h), Matrix("attention/wk", h, h),
                        Matrix("attention/v", h, 1)};
    layer.costs = [t, s, h](int64_t samples) {
      const Flops linear = MatmulFlops(samples * (t + s), h, h);
      const Flops scores = MatmulFlops(samples * t, s, h);
      LayerCosts costs;
      costs.forward = linear + 2.0 * scores;
      costs.backward_input = linear + 4.0 * scores;
      costs.backward_weight = linear + scores;
      costs.output = FloatBytes(samples * t * h);
      costs.kept = FloatBytes(samples * ((t + s) * h + t * s));  // both projections, the shares
      costs.kept_for_weight = FloatBytes(samples * (t + s) * h);
      costs.forward_peak = costs.kept + costs.output;
      costs.backward_input_peak = costs.backward_peak = FloatBytes(2 * samples * (t + s) * h);
      return costs;
    };
    layer.operations = [t, s, h](int64_t samples, TokenSlice) {
      const Flops scores = MatmulFlops(samples * t, s, h);
      const int64_t numbers = samples * (2 * (t + s) * h + t * s);
      LayerOperations ops;
      AddMatmul(samples * (t + s), h, h, &ops);
      ops.forward.push_back(AttentionOperation(2.0 * scores, numbers, {0, 0, h}));
      ops.backward_input.push_back(AttentionOperation(4.0 * scores, 2 * numbers, {0, 0, h}));
      ops.backward_weight.push_back(AttentionOperation(scores, numbers, {0, 0, h}));
      return ops;
    };
    return Add(std::move(layer));
  }

  int AddResidual(const std::string& name, int a, int b) {
    AddSizes add;
    add.name = name;
    add.inputs = {a, b};
    add.shape = {RowsOf(a), c_.hidden};
    return Add(AddSpec(add));
  }

  int AddConcat(const std::string& name, int a, int b) {
    ConcatSizes concat;
    concat.name = name;
    concat.inputs = {a, b};
    concat.tokens = RowsOf(a);
    concat.widths = {WidthOf(a), WidthOf(b)};
    return Add(ConcatSpec(concat));
  }

  // Returns its last layer.
  int AddEncoder() {
    const int words = AddLookup("encoder/embedding", kSource, c_.source_tokens);
    const int right = AddLstm("encoder/lstm0/right", words);
    const int left = AddLstm("encoder/lstm0/left", words);
    int last = AddConcat("encoder/lstm0", right, left);
    for (int64_t i = 1; i < c_.layers; ++i) {
      const std::string name = absl::StrCat("encoder/lstm", i);
      const int lstm = AddLstm(name, last);
      last = i < 2 ? lstm : AddResidual(name + "/add", last, lstm);
    }
    return last;
  }

  int AddDecoder(int memory) {
    const int words = AddLookup("decoder/embedding", kTokens, c_.target_tokens);
    int last = AddLstm("decoder/lstm0", words);
    const int context = AddAttention(last, memory);
    for (int64_t i = 1; i < c_.layers; ++i) {
      const std::string name = absl::StrCat("decoder/lstm", i);
      const int lstm = AddLstm(name, AddConcat(name + "/input", last, context));
      last = i < 2 ? lstm : AddResidual(name + "/add", last, lstm);
    }
    return last;
  }

  void AddLoss(int input) {
    const int64_t tokens = c_.target_tokens, h = c_.hidden, v = c_.vocabulary;
    LayerSpec layer;
    layer.name = "loss";
    layer.kind = "logits";
    layer.inputs = {input};
    layer.parameters = {Matrix("loss/w", h, v), {"loss/b", {v}, InitKind::kZeros, 0, ""}};
    layer.data = {{kTargets, FieldType::kId, {tokens}, v, /*padded=*/true}};
    layer.costs = [tokens, h, v](int64_t samples) {
      const int64_t m = samples * tokens;
      LayerCosts costs;
      costs.forward = costs.backward_input = costs.backward_weight = MatmulFlops(m, v, h);
      costs.kept = costs.kept_for_weight = costs.forward_peak = FloatBytes(m * v);
      costs.backward_input_peak = costs.backward_peak = FloatBytes(m * h);
      return costs;
    };
    layer.operations = [tokens, h, v](int64_t samples, TokenSlice) {
      const int64_t m = samples * tokens;
      LayerOperations ops;
      AddMatmul(m, v, h, &ops);
      AddMemory(OperationKind::kLoss, 2 * m * v, 2 * m * v, &ops);  // softmax and loss
      return ops;
    };
    Add(std::move(layer));
  }

  const GnmtConfig c_;
  ModelGraph graph_;
};

}  // namespace

absl::StatusOr<ModelGraph> BuildGnmt(const GnmtConfig& c) {
  PIPELAB_RETURN_IF_ERROR(CheckGnmt(c));
  ModelGraph graph = GnmtBuilder(c).Make();
  PIPELAB_RETURN_IF_ERROR(Validate(graph));
  return graph;
}

}  // namespace pipelab
