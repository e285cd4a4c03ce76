#include "experiments/serve/command_request.h"

#include <algorithm>
#include <cstdint>

#include "absl/flags/declare.h"
#include "absl/flags/flag.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "experiments/commands/command_call.h"
#include "experiments/commands/step_input.h"
#include "experiments/commands/time_limit.h"
#include "nlohmann/json.hpp"
#include "tools/base/did_you_mean.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

ABSL_DECLARE_FLAG(int, devices);        // schedule_input.cc
ABSL_DECLARE_FLAG(int, micro_batches);  // schedule_input.cc
ABSL_DECLARE_FLAG(int64_t, batch);      // search_command.cc

namespace pipelab {
namespace {

constexpr size_t kMostWords = 16, kMostFiles = 8;
constexpr size_t kLongestWord = 512, kLongestValue = 4096, kLongestName = 40;

absl::Status RefusedRequest(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

bool IsName(absl::string_view text, absl::string_view more) {
  return !text.empty() && text.size() <= kLongestName &&
         std::all_of(text.begin(), text.end(), [more](char c) {
           return absl::ascii_isalnum(c) || absl::StrContains(more, absl::string_view(&c, 1));
         });
}

// "mine.csv": no folders, and nothing that a shell or a reader of options would take for more.
bool IsFileName(absl::string_view name) {
  const size_t dot = name.rfind('.');
  if (dot == absl::string_view::npos || !IsName(name.substr(0, dot), "_-")) return false;
  const absl::string_view ending = name.substr(dot);
  return name[0] != '-' && (ending == ".csv" || ending == ".txt" || ending == ".json");
}

// Whether some part of a word or value leads to a folder. A layout's '/' is between devices.
bool HasPath(absl::string_view text) {
  for (absl::string_view part : absl::StrSplit(text, absl::ByAnyChar(",:"))) {
    if (absl::StrContains(part, '/') && !absl::StartsWith(part, "layout=")) return true;
  }
  return false;
}

bool IsPlain(absl::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return !absl::ascii_iscntrl(c); });
}

absl::Status CheckText(const std::string& what, const std::string& text, size_t longest) {
  if (text.size() > longest) {
    return RefusedRequest(what, absl::StrCat(text.size(), " characters; at most ", longest));
  }
  if (!IsPlain(text)) return RefusedRequest(what, "has control characters; give plain text");
  return absl::OkStatus();
}

absl::Status ReadWords(const JsonObject& body, CommandRequest* request) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, body.List("words"));
  if (list->size() > kMostWords) {
    return RefusedRequest("words", absl::StrCat(list->size(), " of them; at most ", kMostWords));
  }
  for (const nlohmann::json& word : *list) {
    if (!word.is_string())
      return RefusedRequest("words", "must be texts, such as \"1f1b:P=4,M=8\"");
    std::string text = word.get<std::string>();
    PIPELAB_RETURN_IF_ERROR(CheckText("words", text, kLongestWord));
    if (text.empty() || text[0] == '-') {
      return RefusedRequest("words", absl::StrCat("'", text, "' is none; options go into options"));
    }
    if (HasPath(text)) {
      return RefusedRequest(absl::StrCat("'", text, "'"),
                            "names a file of the server; give its text in files");
    }
    request->words.push_back(std::move(text));
  }
  return absl::OkStatus();
}

// 1, 0.5, "1f1b", true, [1, 2]: as the command line has it.
absl::StatusOr<std::string> ValueText(const std::string& option, const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number() || value.is_boolean()) return value.dump();
  if (value.is_array()) {
    std::vector<std::string> parts;
    for (const nlohmann::json& one : value) {
      if (!one.is_number() && !one.is_string()) {
        return RefusedRequest(option, "a list must have numbers or texts");
      }
      parts.push_back(one.is_string() ? one.get<std::string>() : one.dump());
    }
    return absl::StrJoin(parts, ",");
  }
  return RefusedRequest(option, "must be a number, a text, true, false, or a list");
}

