// TOML (toml++) as JSON values, so that one kind of reader serves both (json_object.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(nlohmann::json root, ParseToml(text, "--toml=run.toml"));
//   root["training"]["seq_len"];          // 8192
//
// Dates and times become strings, infinite numbers null. InvalidArgument with line and column:
// "--toml=run.toml:3:14: not TOML: ...", also for keys of more than 64 parts (a.b.c),
// and for texts of more than 1 MiB.
#ifndef PIPELAB_TOOLS_BASE_TOML_H_
#define PIPELAB_TOOLS_BASE_TOML_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace pipelab {

absl::StatusOr<nlohmann::json> ParseToml(absl::string_view text, absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_TOML_H_
