#include "experiments/published/vocabulary.h"

#include <utility>

#include "experiments/published/vocabulary_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMost = 1 << 24;

absl::StatusOr<PublishedVocabularyCell> ReadCell(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(object.AllowKeys({"system", "vocabulary", "mfu", "memory", "tag"}));
  PublishedVocabularyCell cell;
  PIPELAB_ASSIGN_OR_RETURN(cell.system, object.String("system"));
  PIPELAB_ASSIGN_OR_RETURN(cell.vocabulary, object.Integer("vocabulary", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(cell.mfu, object.Number("mfu"));
  if (object.Has("memory")) {
    PIPELAB_ASSIGN_OR_RETURN(cell.memory, object.Number("memory"));
  }
  PIPELAB_ASSIGN_OR_RETURN(cell.tag, object.String("tag"));
  return cell;
}

}  // namespace

absl::StatusOr<VocabularyPaper> ParseVocabularyPaper(absl::string_view text,
                                                     absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cells"}));
  VocabularyPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> cells, file.Objects("cells"));
  for (const JsonObject& object : cells) {
    PIPELAB_ASSIGN_OR_RETURN(PublishedVocabularyCell cell, ReadCell(object));
    paper.cells.push_back(std::move(cell));
  }
  return paper;
}

absl::StatusOr<VocabularyPaper> PublishedVocabulary() {
  return ParseVocabularyPaper(VocabularyFile()[0].text, "experiments/published/vocabulary.json");
}

}  // namespace pipelab
