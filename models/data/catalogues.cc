#include "models/data/catalogues.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/data/folder.h"
#include "models/data/gettext_mo.h"
#include "models/data/utf8.h"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr size_t kLeastStringWords = 3;
constexpr uint64_t kHeldOutStrings = 10;  // one string in so many

// Without the mark in front of an accelerator key, where there is one: two may be something else.
std::string WithoutAccelerator(std::string text) {
  for (const char mark : {'_', '&'}) {
    const size_t at = text.find(mark);
    if (at == std::string::npos || at + 1 == text.size()) continue;
    if (text.find(mark, at + 1) != std::string::npos) continue;
    if (mark == '&' && text.find(';', at) != std::string::npos) continue;  // "&lt;"
    const auto next = static_cast<unsigned char>(text[at + 1]);
    if (absl::ascii_isalnum(next) || next >= 0x80) text.erase(at, 1);
  }
  return text;
}

std::string Clean(absl::string_view text) {
  return WithoutAccelerator(absl::StrJoin(SplitWords(text), " "));
}

bool IsHeldOutString(const TextPair& pair) {
  return StableHash(LettersOf(pair.source)) % kHeldOutStrings == 0;
}

}  // namespace

const std::vector<DebianPackage>& CataloguePackages() {
  static const auto& packages = *new std::vector<DebianPackage>{
      {"gnucash-common", "1:4.13-1",
       "8477b415856eb671125ee63ac6a4ee1d23efeca3de6e55e5a14c6ebb32642b31"},
      {"darktable", "4.2.1-4", "68f31b90862a6be7c53d3df52aa32747ca22aeb75396ea3e944bd9317327ca76"},
      {"digikam-data", "4:7.9.0-1",
       "a941a504ba7bdf9d276a43ca3c2a0b2b5b74a55420d8c4b4f29d681e96cbf450"}};
  return packages;
}

const std::vector<DebianPackage>& MessengerPackages() {
  static const auto& packages = *new std::vector<DebianPackage>{
      {"evolution-common", "3.46.4-2+deb12u1",
       "52e3a67ba3f2815fa864f600f5e3c2afd6ebc0b3487b50525df75006d4172b46"},
      {"pidgin-data", "2.14.12-1",
       "fe25279f89fdcc3b38874880f53bf205987e2048154cabc6fe529759e7d8df76"}};
  return packages;
}

const std::vector<DebianPackage>& OtherCataloguePackages() {
  static const auto& packages = *new std::vector<DebianPackage>{
      {"binutils-common", "2.40-2",
       "ab314134f43a0891a48f69a9bc33d825da748fa5e0ba2bebb7a5c491b026f1a0"},
      {"claws-mail-i18n", "4.1.1-2",
       "b00c313c90165e35ec55f61ab5e500ea13563430b7495c89dce3fd47da0d83b9"},
      {"kmymoney-common", "5.1.3-1",
       "9c42d420f6f1842b7829c9eefa6ca10a344e3840555930fbf7ccedf0865949dd"},
      {"libgtk-3-common", "3.24.38-2~deb12u3",
       "f2642d127d85440acbfc2ed404d3932d8b2fbe8a576ead7f93f35ac1fa999c92"},
      {"anjuta-common", "2:3.34.0-8",
       "b8fe5e742290509444ee11298bdb55e4fcfa6c1aa84c9c7a023b8a1c6f5860d4"}};
  return packages;
}

absl::StatusOr<std::vector<TextPair>> CatalogueStrings(const std::string& folder,
                                                       absl::string_view locale) {
  const std::string dir =
      JoinPath(folder, absl::StrCat("usr/share/locale/", locale, "/LC_MESSAGES"));
  std::vector<TextPair> strings;
  const absl::StatusOr<std::vector<std::string>> files = NamesIn(dir, ".mo");
  if (!files.ok()) return strings;
  for (const std::string& file : *files) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<MoEntry> entries, ReadMo(JoinPath(dir, file)));
    for (const MoEntry& e : entries) {
      if (!DecodeUtf8(e.id).ok() || !DecodeUtf8(e.translation).ok()) continue;
      TextPair pair = {Clean(e.id), Clean(e.translation)};
      if (pair.source.empty() || pair.target.empty() || pair.source == pair.target) continue;
      strings.push_back(std::move(pair));
    }
  }
  return strings;
}

absl::StatusOr<std::vector<TextPair>> LoadCatalogues(const std::vector<std::string>& folders,
                                                     absl::string_view locale) {
  std::set<std::string> sources, targets;
  std::vector<TextPair> pairs;
  for (const std::string& folder : folders) {
    PIPELAB_ASSIGN_OR_RETURN(std::vector<TextPair> strings, CatalogueStrings(folder, locale));
    for (TextPair& pair : strings) {
      if (SplitWords(pair.source).size() < kLeastStringWords) continue;
      const std::string letters = LettersOf(pair.source);
      if (sources.count(letters) > 0 || targets.count(pair.target) > 0) continue;
      sources.insert(letters);
      targets.insert(pair.target);
      pairs.push_back(std::move(pair));
    }
  }
  if (pairs.empty()) {
    return absl::NotFoundError(absl::StrCat(absl::StrJoin(folders, ", "), ": no string of ", locale,
                                            " that is translated"));
  }
  return pairs;
}

CatalogueSplit SplitCatalogues(const std::vector<TextPair>& pairs) {
  CatalogueSplit split;
  for (const TextPair& pair : pairs)
    (IsHeldOutString(pair) ? split.held_out : split.pool).push_back(pair);
  return split;
}

std::string LettersOf(absl::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (absl::ascii_isalnum(byte)) letters.push_back(absl::ascii_tolower(byte));
  }
  return letters;
}

std::vector<absl::string_view> SplitWords(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

}  // namespace pipelab
