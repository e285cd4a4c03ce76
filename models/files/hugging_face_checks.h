// What a config.json says beside sizes, which weights were made for.
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_CHECKS_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_CHECKS_H_

#include "absl/status/statusor.h"
#include "models/files/hugging_face_families.h"
#include "tools/base/json_object.h"

namespace pipelab {

// The epsilon of the norms. InvalidArgument, naming the key, for what no layer computes.
absl::StatusOr<double> NormEpsilonOf(const JsonObject& file, const WeightFamily& family);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_CHECKS_H_
