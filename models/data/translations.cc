#include "models/data/translations.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "models/data/folder.h"
#include "models/data/gettext_mo.h"
#include "models/data/utf8.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHeldOutTwentieth = 0, kValidationTwentieth = 7;

uint64_t TwentiethOf(absl::string_view source) { return StableHash(source) % 20; }

enum class Part : uint8_t { kTrain, kHeldOut, kNeither };

template <typename PartOf>
TranslationSplit Split(const TranslationCorpus& corpus, const PartOf& part_of) {
  TranslationSplit split;
  for (TranslationCorpus* part : {&split.train, &split.held_out}) {
    part->name = corpus.name;
    part->locales = corpus.locales;
  }
  for (const Translation& t : corpus.translations) {
    const Part part = part_of(t.source);
    if (part == Part::kTrain) split.train.translations.push_back(t);
    if (part == Part::kHeldOut) split.held_out.translations.push_back(t);
  }
  return split;
}

// The entries of a folder that are of the wanted kind; links are left out.
absl::StatusOr<std::vector<std::string>> NamesOf(fs::file_type type, const std::string& dir) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<std::string> names, NamesIn(dir));
  const auto is_other = [&](const std::string& name) {
    std::error_code error;
    return fs::symlink_status(JoinPath(dir, name), error).type() != type;
  };
  names.erase(std::remove_if(names.begin(), names.end(), is_other), names.end());
  return names;
}

absl::Status ReadCatalogue(const std::string& path, int32_t locale,
                           std::vector<Translation>* translations) {
  PIPELAB_ASSIGN_OR_RETURN(std::vector<MoEntry> entries, ReadMo(path));
  for (MoEntry& e : entries) {
    if (e.id.empty() || e.translation.empty() || e.id == e.translation) continue;
    for (const std::string* text : {&e.id, &e.translation}) {
      if (DecodeUtf8(*text).ok()) continue;
      return absl::DataLossError(absl::StrCat(path, ": \"", e.id, "\": the text is not UTF-8"));
    }
    translations->push_back({locale, std::move(e.id), std::move(e.translation)});
  }
  return absl::OkStatus();
}

std::tuple<int32_t, const std::string&, const std::string&> SortKey(const Translation& t) {
  return {t.locale, t.source, t.target};
}

void SortOnce(std::vector<Translation>* translations) {
  std::sort(translations->begin(), translations->end(),
            [](const Translation& a, const Translation& b) { return SortKey(a) < SortKey(b); });
  translations->erase(std::unique(translations->begin(), translations->end(),
                                  [](const Translation& a, const Translation& b) {
                                    return SortKey(a) == SortKey(b);
                                  }),
                      translations->end());
}

// Two letters to two letters, by the language's own table.
std::string SpellWord(const std::string& word, const CounterRng& language) {
  std::string out;
  for (size_t i = 0; i + 1 < word.size(); i += 2) {
    const uint64_t syllable =
        static_cast<uint64_t>(word[i]) * 256 + static_cast<uint64_t>(word[i + 1]);
    out.push_back("bdfgklmnprstvz"[language.Below(2 * syllable, 14)]);
    out.push_back("aeiouy"[language.Below(2 * syllable + 1, 6)]);
  }
  return out;
}

std::string MakeName(uint64_t seed, uint64_t number) {
  const CounterRng rng(seed, absl::StrCat("data/synthetic/name", number));
  const uint64_t words = 1 + rng.Below(0, 2);
  std::string name;
  for (uint64_t w = 0; w < words; ++w) {
    const uint64_t syllables = 1 + rng.Below(1 + 16 * w, 3);
    if (w > 0) name.push_back(' ');
    for (uint64_t s = 0; s < syllables; ++s) {
      name.push_back("bcdfghlmnprst"[rng.Below(2 + 16 * w + 2 * s, 13)]);
      name.push_back("aeiou"[rng.Below(3 + 16 * w + 2 * s, 5)]);
    }
  }
  return name;
}

}  // namespace

