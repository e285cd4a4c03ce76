// pipelab generate: decodes with a trained model over a pipeline of devices, with caches.
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "experiments/flags/option_checks.h"
#include "experiments/flags/output.h"
#include "experiments/run/run_commands.h"
#include "experiments/run/run_devices.h"
#include "experiments/training/text_model.h"
#include "models/checkpoint/training_state.h"
#include "models/files/model_file.h"
#include "models/files/pretrained.h"
#include "pipelines/runtime/stage_parameters.h"
#include "pipelines/serving/generate.h"
#include "pipelines/serving/pass_plan.h"
#include "tools/base/file.h"
#include "tools/base/json.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

ABSL_DECLARE_FLAG(std::string, model);     // step_input.cc
ABSL_DECLARE_FLAG(std::string, tokens);    // step_figures.cc
ABSL_DECLARE_FLAG(std::string, resume);    // run_input.cc
ABSL_DECLARE_FLAG(uint64_t, seed);         // time_limit.cc
ABSL_DECLARE_FLAG(int, devices);           // schedule_input.cc
ABSL_DECLARE_FLAG(std::string, json_out);  // simulate_command.cc
ABSL_FLAG(std::string, prompt, "",
          "text that a model goes on from, with --resume; several between |: It is|She was");
ABSL_FLAG(int64_t, new_tokens, 64, "tokens to generate behind each prompt");
ABSL_FLAG(int, groups, 0, "groups of requests that take turns in the pipeline; 0: --devices");
ABSL_FLAG(int, slots, 1, "requests of a group at a time");
ABSL_FLAG(int64_t, chunk, 0, "tokens of prompts in a pass, at most; 0: whole prompts");
ABSL_FLAG(int64_t, cache, 0,
          "tokens that the cache of a slot has room for; 0: the model's context");
ABSL_FLAG(double, temperature, 0, "0: the likeliest token; above 0: drawn, the higher the wilder");

namespace pipelab {
namespace {

// What is generated with: of a checkpoint, or of published weights.
struct Source {
  ModelGraph graph;
  absl::optional<TextModel> text;
  std::vector<std::vector<int32_t>> prompts;
};

absl::StatusOr<Source> SourceOfText() {
  const std::string file = ResolveOutputPath(absl::GetFlag(FLAGS_resume), "");
  const std::string prompt = absl::GetFlag(FLAGS_prompt);
  if (prompt.empty()) {
    return absl::InvalidArgumentError("--prompt: missing; text to go on from, such as \"It is\"");
  }
  Source source;
  PIPELAB_ASSIGN_OR_RETURN(source.text, ReadTextModel("--resume", file));
  source.graph = source.text->graph;
  for (const std::string& text : std::vector<std::string>(absl::StrSplit(prompt, '|'))) {
    const auto ids = source.text->vocabulary.Encode(text);
    if (!ids.ok() || ids->empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--prompt=", text, ": ", ids.ok() ? "has no text" : ids.status().message()));
    }
    source.prompts.emplace_back(ids->begin(), ids->end());
  }
  return source;
}

absl::StatusOr<Source> SourceOfIds() {
  const std::string tokens = absl::GetFlag(FLAGS_tokens);
  if (tokens.empty()) {
    return absl::InvalidArgumentError(
        "--tokens: missing; ids to go on from, such as 464,2068, several prompts between |");
  }
  Source source;
  for (const auto& prompt : absl::StrSplit(tokens, '|')) {
    std::vector<int32_t>& ids = source.prompts.emplace_back();
    for (const auto& id : absl::StrSplit(prompt, ',')) {
      if (absl::SimpleAtoi(id, &ids.emplace_back())) continue;
      return absl::InvalidArgumentError(
          absl::StrCat("--tokens=", tokens, ": \"", id, "\": must be a token's id"));
    }
  }
  ModelFileOptions options;
  options.further_tokens = false;
  PIPELAB_ASSIGN_OR_RETURN(source.graph, FindModel("--model", absl::GetFlag(FLAGS_model), options));
  PrintNotes(source.graph);
  return source;
}

absl::StatusOr<PassPlan> PlanOf(const Source& source) {
  const int64_t output = absl::GetFlag(FLAGS_new_tokens),
                context = source.graph.layers[0].output_shape[0];
  ServingOptions options;
  options.devices = absl::GetFlag(FLAGS_devices);
  options.groups = absl::GetFlag(FLAGS_groups) == 0 ? options.devices : absl::GetFlag(FLAGS_groups);
  options.slots = absl::GetFlag(FLAGS_slots);
  options.chunk = absl::GetFlag(FLAGS_chunk);
  options.context = context;
  options.cache_tokens = absl::GetFlag(FLAGS_cache) == 0 ? context : absl::GetFlag(FLAGS_cache);
  std::vector<Request> requests;
  for (const std::vector<int32_t>& prompt : source.prompts) {
    Request request;
    request.prompt = static_cast<int64_t>(prompt.size());
    request.output = output;
    requests.push_back(request);
  }
  return PlanPasses(std::move(requests), options, ServingTimes::Unit());
}

absl::Status CheckGenerateFlags() {
  PIPELAB_RETURN_IF_ERROR(CheckRange("--new_tokens", absl::GetFlag(FLAGS_new_tokens), 1, 1 << 20));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--devices", absl::GetFlag(FLAGS_devices), 1, 1024));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--groups", absl::GetFlag(FLAGS_groups), 0, 1 << 16));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--slots", absl::GetFlag(FLAGS_slots), 1, 1 << 16));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--chunk", absl::GetFlag(FLAGS_chunk), 0, 1 << 20));
  PIPELAB_RETURN_IF_ERROR(CheckRange("--cache", absl::GetFlag(FLAGS_cache), 0, 1 << 30));
  if (absl::GetFlag(FLAGS_temperature) >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--temperature=", absl::GetFlag(FLAGS_temperature), ": must be at least 0"));
}

