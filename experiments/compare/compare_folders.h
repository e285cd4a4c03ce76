// Two result folders beside one another: what was set otherwise, and metric by metric what is the
// same, what is noise and what differs.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ResultsComparison c, CompareResults("results_a", "results_b"));
//   std::cout << ComparisonText(c);
//   WriteFileAtomically("c.json", ComparisonJson(c));
//
// A folder is that of one study, or holds one for each study (what //experiments:all writes); then
// studies of one name are compared. Deterministic columns are equal or not, to the digits that
// machines must agree on (deterministic.csv); measured ones with measurements (samples.csv) by
// noise.h; measured ones without are only shown.
#ifndef PIPELAB_EXPERIMENTS_COMPARE_COMPARE_FOLDERS_H_
#define PIPELAB_EXPERIMENTS_COMPARE_COMPARE_FOLDERS_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "experiments/all/result_folder.h"
#include "experiments/compare/noise.h"

namespace pipelab {

enum class MetricVerdict {
  kDiffers,  // deterministic and not equal, or beyond noise
  kOnlyA,    // the other has no such metric
  kOnlyB,
  kUntold,  // measured, and too few measurements to tell
  kNoise,   // the same within noise
  kEqual,
};
absl::string_view MetricVerdictName(MetricVerdict verdict);

struct MetricComparison {
  std::string table, configuration, metric, unit;
  Origin origin = Origin::kComputed;
  std::string a, b;                 // as in the files; empty: missing
  absl::optional<double> relative;  // b / a - 1, of numbers
  absl::optional<double> p_value;
  Spread spread_a, spread_b;  // of measurements
  MetricVerdict verdict = MetricVerdict::kEqual;
};

// A setting, a fact of the environment or a claim's state; empty: not there.
struct Changed {
  std::string name, a, b;
};

struct StudyComparison {
  std::string name;
  std::vector<Changed> settings, environment, claims;
  std::vector<MetricComparison> metrics;  // those that differ first

  int Count(MetricVerdict verdict) const;
};

struct ResultsComparison {
  std::string a, b;  // the folders
  std::vector<StudyComparison> studies;
  std::vector<std::string> only_a, only_b;

  // Whether nothing differs but settings, environment and noise.
  bool same() const;
};

// The results in a folder, by study: its own, or those of the folders in it. NotFound: none.
absl::StatusOr<std::map<std::string, std::string>> StudyFolders(const std::string& folder);

StudyComparison CompareStudies(const ResultFolder& a, const ResultFolder& b);
// NotFound where a folder holds no result; InvalidArgument where two single results are of other
// studies.
absl::StatusOr<ResultsComparison> CompareResults(absl::string_view a, absl::string_view b);

// `all`: also what is equal, or cannot be told.
std::string ComparisonText(const ResultsComparison& comparison, bool all = false);
std::string ComparisonJson(const ResultsComparison& comparison);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMPARE_COMPARE_FOLDERS_H_
