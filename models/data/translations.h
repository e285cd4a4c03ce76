// Translations of names: languages, countries, regions, currencies and scripts in 157 locales, from
// the catalogues of Debian's package iso-codes (LGPL-2.1+). Names, not sentences.
//
//   PIPELAB_ASSIGN_OR_RETURN(TranslationCorpus corpus, FetchIsoCodes(DefaultDataCache()));
//   const TranslationSplit split = SplitTranslations(corpus);      // 190,025 in all
//
// Entries: every catalogue usr/share/locale/LOCALE/LC_MESSAGES/iso_*.mo that is a file (links
// repeat others), less those without an original, without a translation, or with both alike; equal
// entries once. Split: by a hash of the English string alone, so that no held-out name is ever seen
// in training in any language. Errors: see package_cache.h and gettext_mo.h.
#ifndef PIPELAB_MODELS_DATA_TRANSLATIONS_H_
#define PIPELAB_MODELS_DATA_TRANSLATIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"

namespace pipelab {

struct Translation {
  int32_t locale;  // place in TranslationCorpus::locales
  std::string source, target;
};

struct TranslationCorpus {
  std::string name;                       // "iso-codes", "synthetic"
  std::vector<std::string> locales;       // sorted: "ab", "ace", ..., "sr@latin", ...
  std::vector<Translation> translations;  // sorted by locale, source, target; no two alike
};

const DebianPackage& IsoCodesPackage();

absl::StatusOr<TranslationCorpus> LoadIsoCodes(absl::string_view package_dir);

// From the cache, or through apt into the cache.
absl::StatusOr<TranslationCorpus> FetchIsoCodes(absl::string_view cache_dir,
                                                const FetchOptions& options = {});

// Generated names in three made-up languages, each with its own rule to spell syllables and order
// words.
TranslationCorpus SyntheticTranslations(int64_t names, uint64_t seed);

// One English string in twenty, by StableHash, is held out.
bool IsHeldOut(absl::string_view source);
struct TranslationSplit {
  TranslationCorpus train, held_out;  // with all locales
};
TranslationSplit SplitTranslations(const TranslationCorpus& corpus);
// For choosing settings: what is held out is in neither part, and another string in twenty is held
// out in its place.
TranslationSplit SplitForValidation(const TranslationCorpus& corpus);

// What is in one of these locales; unknown ones are ignored. Locales are renumbered.
TranslationCorpus KeepLocales(const TranslationCorpus& corpus,
                              const std::vector<std::string>& locales);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TRANSLATIONS_H_
