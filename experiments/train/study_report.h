// What a training experiment found, as tables, notes and curves.
#ifndef PIPELAB_EXPERIMENTS_TRAIN_STUDY_REPORT_H_
#define PIPELAB_EXPERIMENTS_TRAIN_STUDY_REPORT_H_

#include <vector>

#include "absl/status/status.h"
#include "experiments/report/report.h"
#include "experiments/train/study.h"
#include "experiments/train/train_flags.h"
#include "experiments/train/train_part.h"

namespace pipelab {

// The quality beside its baselines, and the claims: held, missed, or why they are not made.
void AddQuality(const TrainSettings& settings, const StudyWork& work, const Quality& quality,
                Report* report);

// How each part was trained, and its curves. `trained` has those of `work.parts`, in their order.
void AddTrainings(const TrainSettings& settings, const Study& study, const StudyWork& work,
                  const std::vector<TrainedPart>& trained, Report* report);

// FailedPrecondition for a claim that is missed, where claims are made.
absl::Status CheckClaims(const TrainSettings& settings, const Quality& quality);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_STUDY_REPORT_H_
