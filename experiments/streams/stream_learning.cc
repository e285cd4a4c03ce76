#include "experiments/streams/stream_learning.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "models/zoo/conv_chain.h"
#include "models/zoo/gpt.h"
#include "pipelines/runtime/training.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kPasses = 2;
constexpr char kNextFrame[] = "next frame";

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
  options.config.scheme = "over_time";
  options.config.pipeline = devices;
  options.config.micro_batches = samples;
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

// `scale`: of losses.
absl::StatusOr<std::vector<StreamLesson>> LessonsOf(const char* stream, const ModelGraph& graph,
                                                    const BatchSource& data, int samples,
                                                    double scale = 1) {
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
      for (double& loss : lesson.online) loss *= scale;
      for (double& loss : lesson.late) loss *= scale;
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
  return LessonsOf(kNextFrame, model.graph, source, static_cast<int>(frames.size()) - 1);
}

absl::StatusOr<std::vector<StreamLesson>> TextLessons(const TextStream& text, int samples) {
  GptConfig gpt;
  gpt.layers = 4;
  gpt.hidden = 64;
  gpt.heads = 4;
  gpt.tokens = text.context();
  gpt.vocabulary = text.vocabulary();
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, BuildGpt(gpt));
  graph.layers.back().data[0].padded = text.fields()[1].padded;
  // A loss is the mean over all places of a window, and `stride` of them have a target.
  return LessonsOf(text.stride() == 1 ? "next byte" : "next window", graph, text,
                   static_cast<int>(std::min<int64_t>(samples, text.examples())),
                   static_cast<double>(text.context()) / static_cast<double>(text.stride()));
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
      "the next one; windows and bytes of a text in its order: nats per byte. One device learns "
      "from each sample before the next one comes; on four, gradients are up to 6 samples late.",
      copy_error));
  return t;
}

namespace {

Claim FrameClaim(const std::vector<StreamLesson>& lessons) {
  Claim c = OwnClaim("partime.next_frame",
                     "late gradients cost little where samples change slowly: next-frame error");
  c.unit = "%";
  std::vector<RangeValue> values;
  double most = 0;
  for (const StreamLesson& l : lessons) {
    for (size_t pass = 0; l.stream == kNextFrame && pass < l.online.size(); ++pass) {
      if (!std::isfinite(l.online[pass])) continue;  // online learning diverges, too
      if (std::isfinite(l.gap(pass))) most = std::max(most, l.gap(pass));
      values.push_back({absl::StrCat(l.optimizer, " ", l.learning_rate, ", pass ", pass + 1),
                        l.gap(pass) <= 0.05});
    }
  }
  if (values.empty()) {
    NotMade(&c, "the frames are not at hand: Debian's visp-images-data");
    return c;
  }
  Found(&c, Origin::kMeasured, ToPercent(most),
        absl::StrFormat("at most %.1f %%", ToPercent(most)));
  MetOverRange(
      &c, "optimizer, learning rate and pass", values, "at most 5 % above online learning",
      "steps as large as online learning can take overshoot with gradients 6 samples late");
  return c;
}

// At the settings with which online learning does best.
Claim TextClaim(const std::vector<StreamLesson>& lessons) {
  Claim c =
      OwnClaim("partime.text", "late gradients lose where samples change fast: text in order");
  c.unit = "%";
  std::map<std::string, const StreamLesson*> best;  // by stream
  for (const StreamLesson& l : lessons) {
    if (l.stream == kNextFrame || !std::isfinite(l.online.back())) continue;
    const StreamLesson*& so_far = best[l.stream];
    if (so_far == nullptr || l.online.back() < so_far->online.back()) so_far = &l;
  }
  if (best.empty()) {
    NotMade(&c, "--text_samples above 0 makes it");
    return c;
  }
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  double most = 0;
  for (const auto& [stream, l] : best) {
    const double gap = l->gap(kPasses - 1);
    values.push_back({stream, !(gap <= 0.05)});  // or training diverges
    if (std::isfinite(gap)) most = std::max(most, gap);
    texts.push_back(absl::StrFormat("%s %.1f %% (%s, rate %g)", stream, ToPercent(gap),
                                    l->optimizer, l->learning_rate));
  }
  Found(&c, Origin::kMeasured, ToPercent(most), absl::StrJoin(texts, ", "));
  MetOverRange(&c, "stream", values, "above 5 % where online learning does best",
               "learning rates are so low there that six samples change little");
  return c;
}

}  // namespace

std::vector<Claim> LessonClaims(const std::vector<StreamLesson>& lessons) {
  return {FrameClaim(lessons), TextClaim(lessons)};
}

}  // namespace pipelab
