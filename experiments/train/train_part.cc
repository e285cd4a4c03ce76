#include "experiments/train/train_part.h"

#include <cmath>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "experiments/flags/interrupt.h"
#include "experiments/train/predict.h"
#include "experiments/training/checkpoint.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/checkpoint/training_state.h"
#include "pipelines/runtime/training.h"
#include "tools/base/file.h"
#include "tools/base/progress.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// Names of a checkpoint's records.
constexpr char kLosses[] = "losses", kHeldOut[] = "held_out", kHeldOutSteps[] = "held_out_steps";

std::vector<float> ToFloats(const std::vector<double>& values) {
  return std::vector<float>(values.begin(), values.end());
}

// One training, from its start or a checkpoint to its end or Ctrl-C.
class PartTrainer {
 public:
  PartTrainer(const TrainSettings& settings, const StudyWork& work, const StudyPart& part)
      : settings_(settings),
        part_(part),
        shared_(CheckpointSettings(settings, work, part)),
        file_(FileOfPart(settings.checkpoint, part)) {}

  absl::StatusOr<TrainedPart> Train() {
    PIPELAB_ASSIGN_OR_RETURN(
        training_,
        PipelineTraining::Create(part_.graph, *part_.train, TrainingOptionsOf(settings_, part_)));
    PIPELAB_ASSIGN_OR_RETURN(done_.trained, Evaluator::Create(training_->graph(), part_));
    done_.training.name = "training";
    done_.held_out.name = settings_.validation ? "validation" : "held out";
    if (!settings_.resume.empty()) PIPELAB_RETURN_IF_ERROR(Resume());
    PIPELAB_RETURN_IF_ERROR(Steps());
    PIPELAB_ASSIGN_OR_RETURN(const TrainingState state, training_->State());
    PIPELAB_RETURN_IF_ERROR(done_.trained->TakeValues(state));
    return std::move(done_);
  }

 private:
  absl::Status Resume() {
    const std::string file = FileOfPart(settings_.resume, part_);
    // Parts that an interrupted study had not begun have none.
    if (!part_.name.empty() && !PathExists(file)) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(
        const TrainingState state,
        ResumeCheckpoint("--resume", file, shared_, /*group=*/nullptr, training_.get()));
    done_.steps = state.step;
    if (state.step > settings_.steps) {
      return absl::InvalidArgumentError(absl::StrCat("--steps=", settings_.steps, ": ", file,
                                                     " has done ", state.step, " already"));
    }
    return TakeRecords(state);
  }

  absl::Status TakeRecords(const TrainingState& state) {
    const auto record = [&](const char* name) {
      const auto it = state.records.find(name);
      return it == state.records.end() ? std::vector<float>() : it->second;
    };
    const std::vector<float> losses = record(kLosses), held_out = record(kHeldOut),
                             steps = record(kHeldOutSteps);
    if (static_cast<int64_t>(losses.size()) != state.step || held_out.size() != steps.size()) {
      return absl::DataLossError(
          absl::StrCat(state.source, ": ", losses.size(), " losses of ", state.step, " steps"));
    }
    done_.training.values.assign(losses.begin(), losses.end());
    done_.held_out.values.assign(held_out.begin(), held_out.end());
    done_.held_out.steps.assign(steps.begin(), steps.end());
    return absl::OkStatus();
  }

  absl::Status Save() {
    CheckpointNotes notes;
    notes.settings = shared_;
    notes.records = {{kLosses, ToFloats(done_.training.values)},
                     {kHeldOut, ToFloats(done_.held_out.values)},
                     {kHeldOutSteps, std::vector<float>(done_.held_out.steps.begin(),
                                                        done_.held_out.steps.end())}};
    PIPELAB_RETURN_IF_ERROR(SaveCheckpoint(file_, *training_, notes, /*group=*/nullptr));
    done_.checkpoint = file_;
    return absl::OkStatus();
  }

