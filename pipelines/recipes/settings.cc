#include "pipelines/recipes/settings.h"

#include <map>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace pipelab {
namespace {

// A value that the shell would read otherwise.
std::string ShellQuoted(absl::string_view value) {
  return value.find_first_of("*|()$ ") == absl::string_view::npos ? std::string(value)
                                                                  : absl::StrCat("'", value, "'");
}

std::string Line(SettingsForm form, absl::string_view key, absl::string_view value) {
  if (form == SettingsForm::kToml) return absl::StrCat(key, " = ", value);
  if (value.empty()) return std::string(key);
  const std::vector<absl::string_view> words = absl::StrSplit(value, '\n');  // AddWords
  return absl::StrCat(key, " ",
                      absl::StrJoin(words, " ", [](std::string* text, absl::string_view word) {
                        absl::StrAppend(text, ShellQuoted(word));
                      }));
}

}  // namespace

std::string Settings::Text() const {
  std::string text, section;
  for (const auto& [key, value] : settings_) {
    std::string line = Line(form_, key, value);
    if (form_ == SettingsForm::kToml) {
      const size_t dot = key.find('.');
      if (section != key.substr(0, dot)) {
        section = key.substr(0, dot);
        absl::StrAppend(&text, text.empty() ? "" : "\n", "[", section, "]\n");
      }
      line = line.substr(dot + 1);
    }
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::string ChangesBetween(const Settings& before, const Settings& after) {
  const std::map<std::string, std::string> old(before.settings().begin(), before.settings().end());
  const std::map<std::string, std::string> made(after.settings().begin(), after.settings().end());
  std::vector<std::string> changes, without;
  for (const auto& [key, value] : after.settings()) {
    const auto found = old.find(key);
    if (found != old.end() && found->second == value) continue;
    changes.push_back(Line(after.form(), key, value));
  }
  for (const auto& [key, value] : before.settings()) {
    if (made.count(key) == 0) without.push_back(key);
  }
  const bool toml = after.form() == SettingsForm::kToml;
  if (!without.empty()) {
    changes.push_back(absl::StrCat("without ", absl::StrJoin(without, toml ? ", " : " ")));
  }
  return absl::StrJoin(changes, toml ? "; " : " ");
}

}  // namespace pipelab
