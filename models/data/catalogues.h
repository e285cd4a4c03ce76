// Strings of programs and their translations, from gettext catalogues of Debian packages (GPL):
// text of both languages for mining, and pairs for translation.
//
//   PIPELAB_ASSIGN_OR_RETURN(const ManualFolders folders, FetchManuals(DefaultDataCache()));
//   PIPELAB_ASSIGN_OR_RETURN(auto pairs, LoadCatalogues(folders.AllCatalogues(), "ro"));
//   const CatalogueSplit split = SplitCatalogues(pairs);       // split.pool, split.held_out
//
// A string is what a catalogue in usr/share/locale/LOCALE/LC_MESSAGES has, with one space for each
// run of white space and without the mark of its accelerator key ("_Open", "&Open"). What is not
// UTF-8 or is alike in both languages is left out.
//
// Errors: see package_cache.h and gettext_mo.h; NotFound for a language without a pair.
#ifndef PIPELAB_MODELS_DATA_CATALOGUES_H_
#define PIPELAB_MODELS_DATA_CATALOGUES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"

namespace pipelab {

struct TextPair {
  std::string source, target;  // English, the other language
};

// Programs for money and photographs (gnucash, darktable, digikam), for mail and chat (evolution,
// pidgin), and of other kinds (binutils, claws-mail, kmymoney, gtk, anjuta).
const std::vector<DebianPackage>& CataloguePackages();
const std::vector<DebianPackage>& MessengerPackages();
const std::vector<DebianPackage>& OtherCataloguePackages();

// Every string of one package, in the order of its files; none where it does not have the language.
absl::StatusOr<std::vector<TextPair>> CatalogueStrings(const std::string& folder,
                                                       absl::string_view locale);

// Strings of three words and more of all packages, without a pair of which either side came before:
// the alignment is one to one. English strings that differ in marks and case alone count as one.
absl::StatusOr<std::vector<TextPair>> LoadCatalogues(const std::vector<std::string>& folders,
                                                     absl::string_view locale);

// A tenth is held out, by the hash of the English letters. No string of either language is in both
// parts.
struct CatalogueSplit {
  std::vector<TextPair> pool, held_out;
};
CatalogueSplit SplitCatalogues(const std::vector<TextPair>& pairs);

// ASCII letters and digits in lower case: what strings have in common that differ in marks alone.
std::string LettersOf(absl::string_view text);
// What white space parts.
std::vector<absl::string_view> SplitWords(absl::string_view text);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_CATALOGUES_H_
