#include "models/data/text_corpus.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int kDocuments = 6;
constexpr int kWords = 600;
constexpr int kFollowers = 6;  // words that a word prefers to be followed by
constexpr size_t kLineWidth = 70;

// Consonant and vowel pairs, one to four of them: short words come first, as they do in languages.
std::vector<std::string> MakeLexicon(uint64_t seed) {
  const CounterRng rng(seed, "data/synthetic/lexicon");
  constexpr absl::string_view kConsonants = "bcdfghlmnprstvw", kVowels = "aeiou";
  std::vector<std::string> words;
  uint64_t draw = 0;
  for (int w = 0; w < kWords; ++w) {
    std::string word;
    const int pairs = 1 + w * 3 / kWords + static_cast<int>(rng.Below(draw++, 2));
    for (int i = 0; i < pairs; ++i) {
      word.push_back(kConsonants[rng.Below(draw++, kConsonants.size())]);
      word.push_back(kVowels[rng.Below(draw++, kVowels.size())]);
    }
    words.push_back(word);
  }
  return words;
}

// Three words in four are followers of the one before; the others are any, low numbers far more
// often.
class WordChain {
 public:
  WordChain(uint64_t seed, int document)
      : draws_(seed, absl::StrCat("data/synthetic/document", document)),
        followers_(seed, "data/synthetic/followers") {}

  int Next() {
    if (draws_.Below(draw_++, 4) != 0) {
      const uint64_t choice = draws_.Below(draw_++, kFollowers);
      word_ = static_cast<int>(followers_.Below(word_ * kFollowers + choice, kWords));
    } else {
      const double u = draws_.Uniform(draw_++);
      word_ = static_cast<int>(u * u * u * kWords);  // below kWords: u < 1
    }
    return word_;
  }
  uint64_t Below(uint64_t n) { return draws_.Below(draw_++, n); }

 private:
  CounterRng draws_, followers_;
  uint64_t draw_ = 0;
  uint64_t word_ = 0;
};

std::string MakeDocument(const std::vector<std::string>& lexicon, size_t bytes, uint64_t seed,
                         int document) {
  WordChain chain(seed, document);
  std::string text;
  size_t line = 0;
  bool sentence_starts = true;
  while (text.size() < bytes) {
    std::string word = lexicon[chain.Next()];
    if (sentence_starts) word[0] = absl::ascii_toupper(word[0]);
    sentence_starts = chain.Below(12) == 0;
    if (sentence_starts) word += '.';
    if (line + word.size() > kLineWidth) {
      text.back() = '\n';
      line = 0;
    }
    absl::StrAppend(&text, word, " ");
    line += word.size() + 1;
  }
  if (!text.empty()) text.back() = '\n';
  return text;
}

}  // namespace

int64_t TextCorpus::bytes() const {
  int64_t sum = 0;
  for (const std::string& text : documents) sum += static_cast<int64_t>(text.size());
  return sum;
}

int64_t TextCorpus::lines() const {
  int64_t sum = 0;
  for (const std::string& text : documents) sum += std::count(text.begin(), text.end(), '\n');
  return sum;
}

TextCorpus SyntheticCorpus(int64_t bytes, uint64_t seed) {
  const std::vector<std::string> lexicon = MakeLexicon(seed);
  TextCorpus corpus;
  corpus.name = "synthetic";
  for (int d = 0; d < kDocuments; ++d) {
    corpus.titles.push_back(absl::StrCat("generated ", d + 1));
    corpus.documents.push_back(
        MakeDocument(lexicon, static_cast<size_t>(bytes / kDocuments), seed, d));
  }
  return corpus;
}

}  // namespace pipelab
