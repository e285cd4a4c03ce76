// Batches of emoji: a picture, a name, and the group to tell.
//
//   EmojiOptions options;
//   const auto vocabulary = std::make_shared<const CharacterVocabulary>(NameVocabulary(data,
//   options)); EmojiBatchSource train(data.train, ScaleOf(data.train.images), vocabulary, options,
//                          ExampleOrder(data.train.names.size(), 64, seed, "data"));
//
// An example is a name: an emoji comes once for each language that names it.
// Fields: "image", floats (see images.h), "text" [T], ids of the name's first T characters, 0
// behind them, "text_length" [1], how many these are, and "targets" [1], the group.
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
  bool channels_last = true;
};

// Padding is 0, a character that is not in it 1.
CharacterVocabulary NameVocabulary(const EmojiData& data, const EmojiOptions& options);

// The set with names of these locales alone; unknown ones are ignored.
EmojiSet KeepLocales(const EmojiData& data, const EmojiSet& set,
                     const std::vector<std::string>& locales);

class EmojiBatchSource final : public ExampleSource {
 public:
  // The order's examples are the names (CHECKed).
  EmojiBatchSource(EmojiSet set, const PixelScale& scale,
                   std::shared_ptr<const CharacterVocabulary> vocabulary,
                   const EmojiOptions& options, ExampleOrder order);

 private:
  std::vector<int32_t> TokensOf(int64_t example) const;  // at most T
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const EmojiSet set_;
  const std::vector<float> value_;
  const std::shared_ptr<const CharacterVocabulary> vocabulary_;
  const EmojiOptions options_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_BATCHES_H_
