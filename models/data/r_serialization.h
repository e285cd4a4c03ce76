// Reads R's serialisation format (XDR, versions 2 and 3) and the files that hold it.
//
//   // data/cox2.RData: named values, gzip or xz.
//   PIPELAB_ASSIGN_OR_RETURN(auto variables, ReadRData(bytes, path));      // a pair list
//   // data/Rdata.rdx + data/Rdata.rdb: an index of names and their compressed values.
//   PIPELAB_ASSIGN_OR_RETURN(auto store, RLazyLoad::Open("DIR/data/Rdata"));
//   PIPELAB_ASSIGN_OR_RETURN(RValue emma, store.Read("emma"));
//
// Every length is checked against the bytes there are, and depth and count against limits, so
// damaged or hostile files cost no more than their size allows. Errors are one line: what, the
// fault and the byte: "x.rds: byte 123 of the unpacked data: character vector of 9000 values needs
// 36000 bytes, 12 are left".
#ifndef PIPELAB_MODELS_DATA_R_SERIALIZATION_H_
#define PIPELAB_MODELS_DATA_R_SERIALIZATION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/r_value.h"

namespace pipelab {

struct RLimits {
  int64_t bytes = int64_t{1} << 30;  // of unpacked data
  int depth = 128;                   // of values within values
  int64_t values = 4 << 20;          // list elements, attributes and symbols in all
  int64_t sequence = 16 << 20;       // numbers in all written as "from, by, count"
};

// One serialised value, not compressed, which must fill `bytes`. `what` names the file in errors.
absl::StatusOr<RValue> ReadRSerialized(absl::string_view bytes, absl::string_view what,
                                       const RLimits& limits = {});

// The contents of an .rds file (one value, compressed or not).
absl::StatusOr<RValue> ReadRds(absl::string_view file, absl::string_view what,
                               const RLimits& limits = {});

// The contents of an .RData or .rda file: a pair list of named values.
absl::StatusOr<RValue> ReadRData(absl::string_view file, absl::string_view what,
                                 const RLimits& limits = {});

// A lazy-load data base: BASE.rdx and BASE.rdb.
class RLazyLoad {
 public:
  static absl::StatusOr<RLazyLoad> Open(absl::string_view base, const RLimits& limits = {});
  // From the files' contents; `base` names them in errors.
  static absl::StatusOr<RLazyLoad> Parse(absl::string_view base, absl::string_view rdx,
                                         std::string rdb, const RLimits& limits = {});

  std::vector<std::string> Names() const;  // in the order of the index
  absl::StatusOr<RValue> Read(absl::string_view name) const;

 private:
  struct Chunk {
    std::string name;
    int64_t offset, length;  // in the .rdb, with the four bytes of size
  };
  std::string base_;
  std::string rdb_;
  std::vector<Chunk> chunks_;
  RLimits limits_;
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_R_SERIALIZATION_H_
