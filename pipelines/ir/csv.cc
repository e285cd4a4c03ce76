// PyTorch's CSV form: rows of cells without a header.
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "pipelines/ir/from_rows.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/text_cursor.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status CannotSay(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("the CSV form cannot say ", what, "; use the text form"));
}

absl::StatusOr<std::vector<std::vector<Action>>> ReadRows(absl::string_view csv) {
  std::vector<std::vector<Action>> rows;
  TextCursor in(csv);
  while (!in.AtEnd()) {
    std::vector<Action>& row = rows.emplace_back();
    while (true) {
      in.SkipBlanks();
      if (!in.AtLineEnd() && in.Peek() != ',') {
        const TextCursor cell = in;
        PIPELAB_ASSIGN_OR_RETURN(const Action a, in.OneAction());
        if (a.kind == ActionKind::kStep || a.slice != 0 || a.version != 0) {
          return cell.Error(absl::StrCat(
              ToString(a), ": a cell has a stage, F, B, I, W or R, and a micro-batch"));
        }
        row.push_back(a);
      }
      in.SkipBlanks();
      if (in.Take(",")) continue;
      if (!in.AtLineEnd()) return in.Expected("a comma");
      in.RestOfLine();
      break;
    }
  }
  return rows;
}

}  // namespace

absl::StatusOr<std::string> ToCsv(const Schedule& s) {
  if (!s.stages.IsChain()) return CannotSay("a stage graph that is not a chain");
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
      absl::StrAppend(&out, i > 0 ? "," : "", ToString(list[i]));
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

absl::StatusOr<Schedule> ParseCsv(absl::string_view csv) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<std::vector<Action>> rows, ReadRows(csv));
  PIPELAB_ASSIGN_OR_RETURN(Schedule s, ScheduleFromRows(std::move(rows), "the CSV"));
  s.name = "csv";
  return s;
}

}  // namespace pipelab
