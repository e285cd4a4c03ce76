#include "experiments/published/seq1f1b.h"

#include "experiments/published/read_all.h"
#include "experiments/published/seq1f1b_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMost = 1 << 24;

absl::StatusOr<PublishedSeq1F1BRow> ReadRow(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"tokens", "micro_batches", "1f1b", "interleaved", "seq1f1b",
                        "interleaved_seq1f1b", "tokens_per_s", "tag"}));
  PublishedSeq1F1BRow row;
  PIPELAB_ASSIGN_OR_RETURN(row.tokens, object.Integer("tokens", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(row.micro_batches, object.Integer("micro_batches", 1, kMost));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject speeds, object.Object("tokens_per_s"));
  PIPELAB_RETURN_IF_ERROR(
      speeds.AllowKeys({"1f1b", "interleaved", "seq1f1b", "interleaved_seq1f1b"}));
  for (size_t i = 0; i < row.tflops.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(row.tflops[i], object.Number(kSeq1F1BSchemes[i]));
    PIPELAB_ASSIGN_OR_RETURN(row.tokens_per_second[i], speeds.Number(kSeq1F1BSchemes[i]));
  }
  PIPELAB_ASSIGN_OR_RETURN(row.tag, object.String("tag"));
  return row;
}

absl::StatusOr<PublishedSeq1F1BMemory> ReadMemory(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"tokens", "1f1b", "interleaved", "seq1f1b", "interleaved_seq1f1b", "tag"}));
  PublishedSeq1F1BMemory memory;
  PIPELAB_ASSIGN_OR_RETURN(memory.tokens, object.Integer("tokens", 1, kMost));
  for (size_t i = 0; i < memory.gib.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(memory.gib[i], object.Number(kSeq1F1BSchemes[i]));
  }
  PIPELAB_ASSIGN_OR_RETURN(memory.tag, object.String("tag"));
  return memory;
}

}  // namespace

absl::StatusOr<Seq1F1BPaper> ParseSeq1F1BPaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cells", "reserved_gib"}));
  Seq1F1BPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.rows, ReadAll(file, "cells", ReadRow));
  PIPELAB_ASSIGN_OR_RETURN(paper.reserved, ReadAll(file, "reserved_gib", ReadMemory));
  return paper;
}

absl::StatusOr<Seq1F1BPaper> PublishedSeq1F1B() {
  return ParseSeq1F1BPaper(Seq1F1BFile()[0].text, "experiments/published/seq1f1b.json");
}

}  // namespace pipelab
