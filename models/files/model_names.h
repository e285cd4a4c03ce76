// Published models by the names that people write: other spellings, the names of their hub, and
// models that share an architecture.
//
//   FindPublished("Llama3-70B").model->name                 // "llama-3-70b"
//   FindPublished("Qwen/Qwen3-235B-A22B-Instruct-2507")     // qwen3-235b-a22b
//   FindPublished("llama-3.1-70b").note    // "llama-3-70b is taken, which has its architecture"
//   FindPublished("qwen3").model                            // null: there are several
//
// Words that say how a model was trained further ("instruct", a date behind all others) count for
// nothing; a name that ends in -small is meant where it is said.
#ifndef PIPELAB_MODELS_FILES_MODEL_NAMES_H_
#define PIPELAB_MODELS_FILES_MODEL_NAMES_H_

#include <string>

#include "absl/strings/string_view.h"
#include "models/zoo/published.h"

namespace pipelab {

struct NamedModel {
  const PublishedModel* model = nullptr;  // null: none is meant, or several are
  std::string note;                       // empty where the word is the model's own name
};

NamedModel FindPublished(absl::string_view word);

// "; did you mean qwen3-8b?", or all names.
std::string NearestPublished(absl::string_view word);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_MODEL_NAMES_H_
