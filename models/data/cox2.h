// Inhibitors of cyclooxygenase 2: 462 compounds with 255 descriptors in three families (QikProp 34,
// moe2D 194, moeGao 27) and the concentration that halves the enzyme's activity (IC50), from
// `cox2.RData` of Debian's package r-cran-caret (GPL-2+; Sutherland, O'Brien and Weaver, J. Chem.
// Inf. Comput. Sci. 43, 2003).
//
//   PIPELAB_ASSIGN_OR_RETURN(DescriptorTable table, FetchCox2(DefaultDataCache()));
//
// The target is log10(IC50). This has the form of CANDLE-Uno's data, and is not that data.
// Errors: see package_cache.h; DataLoss names what the file lacks.
#ifndef PIPELAB_MODELS_DATA_COX2_H_
#define PIPELAB_MODELS_DATA_COX2_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/descriptors.h"
#include "models/data/package_cache.h"
#include "models/data/r_value.h"

namespace pipelab {

const DebianPackage& CaretPackage();

absl::StatusOr<DescriptorTable> LoadCox2(absl::string_view package_dir);
// From the file's values; `what` names it in errors. A family is what stands before the first '_'
// of the descriptors' names, and its columns become neighbours.
absl::StatusOr<DescriptorTable> Cox2FromValues(const RValue& values, absl::string_view what);

// From the cache, or through apt into the cache.
absl::StatusOr<DescriptorTable> FetchCox2(absl::string_view cache_dir,
                                          const FetchOptions& options = {});

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_COX2_H_
