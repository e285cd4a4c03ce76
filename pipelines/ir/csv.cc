// PyTorch's CSV form: rows of cells without a header.
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/device_lists.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/text_cursor.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CannotSay(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the CSV form cannot say ", what, "; use the text form"));
}

// What PyTorch's lowering puts between the actions, after the stage's number. Those of messages
// have a micro-batch.
struct LoweredWord {
  absl::string_view word;
  bool micro_batch;
  int64_t CsvSkipped::*count;
};
constexpr LoweredWord kLoweredWords[] = {
    {"SEND_F", true, &CsvSkipped::messages},         {"RECV_F", true, &CsvSkipped::messages},
    {"SEND_B", true, &CsvSkipped::messages},         {"RECV_B", true, &CsvSkipped::messages},
    {"UNSHARD", false, &CsvSkipped::gathers},        {"RESHARD", false, &CsvSkipped::gathers},
    {"REDUCE_GRAD", false, &CsvSkipped::reductions},
};

class RowReader {
 public:
  explicit RowReader(absl::string_view csv) : in_(csv) {}

  absl::StatusOr<std::vector<std::vector<Action>>> Read(CsvSkipped* skipped) {
    std::vector<std::vector<Action>> rows;
    while (!in_.AtEnd()) {
      if (rows.size() == kMostDeviceLists) {
        return in_.Error(
            absl::StrCat("the CSV has more than ", kMostDeviceLists, " rows: each is a device"));
      }
      std::vector<Action>& row = rows.emplace_back();
      while (true) {
        in_.SkipBlanks();
        if (!in_.AtLineEnd() && in_.Peek() != ',') PIPELAB_RETURN_IF_ERROR(Cell(&row));
        in_.SkipBlanks();
        if (in_.Take(",")) continue;
        if (!in_.AtLineEnd()) return in_.Expected("a comma");
        in_.RestOfLine();
        break;
      }
    }
    *skipped = skipped_;
    return rows;
  }

 private:
  absl::Status Cell(std::vector<Action>* row) {
    if (in_.Peek() == '(') return Overlapped(row);
    PIPELAB_ASSIGN_OR_RETURN(const bool lowered, TakeLowered());
    if (lowered) return absl::OkStatus();
    PIPELAB_ASSIGN_OR_RETURN(const Action a, Compute());
    row->push_back(a);
    return absl::OkStatus();
  }

  absl::StatusOr<Action> Compute() {
    const TextCursor begin = in_;
    PIPELAB_ASSIGN_OR_RETURN(const Action a, in_.OneAction());
    const bool pass = a.kind != ActionKind::kStep && !IsHostTransfer(a.kind);
    if (pass && a.slice == 0 && a.version == 0) return a;
    return begin.Error(
        absl::StrCat(ToString(a), ": a cell has a stage, F, B, I, W or R, and a micro-batch"));
  }

  // "(0F3;3B1)OVERLAP_F_B": the F, then the B or I.
  absl::Status Overlapped(std::vector<Action>* row) {
    PIPELAB_RETURN_IF_ERROR(in_.Expect("("));
    in_.SkipBlanks();
    const TextCursor first = in_;
    PIPELAB_ASSIGN_OR_RETURN(const Action forward, Compute());
    if (forward.kind != ActionKind::kForward) return first.Error("OVERLAP_F_B begins with an F");
    in_.SkipBlanks();
    PIPELAB_RETURN_IF_ERROR(in_.Expect(";"));
    in_.SkipBlanks();
    const TextCursor second = in_;
    PIPELAB_ASSIGN_OR_RETURN(const Action backward, Compute());
    if (backward.kind != ActionKind::kBackward && backward.kind != ActionKind::kBackwardInput) {
      return second.Error("OVERLAP_F_B ends with a B or an I");
    }
    in_.SkipBlanks();
    PIPELAB_RETURN_IF_ERROR(in_.Expect(")OVERLAP_F_B"));
    row->push_back(forward);
    row->push_back(backward);
    return absl::OkStatus();
  }

  // Whether one of kLoweredWords stood here; then it is taken and counted.
  absl::StatusOr<bool> TakeLowered() {
    constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
    TextCursor cell = in_;
    if (!cell.Number(kMax, "a stage").ok()) return false;  // OneAction says so better
    for (const LoweredWord& w : kLoweredWords) {
      if (!cell.Take(w.word)) continue;
      if (w.micro_batch) {
        PIPELAB_RETURN_IF_ERROR(
            cell.Number(kMax, absl::StrCat("a micro-batch, as in 2", w.word, "5")).status());
      }
      ++(skipped_.*w.count);
      in_ = cell;
      return true;
    }
    return false;
  }

  TextCursor in_;
  CsvSkipped skipped_;
};

}  // namespace

absl::StatusOr<std::string> ToCsv(const Schedule& s) {
  if (!s.stages.IsChain()) return CannotSay("a stage graph that is not a chain");
  if (s.forward_only) return CannotSay("forwards alone");
  if (s.weights_travel) return CannotSay("weights that travel");
  if (s.merges_passes) return CannotSay("merged passes");
  if (!s.stages.AllGradientsAreOwn()) return CannotSay("gradients that are late, or none");
  if (!s.micro_batches_of_stage.empty()) {
    return CannotSay("stages with micro-batches of different size");
  }
  if (s.num_slices > 1) return CannotSay("token slices");
  for (const auto& replica : s.placement.groups) {
    for (const std::vector<int>& group : replica) {
      if (group.size() > 1) return CannotSay("a stage with a group of devices");
    }
  }
  std::string out;
  for (const std::vector<Action>& list : s.order) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].kind == ActionKind::kStep || list[i].version != 0) {
        return CannotSay("steps and weight versions");
      }
      if (IsHostTransfer(list[i].kind)) return CannotSay("offloads and reloads (O, L)");
      absl::StrAppend(&out, i > 0 ? "," : "", ToString(list[i]));
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

absl::StatusOr<Schedule> ParseCsv(absl::string_view csv, CsvSkipped* skipped) {
  CsvSkipped ignored;
  PIPELAB_ASSIGN_OR_RETURN(std::vector<std::vector<Action>> rows,
                           RowReader(csv).Read(skipped != nullptr ? skipped : &ignored));
  PIPELAB_ASSIGN_OR_RETURN(Schedule s, ScheduleFromDeviceLists(std::move(rows), "the CSV"));
  s.name = "csv";
  return s;
}

}  // namespace pipelab
