// Figures that users ask of a step beside its time: tokens, the share of the machine's peak, what a
// whole training takes; and the lines of tables that have it.
//
//   PIPELAB_ASSIGN_OR_RETURN(const StepFigures figures, StepFigures::OfFlags(on->step()));
//   figures.Headline();                       // "gpt-52b: 52.07 B parameters, 1024 tokens ..."
//   figures.Titles(), figures.Columns(step);  // tokens/s/GPU, MFU, ...
#ifndef PIPELAB_EXPERIMENTS_COMMANDS_STEP_FIGURES_H_
#define PIPELAB_EXPERIMENTS_COMMANDS_STEP_FIGURES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"
#include "pipelines/search/breakdown.h"
#include "pipelines/step/step_config.h"
#include "pipelines/step/step_model.h"

namespace pipelab {

// Columns of a written report.
inline constexpr size_t kReportColumns = 120;

// How fast a configuration is.
struct StepSpeed {
  double samples_per_second = 0;
  double tflops_per_device = 0;  // of the model's products
  int64_t devices = 1;
};

class StepFigures {
 public:
  // With --tokens, what that many take. InvalidArgument naming it.
  static absl::StatusOr<StepFigures> OfFlags(const StepModel& model);

  std::string Headline() const;
  // Each column with two blanks behind it.
  std::string Titles() const;
  std::string Columns(const StepSpeed& speed) const;
  nlohmann::json Json(const StepSpeed& speed) const;

  double TokensPerSecond(const StepSpeed& speed) const;  // of a device
  // Share of the device's peak for the step's numbers that the model's own products are.
  double Mfu(const StepSpeed& speed) const { return speed.tflops_per_device * 1e12 / peak_; }
  // "; 12.3 days, 18900 GPU-hours"; empty without --tokens.
  std::string TrainingText(const StepSpeed& speed) const;

 private:
  double Days(const StepSpeed& speed) const;

  std::string model_;
  double parameters_ = 0, peak_ = 1;  // flop/s of a device
  int64_t tokens_ = 0;                // of a sample; 0: the model reads none
  double training_ = 0;               // tokens of a training; 0: not asked for
};

// "1777", "177.7", "1.777": four digits, or all before the point.
std::string FourDigits(double value);

// `text` behind `before`, broken behind commas, blanks and + so that no line is longer than a
// report's; other lines begin with as many blanks as `before` has columns.
std::string Wrapped(const std::string& before, absl::string_view text);

// Each line of a text so.
std::string WrappedLines(absl::string_view text);

// Where a step goes, each a share of devices x step, by what it is.
std::vector<std::pair<std::string, double>> PartsOf(const StepConfig& config,
                                                    const StepBreakdown& breakdown);
// Names what devices do together within layers: "tensor parallelism and experts' exchanges".
std::string CollectivesWithinLayers(const StepConfig& config);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMANDS_STEP_FIGURES_H_
