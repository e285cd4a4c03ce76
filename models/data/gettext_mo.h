// Catalogues of translations in gettext's binary form (.mo files).
//
//   PIPELAB_ASSIGN_OR_RETURN(auto entries, ReadMo("de/LC_MESSAGES/iso_3166-1.mo"));
//   entries[1].id, entries[1].translation;             // "Afghanistan", ...
//
// Format (GNU gettext manual, "The Format of GNU MO Files"), in either byte order: magic
// 0x950412de, revision, number of strings, where the tables of originals and of translations lie;
// an entry of a table is length and offset of a string with a zero byte behind it. An original may
// start with a context and \4; plural forms follow the singular after \0: both are cut off here.
#ifndef PIPELAB_MODELS_DATA_GETTEXT_MO_H_
#define PIPELAB_MODELS_DATA_GETTEXT_MO_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

struct MoEntry {
  std::string id;  // the original; empty for the catalogue's own header
  std::string translation;
};

// `file` names it in errors, which are one line with the byte.
absl::StatusOr<std::vector<MoEntry>> ParseMo(absl::string_view contents, absl::string_view file);
absl::StatusOr<std::vector<MoEntry>> ReadMo(const std::string& path);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_GETTEXT_MO_H_
