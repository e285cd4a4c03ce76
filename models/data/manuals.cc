#include "models/data/manuals.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "models/data/gettext_mo.h"
#include "models/data/utf8.h"
#include "pugixml.hpp"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

namespace fs = std::filesystem;

constexpr char kAligned[] = "gnome-help", kUnaligned[] = "system-admin-guide";
constexpr size_t kLeastWords = 5;

std::vector<absl::string_view> Words(absl::string_view text) {
  return absl::StrSplit(text, absl::ByAnyChar(" \t\r\n"), absl::SkipEmpty());
}

void AppendText(const pugi::xml_node& node, std::string* text) {
  for (const pugi::xml_node& child : node.children()) {
    if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) {
      text->append(child.value());
    }
    AppendText(child, text);
  }
}

void AppendBlocks(const pugi::xml_node& node, std::vector<TextBlock>* blocks) {
  for (const pugi::xml_node& child : node.children()) {
    const absl::string_view kind = child.name();
    if (kind != "p" && kind != "title" && kind != "desc") {
      AppendBlocks(child, blocks);
      continue;
    }
    std::string text;
    AppendText(child, &text);
    blocks->push_back({std::string(kind), absl::StrJoin(Words(text), " ")});
  }
}

// Names of a folder's files with this extension, sorted; none where there is no such folder.
std::vector<std::string> FilesIn(const std::string& dir, const char* extension) {
  std::error_code error;
  std::vector<std::string> names;
  for (fs::directory_iterator it(dir, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == extension) names.push_back(it->path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> PagesIn(const std::string& manual) { return FilesIn(manual, ".page"); }

absl::StatusOr<std::vector<TextBlock>> ReadPage(const std::string& dir, const std::string& page) {
  const std::string file = JoinPath(dir, page);
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(file));
  return ParseManualPage(contents, file);
}

bool SameKinds(const std::vector<TextBlock>& a, const std::vector<TextBlock>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const TextBlock& x, const TextBlock& y) { return x.kind == y.kind; });
}

absl::Status AddPairs(const std::string& english, const std::string& other,
                      std::vector<TextPair>* pairs) {
  std::set<std::string> sources, targets;
  for (const std::string& page : PagesIn(other)) {
    if (!PathExists(JoinPath(english, page))) continue;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextBlock> from, ReadPage(english, page));
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextBlock> to, ReadPage(other, page));
    if (!SameKinds(from, to)) continue;
    for (size_t i = 0; i < from.size(); ++i) {
      const std::string &source = from[i].text, &target = to[i].text;
      if (source.empty() || target.empty() || source == target) continue;
      if (sources.count(source) > 0 || targets.count(target) > 0) continue;
      sources.insert(source);
      targets.insert(target);
      pairs->push_back({source, target});
    }
  }
  return absl::OkStatus();
}

bool IsLong(absl::string_view text) { return Words(text).size() >= kLeastWords; }

// A manual's blocks in one language. Those of the two languages are of other pages, by the pages'
// hash.
absl::Status AddBlocks(const std::string& dir, uint64_t half, std::set<std::string>* texts) {
  for (const std::string& page : PagesIn(dir)) {
    if (StableHash(page) % 2 != half) continue;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextBlock> blocks, ReadPage(dir, page));
    for (const TextBlock& block : blocks) {
      if (IsLong(block.text)) texts->insert(block.text);
    }
  }
  return absl::OkStatus();
}

// What is the same in ids that differ in marks and accelerators alone ("_Open the file...").
std::string Letters(absl::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c))) {
      letters.push_back(absl::ascii_tolower(static_cast<unsigned char>(c)));
    }
  }
  return letters;
}

absl::Status AddStrings(const std::string& package_dir, absl::string_view locale,
                        std::set<std::string>* sources, std::set<std::string>* targets) {
  const std::string dir =
      JoinPath(package_dir, absl::StrCat("usr/share/locale/", locale, "/LC_MESSAGES"));
  for (const std::string& file : FilesIn(dir, ".mo")) {
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<MoEntry> entries, ReadMo(JoinPath(dir, file)));
    for (const MoEntry& e : entries) {
      if (!IsLong(e.id) || !IsLong(e.translation) || e.id == e.translation) continue;
      if (!DecodeUtf8(e.id).ok() || !DecodeUtf8(e.translation).ok()) continue;
      const bool is_source = StableHash(Letters(e.id)) % 2 == 0;
      (is_source ? sources : targets)
          ->insert(absl::StrJoin(Words(is_source ? e.id : e.translation), " "));
    }
  }
  return absl::OkStatus();
}

