// WordNet 3.0: a vertex is a synset (words of one meaning), an edge a pointer between two, the
// label the lexicographer's file (noun.animal, verb.motion, ...), the words those of its gloss.
// From Debian's package wordnet-base (WordNet's licence).
//
//   PIPELAB_ASSIGN_OR_RETURN(TextGraph text, FetchWordNetGraph(DefaultDataCache()));
//   text.graph.num_vertices()                               // 117,659, with 183,789 edges
//
// Format: wndb(5). Errors: see package_cache.h; DataLoss names file and line.
#ifndef PIPELAB_MODELS_DATA_WORDNET_GRAPH_H_
#define PIPELAB_MODELS_DATA_WORDNET_GRAPH_H_

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"
#include "models/data/text_graph.h"

namespace pipelab {

const DebianPackage& WordNetPackage();

// data.noun, data.verb, data.adj and data.adv.
using WordNetFiles = std::array<std::string, 4>;
absl::StatusOr<TextGraph> ParseWordNet(const WordNetFiles& files);

absl::StatusOr<TextGraph> LoadWordNetGraph(absl::string_view package_dir);
// From the cache, or through apt into the cache.
absl::StatusOr<TextGraph> FetchWordNetGraph(absl::string_view cache_dir,
                                            const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_WORDNET_GRAPH_H_
