#include "experiments/compare/byte_equal.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "experiments/all/deterministic_columns.h"
#include "experiments/all/result_folder.h"
#include "experiments/compare/compare_folders.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::StatusOr<std::string> CompareStudy(const std::string& a, const std::string& b,
                                         ByteEqual* all) {
  PIPELAB_ASSIGN_OR_RETURN(const ResultFolder one, ReadResultFolder(a));
  PIPELAB_ASSIGN_OR_RETURN(const ResultFolder other, ReadResultFolder(b));
  const std::string &x = one.deterministic, &y = other.deterministic;
  for (const ResultFolder* r : {&one, &other}) {
    const std::string why = WhyNothingToCompare(*r);
    if (why.empty()) continue;
    ++all->not_compared;
    return absl::StrCat("not compared: ", r == &one ? "A" : "B", ": ", why);
  }
  ++(x == y ? all->equal : all->differ);
  if (x != y) return CompareLines(x, y, "A has");
  return absl::StrCat("equal, ", std::count(x.begin(), x.end(), '\n') - 1, " values");
}

}  // namespace

absl::StatusOr<ByteEqual> CompareBytes(const std::string& a, const std::string& b) {
  PIPELAB_ASSIGN_OR_RETURN(const auto in_a, StudyFolders(a));
  PIPELAB_ASSIGN_OR_RETURN(const auto in_b, StudyFolders(b));
  std::set<std::string> names;
  for (const auto* folders : {&in_a, &in_b}) {
    for (const auto& entry : *folders) names.insert(entry.first);
  }
  ByteEqual all;
  all.text = absl::StrCat("A: ", a, "\nB: ", b, "\n\n");
  for (const std::string& name : names) {
    const auto one = in_a.find(name), other = in_b.find(name);
    std::string line;
    if (one == in_a.end() || other == in_b.end()) {
      ++all.differ;
      line = one == in_a.end() ? "only in B" : "only in A";
    } else {
      PIPELAB_ASSIGN_OR_RETURN(line, CompareStudy(one->second, other->second, &all));
    }
    absl::StrAppend(&all.text, name, ": ", line, "\n");
  }
  absl::StrAppend(&all.text, "\nDeterministic columns are the same, byte for byte, in ", all.equal,
                  " of ", all.equal + all.differ, " studies");
  if (all.not_compared > 0) {
    absl::StrAppend(&all.text, "; ", all.not_compared, " could not be compared");
  }
  all.text += ".\n";
  return all;
}

}  // namespace pipelab