template <typename Get>
absl::StatusOr<ManualFolders> Folders(const Get& get) {
  ManualFolders folders;
  PIPELAB_ASSIGN_OR_RETURN(folders.manuals, get(ManualsPackage()));
  for (const DebianPackage& package : CataloguePackages()) {
    PIPELAB_ASSIGN_OR_RETURN(folders.catalogues.emplace_back(), get(package));
  }
  return folders;
}

}  // namespace

absl::StatusOr<std::vector<TextBlock>> ParseManualPage(absl::string_view contents,
                                                       absl::string_view file) {
  pugi::xml_document page;
  const pugi::xml_parse_result result =
      page.load_buffer(contents.data(), contents.size(),
                       pugi::parse_default | pugi::parse_ws_pcdata, pugi::encoding_utf8);
  if (!result) {
    return absl::DataLossError(
        absl::StrCat(file, ": byte ", result.offset, ": ", result.description()));
  }
  std::vector<TextBlock> blocks;
  AppendBlocks(page, &blocks);
  for (const TextBlock& block : blocks) {
    if (DecodeUtf8(block.text).ok()) continue;
    return absl::DataLossError(absl::StrCat(file, ": a ", block.kind, " is not UTF-8"));
  }
  return blocks;
}

const DebianPackage& ManualsPackage() {
  static const auto& package =
      *new DebianPackage{"gnome-user-docs", "43.0-2",
                         "0d635a840747958ca84da778b40d341f1155603851f922c9a171f5a181d6a39f"};
  return package;
}

const std::vector<DebianPackage>& CataloguePackages() {
  static const auto& packages = *new std::vector<DebianPackage>{
      {"gnucash-common", "1:4.13-1",
       "8477b415856eb671125ee63ac6a4ee1d23efeca3de6e55e5a14c6ebb32642b31"},
      {"darktable", "4.2.1-4", "68f31b90862a6be7c53d3df52aa32747ca22aeb75396ea3e944bd9317327ca76"},
      {"digikam-data", "4:7.9.0-1",
       "a941a504ba7bdf9d276a43ca3c2a0b2b5b74a55420d8c4b4f29d681e96cbf450"}};
  return packages;
}

absl::StatusOr<ManualFolders> FetchManuals(absl::string_view cache_dir,
                                           const FetchOptions& options) {
  return Folders([&](const DebianPackage& p) { return FetchDebianPackage(p, cache_dir, options); });
}

absl::StatusOr<ManualFolders> FindManuals(absl::string_view cache_dir,
                                          const FetchOptions& options) {
  return Folders([&](const DebianPackage& p) { return FindDebianPackage(p, cache_dir, options); });
}

absl::StatusOr<ParallelText> LoadManuals(const ManualFolders& folders, absl::string_view locale) {
  const std::string english = JoinPath(folders.manuals, "usr/share/help/C");
  const std::string other = JoinPath(folders.manuals, absl::StrCat("usr/share/help/", locale));
  ParallelText text;
  PIPELAB_RETURN_IF_ERROR(
      AddPairs(JoinPath(english, kAligned), JoinPath(other, kAligned), &text.pairs));
  if (text.pairs.empty()) {
    return absl::NotFoundError(absl::StrCat(other, ": no page that is translated"));
  }
  std::set<std::string> sources, targets;
  PIPELAB_RETURN_IF_ERROR(AddBlocks(JoinPath(english, kUnaligned), 0, &sources));
  PIPELAB_RETURN_IF_ERROR(AddBlocks(JoinPath(other, kUnaligned), 1, &targets));
  for (const std::string& dir : folders.catalogues) {
    PIPELAB_RETURN_IF_ERROR(AddStrings(dir, locale, &sources, &targets));
  }
  text.lone_sources.assign(sources.begin(), sources.end());
  text.lone_targets.assign(targets.begin(), targets.end());
  return text;
}

}  // namespace pipelab
