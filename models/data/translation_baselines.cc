#include "models/data/translation_baselines.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/data/chrf.h"

namespace pipelab {
namespace {

std::string KeyOf(int32_t locale, absl::string_view text) {
  return absl::StrCat(locale, "\t", text);
}

std::set<std::string> DistinctWords(absl::string_view text) {
  return absl::StrSplit(text, ' ', absl::SkipEmpty());
}

}  // namespace

TranslationQuality Evaluate(const TranslationCorpus& corpus,
                            const std::function<std::string(const Translation&)>& translate) {
  TranslationQuality quality;
  Chrf chrf;
  int64_t exact = 0;
  for (const Translation& t : corpus.translations) {
    const std::string said = translate(t);
    exact += said == t.target;
    chrf.Add(said, t.target);
    ++quality.pairs;
  }
  if (quality.pairs == 0) return quality;
  quality.exact = static_cast<double>(exact) / static_cast<double>(quality.pairs);
  quality.chrf = chrf.Value();
  return quality;
}

DictionaryTranslator::DictionaryTranslator(const TranslationCorpus& train) {
  absl::flat_hash_map<std::string, int64_t> source_count, target_count;
  absl::flat_hash_map<std::pair<std::string, std::string>, int64_t> count;
  for (const Translation& t : train.translations) {
    names_.emplace(KeyOf(t.locale, t.source), t.target);
    const std::set<std::string> targets = DistinctWords(t.target);
    for (const std::string& v : targets) ++target_count[KeyOf(t.locale, v)];
    for (const std::string& w : DistinctWords(t.source)) {
      const std::string key = KeyOf(t.locale, w);
      ++source_count[key];
      for (const std::string& v : targets) ++count[{key, v}];
    }
  }
  absl::flat_hash_map<std::string, double> best;
  for (const auto& [pair, both] : count) {
    const auto& [key, v] = pair;
    const absl::string_view locale = absl::string_view(key).substr(0, key.find('\t'));
    const int64_t alone = source_count[key] + target_count[absl::StrCat(locale, "\t", v)];
    const double dice = 2 * static_cast<double>(both) / static_cast<double>(alone);
    std::string& word = words_[key];
    double& most = best[key];
    if (dice < most || (dice == most && word <= v)) continue;  // among equals the first by bytes
    word = v;
    most = dice;
  }
}

std::string DictionaryTranslator::Translate(int32_t locale, absl::string_view source) const {
  const auto name = names_.find(KeyOf(locale, source));
  if (name != names_.end()) return name->second;
  std::vector<std::string> said;
  for (const absl::string_view w : absl::StrSplit(source, ' ', absl::SkipEmpty())) {
    const auto word = words_.find(KeyOf(locale, w));
    said.push_back(word == words_.end() ? std::string(w) : word->second);
  }
  return absl::StrJoin(said, " ");
}

}  // namespace pipelab
