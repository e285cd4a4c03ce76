// Ratings of films by users: the table, its split, and the baseline that a recommender must beat.
//
//   RatingTable table =
//       SyntheticRatings(/*users=*/100, /*films=*/200, /*ratings=*/5000, /*seed=*/1);
//   const RatingSplit split = SplitRatings(table, /*seed=*/1);     // a random tenth held out
//   const BiasModel bias(table, split.train);
//   bias.Score(table.ratings[i].user, table.ratings[i].film);
//
// What is to be predicted: whether a film gets at least kLikedStars.
#ifndef PIPELAB_MODELS_DATA_RATINGS_H_
#define PIPELAB_MODELS_DATA_RATINGS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

constexpr double kLikedStars = 4;

struct Film {
  std::string title;
  int32_t year = 0;             // 0: not known
  std::vector<int32_t> genres;  // places in RatingTable::genres, ascending
};

struct Rating {
  int32_t user, film;  // from 0
  float stars;
  int64_t time;  // seconds since 1970
  bool liked() const { return stars >= kLikedStars; }
};

struct RatingTable {
  std::string name;  // "movielens", "synthetic"
  int32_t users = 0;
  std::vector<Film> films;
  std::vector<std::string> genres;
  std::vector<Rating> ratings;
};

// Users and films with tastes of four dimensions and a bias each; liked where they agree.
RatingTable SyntheticRatings(int32_t users, int32_t films, int64_t ratings, uint64_t seed);

struct RatingSplit {
  std::vector<int64_t> train, held_out;  // places in RatingTable::ratings, ascending
};
// Each rating is held out with probability 1/10, by (seed, its place).
RatingSplit SplitRatings(const RatingTable& table, uint64_t seed);

// Share of likes, plus a film's and then a user's mean distance from it, over training ratings
// only: sum / (count + shrink), so that few ratings say little. 0 for who was never seen.
class BiasModel {
 public:
  static constexpr double kShrink = 5;

  BiasModel(const RatingTable& table, const std::vector<int64_t>& train, double shrink = kShrink);
  double Score(int32_t user, int32_t film) const { return mean_ + user_[user] + film_[film]; }

 private:
  double mean_ = 0;
  std::vector<double> user_, film_;
};

// Area under the ROC curve of the model's scores of these ratings.
double AreaUnderRoc(const BiasModel& model, const RatingTable& table,
                    const std::vector<int64_t>& ratings);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_RATINGS_H_
