#include "models/files/hugging_face_checks.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A head's numbers that turn in another order.
absl::Status CheckDeepSeek(const JsonObject& file) {
  if (!file.HasValue("rope_interleave")) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const bool pairs, file.Bool("rope_interleave"));
  if (pairs) return absl::OkStatus();
  return file.Error("rope_interleave", "false: cannot be read; must be true");
}

// Soft caps of scores and logits, which Gemma 2 has where the file does not say null.
absl::Status CheckSoftCaps(const JsonObject& file, bool usual) {
  for (absl::string_view key : {"attn_logit_softcapping", "final_logit_softcapping"}) {
    if (file.Has(key) ? !file.HasValue(key) : !usual) continue;
    return file.Error(key,
                      "no layer caps scores or logits, so the weights' logits would be others; "
                      "must be null");
  }
  return absl::OkStatus();
}

// Positions that the rotary layers do not have.
absl::Status CheckRotary(const JsonObject& rotary) {
  for (absl::string_view type : {"rope_type", "type"}) {
    if (!rotary.HasValue(type)) continue;
    PIPELAB_ASSIGN_OR_RETURN(const std::string word, rotary.String(type));
    if (word == "default") break;
    return rotary.Error(type, "\"", word,
                        "\": no layer scales rotary positions, so the weights' logits would be "
                        "others; must be default");
  }
  // Each kind of attention may have rotary settings.
  for (absl::string_view kind : {"full_attention", "sliding_attention"}) {
    if (!rotary.HasObject(kind)) continue;
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject of_kind, rotary.Object(kind));
    PIPELAB_RETURN_IF_ERROR(CheckRotary(of_kind));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<double> NormEpsilonOf(const JsonObject& file, const WeightFamily& family) {
  for (absl::string_view key : {"rope_scaling", "rope_parameters"}) {
    if (!file.HasObject(key)) continue;
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject rotary, file.Object(key));
    PIPELAB_RETURN_IF_ERROR(CheckRotary(rotary));
  }
  PIPELAB_RETURN_IF_ERROR(CheckSoftCaps(file, family.soft_caps));
  if (family.latent) PIPELAB_RETURN_IF_ERROR(CheckDeepSeek(file));
  double epsilon = family.epsilon;
  if (file.HasValue(family.epsilon_key)) {
    PIPELAB_ASSIGN_OR_RETURN(epsilon, file.Number(family.epsilon_key));
    if (!(epsilon >= 1e-15 && epsilon <= 1)) {
      return file.Error(family.epsilon_key, epsilon, ": must be from 1e-15 to 1");
    }
  }
  return epsilon;
}

}  // namespace pipelab
