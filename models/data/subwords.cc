#include "models/data/subwords.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "glog/logging.h"
#include "models/data/character_vocabulary.h"
#include "models/data/utf8.h"

namespace pipelab {
namespace {

constexpr uint32_t kFirstMerge = 0xE000, kReplacement = 0xFFFD;

// Words as characters, each with a space in front.
std::vector<std::vector<uint32_t>> PiecesOfWords(absl::string_view text) {
  std::vector<std::vector<uint32_t>> words;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    words.push_back(CharactersOf(absl::StrCat(" ", word)));
    for (uint32_t& c : words.back()) {
      if (c >= kFirstMerge && c < kFirstMerge + Subwords::kMostMerges) c = kReplacement;
      if (c == kNoCharacter) c = kReplacement;
    }
  }
  return words;
}

}  // namespace

Subwords::Pieces Subwords::WithMerge(const Pieces& word, const Pair& pair, uint32_t merged) {
  Pieces now;
  for (size_t i = 0; i < word.size(); ++i) {
    const bool here = i + 1 < word.size() && word[i] == pair.first && word[i + 1] == pair.second;
    now.push_back(here ? merged : word[i]);
    if (here) ++i;
  }
  return now;
}

Subwords Subwords::Learn(const std::vector<std::string>& texts, int merges) {
  CHECK(merges >= 0 && merges <= kMostMerges) << merges;
  std::map<Pieces, int64_t> counts;
  for (const std::string& text : texts) {
    for (const Pieces& word : PiecesOfWords(text)) ++counts[word];
  }
  std::vector<std::pair<Pieces, int64_t>> words(counts.begin(), counts.end());
  Subwords subwords;
  while (subwords.merges() < merges) {
    absl::flat_hash_map<Pair, int64_t> together;
    for (const auto& [word, count] : words) {
      for (size_t i = 0; i + 1 < word.size(); ++i) together[{word[i], word[i + 1]}] += count;
    }
    Pair best;
    int64_t most = 1;
    for (const auto& [pair, count] : together) {
      if (count < most || (count == most && (most == 1 || best < pair))) continue;
      best = pair;
      most = count;
    }
    if (most < 2) break;
    const uint32_t merged = kFirstMerge + static_cast<uint32_t>(subwords.merges());
    subwords.parts_.push_back(best);
    subwords.merged_of_[best] = merged;
    for (auto& [word, count] : words) word = WithMerge(word, best, merged);
  }
  return subwords;
}

std::string Subwords::Encode(absl::string_view text) const {
  std::string encoded;
  for (Pieces word : PiecesOfWords(text)) {
    while (true) {
      // The earliest merge that the word has: they apply in the order in which they were learned.
      uint32_t first = kFirstMerge + kMostMerges;
      for (size_t i = 0; i + 1 < word.size(); ++i) {
        const auto it = merged_of_.find({word[i], word[i + 1]});
        if (it != merged_of_.end()) first = std::min(first, it->second);
      }
      if (first == kFirstMerge + kMostMerges) break;
      word = WithMerge(word, parts_[first - kFirstMerge], first);
    }
    for (const uint32_t piece : word) encoded += EncodeUtf8(piece);
  }
  return encoded;
}

void Subwords::AppendText(uint32_t piece, std::string* text) const {
  if (piece < kFirstMerge || piece >= kFirstMerge + parts_.size()) {
    *text += EncodeUtf8(piece == kNoCharacter ? kReplacement : piece);
    return;
  }
  AppendText(parts_[piece - kFirstMerge].first, text);
  AppendText(parts_[piece - kFirstMerge].second, text);
}

std::string Subwords::Decode(absl::string_view pieces) const {
  std::string text;
  for (const uint32_t piece : CharactersOf(pieces)) AppendText(piece, &text);
  if (!text.empty() && text[0] == ' ') text.erase(0, 1);  // the first word's
  return text;
}

}  // namespace pipelab
