// What a translation model must beat: copying the English name, and a dictionary of words.
//
//   const DictionaryTranslator dictionary(split.train);
//   const TranslationQuality q = Evaluate(split.held_out, [&](const Translation& t) {
//     return dictionary.Translate(t.locale, t.source);
//   });
#ifndef PIPELAB_MODELS_DATA_TRANSLATION_BASELINES_H_
#define PIPELAB_MODELS_DATA_TRANSLATION_BASELINES_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "models/data/translations.h"

namespace pipelab {

struct TranslationQuality {
  int64_t pairs = 0;
  double exact = 0;  // share that equals the reference
  double chrf = 0;   // of all pairs together, from 0 to 1
};

// `translate` says the source of each translation in its locale.
TranslationQuality Evaluate(const TranslationCorpus& corpus,
                            const std::function<std::string(const Translation&)>& translate);

// A whole name that was seen in the locale is said as it was (the first such translation, where
// there are several). Else word by word, in the source's order: the target word of the largest Dice
// coefficient 2 n(s, t) / (n(s) + n(t)), counts of training names of the locale with these words; a
// word that was never seen stays.
class DictionaryTranslator {
 public:
  explicit DictionaryTranslator(const TranslationCorpus& train);
  std::string Translate(int32_t locale, absl::string_view source) const;

 private:
  absl::flat_hash_map<std::string, std::string> names_, words_;  // keys: see KeyOf
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TRANSLATION_BASELINES_H_
