#include "models/data/text_graph.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/base/rng.h"

namespace pipelab {
namespace {

constexpr int kColumnsOfWord = 4;
constexpr double kAdded = 0.1;  // of naive Bayes, to each count

int LargestClass(const GraphData& data) {
  std::vector<int64_t> counts(data.classes);
  for (int32_t v : data.train) ++counts[data.labels_V[v]];
  return static_cast<int>(std::max_element(counts.begin(), counts.end()) - counts.begin());
}

template <class Predict>
double AccuracyOf(const GraphData& data, const Predict& predict) {
  int64_t right = 0;
  for (int32_t v : data.test) right += predict(v) == data.labels_V[v];
  return static_cast<double>(right) / static_cast<double>(data.test.size());
}

std::map<int32_t, int> Counts(const std::vector<int32_t>& words) {
  std::map<int32_t, int> counts;
  for (int32_t w : words) ++counts[w];
  return counts;
}

}  // namespace

int32_t NameNumbers::Of(absl::string_view name) {
  const auto it = numbers_.find(name);
  if (it != numbers_.end()) return it->second;
  const auto number = static_cast<int32_t>(names_->size());
  names_->emplace_back(name);
  numbers_.emplace(name, number);
  return number;
}

GraphData ToGraphData(const TextGraph& text, int width) {
  const int32_t vertices = text.graph.num_vertices();
  GraphData data;
  data.name = text.name;
  data.graph = text.graph;
  data.width = width;
  data.labels_V = text.labels_V;
  data.classes = static_cast<int>(text.classes.size());
  data.rows_VW.resize(int64_t{vertices} * width);
  std::vector<double> vertices_of_word(text.words.size());
  for (const auto& words : text.words_V) {
    for (const auto& [word, count] : Counts(words)) ++vertices_of_word[word];
  }
  for (int32_t v = 0; v < vertices; ++v) {
    float* const row = data.rows_VW.data() + int64_t{v} * width;
    for (const auto& [word, count] : Counts(text.words_V[v])) {
      const double weight = std::log1p(count) * std::log(vertices / vertices_of_word[word]);
      const CounterRng rng(0, text.words[word]);
      for (int i = 0; i < kColumnsOfWord; ++i) {
        const auto place = rng.Below(i, 2 * static_cast<uint64_t>(width));
        row[place / 2] += static_cast<float>(place % 2 == 0 ? weight : -weight);
      }
    }
    double squares = 0;
    for (int k = 0; k < width; ++k) squares += double{row[k]} * row[k];
    const auto scale = static_cast<float>(squares > 0 ? std::sqrt(width / squares) : 0);
    for (int k = 0; k < width; ++k) row[k] *= scale;
  }
  SplitVertices(1, &data);
  return data;
}

double LargestClassAccuracy(const GraphData& data) {
  const int largest = LargestClass(data);
  return AccuracyOf(data, [&](int32_t) { return largest; });
}

double NeighbourAccuracy(const GraphData& data) {
  const int largest = LargestClass(data);
  std::vector<bool> trained(data.graph.num_vertices());
  for (int32_t v : data.train) trained[v] = true;
  return AccuracyOf(data, [&](int32_t v) {
    std::map<int32_t, int> votes;
    for (int32_t u : data.graph.neighbours(v)) {
      if (trained[u]) ++votes[data.labels_V[u]];
    }
    int best = largest, most = 0;
    for (const auto& [label, count] : votes) {
      if (count > most) best = label, most = count;
    }
    return best;
  });
}

double NaiveBayesAccuracy(const TextGraph& text, const GraphData& data) {
  const size_t words = text.words.size(), classes = text.classes.size();
  std::vector<double> counts(words * classes, kAdded);
  std::vector<double> sums(classes, kAdded * static_cast<double>(words));
  std::vector<double> prior(classes);
  for (int32_t v : data.train) {
    const int32_t label = data.labels_V[v];
    ++prior[label];
    for (int32_t w : text.words_V[v]) ++counts[w * classes + label], ++sums[label];
  }
  return AccuracyOf(data, [&](int32_t v) {
    std::vector<double> score(classes);
    for (size_t c = 0; c < classes; ++c) score[c] = std::log(prior[c]);  // -infinity of none
    for (int32_t w : text.words_V[v]) {
      for (size_t c = 0; c < classes; ++c) score[c] += std::log(counts[w * classes + c] / sums[c]);
    }
    return static_cast<int32_t>(std::max_element(score.begin(), score.end()) - score.begin());
  });
}

}  // namespace pipelab
