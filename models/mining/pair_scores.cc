#include "models/mining/pair_scores.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <thread>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "models/mining/sparse_rows.h"

namespace pipelab {
namespace {

constexpr int kFoldParts = 4;
constexpr double kNoTranslation = 0.5;  // e
// A sentence of few words says little, and so does a rare word.
constexpr float kAddedWords = 8;
constexpr double kAddedCount = 3;
constexpr float kGramWeight = 3;
constexpr double kLengthWeight = 0.3;

// By target word, what it gains from the sentence `source`.
SparseRow Gains(const WordIds& source, const WordTable& table, const ScoredList& target) {
  std::map<int32_t, double> probability;
  for (const int32_t word : source) {
    for (const WordProbability& p : table.Of(word)) probability[p.word] += p.probability;
  }
  SparseRow gains;
  for (const auto& [word, sum] : probability) {
    const double p = sum / static_cast<double>(source.size() + 1);
    const double odds = (1 - kNoTranslation) * p /
                        (kNoTranslation * (target.word_share[word] + kAddedCount * target.word));
    gains.push_back({word, static_cast<float>(std::log1p(odds))});
  }
  return gains;
}

// Each word's share of the sentence, less for a short one.
SparseRow Shares(const WordIds& words) {
  std::map<int32_t, int> counts;
  for (const int32_t word : words) ++counts[word];
  SparseRow shares;
  for (const auto& [word, count] : counts) {
    shares.push_back(
        {word, static_cast<float>(count) / (static_cast<float>(words.size()) + kAddedWords)});
  }
  return shares;
}

void Append(const SparseRow& entries, int64_t first, float scale, SparseRow* row) {
  for (const SparseEntry& e : entries) {
    row->push_back({static_cast<int32_t>(first + e.column), e.value * scale});
  }
}

WordTable TableOf(const ScoredList& source, const ScoredList& target,
                  const std::vector<MinedPair>& pairs, int part, bool x_is_source,
                  const ScoreOptions& options) {
  std::vector<WordPair> taught;
  for (const MinedPair& p : pairs) {
    if (p.x % kFoldParts == part) continue;
    taught.push_back(
        {&source.words[x_is_source ? p.x : p.y], &target.words[x_is_source ? p.y : p.x]});
  }
  return TrainWordTable(taught, static_cast<int32_t>(source.word_share.size()), options.iterations,
                        options.unseen);
}

float Inner(const SparseRow& a, const SparseRow& b) {
  float sum = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].column == b[j].column) {
      sum += a[i++].value * b[j++].value;
    } else {
      (a[i].column < b[j].column ? i : j)++;
    }
  }
  return sum;
}

// What the words of one sentence gain from the other one.
struct Explained {
  Explained(const WordIds& words, const SparseRow& gains, const ScoredList& list) {
    double all = 0, known = 0;
    for (const int32_t word : words) {
      const auto at =
          std::lower_bound(gains.begin(), gains.end(), word,
                           [](const SparseEntry& e, int32_t column) { return e.column < column; });
      const double own = at != gains.end() && at->column == word ? at->value : 0;
      const double information = -std::log(list.word_share[word] + kAddedCount * list.word);
      gain += own;
      all += information;
      known += std::min(own, information);
    }
    gain /= static_cast<double>(words.size()) + kAddedWords;
    if (all > 0) share = known / all;
    rest = all - known;
  }

  double gain = 0;   // the mean, less for a short sentence
  double share = 0;  // of its information
  double rest = 0;   // nats that are not explained
};

// log(1 + members that are in one alone), of two that are sorted.
template <typename Sorted>
double Apart(const Sorted& a, const Sorted& b) {
  Sorted alone;
  std::set_symmetric_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(alone));
  return std::log1p(static_cast<double>(alone.size()));
}

std::vector<double> LogLengths(const ScoredList& list, double mean) {
  std::vector<double> logs;
  for (const double length : list.length) logs.push_back(std::log(length / mean));
  return logs;
}

double MeanLength(const ScoredList& list) {
  return std::accumulate(list.length.begin(), list.length.end(), 0.0) /
         static_cast<double>(std::max<size_t>(1, list.length.size()));
}

}  // namespace

ScoredList MakeScoredList(const std::vector<Sentence>& sentences) {
  ScoredList list;
  absl::flat_hash_map<std::string, int32_t> ids;
  double said = 0;
  for (const Sentence& s : sentences) {
    WordIds words;
    for (const std::string& stem : s.stems) {
      const auto it = ids.try_emplace(stem, static_cast<int32_t>(ids.size())).first;
      words.push_back(it->second);
      list.word_share.resize(ids.size(), 0);
      ++list.word_share[it->second];
      ++said;
    }
    list.words.push_back(std::move(words));
    list.names.push_back(s.names);
    list.marks.push_back(s.marks);
    list.length.push_back(static_cast<double>(std::max<size_t>(1, s.text.size())));
  }
  said = std::max(1.0, said);
  list.word = 1 / said;
  for (double& share : list.word_share) share /= said;
  return list;
}

