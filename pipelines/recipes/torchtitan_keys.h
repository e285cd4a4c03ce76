// torchtitan's keys by section, name and type. Private to recipes.
//
//   TorchtitanKeys keys(root, "--toml=run.toml");
//   PIPELAB_RETURN_IF_ERROR(keys.Check());
//   PIPELAB_ASSIGN_OR_RETURN(auto tokens, keys.Integer("training", "seq_len", 1, 1 << 20, 2048));
#ifndef PIPELAB_PIPELINES_RECIPES_TORCHTITAN_KEYS_H_
#define PIPELAB_PIPELINES_RECIPES_TORCHTITAN_KEYS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "nlohmann/json.hpp"

namespace pipelab {

class TorchtitanKeys {
 public:
  TorchtitanKeys(const nlohmann::json& root, absl::string_view what) : root_(root), what_(what) {}

  // Sorts all keys into those that are read and Recipe's lists.
  absl::Status Check();
  const std::vector<std::string>& not_priced() const { return not_priced_; }
  const std::vector<std::string>& unknown() const { return unknown_; }
  const std::vector<std::string>& passed_over() const { return passed_over_; }

  // Null where it is not given.
  const nlohmann::json* Find(absl::string_view section, absl::string_view key) const;
  absl::StatusOr<int64_t> Integer(absl::string_view section, absl::string_view key, int64_t least,
                                  int64_t most, int64_t if_absent) const;
  absl::StatusOr<bool> Bool(absl::string_view section, absl::string_view key) const;
  // One of the known words, in torchtitan's case.
  absl::StatusOr<std::string> Word(absl::string_view section, absl::string_view key,
                                   const std::vector<absl::string_view>& known,
                                   absl::string_view if_absent) const;

  // "WHAT: PLACE: REASON".
  template <typename... Parts>
  absl::Status Error(absl::string_view place, const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(what_, ": ", place, ": ", parts...));
  }

 private:
  struct Section;
  static const std::vector<Section>& Sections();
  void PassOver(absl::string_view section, absl::string_view key, const nlohmann::json& value);
  void AddUnknown(absl::string_view place, absl::string_view name,
                  const std::vector<absl::string_view>& known);
  void SortKeysOf(const Section& section, const nlohmann::json& value);

  const nlohmann::json& root_;
  const std::string what_;
  std::vector<std::string> not_priced_, unknown_, passed_over_;
};

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_TORCHTITAN_KEYS_H_
