#include "models/zoo/feature_branches.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "models/specs/concat_spec.h"
#include "models/specs/data_input_spec.h"

namespace pipelab {
namespace {

int AddDense(const std::string& name, int input, int64_t out, Activation activation,
             ModelGraph* graph) {
  DenseSizes dense;
  dense.name = name;
  dense.input = input;
  dense.in = graph->layers[input].output_shape[1];
  dense.out = out;
  dense.activation = activation;
  dense.stddev = std::sqrt(2.0 / static_cast<double>(dense.in));
  graph->layers.push_back(DenseSpec(dense));
  return static_cast<int>(graph->layers.size()) - 1;
}

}  // namespace

int AddFeatureBranch(const FeatureField& field, int64_t layers, int64_t hidden,
                     Activation activation, ModelGraph* graph) {
  // Several branches may read one field.
  const std::string prefix = absl::StrCat("branch", graph->layers.size(), "/", field.field);
  DataInputSizes input;
  input.name = prefix + "/input";
  input.field = field.field;
  input.shape = {field.features};
  graph->layers.push_back(DataInputSpec(input));
  int last = static_cast<int>(graph->layers.size()) - 1;
  for (int64_t i = 0; i < layers; ++i) {
    last = AddDense(absl::StrCat(prefix, "/dense", i), last, hidden, activation, graph);
  }
  return last;
}

void AddJoin(const std::vector<int>& inputs, int64_t layers, int64_t hidden, Activation activation,
             ElementLossKind kind, ModelGraph* graph) {
  ConcatSizes concat;
  concat.name = "join/concat";
  concat.inputs = inputs;
  concat.tokens = 1;
  for (int input : inputs) concat.widths.push_back(graph->layers[input].output_shape[1]);
  graph->layers.push_back(ConcatSpec(concat));
  int last = static_cast<int>(graph->layers.size()) - 1;
  for (int64_t i = 0; i < layers; ++i) {
    last = AddDense(absl::StrCat("join/dense", i), last, hidden, activation, graph);
  }
  last = AddDense("join/out", last, 1, Activation::kNone, graph);
  ElementLossSizes loss;
  loss.name = "loss";
  loss.input = last;
  loss.kind = kind;
  graph->layers.push_back(ElementLossSpec(loss));
}

absl::Status CheckFeatureFields(const char* option, const std::vector<FeatureField>& fields) {
  for (size_t i = 0; i < fields.size(); ++i) {
    const FeatureField& f = fields[i];
    if (!f.field.empty() && f.features >= 1 && f.features <= kMostFeatures) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", option, ": branch ", i, " reads \"", f.field, "\" with ", f.features,
                     " features: must have a name and from 1 to ", kMostFeatures, " features"));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
