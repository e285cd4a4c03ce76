// Undoes gzip, zlib and xz compression by the libraries, within a limit on the result.
//
//   PIPELAB_ASSIGN_OR_RETURN(std::string bytes, Decompress(file, 64 << 20, "cox2.RData"));
//
// The format is told from the first bytes; bytes in none of the known formats come back as they
// are. Sizes are bytes. Errors are one line that starts with `what`: DataLoss for a damaged or
// truncated stream or bytes behind its end, OutOfRange for a result above the limit, Unimplemented
// for bzip2.
#ifndef PIPELAB_MODELS_DATA_DECOMPRESS_H_
#define PIPELAB_MODELS_DATA_DECOMPRESS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace pipelab {

absl::StatusOr<std::string> Decompress(absl::string_view bytes, int64_t limit,
                                       absl::string_view what);

// A raw LZMA2 stream, without xz's container: R's own use of it.
absl::StatusOr<std::string> DecompressRawLzma(absl::string_view bytes, int64_t limit,
                                              absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_DECOMPRESS_H_
