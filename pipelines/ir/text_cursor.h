// Reads text left to right and says where it stands: what the parsers of the text and CSV forms
// share.
#ifndef PIPELAB_PIPELINES_IR_TEXT_CURSOR_H_
#define PIPELAB_PIPELINES_IR_TEXT_CURSOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "pipelines/ir/schedule.h"

namespace pipelab {

class TextCursor {
 public:
  explicit TextCursor(absl::string_view text) : text_(text) {}

  bool AtEnd() const { return at_ == text_.size(); }
  bool AtLineEnd() const { return AtEnd() || text_[at_] == '\n'; }
  char Peek() const { return AtEnd() ? '\0' : text_[at_]; }

  // Takes `word` if it stands here.
  bool Take(absl::string_view word);
  // InvalidArgument unless `word` stands here.
  absl::Status Expect(absl::string_view word);
  void SkipBlanks();  // spaces and tabs
  // To the start of the next line that is neither empty nor a comment.
  void SkipEmptyLines();
  // Takes the rest of the line and its end.
  absl::string_view RestOfLine();
  // InvalidArgument unless the line ends here; takes the end.
  absl::Status EndLine();
  // A decimal number in [0, max]; `what` for the error: "a device".
  absl::StatusOr<int64_t> Number(int64_t max, absl::string_view what);
  // An action such as 2F5, 2F5.1, 2F5@3 or 2S@3.
  absl::StatusOr<Action> OneAction();

  // "line 3, column 9: expected a device, found 'x'".
  absl::Status Expected(absl::string_view what) const;
  // "line 3, column 9: " + message.
  absl::Status Error(absl::string_view message) const;

 private:
  absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_IR_TEXT_CURSOR_H_
