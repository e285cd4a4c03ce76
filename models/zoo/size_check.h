// The check that every builder of models makes of its sizes, with the option's name in the message.
//
//   PIPELAB_RETURN_IF_ERROR(CheckModelSize("layers", c.layers, 1024));
//   // "--layers=0: must be from 1 to 1024"
#ifndef PIPELAB_MODELS_ZOO_SIZE_CHECK_H_
#define PIPELAB_MODELS_ZOO_SIZE_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace pipelab {

// Far above published models, and far below where a layer's bytes would overflow.
inline constexpr int64_t kMostLayers = 1 << 12;
inline constexpr int64_t kMostHidden = 1 << 16;
inline constexpr int64_t kMostTokens = 1 << 20;
inline constexpr int64_t kMostFurtherTokens = 16;
inline constexpr int64_t kMostImageSide = 1 << 12;
inline constexpr int64_t kMostVocabulary = 1 << 20;

inline absl::Status CheckModelSize(const char* field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", field, "=", value, ": must be from 1 to ", most));
}

inline absl::Status CheckHeads(int64_t heads, int64_t hidden) {
  if (absl::Status s = CheckModelSize("heads", heads, hidden); !s.ok()) return s;
  if (hidden % heads == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--heads=", heads, ": heads must divide --hidden=", hidden));
}

// As the float that kernels take: 0.999999999 is 1 there. The comparisons are false for NaN.
inline absl::Status CheckDropout(double dropout) {
  if (dropout >= 0 && static_cast<float>(dropout) < 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--dropout=", dropout, ": must be at least 0 and below 1"));
}

}  // namespace pipelab

#endif  // PIPELAB_MODELS_ZOO_SIZE_CHECK_H_
