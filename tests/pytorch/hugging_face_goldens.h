// What transformers computes for a small model of each family, from hugging_face.json, which
// tools/pytorch/hugging_face_logits.py made, and what we compute. The file has names and shapes of
// tensors; their numbers are a formula of both.
//
//   const json golden = Goldens()["qwen3_moe"];
//   WriteSafetensors(file, WeightsOf(golden));
//   EXPECT_LE(DistanceFrom(golden, *LogitsOf(golden, file)), AllowedFor(golden));
#ifndef PIPELAB_TESTS_PYTORCH_HUGGING_FACE_GOLDENS_H_
#define PIPELAB_TESTS_PYTORCH_HUGGING_FACE_GOLDENS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "models/checkpoint/safetensors.h"
#include "nlohmann/json.hpp"

namespace pipelab {

nlohmann::json Goldens();

// weights_of in hugging_face_logits.py: k / 256.
float WeightOf(absl::string_view name, uint64_t index);
Safetensors WeightsOf(const nlohmann::json& golden);

// A safetensors file of tensors whose bytes are made.
class FileWriter {
 public:
  void Add(const std::string& name, const char* type, const std::vector<int64_t>& shape,
           absl::string_view bytes) {
    header_[name] = {{"dtype", type},
                     {"shape", shape},
                     {"data_offsets", {data_.size(), data_.size() + bytes.size()}}};
    absl::StrAppend(&data_, bytes);
  }
  void Add(const std::string& name, const StoredTensor& tensor) {
    const auto& values = std::get<std::vector<float>>(tensor.values);
    Add(name, "F32", tensor.shape,
        {reinterpret_cast<const char*>(values.data()), 4 * values.size()});
  }
  std::string Contents() const;

 private:
  nlohmann::json header_ = nlohmann::json::object();
  std::string data_;
};

// The same numbers as bfloat16, which has them.
std::string AsBFloat16(const Safetensors& file);

// The logits of the golden's sample, with the weights of a file or folder.
absl::StatusOr<std::vector<float>> LogitsOf(const nlohmann::json& golden,
                                            const std::string& weights);
double LargestOf(const nlohmann::json& golden);
// The largest difference from transformers' logits, and how large it may be.
double DistanceFrom(const nlohmann::json& golden, const std::vector<float>& logits);
double AllowedFor(const nlohmann::json& golden);

// A folder of this test, made.
std::string Folder(const std::string& name);

}  // namespace pipelab

#endif  // PIPELAB_TESTS_PYTORCH_HUGGING_FACE_GOLDENS_H_
