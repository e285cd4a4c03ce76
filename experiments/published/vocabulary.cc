#include "experiments/published/vocabulary.h"

#include <utility>

#include "absl/types/optional.h"
#include "experiments/published/vocabulary_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostVocabularySize = 1 << 24;

// As many as there are words; nothing for null, a run that did not fit.
absl::StatusOr<std::vector<absl::optional<double>>> ReadNumbersOfWords(const JsonObject& row,
                                                                       absl::string_view key,
                                                                       size_t count) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, row.List(key));
  std::vector<absl::optional<double>> numbers;
  for (const nlohmann::json& value : *list) {
    if (!value.is_null() && !value.is_number()) return row.Error(key, "must be numbers or null");
    numbers.push_back(value.is_null() ? absl::nullopt : absl::make_optional(value.get<double>()));
  }
  if (numbers.size() == count) return numbers;
  return row.Error(key, "has ", numbers.size(), " numbers, but there are ", count, " vocabularies");
}

absl::Status ReadVocabularyRow(const JsonObject& row, const PublishedVocabularyRun& run,
                               const std::vector<int64_t>& words,
                               std::vector<PublishedVocabularyCell>* cells) {
  PIPELAB_RETURN_IF_ERROR(row.AllowKeys({"system", "mfu", "memory"}));
  PIPELAB_ASSIGN_OR_RETURN(const std::string system, row.String("system"));
  PIPELAB_ASSIGN_OR_RETURN(const auto mfu, ReadNumbersOfWords(row, "mfu", words.size()));
  PIPELAB_ASSIGN_OR_RETURN(const auto memory, ReadNumbersOfWords(row, "memory", words.size()));
  for (size_t i = 0; i < words.size(); ++i) {
    if (mfu[i].has_value() != memory[i].has_value()) {
      return row.Error("memory", "must be null where mfu is");
    }
    if (mfu[i].has_value()) cells->push_back({run, system, words[i], *mfu[i], *memory[i]});
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const JsonObject& object, PublishedVocabularyRun* run) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t devices,
                           object.Integer("devices", 1, kMostVocabularySize));
  run->devices = static_cast<int>(devices);
  PIPELAB_ASSIGN_OR_RETURN(run->layers, object.Integer("layers", 1, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(run->hidden, object.Integer("hidden", 1, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(run->heads, object.Integer("heads", 1, kMostVocabularySize));
  return absl::OkStatus();
}

absl::Status ReadVocabularyRun(const JsonObject& object, const std::vector<int64_t>& words,
                               std::vector<PublishedVocabularyCell>* cells) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys(
      {"table", "tag", "peak_tflops", "devices", "layers", "hidden", "heads", "tokens", "rows"}));
  PublishedVocabularyRun run;
  PIPELAB_ASSIGN_OR_RETURN(run.table, object.String("table"));
  PIPELAB_ASSIGN_OR_RETURN(run.tag, object.String("tag"));
  PIPELAB_ASSIGN_OR_RETURN(run.peak_tflops, object.Number("peak_tflops"));
  PIPELAB_RETURN_IF_ERROR(ReadSizes(object, &run));
  PIPELAB_ASSIGN_OR_RETURN(run.tokens, object.Integer("tokens", 1, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> rows, object.Objects("rows"));
  for (const JsonObject& row : rows)
    PIPELAB_RETURN_IF_ERROR(ReadVocabularyRow(row, run, words, cells));
  return absl::OkStatus();
}

// The passes of each device, in us.
absl::StatusOr<std::vector<double>> ReadPasses(const JsonObject& row, absl::string_view key,
                                               size_t devices) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, row.List(key));
  std::vector<double> times;
  for (const nlohmann::json& value : *list) {
    if (!value.is_number() || value <= 0) return row.Error(key, "must be numbers above 0");
    times.push_back(value.get<double>());
  }
  if (times.size() == devices) return times;
  return row.Error(key, "has ", times.size(), " numbers, but there are ", devices, " devices");
}

absl::StatusOr<PublishedVocabularyLog> ReadLog(const JsonObject& row, size_t devices) {
  PIPELAB_RETURN_IF_ERROR(row.AllowKeys({"system", "tokens", "words", "last_blocks", "step_ms",
                                         "forward_us", "backward_us", "output_us", "tag"}));
  PublishedVocabularyLog log;
  PIPELAB_ASSIGN_OR_RETURN(log.system, row.String("system"));
  PIPELAB_ASSIGN_OR_RETURN(log.tokens, row.Integer("tokens", 1, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(log.vocabulary, row.Integer("words", 1, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(log.last_blocks, row.Integer("last_blocks", 0, kMostVocabularySize));
  PIPELAB_ASSIGN_OR_RETURN(log.step_ms, row.Number("step_ms"));
  PIPELAB_ASSIGN_OR_RETURN(log.forward_us, ReadPasses(row, "forward_us", devices));
  PIPELAB_ASSIGN_OR_RETURN(log.backward_us, ReadPasses(row, "backward_us", devices));
  if (row.Has("output_us")) {
    PIPELAB_ASSIGN_OR_RETURN(log.output_us, ReadPasses(row, "output_us", devices));
  }
  PIPELAB_ASSIGN_OR_RETURN(log.tag, row.String("tag"));
  return log;
}

absl::Status ReadLogs(const JsonObject& logs, VocabularyPaper* paper) {
  PIPELAB_RETURN_IF_ERROR(
      logs.AllowKeys({"source", "devices", "layers", "hidden", "heads", "rows"}));
  PIPELAB_ASSIGN_OR_RETURN(paper->logs_source, logs.String("source"));
  PIPELAB_RETURN_IF_ERROR(ReadSizes(logs, &paper->logs_run));
  const auto devices = static_cast<size_t>(paper->logs_run.devices);
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> rows, logs.Objects("rows"));
  for (const JsonObject& row : rows) {
    PIPELAB_ASSIGN_OR_RETURN(paper->logs.emplace_back(), ReadLog(row, devices));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ReadWords(const JsonObject& file) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, file.List("words"));
  std::vector<int64_t> words;
  for (const nlohmann::json& value : *list) {
    if (!value.is_number_integer() || value <= 0 || value > kMostVocabularySize) {
      return file.Error("words", "must be whole numbers from 1 to ", kMostVocabularySize);
    }
    words.push_back(value.get<int64_t>());
  }
  return words;
}

}  // namespace

absl::StatusOr<VocabularyPaper> ParseVocabularyPaper(absl::string_view text,
                                                     absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "words", "runs", "logs"}));
  VocabularyPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<int64_t> words, ReadWords(file));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> runs, file.Objects("runs"));
  for (const JsonObject& run : runs)
    PIPELAB_RETURN_IF_ERROR(ReadVocabularyRun(run, words, &paper.cells));
  if (file.Has("logs")) {
    PIPELAB_ASSIGN_OR_RETURN(const JsonObject logs, file.Object("logs"));
    PIPELAB_RETURN_IF_ERROR(ReadLogs(logs, &paper));
  }
  return paper;
}

absl::StatusOr<VocabularyPaper> PublishedVocabulary() {
  return ParseVocabularyPaper(VocabularyFile()[0].text, "experiments/published/vocabulary.json");
}

}  // namespace pipelab
