#include "models/data/manuals.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "models/data/folder.h"
#include "models/data/utf8.h"
#include "pugixml.hpp"
#include "tools/base/file.h"
#include "tools/base/rng.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kAligned[] = "gnome-help", kUnaligned[] = "system-admin-guide";
constexpr size_t kLeastSentenceWords = 5;
constexpr int kDeepest = 100;

// Stops where tags are nested deeper than any page's, so that no page can exhaust the stack.
class Depth final : public pugi::xml_tree_walker {
  bool for_each(pugi::xml_node&) override { return depth() < kDeepest; }
};

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
    blocks->push_back({std::string(kind), absl::StrJoin(SplitWords(text), " ")});
  }
}

std::vector<std::string> PagesIn(const std::string& manual) {
  return NamesIn(manual, ".page").value_or(std::vector<std::string>());
}

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

bool IsLong(absl::string_view text) { return SplitWords(text).size() >= kLeastSentenceWords; }

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

enum class Side : uint8_t { kSource, kTarget, kOneOfThem };

// Long strings of a package, in English, in the other language, or half of them in one and half in
// the other.
absl::Status AddStrings(const std::string& package_dir, absl::string_view locale, Side side,
                        std::set<std::string>* sources, std::set<std::string>* targets) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<TextPair> strings,
                           CatalogueStrings(package_dir, locale));
  for (const TextPair& pair : strings) {
    if (!IsLong(pair.source) || !IsLong(pair.target)) continue;
    const bool english = side == Side::kOneOfThem ? StableHash(LettersOf(pair.source)) % 2 == 0
                                                  : side == Side::kSource;
    (english ? sources : targets)->insert(english ? pair.source : pair.target);
  }
  return absl::OkStatus();
}

template <typename Get>
absl::StatusOr<ManualFolders> Folders(const Get& get) {
  ManualFolders folders;
  PIPELAB_ASSIGN_OR_RETURN(folders.manuals, get(ManualsPackage()));
  const auto get_all = [&](const std::vector<DebianPackage>& packages,
                           std::vector<std::string>* to) -> absl::Status {
    for (const DebianPackage& package : packages) {
      PIPELAB_ASSIGN_OR_RETURN(to->emplace_back(), get(package));
    }
    return absl::OkStatus();
  };
  PIPELAB_RETURN_IF_ERROR(get_all(CataloguePackages(), &folders.catalogues));
  PIPELAB_RETURN_IF_ERROR(get_all(MessengerPackages(), &folders.messengers));
  PIPELAB_RETURN_IF_ERROR(get_all(OtherCataloguePackages(), &folders.others));
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
  Depth depth;
  if (!page.traverse(depth)) {
    return absl::DataLossError(absl::StrCat(file, ": tags are nested deeper than ", kDeepest));
  }
  std::vector<TextBlock> blocks;
  AppendBlocks(page, &blocks);
  for (const TextBlock& block : blocks) {
    if (DecodeUtf8(block.text).ok()) continue;
    return absl::DataLossError(absl::StrCat(file, ": a ", block.kind, " is not UTF-8"));
  }
  return blocks;
}

std::vector<std::string> ManualFolders::AllCatalogues() const {
  std::vector<std::string> all = catalogues;
  all.insert(all.end(), messengers.begin(), messengers.end());
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

const DebianPackage& ManualsPackage() {
  static const auto& package =
      *new DebianPackage{"gnome-user-docs", "43.0-2",
                         "0d635a840747958ca84da778b40d341f1155603851f922c9a171f5a181d6a39f"};
  return package;
}

absl::StatusOr<ManualFolders> FetchManuals(absl::string_view cache_dir,
                                           const FetchOptions& options) {
  return Folders([&](const DebianPackage& p) { return FetchDebianPackage(p, cache_dir, options); });
}

absl::StatusOr<ManualFolders> FindManuals(absl::string_view cache_dir,
                                          const FetchOptions& options) {
  return Folders([&](const DebianPackage& p) { return FindDebianPackage(p, cache_dir, options); });
}

absl::StatusOr<ParallelText> LoadManuals(const ManualFolders& folders, absl::string_view locale,
                                         LoneText lone) {
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
  const bool apart = lone == LoneText::kApart;
  for (const std::string& dir : folders.catalogues) {
    PIPELAB_RETURN_IF_ERROR(
        AddStrings(dir, locale, apart ? Side::kTarget : Side::kOneOfThem, &sources, &targets));
  }
  for (const std::string& dir : folders.messengers) {
    if (!apart) break;
    PIPELAB_RETURN_IF_ERROR(AddStrings(dir, locale, Side::kSource, &sources, &targets));
  }
  text.lone_sources.assign(sources.begin(), sources.end());
  text.lone_targets.assign(targets.begin(), targets.end());
  return text;
}

}  // namespace pipelab
