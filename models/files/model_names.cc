#include "models/files/model_names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/base/did_you_mean.h"

namespace pipelab {
namespace {

struct OtherName {
  absl::string_view name, model;
};

// Models of the architecture, and so of the costs, of one that is known.
constexpr OtherName kOtherNames[] = {
    {"gpt-3-13b", "terapipe-13b"},
    {"gpt-3-175b", "terapipe-175b"},
    {"llama-3.1-8b", "llama-3-8b"},
    {"llama-3.1-70b", "llama-3-70b"},
    {"llama-3.1-405b", "llama-3-405b"},
    {"llama-3.3-70b", "llama-3-70b"},
    {"mistral-7b-v0.1", "mistral-7b"},
    {"mixtral-8x7b-v0.1", "mixtral-8x7b"},
    {"qwen2-0.5b", "qwen2.5-0.5b"},
    {"qwen2-7b", "qwen2.5-7b"},
    {"qwen2-72b", "qwen2.5-72b"},
    {"deepseek-v3-671b", "deepseek-v3"},
    {"deepseek-v3.1", "deepseek-v3"},
    {"deepseek-r1", "deepseek-v3"},
    {"kimi-k2-1t", "kimi-k2"},
    {"bert-base-uncased", "bert-base"},
    {"bert-large-uncased", "bert-large"},
};

// "Qwen3-8B" of "Qwen/Qwen3-8B".
absl::string_view WithoutOwner(absl::string_view word) {
  const size_t slash = word.rfind('/');
  return slash == absl::string_view::npos ? word : word.substr(slash + 1);
}

std::vector<absl::string_view> KnownNames(bool small) {
  std::vector<absl::string_view> names;
  for (const PublishedModel& m : PublishedModels()) {
    if (small || !absl::EndsWith(m.name, "-small")) names.push_back(m.name);
  }
  for (const OtherName& other : kOtherNames) names.push_back(other.name);
  return names;
}

const PublishedModel* ModelCalled(absl::string_view name) {
  for (const OtherName& other : kOtherNames) {
    if (other.name == name) name = other.model;
  }
  for (const PublishedModel& m : PublishedModels()) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

// The one model that all names are of.
NamedModel TheOneOf(const std::vector<absl::string_view>& names) {
  NamedModel found;
  for (const absl::string_view name : names) {
    const PublishedModel* model = ModelCalled(name);
    if (found.model != nullptr && found.model != model) return {};
    if (found.model == model) continue;
    found.model = model;
    found.note = absl::StrCat(model->name, " is taken",
                              name == model->name ? "" : ", which has its architecture");
  }
  return found;
}

// "2507", of a year and a month or of a month and a day.
bool IsDate(absl::string_view word) {
  return word.size() == 4 && std::all_of(word.begin(), word.end(), absl::ascii_isdigit);
}

}  // namespace

NamedModel FindPublished(absl::string_view word) {
  for (const PublishedModel& m : PublishedModels()) {
    if (m.name == word) return {&m, ""};
  }
  const absl::string_view name = WithoutOwner(word);
  std::vector<std::string> words = NameWords(name);
  const std::vector<absl::string_view> known =
      KnownNames(std::find(words.begin(), words.end(), "small") != words.end());
  const NamedModel found = TheOneOf(MeantByWords(name, known));
  if (found.model != nullptr || words.empty()) return found;
  const bool dated = IsDate(words.back());
  if (dated) words.pop_back();
  const auto further = std::remove_if(words.begin(), words.end(), [](const std::string& w) {
    return w == "meta" || w == "instruct" || w == "base" || w == "chat" || w == "hf" || w == "it" ||
           w == "pt";
  });
  if (further == words.end() && !dated) return {};
  words.erase(further, words.end());
  const std::vector<absl::string_view> meant = MeantByWords(absl::StrJoin(words, "-"), known);
  // No date stands for words that are left out.
  if (dated && !meant.empty() && NameWords(meant[0]).size() > words.size()) return {};
  return TheOneOf(meant);
}

std::string NearestPublished(absl::string_view word) {
  return NearestOrAll(WithoutOwner(word), KnownNames(/*small=*/true));
}

}  // namespace pipelab
