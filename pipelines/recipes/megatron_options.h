// The options of a Megatron-LM command line by name and type. Private to recipes.
//
//   PIPELAB_ASSIGN_OR_RETURN(MegatronOptions o, MegatronOptions::Parse(text, "f", {}, false));
//   PIPELAB_ASSIGN_OR_RETURN(int64_t layers, o.Integer("num-layers", 1, 4096));
//   o.Has("swiglu");
//
// If an option is repeated, the last value wins, as in argparse.
#ifndef PIPELAB_PIPELINES_RECIPES_MEGATRON_OPTIONS_H_
#define PIPELAB_PIPELINES_RECIPES_MEGATRON_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "pipelines/recipes/shell_options.h"

namespace pipelab {

class MegatronOptions {
 public:
  // None of the options that no model here has is in use. `of_launcher`: the numbers of processes
  // that torchrun is told are needed.
  static absl::StatusOr<MegatronOptions> Parse(absl::string_view text, absl::string_view what,
                                               const ScriptChoice& choice, bool of_launcher);

  // Has, of an option whose influence depends on others: it is not asked for by this.
  bool Given(absl::string_view name) const { return given_.find(name) != given_.end(); }
  bool Has(absl::string_view name) const {
    asked_.emplace(name);
    return Given(name);
  }
  absl::StatusOr<int64_t> Integer(absl::string_view name, int64_t least, int64_t most,
                                  absl::optional<int64_t> if_absent = absl::nullopt) const;
  absl::StatusOr<double> Number(absl::string_view name, double least, double most,
                                double if_absent) const;
  absl::StatusOr<std::string> Word(absl::string_view name,
                                   const std::vector<absl::string_view>& known,
                                   absl::string_view if_absent) const;
  // All its words, of one that is given.
  const std::vector<std::string>& Values(absl::string_view name) const {
    return given_.find(name)->second;
  }
  // Any one word.
  absl::StatusOr<std::string> Text(absl::string_view name) const;

  // Recipe's lists.
  const std::vector<std::string>& not_priced() const { return not_priced_; }
  const std::vector<std::string>& unknown() const { return unknown_; }
  const std::vector<std::string>& passed_over() const { return passed_over_; }
  // Options that are read, and that nobody has asked for: beside the others they say nothing.
  std::vector<std::string> NotAsked() const;

  // "WHAT: --name VALUE: REASON".
  template <typename... Parts>
  absl::Status Error(absl::string_view name, const Parts&... parts) const {
    const auto found = given_.find(name);
    const std::string values = found == given_.end() ? "" : absl::StrJoin(found->second, " ");
    return absl::InvalidArgumentError(
        absl::StrCat(what_, ": --", name, values.empty() ? "" : " ", values, ": ", parts...));
  }

 private:
  absl::Status Sort();

  std::string what_;
  std::map<std::string, std::vector<std::string>, std::less<>> given_;
  std::vector<std::string> not_priced_, unknown_, passed_over_;
  mutable std::set<std::string, std::less<>> asked_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_MEGATRON_OPTIONS_H_
