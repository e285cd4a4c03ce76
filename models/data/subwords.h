// Frequent pieces of words as tokens: byte-pair encoding on characters (Sennrich et al., "Neural
// machine translation of rare words with subword units", ACL 2016).
//
//   const Subwords subwords = Subwords::Learn(texts, /*merges=*/1000);
//   const std::string pieces = subwords.Encode("Open the file");       // a character a piece
//   subwords.Decode(pieces);                                           // "Open the file"
//
// A merge makes one piece of the two that stand side by side most often; of equals the smaller by
// code points. Pieces stay within words; the space in front belongs to the word. Merged piece i is
// the character U+E000 + i of Unicode's private use area, so that whatever reads characters reads
// pieces (TranslationVocabulary). Texts are UTF-8; their own private characters are lost (U+FFFD).
#ifndef PIPELAB_MODELS_DATA_SUBWORDS_H_
#define PIPELAB_MODELS_DATA_SUBWORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"

namespace pipelab {

class Subwords {
 public:
  static constexpr int kMostMerges = 6400;  // of the private use area

  // Fewer merges where no two pieces stand side by side twice. 0 to kMostMerges (CHECKed).
  static Subwords Learn(const std::vector<std::string>& texts, int merges);

  std::string Encode(absl::string_view text) const;
  std::string Decode(absl::string_view pieces) const;
  int merges() const { return static_cast<int>(parts_.size()); }

 private:
  using Pieces = std::vector<uint32_t>;
  using Pair = std::pair<uint32_t, uint32_t>;

  static Pieces WithMerge(const Pieces& word, const Pair& pair, uint32_t merged);
  void AppendText(uint32_t piece, std::string* text) const;

  std::vector<Pair> parts_;                        // of each merged piece
  absl::flat_hash_map<Pair, uint32_t> merged_of_;  // the reverse
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_SUBWORDS_H_
