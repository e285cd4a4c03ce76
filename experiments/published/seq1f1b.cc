#include "experiments/published/seq1f1b.h"

#include <utility>

#include "experiments/published/read_all.h"
#include "experiments/published/seq1f1b_file.h"
#include "tools/base/json.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostSeq1F1BSize = 1 << 24;

absl::StatusOr<PublishedSeq1F1BRow> ReadSeq1F1BRow(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"tokens", "micro_batches", "1f1b", "interleaved", "seq1f1b",
                        "interleaved_seq1f1b", "tokens_per_s", "tag"}));
  PublishedSeq1F1BRow row;
  PIPELAB_ASSIGN_OR_RETURN(row.tokens, object.Integer("tokens", 1, kMostSeq1F1BSize));
  PIPELAB_ASSIGN_OR_RETURN(row.micro_batches, object.Integer("micro_batches", 1, kMostSeq1F1BSize));
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
  PIPELAB_ASSIGN_OR_RETURN(memory.tokens, object.Integer("tokens", 1, kMostSeq1F1BSize));
  for (size_t i = 0; i < memory.gib.size(); ++i) {
    PIPELAB_ASSIGN_OR_RETURN(memory.gib[i], object.Number(kSeq1F1BSchemes[i]));
  }
  PIPELAB_ASSIGN_OR_RETURN(memory.tag, object.String("tag"));
  return memory;
}

template <size_t kSize>
absl::Status ReadPassNumbers(const JsonObject& object, const char* key,
                             std::array<double, kSize>* numbers) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json* list, object.List(key));
  if (list->size() != kSize) {
    return object.Error(key, "has ", list->size(), " numbers, and must have ", kSize);
  }
  for (size_t i = 0; i < kSize; ++i) {
    if (!(*list)[i].is_number()) return object.Error(key, "must be numbers");
    (*numbers)[i] = (*list)[i].get<double>();
  }
  return absl::OkStatus();
}

absl::StatusOr<PublishedSeq1F1BRun> ReadSeq1F1BRun(const JsonObject& object) {
  PIPELAB_RETURN_IF_ERROR(
      object.AllowKeys({"layers", "hidden", "heads", "tensor", "tokens", "slices", "tokens_per_s",
                        "forward_ms", "backward_ms", "allocated_mib", "reserved_gib", "tag"}));
  PublishedSeq1F1BRun run;
  for (const auto& [key, value] : {std::pair<const char*, int64_t*>{"layers", &run.layers},
                                   {"hidden", &run.hidden},
                                   {"heads", &run.heads},
                                   {"tensor", &run.tensor},
                                   {"tokens", &run.tokens},
                                   {"slices", &run.slices}}) {
    PIPELAB_ASSIGN_OR_RETURN(*value, object.Integer(key, 1, kMostSeq1F1BSize));
  }
  PIPELAB_ASSIGN_OR_RETURN(run.tokens_per_second, object.Number("tokens_per_s"));
  PIPELAB_RETURN_IF_ERROR(ReadPassNumbers(object, "forward_ms", &run.forward_ms));
  PIPELAB_RETURN_IF_ERROR(ReadPassNumbers(object, "backward_ms", &run.backward_ms));
  PIPELAB_RETURN_IF_ERROR(ReadPassNumbers(object, "allocated_mib", &run.allocated_mib));
  PIPELAB_RETURN_IF_ERROR(ReadPassNumbers(object, "reserved_gib", &run.reserved_gib));
  PIPELAB_ASSIGN_OR_RETURN(run.tag, object.String("tag"));
  return run;
}

}  // namespace

absl::StatusOr<Seq1F1BPaper> ParseSeq1F1BPaper(absl::string_view text, absl::string_view what) {
  PIPELAB_ASSIGN_OR_RETURN(const nlohmann::json root, ParseJson(text, what));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject file, JsonObject::Root(root, what));
  PIPELAB_RETURN_IF_ERROR(file.AllowKeys({"paper", "cells", "reserved_gib", "runs"}));
  Seq1F1BPaper paper;
  PIPELAB_ASSIGN_OR_RETURN(paper.paper, file.String("paper"));
  PIPELAB_ASSIGN_OR_RETURN(paper.rows, ReadAll(file, "cells", ReadSeq1F1BRow));
  PIPELAB_ASSIGN_OR_RETURN(paper.reserved, ReadAll(file, "reserved_gib", ReadMemory));
  PIPELAB_ASSIGN_OR_RETURN(const JsonObject others, file.Object("runs"));
  PIPELAB_RETURN_IF_ERROR(others.AllowKeys({"source", "rows"}));
  PIPELAB_ASSIGN_OR_RETURN(paper.runs_source, others.String("source"));
  PIPELAB_ASSIGN_OR_RETURN(paper.runs, ReadAll(others, "rows", ReadSeq1F1BRun));
  return paper;
}

absl::StatusOr<Seq1F1BPaper> PublishedSeq1F1B() {
  return ParseSeq1F1BPaper(Seq1F1BFile()[0].text, "experiments/published/seq1f1b.json");
}

}  // namespace pipelab
