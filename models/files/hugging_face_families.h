// Which tensors of transformers' files become which parameter of a model: a table for each family
// (hugging_face_weights.h reads by it).
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_FAMILIES_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_FAMILIES_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

enum class WeightLayout : uint8_t {
  kSame,        // [in, out], a vector or a table
  kTransposed,  // [out, in], as torch.nn.Linear has it
  kFirstRows,   // a table of at least as many rows
  kPatches,     // [out, channels, height, width], as torch.nn.Conv2d has it
  // kTransposed, of DeepSeek. The turning numbers of a head are its last there and lie in pairs.
  kTurningHeads,  // q
  kBehindLatent,  // the key of all heads, behind the latent row
  kLatent,        // the latent row in front of it
};

// By what numbers are multiplied, see hugging_face_weights.h.
enum class WeightScale : uint8_t {
  kNone,
  kStream,          // what is added to the residual stream
  kFromStream,      // what takes it without a norm between
  kTable,           // the token table
  kHeadNorm,        // what is in front of a head that shares the table
  kQueriesAndKeys,  // q and k of q, k, v, where they have norms
  kQueryNorm,       // the norm of q, which takes the query's scale
  kLatentNorm,      // what latent norms take, whose epsilon is 1e-6 whatever the file says
};

struct WeightRule {
  // "block#/mlp/w1", with a block's number for #.
  absl::string_view ours;
  // The same with an expert's number for *, whose tensors are one behind the other in ours; and
  // with tensors that are side by side in {}. With | between them the first that is there.
  absl::string_view theirs;
  WeightLayout layout = WeightLayout::kSame;
  WeightScale scale = WeightScale::kNone;
};

struct WeightFamily {
  std::vector<absl::string_view> types;  // of the config.json
  absl::string_view prefix;              // of the names, in files that have a head
  // The epsilon of the norms: its key in the config.json, and its value where that does not say it.
  absl::string_view epsilon_key;
  double epsilon = 0;
  bool gammas_about_one = false, scaled_embedding = false;
  bool latent = false;  // latent attention and DeepSeek's routers
  std::vector<WeightRule> rules = {};
  std::vector<absl::string_view> no_weights = {};  // endings of names
  bool soft_caps = false;  // of scores and logits, where the file does not say null
};

// Null where there is none.
const WeightFamily* FindWeightFamily(absl::string_view model_type);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_FAMILIES_H_
