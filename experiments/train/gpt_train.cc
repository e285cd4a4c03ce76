// Trains a small GPT on Jane Austen's novels, byte by byte, and asks whether it predicts what it
// never saw better than a 5-gram model does.
//
//   tools/bazel run //experiments:gpt_train
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "absl/flags/flag.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/optional.h"
#include "experiments/study/study_flags.h"
#include "experiments/study/study_list.h"
#include "experiments/train/run_study.h"
#include "experiments/train/study.h"
#include "experiments/train/windowed_loss.h"
#include "experiments/training/checkpoint.h"
#include "experiments/training/text_model.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/tensor/arena.h"
#include "models/checkpoint/training_state.h"
#include "models/data/austen.h"
#include "models/data/ngram.h"
#include "models/data/package_cache.h"
#include "models/data/text_batches.h"
#include "models/data/text_corpus.h"
#include "models/data/text_windows.h"
#include "models/data/token_fields.h"
#include "models/layers/quantize/int4_network.h"
#include "models/layers/quantize/quantize_model.h"
#include "models/layers/quantize/quantizer.h"
#include "models/layers/serial_trainer.h"
#include "models/zoo/gpt.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace gpt_train_study {

STUDY_FLAG(int, layers, 4, "blocks of the GPT");
STUDY_FLAG(int, hidden, 128, "width of the GPT");
STUDY_FLAG(int, heads, 4, "attention heads");
STUDY_FLAG(int, tokens, 128, "bytes of a sample, the longest context");
STUDY_FLAG(double, dropout, 0, "dropout rate");
STUDY_FLAG(
    int, experts, 0,
    "experts of each block, which is then as Mixtral's are; 1 is that block without a choice, "
    "0 a GPT's");
STUDY_FLAG(int, chosen, 1, "experts that a token takes");
STUDY_FLAG(int, feed_forward, 0, "inner width of the feed-forward or of each expert; 0: 4 hidden");
STUDY_FLAG(double, balance, 0.01, "factor of the experts' balancing loss");
STUDY_FLAG(std::string, save_int4, "",
           "file for the trained network with the blocks' matrices in 4 bits, by GPTQ");
STUDY_FLAG(std::string, load_int4, "", "such a file: its network is judged, and nothing trained");

constexpr int64_t kSyntheticBytes = int64_t{1} << 17, kSyntheticSeed = 1;
constexpr int64_t kCurveSamples = 128;
constexpr int kClaimedOrder = 5;  // of the n-gram model that must be beaten

GptConfig ModelFromFlags(int64_t vocabulary) {
  GptConfig config;
  if (absl::GetFlag(FLAGS_experts) != 0) {
    config = LlamaConfig(1, 1, 1, 1, 1, 1);
    config.experts.experts = absl::GetFlag(FLAGS_experts);
    config.experts.chosen = absl::GetFlag(FLAGS_chosen);
    config.experts.balance = absl::GetFlag(FLAGS_balance);
  }
  config.layers = absl::GetFlag(FLAGS_layers);
  config.hidden = absl::GetFlag(FLAGS_hidden);
  config.heads = absl::GetFlag(FLAGS_heads);
  config.feed_forward = absl::GetFlag(FLAGS_feed_forward);
  config.tokens = absl::GetFlag(FLAGS_tokens);
  config.vocabulary = vocabulary;
  config.dropout = absl::GetFlag(FLAGS_dropout);
  return config;
}

absl::Status Check() {
  const std::string save = absl::GetFlag(FLAGS_save_int4);
  if (!save.empty() && !absl::GetFlag(FLAGS_load_int4).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--save_int4=", save, ": only what was trained is written; leave --load_int4 out"));
  }
  if (!save.empty()) {
    PIPELAB_RETURN_IF_ERROR(
        CheckpointFile::Take("--save_int4", ResolveOutputPath(save, ""), /*group=*/nullptr)
            .status());
  }
  return BuildGpt(ModelFromFlags(/*vocabulary=*/256)).status();
}

// What training reads, and what the judge found.
struct Text {
  Text(TextData text, int64_t context)
      : data(std::move(text)),
        windows(data.held_out->tokens(), data.train->vocabulary(), context) {}

