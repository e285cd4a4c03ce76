// Parallel text with a known alignment: the GNOME desktop's manual in English and another language,
// from Debian's package gnome-user-docs (CC-BY-SA-3.0); and text of both languages that has no
// partner, from the administrators' manual of the same package and catalogues (catalogues.h).
//
//   PIPELAB_ASSIGN_OR_RETURN(const ManualFolders folders, FetchManuals(DefaultDataCache()));
//   PIPELAB_ASSIGN_OR_RETURN(const ParallelText text, LoadManuals(folders, "de"));
//   text.pairs[0].source, text.pairs[0].target;        // a paragraph and its translation
//
// Pages are Mallard (projectmallard.org/1.0). A block is a paragraph, a title or a description, its
// text without tags and with one space for each run of white space. Pages of one name with equal
// lists of kinds of blocks are aligned block by block. Blocks that are alike in both languages are
// left out, and so is a pair of which either side came before: the alignment is one to one.
//
// Without a partner are blocks and strings of five words and more. No string gives both sides.
//
// Errors: see package_cache.h and gettext_mo.h; DataLoss for a page that is not XML, with file and
// byte; NotFound for a language that the manual does not have.
#ifndef PIPELAB_MODELS_DATA_MANUALS_H_
#define PIPELAB_MODELS_DATA_MANUALS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/catalogues.h"
#include "models/data/package_cache.h"

namespace pipelab {

struct TextBlock {
  std::string kind;  // "p", "title", "desc"
  std::string text;
};

// In the order of the page; `file` names it in errors.
absl::StatusOr<std::vector<TextBlock>> ParseManualPage(absl::string_view contents,
                                                       absl::string_view file);

struct ParallelText {
  std::vector<TextPair> pairs;                          // sorted by page, then as in the page
  std::vector<std::string> lone_sources, lone_targets;  // sorted; each once
};

struct ManualFolders {
  std::string manuals;
  // As CataloguePackages, MessengerPackages, OtherCataloguePackages.
  std::vector<std::string> catalogues, messengers, others = {};

  std::vector<std::string> AllCatalogues() const;
};

const DebianPackage& ManualsPackage();

// From the cache, or through apt into it; and from the cache alone.
absl::StatusOr<ManualFolders> FetchManuals(absl::string_view cache_dir,
                                           const FetchOptions& options = {});
absl::StatusOr<ManualFolders> FindManuals(absl::string_view cache_dir,
                                          const FetchOptions& options = {});

// Where text without a partner comes from, beside the administrators' manual: strings of messengers
// in English and of the catalogues in the other language; or of the catalogues alone, each string
// in one of the two languages, by the hash of its letters. Then the other language has neighbours
// of most strings, such as "1st quarter" and "2nd quarter".
enum class LoneText : uint8_t { kApart, kHalves };

absl::StatusOr<ParallelText> LoadManuals(const ManualFolders& folders, absl::string_view locale,
                                         LoneText lone = LoneText::kApart);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_MANUALS_H_
