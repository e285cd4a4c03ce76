#include "experiments/fill/real_filling.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "experiments/calibration/busy_cores.h"
#include "experiments/calibration/real_runs.h"
#include "kernels/cpu/cpu_backend.h"
#include "models/data/images.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/zoo/amoebanet.h"
#include "models/zoo/gpt.h"
#include "pipelines/fill/fill_evaluation.h"
#include "pipelines/fill/fill_pass.h"
#include "pipelines/fill/gaps.h"
#include "pipelines/runtime/training.h"
#include "pipelines/sim/replay.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kDevices = 2, kMicroBatches = 2;
constexpr int kLearnSteps = 5;
constexpr int64_t kTokens = 64, kSamples = 8, kImages = 500;
constexpr int64_t kAlone = 100;  // pictures that are classified by themselves

// The networks and their data.
class Networks {
 public:
  absl::Status Make() {
    PIPELAB_ASSIGN_OR_RETURN(
        TextData text,
        MakeTextData(SyntheticCorpus(/*bytes=*/1 << 18, /*seed=*/1), kTokens, /*seed=*/1));
    text_ = std::move(text.train);
    GptConfig gpt;
    gpt.layers = 6;
    gpt.hidden = 128;
    gpt.heads = 4;
    gpt.tokens = kTokens;
    gpt.vocabulary = text_->vocabulary();
    PIPELAB_ASSIGN_OR_RETURN(gpt_, BuildGpt(gpt));
    images_ = SyntheticImages(/*train=*/kImages, /*held_out=*/kImages, /*seed=*/1);
    pictures_ = std::make_unique<ImageBatchSource>(images_.held_out, images_.scale, ImageOptions(),
                                                   ExampleOrder(images_.held_out->size()));
    const LabelledImages& images = *images_.held_out;
    PIPELAB_ASSIGN_OR_RETURN(GroupedModel model,
                             BuildAmoebaNet(SmallAmoebaNet(images.height, images.width,
                                                           images.channels, images.classes)));
    amoebanet_ = std::move(model.graph);
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<FillWork>> Pictures(
      int64_t pictures, int64_t of_piece, Backend* backend,
      std::shared_ptr<EvaluationResults> results) const {
    EvaluationOptions options;
    options.samples = pictures;
    options.samples_of_piece = of_piece;
    return MakeEvaluation("pictures", amoebanet_, pictures_.get(), backend, options,
                          std::move(results));
  }

  TrainingOptions Training() const {
    TrainingOptions options;
    options.config.scheme = "gpipe";
    options.config.pipeline = kDevices;
    options.config.micro_batches = kMicroBatches;
    options.config.micro_batch_size = kSamples;
    return options;
  }

  absl::StatusOr<std::unique_ptr<PipelineTraining>> Train(const TrainingOptions& options) const {
    return PipelineTraining::Create(gpt_, *text_, options);
  }
  const ModelGraph& gpt() const { return gpt_; }

 private:
  std::unique_ptr<TextBatchSource> text_;
  ImageData images_;
  std::unique_ptr<ImageBatchSource> pictures_;
  ModelGraph gpt_, amoebanet_;
};

absl::StatusOr<bool> SameParameters(const ModelGraph& graph, const PipelineTraining& a,
                                    const PipelineTraining& b) {
  for (const LayerSpec& layer : graph.layers) {
    for (const ParameterSpec& p : layer.parameters) {
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> one, a.ParameterValue(p.name));
      PIPELAB_ASSIGN_OR_RETURN(const std::vector<float> other, b.ParameterValue(p.name));
      if (one != other) return false;
    }
  }
  return true;
}

// Only gaps foreseen to be at least a hundredth of a step, replayed with one core per device.
absl::StatusOr<std::vector<double>> GapErrors(const PipelineTraining& training,
                                              const std::vector<Trace>& steps) {
  GapForecast forecast(kLearnSteps);
  std::vector<double> errors;
  for (const Trace& step : steps) {
    PIPELAB_ASSIGN_OR_RETURN(const Trace trace,
                             Replay(training.program(), absl::MakeConstSpan(&step, 1)));
    PIPELAB_ASSIGN_OR_RETURN(
        const std::vector<DeviceGaps> gaps,
        FindGaps(training.program(), training.costs(), trace, /*device_memory=*/Bytes(0)));
    for (const auto& [place, foreseen] : forecast.Foreseen()) {
      if (foreseen / trace.makespan < 0.01) continue;
      double error = 1;  // where there is no gap
      for (const Gap& gap : gaps[place.first].gaps) {
        if (gap.instruction == place.second) error = std::abs(foreseen / gap.length() - 1);
      }
      errors.push_back(error);
    }
    forecast.Add(gaps);
  }
  return errors;
}

