#include "pipelines/recipes/yaml_options.h"

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/optional.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// A key of Megatron-Bridge, and the option of another name that says the same where the key's value
// is this word ("": any, which is the option's).
struct Synonym {
  absl::string_view key, value, option;
};
constexpr Synonym kSynonyms[] = {
    {"num-moe-experts", "", "num-experts"},
    {"virtual-pipeline-model-parallel-size", "", "num-virtual-stages-per-pipeline-rank"},
    {"num-layers-in-first-pipeline-stage", "", "decoder-first-pipeline-num-layers"},
    {"num-layers-in-last-pipeline-stage", "", "decoder-last-pipeline-num-layers"},
    {"layernorm-epsilon", "", "norm-epsilon"},
    {"fp8", "", "fp8-format"},
    {"gated-linear-unit", "true", "swiglu"},
    {"add-bias-linear", "false", "disable-bias-linear"},
    {"share-embeddings-and-output-weights", "false", "untie-embeddings-and-output-weights"},
    {"mixed-precision", "bf16_mixed", "bf16"},
    {"mixed-precision", "fp16_mixed", "fp16"},
};

struct YamlLine {
  int number = 0;
  size_t indent = 0;
  absl::string_view text;  // without indent and comment
};

// A '#' begins a comment at the beginning or behind a space, but within quotes.
absl::string_view WithoutComment(absl::string_view line) {
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    if (quote != 0) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || absl::ascii_isspace(line[i - 1]))) {
      return line.substr(0, i);
    }
  }
  return line;
}

std::vector<YamlLine> YamlLinesOf(absl::string_view text) {
  std::vector<YamlLine> lines;
  int number = 0;
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    ++number;
    const absl::string_view line = absl::StripTrailingAsciiWhitespace(WithoutComment(whole));
    const absl::string_view bare = absl::StripLeadingAsciiWhitespace(line);
    if (bare.empty() || bare == "---") continue;
    lines.push_back({number, line.size() - bare.size(), bare});
  }
  return lines;
}

// "key: value" or "key:".
absl::optional<std::pair<absl::string_view, absl::string_view>> KeyAndValue(
    absl::string_view text) {
  const size_t colon = text.find(':');
  if (colon == absl::string_view::npos || colon == 0) return absl::nullopt;
  const absl::string_view key = text.substr(0, colon), rest = text.substr(colon + 1);
  if (key.find_first_of(" \t\"'$=") != absl::string_view::npos) return absl::nullopt;
  if (!rest.empty() && rest[0] != ' ') return absl::nullopt;
  return std::make_pair(key, absl::StripAsciiWhitespace(rest));
}

bool IsAnyOf(absl::string_view value, std::initializer_list<absl::string_view> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](absl::string_view word) { return absl::EqualsIgnoreCase(value, word); });
}

bool InCapitals(absl::string_view key) {
  return std::none_of(key.begin(), key.end(), absl::ascii_islower) &&
         std::any_of(key.begin(), key.end(), absl::ascii_isupper);
}

absl::string_view Unquoted(absl::string_view value) {
  const bool quoted =
      value.size() >= 2 && (value[0] == '"' || value[0] == '\'') && value.back() == value[0];
  return quoted ? value.substr(1, value.size() - 2) : value;
}

class YamlReader {
 public:
  explicit YamlReader(absl::string_view what) : what_(what) {}

  absl::StatusOr<std::vector<ShellOption>> Read(absl::string_view text) {
    for (const YamlLine& line : YamlLinesOf(text)) {
      if (line.indent == 0) {
        PIPELAB_RETURN_IF_ERROR(TakeTop(line));
      } else if (in_options_) {
        PIPELAB_RETURN_IF_ERROR(TakeNested(line));
      }
    }
    PIPELAB_RETURN_IF_ERROR(EndKey());
    AddPositions();
    return std::move(options_);
  }

 private:
  template <typename... Parts>
  absl::Status Error(const YamlLine& line, const Parts&... parts) const {
    return absl::InvalidArgumentError(
        absl::StrCat(what_, ":", line.number, ": ", line.text, ": ", parts...));
  }

  // A section, or an option in none.
  absl::Status TakeTop(const YamlLine& line) {
    PIPELAB_RETURN_IF_ERROR(EndKey());
    const auto pair = KeyAndValue(line.text);
    if (!pair.has_value()) return Error(line, "must be a key with a colon behind it");
    const bool capitals = InCapitals(pair->first);
    in_options_ = !capitals || pair->first == "MODEL_ARGS";
    indent_ = 0;
    if (pair->second.empty() || capitals) return absl::OkStatus();
    return Take(line, pair->first, pair->second);
  }

