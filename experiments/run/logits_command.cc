// pipelab logits: what a language model with published weights says after given tokens, and its
// mean loss over them.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/types/span.h"
#include "experiments/flags/flags.h"
#include "experiments/flags/option_checks.h"
#include "experiments/flags/output.h"
#include "experiments/run/run_commands.h"
#include "experiments/run/run_devices.h"
#include "experiments/simulate/user_file.h"
#include "kernels/compute_device.h"
#include "kernels/tensor/arena.h"
#include "models/data/batch_source.h"
#include "models/files/model_file.h"
#include "models/files/pretrained.h"
#include "models/graph/layer_spec.h"
#include "models/layers/serial_trainer.h"
#include "tools/base/file_fault.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(std::string, model);     // step_input.cc
ABSL_DECLARE_FLAG(int, top);               // search_command.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_DECLARE_FLAG(std::string, tokens);    // step_figures.cc

namespace pipelab {
namespace {

// Values and their gradients, of 4 bytes each.
constexpr int64_t kMostJudgedParameters = 4'000'000'000;

// What follows the last token, and how well each token but the first was foreseen.
struct JudgedTokens {
  int64_t parameters = 0, samples = 0, tokens_per_sample = 0;
  double loss = 0;  // mean, in nats
  std::vector<float> last;
};

absl::StatusOr<std::vector<int32_t>> Tokens() {
  const std::string word = absl::GetFlag(FLAGS_tokens);
  if (word.empty()) {
    return absl::InvalidArgumentError("--tokens: missing; ids such as 464,2068, or a file of them");
  }
  std::string text = word;
  const bool file = word.find_first_not_of("0123456789,") != std::string::npos;
  if (file) {
    PIPELAB_ASSIGN_OR_RETURN(text, ReadUserFile("--tokens", word));
  }
  const auto wrong = [&](const auto&... why) {
    const absl::Status status =
        absl::InvalidArgumentError(absl::StrCat("--tokens=", word, ": ", why...));
    return file ? FaultOfFile(status) : status;
  };
  std::vector<int32_t> ids;
  for (absl::string_view id :
       absl::StrSplit(text, absl::ByAnyChar(", \t\r\n"), absl::SkipEmpty())) {
    ids.push_back(0);
    if (absl::SimpleAtoi(id, &ids.back()) && ids.back() >= 0) continue;
    return wrong("\"", id.substr(0, 20), "\": must be a token's id");
  }
  if (!ids.empty()) return ids;
  return wrong("has no token");
}

// Samples of the tokens, one behind the other; the last ends with the last token, and so may begin
// in the one before it. What follows a token is judged by its logits and not as a target.
class Windows : public BatchSource {
 public:
  Windows(const std::vector<int32_t>& ids, int64_t tokens, int64_t words)
      : BatchSource({{kTokens, FieldType::kId, {tokens}, words},
                     {kTargets, FieldType::kId, {tokens}, words}}),
        ids_(ids),
        tokens_(tokens) {}

  int64_t samples() const { return (size() + tokens_ - 1) / tokens_; }
  int64_t FirstOf(int64_t sample) const { return std::min(sample * tokens_, size() - tokens_); }

  void FillIds(int field, int64_t, int64_t first_sample, absl::Span<int32_t> out) const override {
    auto at = out.begin();
    for (int64_t s = 0; s < SamplesIn(field, out.size()); ++s) {
      const auto first = ids_.begin() + FirstOf(first_sample + s);
      at = std::copy(first, first + tokens_, at);
    }
  }

 private:
  int64_t size() const { return static_cast<int64_t>(ids_.size()); }