// A part of x with its tables. The terms that are products, as rows whose inner product is their
// sum: grams, then gains of words of y with shares of words of y, then the same with x's words.
class PairScorer::Part {
 public:
  Part(const ScoredList& x, const ScoredList& y, const GramVectors& grams,
       const std::vector<MinedPair>& pairs, int part, const ScoreOptions& options)
      : x_(x),
        y_(y),
        grams_(grams),
        y_of_x_(TableOf(x, y, pairs, part, true, options)),
        x_of_y_(TableOf(y, x, pairs, part, false, options)) {}

  SparseRow GainsOfX(int64_t i) const { return Gains(x_.words[i], y_of_x_, y_); }
  SparseRow GainsOfY(int64_t j) const { return Gains(y_.words[j], x_of_y_, x_); }

  SparseRow OfX(int64_t i) const {
    SparseRow row;
    Append(grams_.x[i], 0, kGramWeight, &row);
    Append(GainsOfX(i), kGramDims, 1, &row);
    Append(Shares(x_.words[i]), x_words(), 1, &row);
    return row;
  }
  SparseRow OfY(int64_t j) const {
    SparseRow row;
    Append(grams_.y[j], 0, 1, &row);
    Append(Shares(y_.words[j]), kGramDims, 1, &row);
    Append(GainsOfY(j), x_words(), 1, &row);
    return row;
  }
  int32_t columns() const {
    return static_cast<int32_t>(x_words() + static_cast<int64_t>(x_.word_share.size()));
  }

 private:
  int64_t x_words() const { return kGramDims + static_cast<int64_t>(y_.word_share.size()); }

  const ScoredList& x_;
  const ScoredList& y_;
  const GramVectors& grams_;
  const WordTable y_of_x_, x_of_y_;
};

PairScorer::PairScorer(const ScoredList& x, const ScoredList& y, const GramVectors& grams,
                       const std::vector<MinedPair>& pairs, const ScoreOptions& options)
    : x_(x),
      y_(y),
      grams_(grams),
      options_(options),
      x_length_(LogLengths(x, MeanLength(x))),
      y_length_(LogLengths(y, MeanLength(y))) {
  for (int part = 0; part < kFoldParts; ++part) {
    parts_.push_back(std::make_unique<Part>(x, y, grams, pairs, part, options));
  }
}

PairScorer::~PairScorer() = default;

Neighbours PairScorer::Best() const {
  const auto m = static_cast<int64_t>(x_.words.size()), n = static_cast<int64_t>(y_.words.size());
  std::vector<Neighbours> found(options_.threads, {m, n, options_.neighbours});
  for (int part = 0; part < kFoldParts; ++part) {
    const Part& rows = *parts_[part];
    std::vector<SparseRow> y_rows;
    for (int64_t j = 0; j < n; ++j) y_rows.push_back(rows.OfY(j));
    const SparseProduct product(y_rows, rows.columns());
    const auto score = [&](int thread) {
      std::vector<float> scores(n);
      for (int64_t i = part + kFoldParts * thread; i < m; i += kFoldParts * options_.threads) {
        product.Scores(rows.OfX(i), absl::MakeSpan(scores));
        for (int64_t j = 0; j < n; ++j) {
          scores[j] -= static_cast<float>(kLengthWeight * std::abs(x_length_[i] - y_length_[j]));
        }
        OfferScores(i, 0, scores, &found[thread].of_x, &found[thread].of_y);
      }
    };
    std::vector<std::thread> helpers;
    for (int t = 1; t < options_.threads; ++t) helpers.emplace_back(score, t);
    score(0);
    for (std::thread& helper : helpers) helper.join();
  }
  for (int t = 1; t < options_.threads; ++t) {
    found[0].of_x.Merge(found[t].of_x);
    found[0].of_y.Merge(found[t].of_y);
  }
  return found[0];
}

std::vector<PairSigns> PairScorer::Signs(
    const std::vector<std::pair<int32_t, int32_t>>& places) const {
  std::vector<PairSigns> signs(places.size());
  for (int part = 0; part < kFoldParts; ++part) {
    std::vector<SparseRow> y_gains;
    for (int64_t j = 0; j < static_cast<int64_t>(y_.words.size()); ++j) {
      y_gains.push_back(parts_[part]->GainsOfY(j));
    }
    SparseRow x_gains;
    int32_t last = -1;  // of which these are
    for (size_t p = 0; p < places.size(); ++p) {
      const auto [i, j] = places[p];
      if (i % kFoldParts != part) continue;
      if (i != last) x_gains = parts_[part]->GainsOfX(i);
      last = i;
      const Explained y(y_.words[j], x_gains, y_), x(x_.words[i], y_gains[j], x_);
      const double apart = std::abs(x_length_[i] - y_length_[j]);
      signs[p].values = {y.gain,
                         x.gain,
                         y.gain * x.gain,
                         Inner(grams_.x[i], grams_.y[j]),
                         apart,
                         apart * apart,
                         y.share,
                         x.share,
                         std::min(x.share, y.share),
                         std::log1p(y.rest),
                         std::log1p(x.rest),
                         std::log1p(static_cast<double>(y_.words[j].size())),
                         std::log1p(static_cast<double>(x_.words[i].size())),
                         Apart(x_.names[i], y_.names[j]),
                         Apart(x_.marks[i], y_.marks[j])};
    }
  }
  return signs;
}

}  // namespace pipelab