  absl::Status TakeNested(const YamlLine& line) {
    if (absl::StartsWith(line.text, "- ") && key_.number > 0) {
      const absl::string_view item = absl::StripAsciiWhitespace(line.text.substr(2));
      if (item.empty() || item[0] == '[' || item[0] == '{' || KeyAndValue(item).has_value()) {
        return Error(line, "must be a word; lists of others are not read");
      }
      options_.back().values.emplace_back(Unquoted(item));
      return absl::OkStatus();
    }
    PIPELAB_RETURN_IF_ERROR(EndKey());
    if (indent_ == 0) indent_ = line.indent;
    const auto pair = KeyAndValue(line.text);
    if (line.indent != indent_ || !pair.has_value()) {
      return Error(line, "must be a key of its section; deeper ones are not read");
    }
    return Take(line, pair->first, pair->second);
  }

  // Ends a key with nothing behind it, whose words are the items below.
  absl::Status EndKey() {
    const YamlLine key = std::exchange(key_, YamlLine());
    if (key.number == 0 || !options_.back().values.empty()) return absl::OkStatus();
    return Error(key, "has no value; must be true, or left out");
  }

  absl::Status Take(const YamlLine& line, absl::string_view key, absl::string_view value) {
    const absl::string_view bare = absl::StripPrefix(key, "--");
    std::string name = absl::StrReplaceAll(bare, {{"_", "-"}});
    const bool of_bridge = bare.size() == key.size();
    if (!value.empty() && absl::StrContains("{&*|>!%@`", value[0])) {
      return Error(line, "must be words, a number, true or false, or a list of words");
    }
    for (const Synonym& s : kSynonyms) {
      if (!of_bridge || s.key != name) continue;
      if (s.value.empty()) {
        name = std::string(s.option);
      } else if (IsAnyOf(Unquoted(value), {s.value})) {
        Add(s.option);
        return absl::OkStatus();
      }
    }
    if (IsAnyOf(value, {"false", "null", "none", "~", "no", "off"})) return absl::OkStatus();
    if (of_bridge && name == "num-query-groups") Add("group-query-attention");
    if (of_bridge && name == "seq-length") length_ = std::string(value);
    // Its synonyms say the other value; true is the default.
    const bool is_true = IsAnyOf(value, {"true", "yes", "on"});
    if (is_true && of_bridge && HasSynonym(name)) return absl::OkStatus();
    Add(name);
    if (value.empty()) key_ = line;
    if (!is_true && !value.empty()) options_.back().values = WordsOf(name, value);
    return absl::OkStatus();
  }

  static bool HasSynonym(absl::string_view name) {
    return std::any_of(std::begin(kSynonyms), std::end(kSynonyms),
                       [&](const Synonym& s) { return s.key == name; });
  }

  // One in quotes; a list's, of an option that takes several; or what is between spaces.
  static std::vector<std::string> WordsOf(absl::string_view name, absl::string_view value) {
    const absl::string_view bare = Unquoted(value);
    if (name == "recompute-modules" || name == "cuda-graph-scope") {
      return absl::StrSplit(bare, absl::ByAnyChar("[], "), absl::SkipEmpty());
    }
    if (bare.size() < value.size()) return {std::string(bare)};
    if (absl::StrContains("[(", value[0])) return {absl::StrReplaceAll(value, {{" ", ""}})};
    return absl::StrSplit(value, ' ', absl::SkipEmpty());
  }

  void Add(absl::string_view name) { options_.push_back({absl::StrCat("--", name), {}}); }

  // Megatron-Bridge's positions are as many as tokens where nothing is said.
  void AddPositions() {
    constexpr absl::string_view kPositions = "--max-position-embeddings";
    const bool given = std::any_of(options_.begin(), options_.end(),
                                   [&](const ShellOption& o) { return o.name == kPositions; });
    if (!given && !length_.empty()) options_.push_back({std::string(kPositions), {length_}});
  }

  const absl::string_view what_;
  std::vector<ShellOption> options_;
  bool in_options_ = false;
  size_t indent_ = 0;  // of the section's keys
  YamlLine key_;       // that has had no value yet
  std::string length_;
};

}  // namespace

bool IsYaml(absl::string_view text) {
  bool keys = false;
  for (const YamlLine& line : YamlLinesOf(text)) {
    if (line.indent > 0) continue;
    if (!KeyAndValue(line.text).has_value()) return false;
    keys = true;
  }
  return keys;
}

absl::StatusOr<std::vector<ShellOption>> ParseYamlOptions(absl::string_view text,
                                                          absl::string_view what) {
  return YamlReader(what).Read(text);
}

}  // namespace pipelab
