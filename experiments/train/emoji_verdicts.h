// How right a network is about emoji that have several names each.
//
//   const EmojiVerdicts v = VerdictsOf(data.held_out, logits);
//   MeanOf(v.by_name);                       // accuracy for a picture and one name, with its error
//
// A sample is a picture and one name. Emoji weigh the same, whatever number of names they have, and
// are the sample that errors are about: names of one emoji share its picture and their roots.
#ifndef PIPELAB_EXPERIMENTS_TRAIN_EMOJI_VERDICTS_H_
#define PIPELAB_EXPERIMENTS_TRAIN_EMOJI_VERDICTS_H_

#include <vector>

#include "absl/types/span.h"
#include "models/data/emoji.h"

namespace pipelab {

// The verdicts on each emoji of a set.
struct EmojiVerdicts {
  std::vector<double> by_name;   // the share of its names under which the group is right
  std::vector<double> together;  // 1 where the largest sum of log-probabilities over them is right
};

// `logits` are [name, group], in the order of set.names; every emoji has a name (CHECKed).
EmojiVerdicts VerdictsOf(const EmojiSet& set, absl::Span<const float> logits);

// Emoji by emoji, over the repeats of a training.
std::vector<double> MeanOver(const std::vector<EmojiVerdicts>& repeats,
                             std::vector<double> EmojiVerdicts::*which);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_TRAIN_EMOJI_VERDICTS_H_