// The job alone, on one core while the other one is busy: its answers, and what a picture takes.
absl::Status RunAlone(const Networks& networks, EvaluationResults* results, RealFilling* real) {
  Arena arena;
  const std::unique_ptr<Backend> backend = MakeCpuBackend(&arena);
  auto alone = std::make_shared<EvaluationResults>();
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<FillWork> work,
                           networks.Pictures(kAlone, /*of_piece=*/1, backend.get(), alone));
  std::vector<double> times;
  const BusyCores busy;
  while (!work->over()) {
    absl::Status status;
    times.push_back(MillisecondsOf([&] { status = work->RunNext(); }));
    PIPELAB_RETURN_IF_ERROR(status);
  }
  real->alone = Nanoseconds(static_cast<int64_t>(1e6 * UpperMedian(times)));
  *results = *alone;
  return absl::OkStatus();
}

}  // namespace

double RealFilling::slowdown() const { return UpperMedian(with_ms) / UpperMedian(without_ms) - 1; }

double RealFilling::share() const { return static_cast<double>(pictures) * (alone / foreseen); }

absl::StatusOr<RealFilling> RunRealFilling(const RealFillingOptions& options) {
  Networks networks;
  PIPELAB_RETURN_IF_ERROR(networks.Make());
  RealFilling real;
  real.cores = static_cast<int>(std::thread::hardware_concurrency());
  EvaluationResults alone;
  PIPELAB_RETURN_IF_ERROR(RunAlone(networks, &alone, &real));

  std::vector<std::shared_ptr<EvaluationResults>> results;
  TrainingOptions with = networks.Training();
  with.fill.learn_steps = kLearnSteps;
  with.fill_works = [&](int, Backend* backend) -> absl::StatusOr<FillWorks> {
    results.push_back(std::make_shared<EvaluationResults>());
    FillWorks works(1);
    PIPELAB_ASSIGN_OR_RETURN(
        works[0], networks.Pictures(options.pictures, options.of_piece, backend, results.back()));
    return works;
  };
  PIPELAB_ASSIGN_OR_RETURN(auto plain, networks.Train(networks.Training()));
  PIPELAB_ASSIGN_OR_RETURN(auto filled, networks.Train(with));

  std::vector<Trace> traces;
  real.same_bits = true;
  for (int step = 0; step < kLearnSteps + options.steps; ++step) {
    absl::StatusOr<TrainingStep> one, other;
    const double without_ms = MillisecondsOf([&] { one = plain->Step(); });
    const double with_ms = MillisecondsOf([&] { other = filled->Step(); });
    PIPELAB_RETURN_IF_ERROR(one.status());
    PIPELAB_RETURN_IF_ERROR(other.status());
    real.same_bits = real.same_bits && one->loss == other->loss;
    traces.push_back(std::move(one->trace));
    if (step < kLearnSteps) continue;
    real.without_ms.push_back(without_ms);
    real.with_ms.push_back(with_ms);
  }
  PIPELAB_ASSIGN_OR_RETURN(const bool same, SameParameters(networks.gpt(), *plain, *filled));
  real.same_bits = real.same_bits && same;
  for (const FillReport& report : filled->FillReports()) {
    real.foreseen += report.foreseen;
    real.filled += report.filled;
    for (const FillJobReport& job : report.jobs) {
      if (!job.status.ok()) real.ended.emplace_back(job.status.message());
    }
  }
  real.same_answers = true;
  for (const auto& r : results) {
    real.pictures += r->samples;
    const size_t n = std::min(r->predictions.size(), alone.predictions.size());
    real.same_answers =
        real.same_answers && n > 0 &&
        std::equal(alone.predictions.begin(), alone.predictions.begin() + static_cast<int64_t>(n),
                   r->predictions.begin());
  }
  real.core_share = CoreShare(plain->program(), traces);
  PIPELAB_ASSIGN_OR_RETURN(real.gap_errors, GapErrors(*plain, traces));
  return real;
}

