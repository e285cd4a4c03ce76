// Weights as Hugging Face's transformers saves them, as the parameters of a model that was made of
// the config.json beside them (hugging_face_config.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(WeightFiles files, WeightFiles::Open(folder));
//   PIPELAB_RETURN_IF_ERROR(ReadHuggingFaceWeights(config, "--model=config.json", graph, files,
//       [&](const ParameterSpec& p, std::vector<float> value) {
//         return trainer->SetParameterValue(p.name, value);
//       }));
//
// Which tensors become which parameter is a table for each family, in the .cc. Numbers change in
// three ways, none of which changes a logit but by rounding:
//
// * Norms here have an epsilon of 1e-5. Where the file's is another, e, the residual stream is
//   sqrt(1e-5 / e) times as large: the embeddings, and the products that end in it. A norm of it
//   then gives what it gave with e. Norms of q and k get q and k that are as much larger.
// * Gemma multiplies embeddings by the root of the hidden size: the table has that factor here.
// * Gemma's norms multiply by 1 + gamma: the gammas here are those sums.
//
// A head that shares the table takes the factors out again in its norm. All tensors must be used,
// but for those that are no weights (masks, frequencies). Positions behind the sample's last token
// are passed over.
//
// Errors: one line with the tensor: InvalidArgument for what is missing, unknown, of another shape,
// or what the config.json asks for and no layer has (scaled rotary positions).
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_WEIGHTS_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_WEIGHTS_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "models/checkpoint/weight_files.h"
#include "models/graph/layer_spec.h"
#include "nlohmann/json.hpp"

namespace pipelab {

// Takes a parameter's value, each once; of tied parameters the first has it.
using TakeWeight = std::function<absl::Status(const ParameterSpec&, std::vector<float>)>;

// `what` names the config.json in errors. Beside what `take` keeps, one parameter and one tensor
// are in memory.
absl::Status ReadHuggingFaceWeights(const nlohmann::json& config, absl::string_view what,
                                    const ModelGraph& graph, const WeightFiles& files,
                                    const TakeWeight& take);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_WEIGHTS_H_
