// Files of Hugging Face's that hold a text model among others: of images and text, mostly.
//
//   const TextTower text = TextTowerOf(root);     // "text_config", {"model_type": "mistral", ...}
//   UnpricedPartOf(root)    // "mistral3: its text model is priced, ...; its vision tower is not"
//
// A "text_config" says what differs from the defaults of its type in transformers, which stand for
// what is left out.
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_WRAPPERS_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_WRAPPERS_H_

#include <string>

#include "nlohmann/json.hpp"

namespace pipelab {

struct TextTower {
  std::string key;                 // empty: its keys are the file's own, beside the others' objects
  nlohmann::json model = nullptr;  // all that it says, with the type by which it is read
};

// Null where the file is of a text model alone.
TextTower TextTowerOf(const nlohmann::json& root);

// One line that says which part of the file is priced; empty where all of it is.
std::string UnpricedPartOf(const nlohmann::json& root);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_WRAPPERS_H_
