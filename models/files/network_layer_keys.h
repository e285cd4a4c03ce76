// What the readers of a network's layers (network_layers.cc) share: keys and inputs of one layer,
// checked, with errors that name them.
#ifndef PIPELAB_MODELS_FILES_NETWORK_LAYER_KEYS_H_
#define PIPELAB_MODELS_FILES_NETWORK_LAYER_KEYS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/files/network_layers.h"

namespace pipelab {

class NetworkLayerKeys {
 public:
  // The source outlives this.
  explicit NetworkLayerKeys(const NetworkLayerSource& source)
      : s_(source), object_(source.object) {}

 protected:
  static NetworkLayer Rows(LayerSpec spec) { return {std::move(spec), 0, 0}; }
  // Its output has the pixels of the first input.
  NetworkLayer AsFirst(LayerSpec spec) const {
    return {std::move(spec), s_.inputs[0].value.height, s_.inputs[0].value.width};
  }

  // Name and first input.
  template <typename Sizes>
  void Place(Sizes* sizes) const {
    sizes->name = s_.name;
    sizes->input = s_.inputs[0].index;
  }

  // Keys besides those of every layer, and how many inputs.
  absl::Status Allow(std::vector<absl::string_view> keys, size_t least, size_t most) const;
  absl::Status InputError(const NetworkLayerInput& input, absl::string_view what) const;
  // The first input is of the shape of this one.
  std::string FirstGives() const;

  absl::Status CheckRows(const NetworkLayerInput& input) const;
  // The sizes of the first input.
  absl::Status TakeRows(int64_t* rows, int64_t* numbers) const;
  absl::Status TakeImage(int64_t* height, int64_t* width, int64_t* channels) const;
  // "shape" of the data's image.
  absl::Status TakeDataImage(int64_t* height, int64_t* width, int64_t* channels) const;

  // Above 0 and at most 2^20; without `if_absent` it must be there.
  absl::StatusOr<int64_t> Size(absl::string_view key, int64_t if_absent = 0) const;
  absl::StatusOr<bool> Flag(absl::string_view key, bool if_absent) const;
  absl::StatusOr<double> Dropout() const;
  // The place in the list. Null: the key must be there.
  absl::StatusOr<int> Choice(absl::string_view key, const std::vector<std::string>& words,
                             const char* if_absent) const;
  // One to three sizes of together at most 2^30 numbers.
  absl::StatusOr<std::vector<int64_t>> Shape(absl::string_view key) const;

  const NetworkLayerSource& s_;
  const JsonObject& object_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_NETWORK_LAYER_KEYS_H_