  const TextData data;
  const TextWindows windows;
  int64_t parameters = 0;
  double loss = 0;
  absl::optional<double> int4_nearest, int4_gptq;  // with the blocks' matrices in 4 bits
};

constexpr int64_t kCalibrationSamples = 64;
constexpr double kInt4Bar = 1.03;  // of the perplexity

// The loss with the blocks' matrices in 4 bits, and that network. Then `trained` is as it was.
absl::StatusOr<double> Int4Loss(const Text& text, const ModelInputs& inputs, Quantizer quantizer,
                                SerialTrainer* trained, Int4Network* network) {
  const TrainingState before = trained->State();
  PIPELAB_ASSIGN_OR_RETURN(QuantizedMatrices matrices,
                           QuantizeWeights(inputs, QuantizeOptions(), quantizer, *trained));
  *network = NetworkOf(*trained, std::move(matrices));
  PIPELAB_RETURN_IF_ERROR(TakeInt4Network(*network, trained));
  PIPELAB_ASSIGN_OR_RETURN(const double loss, WindowedLoss(trained, text.windows));
  PIPELAB_RETURN_IF_ERROR(trained->SetState(before));
  return loss;
}

absl::Status JudgeTrained(Text* text, SerialTrainer* trained) {
  PIPELAB_ASSIGN_OR_RETURN(text->loss, WindowedLoss(trained, text->windows));
  if (!absl::GetFlag(FLAGS_load_int4).empty()) return absl::OkStatus();
  Arena arena;
  PIPELAB_ASSIGN_OR_RETURN(
      const ModelInputs inputs,
      CalibrationInputs(*trained, MakeCpuBackend(&arena), *text->data.train, kCalibrationSamples));
  Int4Network network;
  PIPELAB_ASSIGN_OR_RETURN(text->int4_nearest,
                           Int4Loss(*text, inputs, Quantizer::kNearest, trained, &network));
  PIPELAB_ASSIGN_OR_RETURN(text->int4_gptq,
                           Int4Loss(*text, inputs, Quantizer::kGptq, trained, &network));
  const std::string save = absl::GetFlag(FLAGS_save_int4);
  return save.empty() ? absl::OkStatus() : WriteInt4Network(ResolveOutputPath(save, ""), network);
}

absl::StatusOr<TextCorpus> Corpus(const StudyRequest& request) {
  if (request.synthetic) return SyntheticCorpus(kSyntheticBytes, kSyntheticSeed);
  return FetchAusten(DefaultDataCache());
}

double NGramLoss(const Text& text, int order) {
  const NGramModel model(text.data.train->tokens(), text.data.vocabulary.size(), order);
  const TextWindows& windows = text.windows;
  return model.Loss(windows.tokens(), windows.first_place(), windows.end_place());
}

Quality::Row RowOf(const std::string& name, double nats) {
  return {name, {nats, nats / std::log(2.0)}};
}

// What 4 bits cost.
void AddInt4(const Text& text, Quality* quality) {
  const double gptq = std::exp(*text.int4_gptq - text.loss);
  quality->rows.push_back(RowOf("the same, int4 by GPTQ", *text.int4_gptq));
  quality->rows.push_back(RowOf("the same, int4 to nearest", *text.int4_nearest));
  quality->claims.push_back(
      Quality::Below("int4_perplexity",
                     "perplexity with the blocks' matrices in 4 bits by GPTQ, over the one before, "
                     "at most 1.03",
                     gptq, kInt4Bar, ""));
  quality->notes.push_back(absl::StrFormat(
      "In int4 are the blocks' matrices, signed, in groups of 128 rows; GPTQ saw %d samples of the "
      "training text. Perplexity times %.4f by GPTQ, %.4f to nearest.",
      kCalibrationSamples, gptq, std::exp(*text.int4_nearest - text.loss)));
}

