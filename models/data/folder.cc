#include "models/data/folder.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace pipelab {

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder,
                                                 absl::string_view extension) {
  std::error_code error;
  std::vector<std::string> names;
  std::filesystem::directory_iterator it(folder, error), end;
  for (; !error && it != end; it.increment(error)) {
    if (extension.empty() || it->path().extension() == std::string(extension)) {
      names.push_back(it->path().filename().string());
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(folder, ": ", error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pipelab
