// A graph whose vertices are short texts with labels, as it is read; what it becomes for a graph
// network; and the baselines that one must beat.
//
//   PIPELAB_ASSIGN_OR_RETURN(TextGraph text, ParseMetamath(bytes, "set.mm"));
//   GraphData data = ToGraphData(text, /*width=*/128);
//   NaiveBayesAccuracy(text, data)                // 0.638
#ifndef PIPELAB_MODELS_DATA_TEXT_GRAPH_H_
#define PIPELAB_MODELS_DATA_TEXT_GRAPH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "models/data/graph_store.h"

namespace pipelab {

struct TextGraph {
  std::string name;
  CsrGraph graph;
  std::vector<std::string> words, classes;    // different ones, in the order of their first place
  std::vector<std::vector<int32_t>> words_V;  // [vertex] places in `words`, with repeats
  std::vector<int32_t> labels_V;              // places in `classes`
};

// Numbers names in the order in which they first come.
class NameNumbers {
 public:
  explicit NameNumbers(std::vector<std::string>* names) : names_(names) {}
  int32_t Of(absl::string_view name);

 private:
  std::vector<std::string>* const names_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

// A vertex's row is its bag of words, hashed (Weinberger et al., "Feature hashing for large scale
// multitask learning", ICML 2009): a word adds or subtracts log(1 + count) log(vertices / vertices
// that have it) at four columns, all by its own text; then squares are 1 on average. A fifth is
// held out, by seed 1.
GraphData ToGraphData(const TextGraph& text, int width);

// Share of the held-out vertices whose label is told right.
double LargestClassAccuracy(const GraphData& data);
// By the label that most training neighbours have (the smaller one of equal ones); the largest
// class for who has none.
double NeighbourAccuracy(const GraphData& data);
// Multinomial naive Bayes of the words, with a tenth of a count added to each (McCallum and Nigam,
// 1998).
double NaiveBayesAccuracy(const TextGraph& text, const GraphData& data);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_TEXT_GRAPH_H_
