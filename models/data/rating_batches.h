// Batches of ratings for a recommender of dense features and bags of ids (DLRM's form).
//
//   const auto features = std::make_shared<const RatingFeatures>(table, split.train, options);
//   RatingBatchSource train(features, split.train, ExampleOrder(split.train.size(), 512, 1,
//   "data")); RatingBatchSource held_out(features, split.held_out,
//   ExampleOrder(split.held_out.size()));
//
// Fields:
//   "dense" [8]      numbers of about unit size: film's year, its age when rated, log of its
//                    ratings, its share of likes, log of the user's ratings, the user's share of
//                    likes, time, number of genres
//   "user" [1], "film" [1], "year" [1], "genres" [10], "liked" [H], "disliked" [H], "fans" [H]
//                    bags of ids: who and what, the film's year and genres, films that the user
//                    liked and did not, users who liked the film: the latest H; kNoData
//                    behind the last id of the four longer ones
//   "targets" [1]    1.0 where the film was liked, else 0.0
// Counts, shares and bags come from training ratings other than the one itself, bags only from
// those made before it, so nothing tells the answer.
#ifndef PIPELAB_MODELS_DATA_RATING_BATCHES_H_
#define PIPELAB_MODELS_DATA_RATING_BATCHES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "models/data/example_source.h"
#include "models/data/ratings.h"

namespace pipelab {

inline constexpr char kDenseFeatures[] = "dense";

struct RatingOptions {
  int64_t history = 20;  // H
};

// What each rating of a table looks like to a model trained on `train`. Immutable.
class RatingFeatures {
 public:
  enum Bag { kUser, kFilm, kYear, kGenres, kLikedFilms, kDislikedFilms, kFans, kNumBags };
  static constexpr int64_t kNumDense = 8, kMostGenres = 10;

  RatingFeatures(const RatingTable& table, const std::vector<int64_t>& train,
                 const RatingOptions& options);

  // "dense", the bags in their order, "targets".
  std::vector<DataField> Fields() const;
  int64_t ratings() const { return static_cast<int64_t>(ratings_.size()); }
  const Rating& rating(int64_t i) const { return ratings_[i]; }
  void Dense(int64_t rating, absl::Span<float> out) const;
  // The bag's ids; at most its field's size.
  std::vector<int32_t> IdsOf(Bag bag, int64_t rating) const;

 private:
  struct Seen {                    // training ratings of one user or film
    std::vector<int64_t> ratings;  // by time, then place
    int64_t liked = 0;
  };
  std::vector<int32_t> Before(const Seen& seen, int64_t rating, bool liked, bool films) const;
  // How many training ratings there are without this one.
  int64_t Count(const Seen& seen, int64_t rating) const;
  double LikedShare(const Seen& seen, int64_t rating) const;

  const std::vector<Rating> ratings_;
  const std::vector<Film> films_;
  const RatingOptions options_;
  int32_t num_genres_, first_year_ = 0, last_year_ = 0;  // of the known years
  std::vector<bool> in_train_;
  std::vector<Seen> users_seen_, films_seen_;
  double mean_liked_ = 0, mean_time_ = 0, time_deviation_ = 1;
};

class RatingBatchSource final : public ExampleSource {
 public:
  // The order's examples are `ratings` (CHECKed), places in the table.
  RatingBatchSource(std::shared_ptr<const RatingFeatures> features, std::vector<int64_t> ratings,
                    ExampleOrder order);

 private:
  void WriteFloats(int field, const Draw& draw, absl::Span<float> out) const override;
  void WriteIds(int field, const Draw& draw, absl::Span<int32_t> out) const override;

  const std::shared_ptr<const RatingFeatures> features_;
  const std::vector<int64_t> ratings_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_RATING_BATCHES_H_