// A stage takes what it holds.
absl::Status TakeValue(const ParameterSpec& p, absl::Span<const float> value,
                       StageParameters* stage) {
  const absl::Status status = stage->Set(p.name, StateKind::kValue, value);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status TakeWeights(const Source& source, StageParameters* stage) {
  if (!source.text.has_value()) {
    return ReadPretrained("--model", absl::GetFlag(FLAGS_model), source.graph,
                          [stage](const ParameterSpec& p, const std::vector<float>& value) {
                            return TakeValue(p, value, stage);
                          });
  }
  const TrainingState& state = source.text->state;
  for (const StateEntry& entry : StateEntries(source.graph, {})) {
    if (entry.kind != 0) continue;
    const auto it = state.tensors.find(entry.key);
    if (it == state.tensors.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(state.source, ": has no parameter \"", entry.spec->name, "\""));
    }
    PIPELAB_RETURN_IF_ERROR(
        TakeValue(*entry.spec, std::get<std::vector<float>>(it->second.values), stage));
  }
  return absl::OkStatus();
}

std::string GeneratedText(const Source& source, const Generated& made) {
  std::string out;
  int64_t tokens = 0;
  for (size_t r = 0; r < made.tokens.size(); ++r) {
    tokens += static_cast<int64_t>(made.tokens[r].size());
    if (source.text.has_value()) {
      const ByteVocabulary& words = source.text->vocabulary;
      absl::StrAppend(&out, words.Decode(source.prompts[r]), words.Decode(made.tokens[r]), "\n\n");
    } else {
      absl::StrAppend(&out, absl::StrJoin(source.prompts[r], ","), " -> ",
                      absl::StrJoin(made.tokens[r], ","), "\n");
    }
  }
  Bytes caches;
  for (const Bytes bytes : made.caches) caches += bytes;
  absl::StrAppendFormat(
      &out,
      "%d tokens of %d requests in %.3f s on %d devices: %.1f tokens/s "
      "(measured); caches %s\n",
      tokens, made.tokens.size(), ToSeconds(made.trace.makespan), made.trace.devices.size(),
      static_cast<double>(tokens) / ToSeconds(made.trace.makespan), ToString(caches));
  return out;
}

nlohmann::json GeneratedJson(const Source& source, const Generated& made) {
  nlohmann::json all = {{"schema", kOutputSchema},
                        {"seconds", ToSeconds(made.trace.makespan)},
                        {"requests", nlohmann::json::array()},
                        {"cache_bytes", nlohmann::json::array()}};
  for (const Bytes bytes : made.caches) all["cache_bytes"].push_back(bytes.value());
  for (size_t r = 0; r < made.tokens.size(); ++r) {
    all["requests"].push_back({{"prompt", source.prompts[r]}, {"tokens", made.tokens[r]}});
  }
  return all;
}

}  // namespace

absl::Status GenerateCommand(const Words& words) {
  PIPELAB_RETURN_IF_ERROR(
      CheckOptionsAlone(words, "generate", ": --resume=gpt.safetensors --prompt=\"It is\""));
  PIPELAB_RETURN_IF_ERROR(CheckGenerateFlags());
  const bool text = !absl::GetFlag(FLAGS_resume).empty();
  if (text == !absl::GetFlag(FLAGS_model).empty()) {
    return absl::InvalidArgumentError(
        "generate: give --resume=FILE, a checkpoint of gpt_train, or --model=config.json");
  }
  PIPELAB_ASSIGN_OR_RETURN(const Source source, text ? SourceOfText() : SourceOfIds());
  GenerateOptions options;
  PIPELAB_ASSIGN_OR_RETURN(options.plan, PlanOf(source));
  options.prompts = source.prompts;
  options.set_weights = [&](StageParameters* stage) { return TakeWeights(source, stage); };
  PIPELAB_ASSIGN_OR_RETURN(options.devices, DevicesFromFlags());
  options.temperature = absl::GetFlag(FLAGS_temperature);
  options.seed = absl::GetFlag(FLAGS_seed);
  PIPELAB_ASSIGN_OR_RETURN(const Generated made, Generate(source.graph, options));
  const std::string json_out = absl::GetFlag(FLAGS_json_out);
  if (!json_out.empty()) {
    PIPELAB_RETURN_IF_ERROR(
        WriteOutput("--json_out", json_out, DumpJson(GeneratedJson(source, made))));
  }
  if (json_out == "-") return absl::OkStatus();
  return WriteOutput("stdout", "-", GeneratedText(source, made));
}

}  // namespace pipelab