// Where commands write; the answer has it all.
bool WritesFile(absl::string_view command, absl::string_view option) {
  const bool prints = option == "json" && (command == "search" || command == "list");
  return prints || option == "out" || absl::EndsWith(option, "_out");
}

absl::Status ReadOption(const Command& command, const std::string& name,
                        const nlohmann::json& value, CommandRequest* request) {
  const std::string option = absl::StrCat("--", name);
  if (std::find(command.options.begin(), command.options.end(), name) == command.options.end()) {
    return RefusedRequest(
        option.substr(0, 60),
        absl::StrCat("no option of ", command.name, DidYouMean(name, command.options, "--")));
  }
  if (WritesFile(command.name, name))
    return RefusedRequest(option, "the answer has what the command writes");
  PIPELAB_ASSIGN_OR_RETURN(const std::string text, ValueText(option, value));
  PIPELAB_RETURN_IF_ERROR(CheckText(option, text, kLongestValue));
  const bool quantity = name == "bandwidth" || name == "layout";  // "25 GB/s"; "1/2"
  if (text == "-" || (!quantity && HasPath(text))) {
    return RefusedRequest(absl::StrCat(option, "=", text),
                          "names a file of the server; give its text in files");
  }
  request->options.push_back(absl::StrCat(option, "=", text));
  return absl::OkStatus();
}

absl::Status ReadFiles(const JsonObject& files, CommandRequest* request) {
  const std::vector<std::string> names = files.Keys();
  if (names.size() > kMostFiles) {
    return RefusedRequest("files", absl::StrCat(names.size(), " of them; at most ", kMostFiles));
  }
  for (const std::string& name : names) {
    if (!IsFileName(name)) {
      return RefusedRequest("files",
                            absl::StrCat("'", name.substr(0, 60),
                                         "' is no name of a file here; use letters, digits and "
                                         "an ending: mine.csv, mine.txt, mine.json"));
    }
    PIPELAB_ASSIGN_OR_RETURN(request->files[name], files.String(name));
  }
  return absl::OkStatus();
}

absl::Status ReadDrawings(const JsonObject& body, CommandRequest* request) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, body.List("drawings"));
  const std::string& command = request->words[0];
  const bool simulates = command == "simulate";
  for (const nlohmann::json& drawing : *list) {
    const std::string name = drawing.is_string() ? drawing.get<std::string>() : drawing.dump();
    const bool known =
        simulates ? name == "timeline" || name == "memory"
                  : command == "show" && (name == "svg" || name == "memory" || name == "trace");
    const bool again = std::find(request->drawings.begin(), request->drawings.end(), name) !=
                       request->drawings.end();
    if (!known || again) {
      return RefusedRequest("drawings",
                            absl::StrCat("'", name.substr(0, 60),
                                         "': simulate draws timeline and memory, show svg, "
                                         "memory and trace, each once"));
    }
    request->drawings.push_back(name);
  }
  return absl::OkStatus();
}

absl::StatusOr<Command> FindServed(absl::string_view name) {
  const std::vector<absl::string_view>& served = ServedCommands();
  if (std::find(served.begin(), served.end(), name) != served.end()) {
    return FindSimulatedCommand(name);
  }
  return absl::NotFoundError(absl::StrCat("/api/", name.substr(0, 60), ": no such command",
                                          NearestOrAll(name.substr(0, 60), served)));
}

absl::StatusOr<nlohmann::json> ParseBody(absl::string_view body) {
  JsonLimits limits;
  limits.values = ServeLimits::request_values;
  return ParseJson(body, "request", limits);
}

absl::StatusOr<std::string> ReadId(const JsonObject& body) {
  PIPELAB_ASSIGN_OR_RETURN(std::string id, body.String("id"));
  if (IsName(id, "")) return id;
  return RefusedRequest("id", absl::StrCat("must be up to ", kLongestName, " letters and digits"));
}

}  // namespace

const std::vector<absl::string_view>& ServedCommands() {
  static const auto* served = new std::vector<absl::string_view>{
      "simulate", "show", "compare", "search", "synthesize", "schedule", "check", "list"};
  return *served;
}