absl::StatusOr<Quality> Judge(const Text& text) {
  const TextWindows& windows = text.windows;
  const int64_t context = windows.Field(kTargets).size();
  Quality quality;
  quality.caption = absl::StrFormat("Mean loss over the same %d held-out bytes",
                                    windows.end_place() - windows.first_place());
  quality.metrics = {{"loss", "held-out loss", "nats/byte", 3},
                     {"bits", "the same", "bits/byte", 3}};
  quality.rows.push_back(RowOf(absl::StrCat("GPT, ", text.parameters, " parameters"), text.loss));
  if (text.int4_gptq.has_value()) AddInt4(text, &quality);
  double claimed = 0;
  for (const int order : {1, 3, kClaimedOrder, NGramModel::kMaxOrder}) {
    const double loss = NGramLoss(text, order);
    if (order == kClaimedOrder) claimed = loss;
    quality.rows.push_back(RowOf(absl::StrCat(order, "-gram model"), loss));
  }
  quality.claims.push_back(
      Quality::Below("under_ngram",
                     absl::StrCat("held-out loss below that of a ", kClaimedOrder,
                                  "-gram model of the same bytes"),
                     text.loss, claimed, "nats/byte"));
  quality.notes.push_back(absl::StrFormat(
      "Held out is the last tenth of each document. The GPT reads it in windows of %d bytes that "
      "begin %d after one another, and the second half of each counts: a byte has from %d to %d "
      "before it. The held-out curve is of whole windows, at random places, and thus higher.",
      context, context - context / 2, windows.first_row() + 1, context));
  quality.notes.push_back(
      "N-gram models (Witten and Bell) are counted on the text that the GPT was trained on.");
  return quality;
}

absl::StatusOr<StudyWork> Load(const StudyRequest& request) {
  PIPELAB_ASSIGN_OR_RETURN(TextCorpus corpus, Corpus(request));
  const std::string size = ToString(Bytes(corpus.bytes()));
  if (request.validation) corpus = WithoutHeldOut(corpus);
  const int64_t context = absl::GetFlag(FLAGS_tokens);
  absl::StatusOr<TextData> data = MakeTextData(corpus, context, request.seed);
  if (absl::IsInvalidArgument(data.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokens=", context, ": ", data.status().message()));
  }
  PIPELAB_RETURN_IF_ERROR(data.status());
  const auto text = std::make_shared<Text>(*std::move(data), context);
  StudyPart part;
  const GptConfig config = ModelFromFlags(text->data.train->vocabulary());
  PIPELAB_ASSIGN_OR_RETURN(part.graph, BuildGpt(config));
  part.settings = TextModelSettings(config, text->data.vocabulary);
  text->parameters = part.graph.num_parameters();
  part.train = std::shared_ptr<const BatchSource>(text, text->data.train.get());
  part.held_out = std::shared_ptr<const BatchSource>(text, text->data.held_out.get());
  part.held_out_samples = kCurveSamples;
  const std::string load = absl::GetFlag(FLAGS_load_int4);
  if (!load.empty()) {
    PIPELAB_ASSIGN_OR_RETURN(const Int4Network network,
                             ReadInt4Network(ResolveOutputPath(load, "")));
    part.take_values = [network](SerialTrainer* to) { return TakeInt4Network(network, to); };
  }
  part.judge = [text](SerialTrainer* trained) { return JudgeTrained(text.get(), trained); };
  StudyWork work;
  work.data = absl::StrCat(request.synthetic ? "synthetic text (" : "Jane Austen's six novels (",
                           size, " of text, ", text->data.vocabulary.size(), " different bytes)");
  work.parts.push_back(std::move(part));
  work.quality = [text] { return Judge(*text); };
  return work;
}

}  // namespace gpt_train_study

int RunGptTrainStudy(int argc, char** argv) {
  RegisterStudyFlags(__FILE__);
  Study study;
  study.name = "gpt_train";
  study.title = "A GPT on Jane Austen";
  study.summary =
      "A small GPT learns Jane Austen's six novels byte by byte, and must predict the last tenth "
      "of each better than a 5-gram model.";
  study.loss_unit = "nats/byte";
  study.defaults = {{"steps", "9000"},         {"micro_batch_size", "1"}, {"micro_batches", "8"},
                    {"learning_rate", "3e-3"}, {"warmup_steps", "200"},   {"rate_decay", "cosine"},
                    {"devices", "2"}};
  study.optimizer.adam.beta2 = 0.99f;
  study.check = gpt_train_study::Check;
  study.load = gpt_train_study::Load;
  return RunStudy(argc, argv, study);
}

}  // namespace pipelab