  absl::Status EvaluateHeldOut() {
    if (part_.held_out == nullptr || part_.held_out_samples == 0) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const TrainingState state, training_->State());
    PIPELAB_RETURN_IF_ERROR(done_.trained->TakeValues(state));
    PIPELAB_ASSIGN_OR_RETURN(const double loss, MeanLoss(done_.trained->network(), *part_.held_out,
                                                         part_.held_out_samples));
    done_.held_out.values.push_back(loss);
    done_.held_out.steps.push_back(done_.steps);
    return absl::OkStatus();
  }

  std::string Note(const TrainingStep& step) const {
    const double seconds = absl::ToDoubleSeconds(done_.time);
    const auto samples = static_cast<double>(done_.steps_here * settings_.batch_samples());
    std::string note = absl::StrFormat("loss %.4f, %.0f samples/s", step.loss, samples / seconds);
    if (step.largest_load > 0) {
      absl::StrAppendFormat(&note, ", fullest expert %.2f x the mean, %d choices dropped",
                            step.largest_load, step.dropped_choices);
    }
    if (!done_.held_out.values.empty()) {
      absl::StrAppendFormat(&note, ", %s %.4f", done_.held_out.name, done_.held_out.values.back());
    }
    return note;
  }

  absl::Status Steps() {
    const InterruptGuard interrupt;
    const int64_t first = done_.steps;
    std::string label = part_.name.empty() ? settings_.study : part_.name;
    if (first > 0) absl::StrAppend(&label, " from step ", first);
    Progress progress(label, settings_.steps - first, "step");
    while (done_.steps < settings_.steps && !interrupt.raised()) {
      const absl::Time begin = absl::Now();
      PIPELAB_ASSIGN_OR_RETURN(const TrainingStep step, training_->Step());
      done_.time += absl::Now() - begin;
      ++done_.steps;
      ++done_.steps_here;
      if (!std::isfinite(step.loss)) {
        return absl::FailedPreconditionError(
            absl::StrCat("--learning_rate=", BaseLearningRate(settings_.optimizer),
                         ": training diverges: the loss of step ", done_.steps, " is not finite"));
      }
      done_.training.values.push_back(step.loss);
      const bool last = done_.steps == settings_.steps;
      if (last || done_.steps % settings_.evaluate_every == 0) {
        PIPELAB_RETURN_IF_ERROR(EvaluateHeldOut());
      }
      progress.Update(done_.steps - first, Note(step));
      if (!last && settings_.checkpoint_every > 0 &&
          done_.steps % settings_.checkpoint_every == 0) {
        PIPELAB_RETURN_IF_ERROR(Save());
      }
    }
    if (done_.steps == settings_.steps) progress.Finish();
    done_.interrupted = done_.steps < settings_.steps;
    return done_.steps_here > 0 ? Save() : absl::OkStatus();
  }

  const TrainSettings& settings_;
  const StudyPart& part_;
  const std::map<std::string, std::string> shared_;  // what checkpoints have in common
  const std::string file_;
  std::unique_ptr<PipelineTraining> training_;
  TrainedPart done_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Evaluator>> Evaluator::Create(const ModelGraph& graph,
                                                             const StudyPart& part) {
  auto evaluator = std::make_unique<Evaluator>();
  evaluator->backend_ = MakeCpuBackend(&evaluator->arena_);
  SerialOptions options;
  options.data = part.train.get();
  PIPELAB_ASSIGN_OR_RETURN(evaluator->network_,
                           SerialTrainer::Create(graph, evaluator->backend_.get(), options));
  return evaluator;
}

absl::Status Evaluator::TakeValues(const TrainingState& state) {
  for (const StateEntry& entry : StateEntries(network_->graph(), /*optimizer_state=*/{})) {
    PIPELAB_RETURN_IF_ERROR(network_->SetParameterValue(
        entry.spec->name, std::get<std::vector<float>>(state.tensors.at(entry.key).values)));
  }
  return absl::OkStatus();
}

absl::StatusOr<TrainedPart> TrainPart(const TrainSettings& settings, const StudyWork& work,
                                      const StudyPart& part) {
  return PartTrainer(settings, work, part).Train();
}

}  // namespace pipelab