absl::StatusOr<CommandRequest> ParseCommandRequest(absl::string_view command,
                                                   absl::string_view body) {
  PIPELAB_ASSIGN_OR_RETURN(const Command called, FindServed(command));
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Root(json, "request"));
  PIPELAB_RETURN_IF_ERROR(root.AllowKeys({"words", "options", "files", "drawings", "id"}));
  CommandRequest request;
  request.words.push_back(std::string(command));
  if (root.Has("words")) PIPELAB_RETURN_IF_ERROR(ReadWords(root, &request));
  if (root.Has("options")) {
    PIPELAB_RETURN_IF_ERROR(root.Object("options").status());
    for (const auto& [name, value] : json["options"].items()) {
      PIPELAB_RETURN_IF_ERROR(ReadOption(called, name, value, &request));
    }
  }
  if (root.Has("files")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject files, root.Object("files"));
    PIPELAB_RETURN_IF_ERROR(ReadFiles(files, &request));
  }
  if (root.Has("drawings")) PIPELAB_RETURN_IF_ERROR(ReadDrawings(root, &request));
  if (root.Has("id")) {
    PIPELAB_ASSIGN_OR_RETURN(request.id, ReadId(root));
  }
  return request;
}

absl::StatusOr<std::string> ParseStopRequest(absl::string_view body) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json json, ParseBody(body));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject root, JsonObject::Root(json, "request"));
  PIPELAB_RETURN_IF_ERROR(root.AllowKeys({"id"}));
  return ReadId(root);
}

namespace {

absl::Status AtMost(absl::string_view what, int64_t value, int64_t most) {
  if (value <= most) return absl::OkStatus();
  return RefusedRequest(absl::StrCat(what, "=", value),
                        absl::StrCat("at most ", most, " here; the command line takes more"));
}

absl::Status CheckPasses(const StepConfig& c, const ServeLimits& limits) {
  PIPELAB_RETURN_IF_ERROR(AtMost("devices", c.pipeline, limits.devices));
  PIPELAB_RETURN_IF_ERROR(AtMost("micro_batches", c.micro_batches, limits.micro_batches));
  const int64_t stages = std::max<int64_t>(1, c.virtual_stages) * std::max<int64_t>(1, c.slices) *
                         std::max<int64_t>(1, c.pipeline);
  if (stages <= limits.passes && stages * c.micro_batches <= limits.passes) {
    return absl::OkStatus();
  }
  return RefusedRequest(
      absl::StrCat("devices x micro_batches of ", c.ToString()),
      absl::StrCat("at most ", limits.passes, " here; the command line takes more"));
}

}  // namespace

absl::Status CheckSizes(const Words& words, const ServeLimits& limits) {
  const std::string& command = words[0];
  if (command == "search") {
    PIPELAB_RETURN_IF_ERROR(
        AtMost("--devices", absl::GetFlag(FLAGS_devices), limits.search_devices));
    PIPELAB_RETURN_IF_ERROR(AtMost("--batch", absl::GetFlag(FLAGS_batch), limits.search_batch));
    return absl::OkStatus();
  }
  if (command == "synthesize") {
    PIPELAB_ASSIGN_OR_RETURN(const absl::Duration limit, TimeLimitFromFlag(absl::Seconds(10)));
    if (limit > limits.longest_search) {
      return RefusedRequest(absl::StrCat("--time_limit=", absl::FormatDuration(limit)),
                            absl::StrCat("at most ", absl::FormatDuration(limits.longest_search),
                                         " here; the command line takes more"));
    }
  }
  if (command == "list" || command == "check") return absl::OkStatus();
  for (size_t i = 1; i < words.size(); ++i) {
    // What is wrong with a word the command says itself.
    const absl::StatusOr<StepConfig> config = ConfigFromWord(words[i]);
    if (config.ok()) PIPELAB_RETURN_IF_ERROR(CheckPasses(*config, limits));
  }
  return absl::OkStatus();
}

}  // namespace pipelab
