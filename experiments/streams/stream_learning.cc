#include "experiments/streams/stream_learning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "models/zoo/conv_chain.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kPasses = 2;

struct Rates {
  OptimizerKind optimizer;
  std::vector<double> rates;
};
const Rates kOptimizers[] = {{OptimizerKind::kSgd, {1e-5, 1e-4, 1e-3, 1e-2}},
                             {OptimizerKind::kAdam, {1e-5, 1e-4, 1e-3, 1e-2}}};

// [pass]
absl::StatusOr<std::vector<double>> LossesOf(const ModelGraph& graph, const BatchSource& data,
                                             int devices, int samples, OptimizerKind optimizer,
                                             double rate) {
  TrainingOptions options;
  options.scheme = "over_time";
  options.sizes.devices = devices;
  options.sizes.micro_batches = samples;
  options.trace = false;
  options.optimizer.kind = optimizer;
  options.optimizer.adam.learning_rate = options.optimizer.sgd.learning_rate =
      static_cast<float>(rate);
  PIPELAB_ASSIGN_OR_RETURN(const auto training, PipelineTraining::Create(graph, data, options));
  std::vector<double> losses;
  for (int pass = 0; pass < kPasses; ++pass) {
    PIPELAB_ASSIGN_OR_RETURN(const TrainingStep step, training->Step());
    losses.push_back(step.loss);
  }
  return losses;
}

absl::StatusOr<std::vector<StreamLesson>> LessonsOf(const char* stream, const ModelGraph& graph,
                                                    const BatchSource& data, int samples) {
  std::vector<StreamLesson> lessons;
  for (const Rates& o : kOptimizers) {
    for (const double rate : o.rates) {
      StreamLesson lesson;
      lesson.stream = stream;
      lesson.optimizer = OptimizerKindName(o.optimizer);
      lesson.learning_rate = rate;
      lesson.samples = samples;
      PIPELAB_ASSIGN_OR_RETURN(lesson.online, LossesOf(graph, data, 1, samples, o.optimizer, rate));
      PIPELAB_ASSIGN_OR_RETURN(lesson.late,
                               LossesOf(graph, data, kLateDevices, samples, o.optimizer, rate));
      lessons.push_back(std::move(lesson));
    }
  }
  return lessons;
}

constexpr char kDiverges[] = "training diverges";

Cell LossOr(double loss) { return std::isfinite(loss) ? Measured(loss) : Missing(kDiverges); }

}  // namespace

absl::StatusOr<std::vector<StreamLesson>> FrameLessons(const FrameStream& frames) {
  ConvChainConfig config;
  config.layers = 8;
  config.channels = 16;
  config.height = frames.height;
  config.width = frames.width;
  PIPELAB_ASSIGN_OR_RETURN(const GroupedModel model, BuildConvChain(config));
  const NextFrameSource source(&frames);
  return LessonsOf("next frame", model.graph, source, static_cast<int>(frames.size()) - 1);
}

absl::StatusOr<std::vector<StreamLesson>> TextLessons(const TextBatchSource& text, int64_t tokens,
                                                      int samples) {
  GptConfig gpt;
  gpt.layers = 4;
  gpt.hidden = 64;
  gpt.heads = 4;
  gpt.tokens = tokens;
  gpt.vocabulary = text.vocabulary();
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, BuildGpt(gpt));
  return LessonsOf("next byte", graph, text, samples);
}

Table LessonTable(const std::vector<StreamLesson>& lessons, double copy_error) {
  Table t("lessons", "What late gradients teach: each sample is judged, then learned from");
  t.AddKey("stream");
  t.AddKey("optimizer");
  t.AddKey("rate", "learning rate");
  t.AddKey("pass");
  t.AddKey("samples");
  t.AddColumn({"online", "loss, one device", "online", "", Origin::kMeasured, 5});
  t.AddColumn({"late", absl::StrCat("loss, P = ", kLateDevices), "late", "", Origin::kMeasured, 5});
  t.AddColumn({"gap", "gap", "", "%", Origin::kMeasured, 1});
  for (const StreamLesson& l : lessons) {
    for (size_t pass = 0; pass < l.online.size(); ++pass) {
      t.AddRow(
          {Label(l.stream), Label(l.optimizer), Label(absl::StrCat(l.learning_rate)),
           Label(static_cast<double>(pass + 1)), Label(l.samples), LossOr(l.online[pass]),
           LossOr(l.late[pass]),
           std::isfinite(l.gap(pass)) ? Measured(ToPercent(l.gap(pass))) : Missing(kDiverges)});
    }
  }
  t.AddNote(absl::StrFormat(
      "Frames: the mean squared error of a pixel from 0 to 1, %.5f where each frame is taken for "
      "the next one; bytes: nats. One device learns from "
      "each sample before the next one comes; on four, gradients are up to 6 samples late.",
      copy_error));
  return t;
}

std::vector<Claim> LessonClaims(const std::vector<StreamLesson>& frames) {
  Claim c = OwnClaim("partime.next_frame",
                     "late gradients cost little where samples change slowly: next-frame error");
  c.unit = "%";
  std::vector<RangeValue> values;
  double most = 0;
  for (const StreamLesson& l : frames) {
    for (size_t pass = 0; pass < l.online.size(); ++pass) {
      if (!std::isfinite(l.online[pass])) continue;  // online learning diverges, too
      if (std::isfinite(l.gap(pass))) most = std::max(most, l.gap(pass));
      values.push_back({absl::StrCat(l.optimizer, " ", l.learning_rate, ", pass ", pass + 1),
                        l.gap(pass) <= 0.05});
    }
  }
  if (frames.empty()) {
    NotMade(&c, "the frames are not at hand: Debian's visp-images-data");
    return {c};
  }
  Found(&c, Origin::kMeasured, ToPercent(most),
        absl::StrFormat("at most %.1f %%", ToPercent(most)));
  MetOverRange(
      &c, "optimizer, learning rate and pass", values, "at most 5 % above online learning",
      "steps as large as online learning can take overshoot with gradients 6 samples late");
  return {c};
}

}  // namespace pipelab
