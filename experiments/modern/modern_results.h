// What comes of the rows (modern_rows.h): each predicted beside measured, or why not. Tables of
// them: modern_tables.h; claims: modern_claims.h.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ModernData data, LoadModernData(folder));
//   const std::vector<ModernResult> all = PredictAll(data, machines);
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "experiments/modern/modern_prediction.h"
#include "experiments/modern/modern_rows.h"
#include "experiments/predict/error_summary.h"
#include "tools/base/units.h"

namespace pipelab {

struct ModernData {
  std::vector<ModernModel> models;
  std::vector<ModernRow> rows;  // with a time where one follows from printed flops
};

// modern_training_rows.csv and modern_models.csv.
absl::StatusOr<ModernData> LoadModernData(const std::string& folder);

// What a row trains: rows of one kind are judged together.
enum class ModernKind : uint8_t { kDense, kExperts, kAdapters };
const char* ModernKindName(ModernKind kind);

struct ModernResult {
  const ModernRow* row = nullptr;
  ModernKind kind = ModernKind::kDense;
  std::string why_not;       // empty: predicted
  bool calibrating = false;  // counted nowhere
  bool assumed = false;      // ModernStep::assumed: counted by themselves
  bool inferred = false;     // ModernStep::inferred
  // The step's, with its recomputed modules; and whether its model has a head for a further token.
  std::string configuration;
  bool further = false;
  double seconds = 0;  // of a step
  Bytes memory, device_memory;
  // What the nearest row of the same source, kind and another model took, scaled by the flops of a
  // GPU; none where there is no other model.
  absl::optional<double> nearest_seconds;

  bool fits() const { return memory <= device_memory; }
  bool judged() const { return why_not.empty() && !calibrating && !assumed; }
};

using ModernResults = std::vector<ModernResult>;

// The data must outlive the results.
ModernResults PredictAll(const ModernData& data, const ModernMachines& machines);

// Measured beside predicted times of the judged rows that are chosen, or what the nearest rows
// took.
using ModernChoice = std::function<bool(const ModernResult&)>;
std::vector<TimedPrediction> TimesOf(const ModernResults& all, const ModernChoice& choice);
std::vector<TimedPrediction> NearestTimesOf(const ModernResults& all, const ModernChoice& choice);
// Peak memory as times, in bytes, of judged rows that print it.
std::vector<TimedPrediction> PeaksOf(const ModernResults& all, const ModernChoice& choice);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_RESULTS_H_