const DebianPackage& IsoCodesPackage() {
  static const auto& package = *new DebianPackage{
      "iso-codes", "4.15.0-1", "b1beb869303229c38288d4ddacfd582c91f594759b5767c9cecebd87f16ff70e"};
  return package;
}

absl::StatusOr<TranslationCorpus> LoadIsoCodes(absl::string_view package_dir) {
  const std::string root = JoinPath(package_dir, "usr/share/locale");
  TranslationCorpus corpus;
  corpus.name = "iso-codes";
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> locales,
                           NamesOf(fs::file_type::directory, root));
  for (const std::string& locale : locales) {
    const std::string dir = JoinPath(JoinPath(root, locale), "LC_MESSAGES");
    if (!PathExists(dir)) continue;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> files,
                             NamesOf(fs::file_type::regular, dir));
    const size_t before = corpus.translations.size();
    for (const std::string& file : files) {
      if (!absl::StartsWith(file, "iso_") || !absl::EndsWith(file, ".mo")) continue;
      PIPELAB_RETURN_IF_ERROR(ReadCatalogue(
          JoinPath(dir, file), static_cast<int32_t>(corpus.locales.size()), &corpus.translations));
    }
    if (corpus.translations.size() > before) corpus.locales.push_back(locale);
  }
  if (corpus.translations.empty()) {
    return absl::DataLossError(absl::StrCat(root, ": no catalogue iso_*.mo with a translation"));
  }
  SortOnce(&corpus.translations);
  return corpus;
}

absl::StatusOr<TranslationCorpus> FetchIsoCodes(absl::string_view cache_dir,
                                                const FetchOptions& options) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string dir,
                           FetchDebianPackage(IsoCodesPackage(), cache_dir, options));
  return LoadIsoCodes(dir);
}

TranslationCorpus SyntheticTranslations(int64_t names, uint64_t seed) {
  TranslationCorpus corpus;
  corpus.name = "synthetic";
  corpus.locales = {"xa", "xb", "xc"};
  for (int32_t locale = 0; locale < 3; ++locale) {
    const CounterRng language(seed, absl::StrCat("data/synthetic/", corpus.locales[locale]));
    for (int64_t i = 0; i < names; ++i) {
      const std::string name = MakeName(seed, static_cast<uint64_t>(i));
      const size_t space = name.find(' ');
      std::string target = SpellWord(name.substr(0, space), language);
      if (space != std::string::npos) {
        const std::string second = SpellWord(name.substr(space + 1), language);
        target =
            locale == 1 ? absl::StrCat(second, " ", target) : absl::StrCat(target, " ", second);
      }
      if (target != name) corpus.translations.push_back({locale, name, target});
    }
  }
  SortOnce(&corpus.translations);
  return corpus;
}

bool IsHeldOut(absl::string_view source) { return TwentiethOf(source) == kHeldOutTwentieth; }

TranslationSplit SplitTranslations(const TranslationCorpus& corpus) {
  return Split(corpus, [](absl::string_view source) {
    return IsHeldOut(source) ? Part::kHeldOut : Part::kTrain;
  });
}

TranslationSplit SplitForValidation(const TranslationCorpus& corpus) {
  return Split(corpus, [](absl::string_view source) {
    if (IsHeldOut(source)) return Part::kNeither;
    return TwentiethOf(source) == kValidationTwentieth ? Part::kHeldOut : Part::kTrain;
  });
}

TranslationCorpus KeepLocales(const TranslationCorpus& corpus,
                              const std::vector<std::string>& locales) {
  const std::set<std::string> wanted(locales.begin(), locales.end());
  TranslationCorpus kept;
  kept.name = corpus.name;
  std::vector<int32_t> number(corpus.locales.size(), -1);
  for (size_t i = 0; i < corpus.locales.size(); ++i) {
    if (wanted.count(corpus.locales[i]) == 0) continue;
    number[i] = static_cast<int32_t>(kept.locales.size());
    kept.locales.push_back(corpus.locales[i]);
  }
  for (const Translation& t : corpus.translations) {
    if (number[t.locale] >= 0) kept.translations.push_back({number[t.locale], t.source, t.target});
  }
  return kept;
}

}  // namespace pipelab
