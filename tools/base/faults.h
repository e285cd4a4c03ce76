// All that is wrong in a file, for one error.
//
//   Faults faults;
//   faults.Read(file.String("name"), &cluster.name);      // goes on where it is missing
//   PIPELAB_RETURN_IF_ERROR(faults.Of("--cluster=a.json"));
//   // "--cluster=a.json: 2 faults: name: missing; levels: missing"
#ifndef PIPELAB_TOOLS_BASE_FAULTS_H_
#define PIPELAB_TOOLS_BASE_FAULTS_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace pipelab {

// Everything that is wrong in a file, so that its user mends it in one round. A file that is wrong
// all through has as many faults as bytes, so behind the first ones they are counted.
class Faults {
 public:
  void Add(const absl::Status& status) {
    if (status.ok()) return;
    ++count_;
    if (faults_.size() < kMostNamed) faults_.push_back(std::string(status.message()));
  }
  // Whether it was read; else it is a fault.
  template <typename T, typename Into>
  bool Read(absl::StatusOr<T> read, Into* into) {
    Add(read.status());
    if (!read.ok()) return false;
    *into = *std::move(read);
    return true;
  }
  // InvalidArgument: one fault as it is, and several in one line, which names the file once.
  absl::Status Of(absl::string_view what) const {
    if (faults_.empty()) return absl::OkStatus();
    if (faults_.size() == 1) return absl::InvalidArgumentError(faults_[0]);
    std::string text = absl::StrCat(what, ": ", count_, " faults");
    const std::string file = absl::StrCat(what, ": ");
    for (size_t i = 0; i < faults_.size(); ++i) {
      absl::StrAppend(&text, i == 0 ? ": " : "; ", absl::StripPrefix(faults_[i], file));
    }
    if (count_ > kMostNamed) absl::StrAppend(&text, "; and ", count_ - kMostNamed, " more");
    return absl::InvalidArgumentError(text);
  }

 private:
  static constexpr size_t kMostNamed = 8;

  size_t count_ = 0;
  std::vector<std::string> faults_;  // the first ones
};

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_FAULTS_H_
