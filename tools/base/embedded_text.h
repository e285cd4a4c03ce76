// A text file that is part of the binary (tools/build_defs/embed.bzl).
#ifndef PIPELAB_TOOLS_BASE_EMBEDDED_TEXT_H_
#define PIPELAB_TOOLS_BASE_EMBEDDED_TEXT_H_

#include "absl/strings/string_view.h"

namespace pipelab {

struct EmbeddedText {
  absl::string_view name;  // the file's, without folders and extension
  absl::string_view text;
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_EMBEDDED_TEXT_H_
