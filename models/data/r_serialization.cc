#include "models/data/r_serialization.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "models/data/decompress.h"
#include "models/data/r_reader.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

absl::Status BadIndex(absl::string_view base, absl::string_view fault) {
  return absl::DataLossError(absl::StrCat(base, ".rdx: ", fault));
}

// Four bytes of unpacked size, then a zlib stream; or a letter and the stream it stands for.
absl::StatusOr<std::string> UnpackChunk(absl::string_view chunk, const RLimits& limits,
                                        const std::string& what) {
  if (chunk.size() < 5) return absl::DataLossError(absl::StrCat(what, ": shorter than 5 bytes"));
  int64_t size = 0;
  for (int i = 0; i < 4; ++i) size = size * 256 + static_cast<uint8_t>(chunk[i]);
  if (size > limits.bytes) {
    return absl::OutOfRangeError(absl::StrFormat("%s: unpacks to %d bytes; at most %d are allowed",
                                                 what, size, limits.bytes));
  }
  chunk.remove_prefix(4);
  absl::StatusOr<std::string> data;
  switch (chunk[0]) {
    case '0':
      data = std::string(chunk.substr(1));
      break;
    case '1':
      data = Decompress(chunk.substr(1), size, what);
      break;
    case '2':
      data = Decompress("BZh", size, what);
      break;  // says that it cannot
    case 'Z':
      data = DecompressRawLzma(chunk.substr(1), size, what);
      break;
    default:
      data = Decompress(chunk, size, what);
  }
  PIPELAB_RETURN_IF_ERROR(data.status());
  if (static_cast<int64_t>(data->size()) != size) {
    return absl::DataLossError(
        absl::StrFormat("%s: unpacks to %d bytes; its head says %d", what, data->size(), size));
  }
  return data;
}

}  // namespace

absl::StatusOr<RValue> ReadRSerialized(absl::string_view bytes, absl::string_view what,
                                       const RLimits& limits) {
  RReader reader(bytes, what, limits);
  RValue value;
  PIPELAB_RETURN_IF_ERROR(reader.ReadHeader());
  PIPELAB_RETURN_IF_ERROR(reader.ReadItem(value));
  PIPELAB_RETURN_IF_ERROR(reader.ExpectEnd());
  return value;
}

absl::StatusOr<RValue> ReadRds(absl::string_view file, absl::string_view what,
                               const RLimits& limits) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, Decompress(file, limits.bytes, what));
  return ReadRSerialized(bytes, what, limits);
}

absl::StatusOr<RValue> ReadRData(absl::string_view file, absl::string_view what,
                                 const RLimits& limits) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string bytes, Decompress(file, limits.bytes, what));
  absl::string_view rest = bytes;
  if (!absl::ConsumePrefix(&rest, "RDX2\n") && !absl::ConsumePrefix(&rest, "RDX3\n")) {
    return absl::DataLossError(
        absl::StrCat(what, ": not an R data file: unpacked it must start with 'RDX2' or 'RDX3'"));
  }
  PIPELAB_ASSIGN_OR_RETURN(RValue value, ReadRSerialized(rest, what, limits));
  if (value.type != RType::kPairList) {
    return absl::DataLossError(absl::StrCat(what, ": holds ", RTypeName(value.type),
                                            "; an R data file holds a pairlist of named values"));
  }
  return value;
}

absl::StatusOr<RLazyLoad> RLazyLoad::Open(absl::string_view base, const RLimits& limits) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string rdx,
                           ReadFile(absl::StrCat(base, ".rdx"), limits.bytes));
  PIPELAB_ASSIGN_OR_RETURN(std::string rdb, ReadFile(absl::StrCat(base, ".rdb"), limits.bytes));
  return Parse(base, rdx, std::move(rdb), limits);
}

absl::StatusOr<RLazyLoad> RLazyLoad::Parse(absl::string_view base, absl::string_view rdx,
                                           std::string rdb, const RLimits& limits) {
  PIPELAB_ASSIGN_OR_RETURN(const RValue index, ReadRds(rdx, absl::StrCat(base, ".rdx"), limits));
  const RValue* variables = index.Element("variables");
  if (variables == nullptr) return BadIndex(base, "no list named 'variables'");
  RLazyLoad store;
  store.base_ = std::string(base);
  store.rdb_ = std::move(rdb);
  store.limits_ = limits;
  const std::vector<std::string> names = ElementNames(*variables);
  const int64_t size = static_cast<int64_t>(store.rdb_.size());
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<int32_t>& place = variables->elements[i].integers;
    if (place.size() != 2) {
      return BadIndex(base, absl::StrCat("'", names[i], "' must have an offset and a length"));
    }
    const Chunk chunk = {names[i], place[0], place[1]};
    if (chunk.offset < 0 || chunk.length < 0 || chunk.offset + chunk.length > size) {
      return BadIndex(base,
                      absl::StrFormat("'%s' lies at byte %d, length %d; the .rdb has %d bytes",
                                      chunk.name, chunk.offset, chunk.length, size));
    }
    store.chunks_.push_back(chunk);
  }
  return store;
}

std::vector<std::string> RLazyLoad::Names() const {
  std::vector<std::string> names;
  for (const Chunk& chunk : chunks_) names.push_back(chunk.name);
  return names;
}

absl::StatusOr<RValue> RLazyLoad::Read(absl::string_view name) const {
  for (const Chunk& chunk : chunks_) {
    if (chunk.name != name) continue;
    const std::string what = absl::StrCat(base_, ".rdb: '", name, "'");
    const absl::string_view bytes = absl::string_view(rdb_).substr(chunk.offset, chunk.length);
    PIPELAB_ASSIGN_OR_RETURN(const std::string data, UnpackChunk(bytes, limits_, what));
    return ReadRSerialized(data, what, limits_);
  }
  return absl::NotFoundError(absl::StrCat(base_, ".rdb: holds no value named '", name, "'"));
}

}  // namespace pipelab
