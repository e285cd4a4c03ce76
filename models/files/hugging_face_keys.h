// Keys of a config.json of Hugging Face's, as all kinds of models have them. Private to
// hugging_face_config.
//
//   class Encoder : public HuggingFaceKeys { ... Size("num_hidden_layers", kMostLayers) ... };
//
// InvalidArgument, with the file and the key, for a value that no layer has. A key that is absent
// or null has the value that is given here for it.
#ifndef PIPELAB_MODELS_FILES_HUGGING_FACE_KEYS_H_
#define PIPELAB_MODELS_FILES_HUGGING_FACE_KEYS_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/json_object.h"

namespace pipelab {

class HuggingFaceKeys {
 public:
  // `tokens` of a sample; 0: as many as the file has positions.
  HuggingFaceKeys(JsonObject file, int64_t tokens) : file_(std::move(file)), tokens_(tokens) {}

 protected:
  // From 1 to `most`; with `if_absent` 0 the key must be there.
  absl::StatusOr<int64_t> Size(absl::string_view key, int64_t most, int64_t if_absent = 0) const;
  absl::StatusOr<int64_t> SizeOrNone(absl::string_view key, int64_t most) const;  // or 0
  absl::StatusOr<int64_t> Heads(absl::string_view key) const;
  absl::StatusOr<bool> Flag(absl::string_view key, bool if_absent) const;
  absl::Status OneOf(absl::string_view key, const std::vector<absl::string_view>& known) const;
  absl::Status DividesHidden(absl::string_view key, int64_t heads, int64_t hidden) const;
  // Tokens of a sample: at most the positions that the file has under `key`.
  absl::StatusOr<int64_t> Tokens(absl::string_view key) const;

  const JsonObject file_;

 private:
  const int64_t tokens_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_HUGGING_FACE_KEYS_H_
