// The models of the papers' tables, by name.
//
//   PIPELAB_ASSIGN_OR_RETURN(ModelGraph g, BuildPublished("megatron-76.1b"));
//   for (const PublishedModel& m : PublishedModels()) { m.printed; }       // 76.1e9
//
// Those that end in "-small" are no paper's: their kind, of sizes that train within seconds.
// FindModel (models/files/model_file.h) takes files, too. Graphs allocate nothing. What a paper
// leaves out (a vocabulary, a sequence length) is in `assumed`.
#ifndef PIPELAB_MODELS_ZOO_PUBLISHED_H_
#define PIPELAB_MODELS_ZOO_PUBLISHED_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "models/graph/layer_spec.h"
#include "models/zoo/gpt.h"

namespace pipelab {

struct PublishedModel {
  std::string name;     // "megatron-76.1b"
  std::string source;   // "Narayanan et al. 2021, Table 1"
  double printed = 0;   // parameters as the source prints them; 0: it does not
  double unit = 0;      // of the last digit printed: 0.1e9 for "76.1B"
  std::string assumed;  // what the source does not say; empty: nothing
  std::function<absl::StatusOr<ModelGraph>()> build;
  // Language models: with samples of another length.
  std::function<absl::StatusOr<ModelGraph>(int64_t tokens)> build_with_tokens = nullptr;
  absl::optional<GptConfig> gpt = absl::nullopt;  // theirs
};

const std::vector<PublishedModel>& PublishedModels();

// InvalidArgument: "--model=gpt: is not one of bert-48, ...".
absl::StatusOr<ModelGraph> BuildPublished(absl::string_view name,
                                          absl::string_view option = "--model");

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_PUBLISHED_H_