Table RealFillingTable(const RealFilling& real) {
  Table t("real",
          absl::StrCat("Pictures classified in the gaps of a GPT's training: GPipe, P = 2, M "
                       "= 2, ",
                       real.with_ms.size(), " steps here"));
  t.AddKey("training");
  t.AddColumn({"step", "step", "", "ms", Origin::kMeasured, 1});
  t.AddColumn({"slowdown", "slower", "", "%", Origin::kMeasured, 2});
  t.AddColumn({"idle", "foreseen gaps a step", "gaps", "ms", Origin::kMeasured, 1});
  t.AddColumn({"filled", "filled", "", "%", Origin::kMeasured, 1});
  t.AddColumn({"pictures", "pictures a step", "pictures", "", Origin::kMeasured, 1});
  t.AddColumn({"share", "of what the gaps hold", "share", "%", Origin::kMeasured, 1});
  const double steps = static_cast<double>(real.with_ms.size());
  const double gaps = ToMs(real.foreseen) / steps;
  t.AddRow({Label("without"), Measured(UpperMedian(real.without_ms)).WithSamples(real.without_ms),
            Missing("it is the base"), Measured(gaps), Measured(0), Measured(0), Measured(0)});
  t.AddRow({Label("with"), Measured(UpperMedian(real.with_ms)).WithSamples(real.with_ms),
            Measured(ToPercent(real.slowdown())), Measured(gaps),
            Measured(ToPercent(real.filled / real.foreseen)),
            Measured(static_cast<double>(real.pictures) / steps),
            Measured(ToPercent(real.share()))});
  t.AddNote(absl::StrFormat(
      "Alone a picture takes %.2f ms on one of %d cores, of which the training's devices had %.0f "
      "%%. Gaps are foreseen from the steps before, at least %d; the median error of a gap is %.1f "
      "%%, replayed with one core per device.",
      ToMs(real.alone), real.cores, ToPercent(real.core_share), kLearnSteps,
      ToPercent(UpperMedian(real.gap_errors))));
  for (const std::string& why : real.ended) t.AddNote(absl::StrCat("Ended: ", why, "."));
  return t;
}

std::vector<Claim> RealFillingClaims(const RealFilling& real) {
  Claim bits = OwnClaim("pipefill.real_bits",
                        "with fill jobs losses, parameters and the jobs' answers keep every bit");
  const bool same = real.same_bits && real.same_answers;
  Found(&bits, Origin::kMeasured, same ? 1 : 0, same ? "equal" : "they differ");
  MetIf(&bits, same, "equal", "a bit differs");
  Claim slower = PaperClaim("pipefill.real_slowdown", "slowdown of the training",
                            "PipeFill (arXiv 2410.07192)", "read");
  Claim share = OwnClaim("pipefill.real_share", "of what the idle time holds, fill jobs do most");
  Claim gaps = OwnClaim("pipefill.real_gaps", "gaps are as foreseen, in the median");
  for (Claim* c : {&slower, &share, &gaps}) c->unit = "%";
  Published(&slower, 0, 2);
  if (!HadOwnCores(real.core_share)) {
    const std::string why = NoOwnCores(real.core_share);
    for (Claim* c : {&slower, &share, &gaps}) NotMade(c, why);
    return {bits, slower, share, gaps};
  }
  const std::string why = absl::StrCat("measured on ", real.cores, " cores");
  Found(&slower, Origin::kMeasured, ToPercent(real.slowdown()));
  MetIf(&slower, real.slowdown() <= 0.02, "at most 2 %", why);
  Found(&share, Origin::kMeasured, ToPercent(real.share()));
  MetIf(&share, real.share() >= 0.6, "at least 60 %", why);
  Found(&gaps, Origin::kReplayed, ToPercent(UpperMedian(real.gap_errors)));
  MetIf(&gaps, UpperMedian(real.gap_errors) <= 0.1, "at most 10 % off", why);
  return {bits, slower, share, gaps};
}

}  // namespace pipelab
