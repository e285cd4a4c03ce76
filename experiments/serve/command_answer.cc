#include "experiments/serve/command_answer.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "experiments/commands/command_call.h"
#include "experiments/commands/named_run.h"
#include "experiments/commands/step_input.h"
#include "experiments/report/memory_svg.h"
#include "experiments/report/timeline_page.h"
#include "experiments/serve/http_head.h"
#include "experiments/simulate/simulated_run.h"
#include "nlohmann/json.hpp"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// An object whose members are JSON already.
class Members {
 public:
  void Add(absl::string_view name, absl::string_view json) {
    absl::StrAppend(&text_, text_.empty() ? "{" : ",", "\"", name, "\":", json);
  }
  void AddText(absl::string_view name, const std::string& text) {
    Add(name, nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  std::string Finish() && { return text_.empty() ? "{}\n" : std::move(text_) + "}\n"; }

 private:
  std::string text_;
};

bool Wants(const CommandRequest& request, absl::string_view drawing) {
  return std::find(request.drawings.begin(), request.drawings.end(), drawing) !=
         request.drawings.end();
}

// One simulation for figures and drawings. What is too much to draw has a note: figures have it
// all.
absl::Status Simulate(const CommandRequest& request, const Words& words, Members* members) {
  PIPELAB_ASSIGN_OR_RETURN(const NamedRun named, ReadNamedRun(words, /*least_decimals=*/6));
  const SimulatedRun& run = named.run;
  PIPELAB_ASSIGN_OR_RETURN(const std::string json, SimulatedJson(named));
  members->Add("json", json);
  if (Wants(request, "timeline")) {
    const auto timeline = TimelineJson(run.program(), run.trace(), named.own_unit());
    timeline.ok() ? members->Add("timeline", *timeline)
                  : members->AddText("timeline_note", std::string(timeline.status().message()));
  }
  if (Wants(request, "memory") && run.has_bytes) {
    const auto memory =
        MemorySvg("memory", named.name, run.program(), run.costs(), run.trace(), named.own_unit());
    memory.ok() ? members->AddText("memory", *memory)
                : members->AddText("memory_note", std::string(memory.status().message()));
  }
  return run.has_model ? CheckMemory(run.prediction) : absl::OkStatus();
}

// Where a command writes what the answer has: ":json" and so on (CapturedOutput).
std::vector<std::pair<std::string, std::string>> OutputsOf(const CommandRequest& request) {
  const std::string& command = request.words[0];
  if (command == "list") return {{"json", "--json=:json"}};
  if (command == "compare" || command == "search") return {{"json", "--json_out=:json"}};
  if (command == "synthesize") {
    return {{"json", "--json_out=:json"}, {"schedule", "--schedule_out=:schedule.txt"}};
  }
  std::vector<std::pair<std::string, std::string>> outputs;
  if (Wants(request, "svg")) outputs.emplace_back("svg", "--svg_out=:svg");
  if (Wants(request, "memory")) outputs.emplace_back("memory", "--memory_out=:memory");
  if (Wants(request, "trace")) outputs.emplace_back("trace", "--trace_out=:trace");
  return outputs;
}

absl::StatusOr<std::string> Body(const CommandRequest& request, const ServeLimits& limits) {
  std::vector<std::string> options = request.options;
  const bool simulates = request.words[0] == "simulate";
  const auto outputs =
      simulates ? std::vector<std::pair<std::string, std::string>>() : OutputsOf(request);
  for (const auto& [name, option] : outputs) options.push_back(option);
  Members members;
  PIPELAB_ASSIGN_OR_RETURN(const Command command, FindSimulatedCommand(request.words[0]));
  const auto run = [&](const Words& words) -> absl::Status {
    PIPELAB_RETURN_IF_ERROR(CheckSizes(words, limits));
    return simulates ? Simulate(request, words, &members) : command.run(words);
  };
  CommandOutput output;
  PIPELAB_RETURN_IF_ERROR(CallCommand(request.words, options, &output, run));
  for (const auto& [name, option] : outputs) {
    const auto at = output.texts.find(option.substr(option.find(':')));
    if (at == output.texts.end()) continue;
    const bool is_json = name == "json" || name == "trace";
    is_json ? members.Add(name, at->second) : members.AddText(name, at->second);
  }
  if (const auto text = output.texts.find("-"); text != output.texts.end()) {
    members.AddText("text", text->second);
  }
  if (!output.does_not_fit.empty()) members.AddText("does_not_fit", output.does_not_fit);
  return std::move(members).Finish();
}

int HttpStatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return 500;
    default:
      return 422;
  }
}

}  // namespace

CommandAnswer AnswerOf(const absl::Status& status) {
  return {HttpStatusOf(status), ErrorJson(status.message())};
}

CommandAnswer AnswerCommand(const CommandRequest& request, const ServeLimits& limits) {
  absl::StatusOr<std::string> body = Body(request, limits);
  if (!body.ok()) {
    // A file that a command does not find was not given; the line names it.
    return AnswerOf(absl::IsNotFound(body.status())
                        ? absl::FailedPreconditionError(body.status().message())
                        : body.status());
  }
  return {200, *std::move(body)};
}

}  // namespace pipelab