  const std::vector<int32_t>& ids_;
  const int64_t tokens_;
};

// log(sum(exp)) of a row.
double LogSum(absl::Span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float logit : row) sum += std::exp(logit - largest);
  return largest + std::log(sum);
}

// The model for these tokens: samples as long as @ says, or as all of them.
absl::StatusOr<ModelGraph> FindGraph(const std::string& word, size_t tokens) {
  ModelFileOptions options;
  options.tokens = static_cast<int64_t>(tokens);
  options.further_tokens = false;
  PIPELAB_ASSIGN_OR_RETURN(ModelGraph graph, FindModel("--model", word, options));
  if (graph.layers[0].output_shape.empty() ||
      graph.layers[0].output_shape[0] <= static_cast<int64_t>(tokens)) {
    return graph;
  }
  return FindModel("--model", absl::StrCat(word.substr(0, word.rfind('@')), "@", tokens), options);
}

absl::StatusOr<JudgedTokens> JudgeTokens(const std::string& word, const std::vector<int32_t>& ids) {
  PIPELAB_ASSIGN_OR_RETURN(const ModelGraph graph, FindGraph(word, ids.size()));
  PrintNotes(graph);
  JudgedTokens judged;
  judged.parameters = graph.num_parameters();
  if (judged.parameters > kMostJudgedParameters) {
    return absl::InvalidArgumentError(absl::StrCat("--model=", word, ": ", judged.parameters,
                                                   " parameters; at most ", kMostJudgedParameters));
  }
  const LayerSpec& embedding = graph.layers[0];
  const int64_t words = embedding.data.empty() ? 0 : embedding.data[0].limit;
  const int32_t largest = *std::max_element(ids.begin(), ids.end());
  if (largest >= words) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tokens: ", largest, ": --model=", word, " has ids up to ", words - 1));
  }
  judged.tokens_per_sample = embedding.output_shape[0];
  const Windows data(ids, judged.tokens_per_sample, words);
  judged.samples = data.samples();
  PIPELAB_ASSIGN_OR_RETURN(const ComputeDevices devices, DevicesFromFlags());
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<ComputeDevice> on, devices(1));
  Arena arena(on[0].memory);
  const std::unique_ptr<Backend> backend = on[0].make_backend(&arena);
  SerialOptions options;
  options.data = &data;
  options.optimizer.kind = OptimizerKind::kSgd;
  options.optimizer.sgd.momentum = 0;  // keeps nothing
  PIPELAB_ASSIGN_OR_RETURN(const std::unique_ptr<SerialTrainer> trainer,
                           SerialTrainer::Create(graph, backend.get(), options));
  PIPELAB_RETURN_IF_ERROR(ReadPretrained(
      "--model", word, graph, [&](const ParameterSpec& p, const std::vector<float>& value) {
        return trainer->SetParameterValue(p.name, value);
      }));
  int64_t foreseen = 1;  // of the tokens: there is nothing in front of the first
  std::vector<float> logits;
  for (int64_t s = 0; s < judged.samples; ++s) {
    logits.clear();
    PIPELAB_RETURN_IF_ERROR(trainer->Evaluate(data, 0, s, 1, &logits).status());
    for (int64_t row = 0; row < judged.tokens_per_sample; ++row) {
      const int64_t next = data.FirstOf(s) + row + 1;
      if (next < foreseen || next == static_cast<int64_t>(ids.size())) continue;
      const absl::Span<const float> of = absl::MakeConstSpan(logits).subspan(row * words, words);
      judged.loss += LogSum(of) - of[ids[next]];
      foreseen = next + 1;
    }
  }
  if (foreseen > 1) judged.loss /= static_cast<double>(foreseen - 1);
  judged.last.assign(logits.end() - words, logits.end());
  return judged;
}

std::string LogitsText(const JudgedTokens& judged, size_t tokens, size_t top) {
  std::string text =
      absl::StrFormat("%d parameters, %d tokens in %d samples of %d\n", judged.parameters, tokens,
                      judged.samples, judged.tokens_per_sample);
  if (tokens > 1) {
    absl::StrAppendFormat(&text, "loss: %.6f nats per token, of %d\n", judged.loss, tokens - 1);
  }
  std::vector<int64_t> order(judged.last.size());
  std::iota(order.begin(), order.end(), 0);
  top = std::min(top, order.size());
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(top);
  std::partial_sort(order.begin(), end, order.end(), [&](int64_t a, int64_t b) {
    return std::pair(-judged.last[a], a) < std::pair(-judged.last[b], b);
  });
  const double log_sum = LogSum(judged.last);
  absl::StrAppendFormat(&text, "%8s  %12s  %11s\n", "next", "logit", "probability");
  for (size_t i = 0; i < top; ++i) {
    const double logit = judged.last[order[i]];
    absl::StrAppendFormat(&text, "%8d  %12.6f  %11.6f\n", order[i], logit,
                          std::exp(logit - log_sum));
  }
  return text;
}

}  // namespace

absl::Status LogitsCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(
      CheckOptionsAlone(words, "logits", ": --model=config.json --tokens=464,2068"));
  const std::string model = absl::GetFlag(FLAGS_model);
  if (model.empty()) {
    return absl::InvalidArgumentError(
        "--model: missing; a config.json with safetensors files beside it");
  }
  const int top = absl::GetFlag(FLAGS_top);
  PIPELAB_RETURN_IF_ERROR(CheckRange("--top", top, 0, 1'000'000));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Tokens());
  PIPELAB_ASSIGN_OR_RETURN(const JudgedTokens judged, JudgeTokens(model, ids));
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    nlohmann::json all = {{"schema", kOutputSchema},
                          {"parameters", judged.parameters},
                          {"tokens", ids.size()},
                          {"logits", judged.last}};
    if (ids.size() > 1) all["loss"] = judged.loss;
    PIPELAB_RETURN_IF_ERROR(WriteOutput("--json_out", json_out, DumpJson(all)));
  }
  if (json_out == "-") return absl::OkStatus();
  return WriteOutput("stdout", "-", LogitsText(judged, ids.size(), static_cast<size_t>(top)));
}

}  // namespace pipelab
