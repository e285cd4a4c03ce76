// Options of another system with their values, as text and compared.
//
//   Settings s(SettingsForm::kFlags);
//   s.Add("--num-layers", 32);  s.Add("--swiglu");
//   s.Text();                       // "--num-layers 32\n--swiglu\n"
//   ChangesBetween(s, other);       // "--num-layers 16; without --swiglu"
#ifndef PIPELAB_PIPELINES_RECIPES_SETTINGS_H_
#define PIPELAB_PIPELINES_RECIPES_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace pipelab {

enum class SettingsForm : uint8_t {
  kFlags,  // "--name value", a line each
  kToml,   // "section.key", whose values are TOML
};

class Settings {
 public:
  explicit Settings(SettingsForm form) : form_(form) {}

  // A switch has no value.
  template <typename Value>
  void Add(absl::string_view key, const Value& value) {
    settings_.emplace_back(std::string(key), absl::StrCat(value));
  }
  void Add(absl::string_view key) { Add(key, ""); }
  // An option with several words behind it.
  void AddWords(absl::string_view key, const std::vector<std::string>& words) {
    Add(key, absl::StrJoin(words, "\n"));
  }
  void AddIf(bool given, absl::string_view key) {
    if (given) Add(key);
  }
  // What the system does otherwise than the configuration says.
  void Note(std::string note) { notes_.push_back(std::move(note)); }

  SettingsForm form() const { return form_; }
  const std::vector<std::pair<std::string, std::string>>& settings() const { return settings_; }
  const std::vector<std::string>& notes() const { return notes_; }
  std::string Text() const;

 private:
  SettingsForm form_;
  std::vector<std::pair<std::string, std::string>> settings_;
  std::vector<std::string> notes_;
};

// What of `before` must change to be `after`, in one line.
std::string ChangesBetween(const Settings& before, const Settings& after);

}  // namespace pipelab

#endif  // PIPELAB_PIPELINES_RECIPES_SETTINGS_H_
