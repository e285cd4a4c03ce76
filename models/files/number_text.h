// Numbers of other planners' files, kept as they are: any unit, fractions of bytes too.
#ifndef PIPELAB_MODELS_FILES_NUMBER_TEXT_H_
#define PIPELAB_MODELS_FILES_NUMBER_TEXT_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "nlohmann/json.hpp"

namespace pipelab {

// Sums of a file's numbers stay far from what doubles and 64 bits can hold.
inline constexpr double kMostPlausible = 1e15;
inline bool IsPlausible(double number) { return number >= 0 && number <= kMostPlausible; }

// Rounded; what is too large for any layer stays so.
inline int64_t RoundedCount(double number) {
  return std::llround(std::min(number, static_cast<double>(int64_t{1} << 60)));
}

// The shortest that is read back as the same number.
inline std::string NumberText(double number) { return nlohmann::json(number).dump(); }

}  // namespace pipelab

#endif  // PIPELAB_MODELS_FILES_NUMBER_TEXT_H_
