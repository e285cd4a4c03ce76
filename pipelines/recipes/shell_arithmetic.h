// Sums of a shell, as in $((TP * PP)) and ((N += 1)). Private to recipes.
//
//   EvaluateShellSum("TP * PP", get, set);   // "16"; or what of a variable is not known
//
// Errors: InvalidArgument that begins with the sum.
#ifndef PIPELAB_PIPELINES_RECIPES_SHELL_ARITHMETIC_H_
#define PIPELAB_PIPELINES_RECIPES_SHELL_ARITHMETIC_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// Names may have a subscript: "X[3]".
using GetShellValue = std::function<absl::StatusOr<std::string>(absl::string_view name)>;
using SetShellValue = std::function<absl::Status(absl::string_view name, const std::string& value)>;

absl::StatusOr<std::string> EvaluateShellSum(absl::string_view text, const GetShellValue& get,
                                             const SetShellValue& set);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SHELL_ARITHMETIC_H_
