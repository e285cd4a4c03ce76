#include "models/data/gettext_mo.h"

#include <cstdint>

#include "absl/strings/str_format.h"
#include "models/data/byte_reader.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint32_t kMagic = 0x950412de, kSwappedMagic = 0xde120495;
constexpr int64_t kHeader = 28, kEntry = 8;

// Strings of one table. All strings of a file take no more than it holds, so that tables which
// point to one long string again and again cost no more memory than the file.
class StringTable {
 public:
  StringTable(const FileByteReader& file, const FileByteReader& table, int64_t* bytes_left)
      : file_(file), table_(table), bytes_left_(bytes_left) {}

  absl::StatusOr<absl::string_view> Read(int64_t i) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t length, table_.U32(kEntry * i));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t offset, table_.U32(kEntry * i + 4));
    PIPELAB_ASSIGN_OR_RETURN(const FileByteReader text, file_.Slice(offset, length + 1, "string"));
    if (text.bytes().back() != '\0') return text.Error(length, "string without a zero byte behind");
    *bytes_left_ -= length;
    if (*bytes_left_ < 0) return table_.Error(kEntry * i, "strings overlap");
    return text.bytes().substr(0, length);
  }

 private:
  const FileByteReader& file_;
  const FileByteReader& table_;
  int64_t* bytes_left_;
};

}  // namespace

absl::StatusOr<std::vector<MoEntry>> ParseMo(absl::string_view contents, absl::string_view file) {
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t magic,
                           FileByteReader(contents, file, ByteOrder::kLittle).U32(0));
  const FileByteReader reader(contents, file,
                              magic == kSwappedMagic ? ByteOrder::kBig : ByteOrder::kLittle);
  if (magic != kMagic && magic != kSwappedMagic) {
    return reader.Error(
        0, absl::StrFormat("magic number 0x%08x; a .mo file starts with 0x%08x", magic, kMagic));
  }
  PIPELAB_RETURN_IF_ERROR(reader.Slice(0, kHeader, "header").status());
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t revision, reader.U32(4));
  if (revision >> 16 > 1) {
    return reader.Error(4, absl::StrFormat("revision %d; 0 and 1 can be read", revision >> 16));
  }
  PIPELAB_ASSIGN_OR_RETURN(const int64_t count, reader.U32(8));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t ids_at, reader.U32(12));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t translations_at, reader.U32(16));
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader ids_table,
                           reader.Slice(ids_at, kEntry * count, "table of originals"));
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader translations_table,
                           reader.Slice(translations_at, kEntry * count, "table of translations"));
  int64_t bytes_left = reader.size();
  StringTable ids(reader, ids_table, &bytes_left);
  StringTable translations(reader, translations_table, &bytes_left);
  std::vector<MoEntry> entries;
  for (int64_t i = 0; i < count; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(absl::string_view id, ids.Read(i));
    PIPELAB_ASSIGN_OR_RETURN(const absl::string_view translation, translations.Read(i));
    if (const size_t context = id.find('\4'); context != id.npos) id.remove_prefix(context + 1);
    entries.push_back({std::string(id.substr(0, id.find('\0'))),
                       std::string(translation.substr(0, translation.find('\0')))});
  }
  return entries;
}

absl::StatusOr<std::vector<MoEntry>> ReadMo(const std::string& path) {
  PIPELAB_ASSIGN_OR_RETURN(const std::string contents, ReadFile(path, int64_t{64} << 20));
  return ParseMo(contents, path);
}

}  // namespace pipelab
