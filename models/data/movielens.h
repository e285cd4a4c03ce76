// MovieLens (ml-latest-small of 2016): 100,004 ratings of 9,066 films in 20 genres by 671 users,
// from the table `movielens` of Debian's package r-cran-dslabs (Artistic-2.0; GroupLens has terms
// of its own for the data: fetch it, do not redistribute it).
//
//   PIPELAB_ASSIGN_OR_RETURN(RatingTable table, FetchMovieLens(DefaultDataCache()));
//
// Users and films are numbered by their ids, ascending. "(no genres listed)" counts as a genre.
// Errors: see package_cache.h; DataLoss names a column that is missing or holds what it cannot.
#ifndef PIPELAB_MODELS_DATA_MOVIELENS_H_
#define PIPELAB_MODELS_DATA_MOVIELENS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/package_cache.h"
#include "models/data/r_value.h"
#include "models/data/ratings.h"

namespace pipelab {

const DebianPackage& DslabsPackage();

absl::StatusOr<RatingTable> LoadMovieLens(absl::string_view package_dir);
// From the data frame; `what` names it in errors.
absl::StatusOr<RatingTable> MovieLensFromFrame(const RValue& frame, absl::string_view what);

// From the cache, or through apt into the cache.
absl::StatusOr<RatingTable> FetchMovieLens(absl::string_view cache_dir,
                                           const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_MOVIELENS_H_
