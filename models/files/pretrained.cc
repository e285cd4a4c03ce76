#include "models/files/pretrained.h"

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "models/checkpoint/weight_files.h"
#include "models/files/hugging_face_config.h"
#include "models/files/model_file.h"
#include "tools/base/file.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::Status ReadPretrained(absl::string_view option, absl::string_view word,
                            const ModelGraph& graph, const TakeWeight& take) {
  const std::string what = absl::StrCat(option, "=", word);
  const std::string path = ModelPath(word);
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  const absl::StatusOr<nlohmann::json> config =
      text.ok() ? ParseJson(*text, what) : absl::StatusOr<nlohmann::json>(text.status());
  if (!config.ok() || !IsHuggingFaceConfig(*config)) {
    return absl::InvalidArgumentError(absl::StrCat(
        what,
        ": has no published weights; must be a config.json with safetensors files beside it"));
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
  PIPELAB_ASSIGN_OR_RETURN(const WeightFiles files, WeightFiles::Open(folder));
  return FaultOfFile(ReadHuggingFaceWeights(*config, what, graph, files, take));
}

}  // namespace pipelab
