#include "experiments/train/run_study.h"

#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/report/report.h"
#include "experiments/study/study_main.h"
#include "experiments/train/study_report.h"
#include "experiments/train/train_flags.h"
#include "experiments/train/train_part.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/comparison.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CheckParts(const TrainSettings& settings, const Study& study, const StudyWork& work) {
  for (const StudyPart& part : work.parts) {
    PIPELAB_RETURN_IF_ERROR(CheckSettings(settings, study, part));
  }
  return absl::OkStatus();
}

// Options against generated data of the same form, then the data themselves.
absl::StatusOr<StudyWork> LoadChecked(const TrainSettings& settings, const Study& study) {
  StudyRequest request;
  request.synthetic = true;
  request.validation = settings.validation;
  request.batch_samples = settings.batch_samples();
  request.seed = settings.seed;
  PIPELAB_ASSIGN_OR_RETURN(StudyWork generated, study.load(request));
  PIPELAB_RETURN_IF_ERROR(CheckParts(settings, study, generated));
  bool found = settings.resume.empty();
  for (const StudyPart& part : generated.parts) {
    found = found || PathExists(FileOfPart(settings.resume, part));
  }
  if (!found) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--resume=", FileOfPart(settings.resume, generated.parts[0]), ": there is no such file"));
  }
  if (settings.synthetic) return generated;
  request.synthetic = false;
  absl::StatusOr<StudyWork> real = study.load(request);
  if (absl::IsUnavailable(real.status())) {
    return absl::UnavailableError(
        absl::StrCat(real.status().message(),
                     "; 'bazel run //models/data:fetch' fetches the data where there is a network "
                     "(docs/data.md), --synthetic trains on generated data"));
  }
  PIPELAB_RETURN_IF_ERROR(real.status());
  PIPELAB_RETURN_IF_ERROR(CheckParts(settings, study, *real));
  return real;
}

// Trains and judges every part; Cancelled after Ctrl-C.
absl::StatusOr<std::vector<TrainedPart>> TrainParts(const TrainSettings& settings,
                                                    const StudyWork& work,
                                                    const std::string& command) {
  std::vector<TrainedPart> trained;
  for (const StudyPart& part : work.parts) {
    PIPELAB_ASSIGN_OR_RETURN(TrainedPart done, TrainPart(settings, work, part));
    if (done.interrupted) {
      const bool flags = command.find(" -- ") != std::string::npos;
      // Parts have files of their own, which --resume finds by the name without the part's.
      return absl::CancelledError(
          absl::StrCat("interrupted after step ", done.steps, " of ", settings.steps,
                       part.name.empty() ? "" : absl::StrCat(" of ", part.name),
                       done.steps == 0 ? ""
                                       : absl::StrCat("; to go on: ", command, flags ? "" : " --",
                                                      " --resume=", settings.checkpoint)));
    }
    PIPELAB_RETURN_IF_ERROR(part.judge(done.trained->network()));
    done.trained.reset();  // the next part has one of its own
    trained.push_back(std::move(done));
  }
  return trained;
}

// The quality of networks that are trained already: nothing is compared or claimed.
absl::StatusOr<Quality> JudgeGiven(const StudyWork& work) {
  for (const StudyPart& part : work.parts) {
    PIPELAB_ASSIGN_OR_RETURN(const auto given, Evaluator::Create(part.graph, part));
    PIPELAB_RETURN_IF_ERROR(part.take_values(given->network()));
    PIPELAB_RETURN_IF_ERROR(part.judge(given->network()));
  }
  PIPELAB_ASSIGN_OR_RETURN(Quality quality, work.quality());
  quality.claims.clear();
  return quality;
}

void Describe(const TrainSettings& settings, const StudyWork& work, Report* report) {
  report->AddConfig("data", work.data);
  for (const std::string& note : work.notes) report->AddNote(note);
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  if (cores < settings.devices) {
    report->AddNote(absl::StrCat("This machine has ", cores, " cores for ", settings.devices,
                                 " devices: measured times share them."));
  }
}

absl::Status Run(const Study& study, StudyRun* run) {
  PIPELAB_ASSIGN_OR_RETURN(const TrainSettings settings, SettingsFromFlags(study, run->out()));
  if (study.check != nullptr) PIPELAB_RETURN_IF_ERROR(study.check());
  PIPELAB_RETURN_IF_ERROR(run->Begin());
  Report& report = run->report();
  PIPELAB_ASSIGN_OR_RETURN(
      const CheckpointFile checkpoint,
      CheckpointFile::Take("--checkpoint", settings.checkpoint, /*group=*/nullptr));
  PIPELAB_ASSIGN_OR_RETURN(const StudyWork work, LoadChecked(settings, study));
  if (work.parts[0].take_values != nullptr) {
    PIPELAB_ASSIGN_OR_RETURN(const Quality quality, JudgeGiven(work));
    Describe(settings, work, &report);
    AddQuality(settings, work, quality, &report);
    return absl::OkStatus();
  }
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<TrainedPart> trained,
                           TrainParts(settings, work, run->command()));
  PIPELAB_ASSIGN_OR_RETURN(const Quality quality, work.quality());

  Describe(settings, work, &report);
  AddQuality(settings, work, quality, &report);
  AddTrainings(settings, study, work, trained, &report);
  if (settings.compare_steps > 0) {
    const StudyPart& part = work.parts[0];
    const ComparisonOptions options = ComparisonOptionsOf(settings, study, part);
    PIPELAB_ASSIGN_OR_RETURN(const ComparisonResult compared,
                             Compare(part.graph, *part.train, options));
    PIPELAB_RETURN_IF_ERROR(AddToReport(options, work.data, compared, &report));
    run->FailAtEnd(CheckEquality(compared));
  }
  run->Say(absl::StrCat("checkpoint: ", settings.checkpoint));
  run->FailAtEnd(CheckClaims(settings, quality));
  return absl::OkStatus();
}

}  // namespace

int RunStudy(int argc, char** argv, const Study& study) {
  RegisterTrainFlags();
  StudyInfo info;
  info.name = study.name;
  info.title = study.title;
  info.summary = study.summary;
  info.defaults = study.defaults;
  info.quick = study.quick;
  if (!study.quick.empty()) {
    info.quick_leaves_out =
        "the real data and most of the steps: it shows that the study runs, and claims nothing";
  }
  info.unrecorded = {"checkpoint", "resume", "save_int4", "load_int4"};
  return RunStudyMain(argc, argv, info, [&study](StudyRun* run) { return Run(study, run); });
}

}  // namespace pipelab
