// What a data set holds, and the figures that a model must beat on it, as text for a terminal.
//
//   std::cout << Summary(*LoadMovieLens(dir));
//
// The figures of docs/data.md are these, printed by `bazel run //models/data:fetch`. Splits have
// seed 1.
#ifndef PIPELAB_MODELS_DATA_SUMMARIES_H_
#define PIPELAB_MODELS_DATA_SUMMARIES_H_

#include <string>

#include "absl/status/statusor.h"
#include "models/data/camera_frames.h"
#include "models/data/descriptors.h"
#include "models/data/emoji.h"
#include "models/data/images.h"
#include "models/data/manuals.h"
#include "models/data/ratings.h"
#include "models/data/text_corpus.h"
#include "models/data/text_graph.h"
#include "models/data/translations.h"

namespace pipelab {

// Sizes and n-gram losses, for samples of 128 tokens.
absl::StatusOr<std::string> Summary(const TextCorpus& corpus);
// Sizes, and the accuracy of the nearest class mean.
std::string Summary(const ImageData& data);
// Sizes; exact matches and chrF of copying and of the dictionary.
std::string Summary(const TranslationCorpus& corpus);
// Sizes.
std::string Summary(const ParallelText& text);
// Sizes, and the area under the ROC curve of the bias model.
std::string Summary(const RatingTable& table);
// Sizes, and the R2 of 5 nearest neighbours over all folds.
std::string Summary(const DescriptorTable& table);

// Sizes, and the error of copying.
std::string Summary(const FrameStream& frames);

// Sizes, and the accuracy of the largest class, of neighbours' labels and of naive Bayes.
std::string Summary(const TextGraph& graph);

// Sizes; the share of the largest group, and the accuracy of the nearest group mean of the
// pictures.
std::string Summary(const EmojiData& data);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_SUMMARIES_H_
