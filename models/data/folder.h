// What a folder of data holds.
//
//   PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> pages, NamesIn(dir, ".page"));
#ifndef PIPELAB_MODELS_DATA_FOLDER_H_
#define PIPELAB_MODELS_DATA_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// Names, sorted: all, or those with this extension. NotFound where the folder cannot be read.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder,
                                                 absl::string_view extension = "");

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_FOLDER_H_
