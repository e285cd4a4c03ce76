// Arithmetic as text: what a document prints is what a test evaluates.
//
//   PIPELAB_ASSIGN_OR_RETURN(double makespan,
//                            EvaluateFormula("3 (M + P - 1)", {{'M', 8}, {'P', 4}}));   // 33
//
// Variables are single letters; side by side means a product ("V M", "2 (P - 1)"). Operators from
// loose to tight: and; == >= <= > <, which give 1 or 0; + -; * / mod; minus sign. Functions:
// min(a, b), max(a, b), floor(a). Division is that of real numbers.
#ifndef PIPELAB_PIPELINES_SCHEDULES_FORMULA_H_
#define PIPELAB_PIPELINES_SCHEDULES_FORMULA_H_

#include <map>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

using FormulaValues = std::map<char, double>;

// InvalidArgument with formula, column and reason.
absl::StatusOr<double> EvaluateFormula(absl::string_view formula, const FormulaValues& values);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_SCHEDULES_FORMULA_H_
