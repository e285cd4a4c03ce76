#include "models/mining/word_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "glog/logging.h"

namespace pipelab {
namespace {

constexpr float kLeast = 1e-3f;

// The cells of the table that the pairs use, numbered as they come. Cells of target word after
// target word, each with the null word's first, follow each other in `uses`.
struct Cells {
  std::vector<std::pair<int32_t, int32_t>> words;  // source (the null word is the last), target
  std::vector<int32_t> uses;
};

Cells NumberCells(const std::vector<WordPair>& pairs, int32_t source_words) {
  Cells cells;
  absl::flat_hash_map<std::pair<int32_t, int32_t>, int32_t> numbers;
  const auto use = [&](int32_t source, int32_t target) {
    const auto next = static_cast<int32_t>(cells.words.size());
    const auto [it, is_new] = numbers.try_emplace({source, target}, next);
    if (is_new) cells.words.emplace_back(source, target);
    cells.uses.push_back(it->second);
  };
  for (const WordPair& pair : pairs) {
    for (const int32_t target : *pair.target) {
      use(source_words, target);
      for (const int32_t source : *pair.source) {
        CHECK(source >= 0 && source < source_words) << source;
        use(source, target);
      }
    }
  }
  return cells;
}

// Expected counts of the cells under `table`; returns the log likelihood of all target words.
double Expect(const std::vector<WordPair>& pairs, const Cells& cells,
              const std::vector<double>& table, std::vector<double>* counts) {
  double log_likelihood = 0;
  size_t at = 0;
  for (const WordPair& pair : pairs) {
    const size_t sources = pair.source->size() + 1;
    for (size_t t = 0; t < pair.target->size(); ++t, at += sources) {
      double sum = 0;
      for (size_t s = at; s < at + sources; ++s) sum += table[cells.uses[s]];
      for (size_t s = at; s < at + sources; ++s) {
        (*counts)[cells.uses[s]] += table[cells.uses[s]] / sum;
      }
      log_likelihood += std::log(sum / static_cast<double>(sources));
    }
  }
  return log_likelihood;
}

// Counts as shares of their source word's, which is `unseen` more where it is not the null word.
std::vector<double> Maximise(const Cells& cells, const std::vector<double>& counts,
                             int32_t source_words, double unseen) {
  std::vector<double> totals(source_words + 1, unseen), table(counts.size());
  totals[source_words] = 0;
  for (size_t c = 0; c < counts.size(); ++c) totals[cells.words[c].first] += counts[c];
  for (size_t c = 0; c < counts.size(); ++c) table[c] = counts[c] / totals[cells.words[c].first];
  return table;
}

}  // namespace

absl::Span<const WordProbability> WordTable::Of(int32_t source_word) const {
  return translations_[source_word];
}

WordTable TrainWordTable(const std::vector<WordPair>& pairs, int32_t source_words, int iterations,
                         double unseen) {
  const Cells cells = NumberCells(pairs, source_words);
  double target_words = 0;
  for (const WordPair& pair : pairs) target_words += static_cast<double>(pair.target->size());
  WordTable trained;
  // Each word's translations begin equally likely.
  std::vector<double> table =
      Maximise(cells, std::vector<double>(cells.words.size(), 1.0), source_words, 0);
  for (int i = 0; i < iterations; ++i) {
    std::vector<double> counts(cells.words.size(), 0.0);
    const double log_likelihood = Expect(pairs, cells, table, &counts);
    trained.log_likelihoods_.push_back(log_likelihood / std::max(1.0, target_words));
    table = Maximise(cells, counts, source_words, unseen);
  }
  trained.translations_.resize(source_words);
  for (size_t c = 0; c < table.size(); ++c) {
    const auto& [source, target] = cells.words[c];
    const auto p = static_cast<float>(table[c]);
    if (source < source_words && p >= kLeast) {
      trained.translations_[source].push_back({target, p});
    }
  }
  for (auto& words : trained.translations_) {
    std::sort(words.begin(), words.end(),
              [](const WordProbability& a, const WordProbability& b) { return a.word < b.word; });
  }
  return trained;
}

}  // namespace pipelab
