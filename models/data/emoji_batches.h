// Batches of emoji: a picture, a name, and the group to tell.
//
//   EmojiOptions options;
//   const auto vocabulary = std::make_shared<const CharacterVocabulary>(NameVocabulary(data,
//   options)); EmojiBatchSource train(data.train, ScaleOf(data.train.images), vocabulary, options,
//                          ExampleOrder(data.train.names.size(), 64, seed, "data"));
//
// An example is a name: an emoji comes once for each language that names it.
// Fields: "image", floats (see images.h), "text" [T], ids of the name's first T characters or of
// the n-grams that end there, 0 behind them, "text_length" [1], how many these are, and "targets"
// [1], the group.
//
// For training, pictures can be shifted (on white) and flipped at random, and a share of the
// samples have one of their two inputs only, the picture or the name, so that a network of both
// learns to use each and does not lean on the one that it can learn by heart. All drawn by (seed,
// part, step, sample).
#ifndef PIPELAB_MODELS_DATA_EMOJI_BATCHES_H_
#define PIPELAB_MODELS_DATA_EMOJI_BATCHES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/data/character_vocabulary.h"
#include "models/data/emoji.h"
#include "models/data/example_source.h"
#include "models/data/images.h"

namespace pipelab {

inline constexpr char kText[] = "text";
inline constexpr char kTextLength[] = "text_length";

struct EmojiOptions {
  int64_t text_length = 24;  // T
  int64_t least_count = 5;   // of a character in the training names
  // Characters of a token. From 2 on a token is the n-gram that ends at its place (shorter at the
  // start), numbered by a hash: n-grams that are rare or new have a number too, and few share one.
  int64_t ngram = 1;
  int64_t ngram_rows = 8192;  // numbers of n-grams
  bool channels_last = true;
  Augmentation augmentation;
  double mask = 0;   // share of the tokens of names that become "unknown character"
  double blank = 0;  // share of samples with a white picture or the name "unknown character"
};

// Padding is 0, a character that is not in it 1.
CharacterVocabulary NameVocabulary(const EmojiData& data, const EmojiOptions& options);

// Ids of "text" are below it.
int64_t TextIds(const CharacterVocabulary& vocabulary, const EmojiOptions& options);

// The set with names of these locales alone; unknown ones are ignored.
EmojiSet KeepLocales(const EmojiData& data, const EmojiSet& set,
                     const std::vector<std::string>& locales);

// The emoji whose place in `kept` is true (one place each: CHECKed), with their names.
EmojiSet SelectEmoji(const EmojiSet& set, const std::vector<bool>& kept);

class EmojiBatchSource final : public ExampleSource {
 public:
  // The order's examples are the names (CHECKed).
  EmojiBatchSource(EmojiSet set, const PixelScale& scale,
                   std::shared_ptr<const CharacterVocabulary> vocabulary,
                   const EmojiOptions& options, ExampleOrder order);

 private:
  enum class Input : uint8_t { kNone, kImage, kText };
  Input BlankOf(const Draw& draw) const;
  std::vector<int32_t> TokensOf(const Draw& draw) const;  // at most T
  std::vector<int32_t> WholeTokensOf(int64_t example) const;
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const EmojiSet set_;
  const std::vector<float> value_;
  const std::shared_ptr<const CharacterVocabulary> vocabulary_;
  const EmojiOptions options_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_BATCHES_H_
