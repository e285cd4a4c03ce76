#include "models/files/hugging_face_keys.h"

#include <string>

#include "absl/strings/str_join.h"
#include "models/zoo/size_check.h"
#include "tools/base/nearest.h"
#include "tools/base/status_macros.h"

namespace pipelab {

absl::StatusOr<int64_t> HuggingFaceKeys::Size(absl::string_view key, int64_t most,
                                              int64_t if_absent) const {
  if (if_absent > 0 && !file_.HasValue(key)) return if_absent;
  return file_.Integer(key, 1, most);
}
absl::StatusOr<int64_t> HuggingFaceKeys::Heads(absl::string_view key) const {
  return Size(key, kMostHidden);
}

absl::StatusOr<bool> HuggingFaceKeys::Flag(absl::string_view key, bool if_absent) const {
  if (!file_.HasValue(key)) return if_absent;
  return file_.Bool(key);
}

absl::Status HuggingFaceKeys::OneOf(absl::string_view key,
                                    const std::vector<absl::string_view>& known) const {
  if (!file_.HasValue(key)) return absl::OkStatus();
  PIPELAB_ASSIGN_OR_RETURN(const std::string word, file_.String(key));
  for (absl::string_view k : known) {
    if (k == word) return absl::OkStatus();
  }
  return file_.Error(key, "\"", word, "\": no layer has it; must be ",
                     absl::StrJoin(known, " or "));
}

absl::Status HuggingFaceKeys::DividesHidden(absl::string_view key, int64_t heads,
                                            int64_t hidden) const {
  if (hidden % heads == 0) return absl::OkStatus();
  return file_.Error(key, heads, ": must divide the hidden size, ", hidden,
                     "; nearest: ", NearestDivisor(heads, hidden));
}

absl::StatusOr<int64_t> HuggingFaceKeys::SizeOrNone(absl::string_view key, int64_t most) const {
  if (!file_.HasValue(key)) return 0;
  return file_.Integer(key, 0, most);
}

absl::StatusOr<int64_t> HuggingFaceKeys::Tokens(absl::string_view key) const {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t positions, Size(key, int64_t{1} << 30));
  if (tokens_ > positions) {
    return file_.Error(key, positions, ": samples of ", tokens_,
                       " tokens are longer; give at most @", positions);
  }
  const int64_t tokens = tokens_ > 0 ? tokens_ : positions;
  if (tokens <= kMostTokens) return tokens;
  return file_.Error(key, positions, ": must be at most ", kMostTokens,
                     "; give the length of a sample, @4096");
}

}  // namespace pipelab
