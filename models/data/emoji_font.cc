#include "models/data/emoji_font.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/file.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr uint32_t kTrueType = 0x00010000;
constexpr int64_t kStrikeBytes = 48;

absl::Status Unsupported(const FileByteReader& table, absl::string_view what, int64_t is,
                         int64_t must_be) {
  return absl::UnimplementedError(
      absl::StrFormat("%s: %s %d; %d can be read", table.file(), what, is, must_be));
}

}  // namespace

absl::StatusOr<FileByteReader> EmojiFont::Table(const FileByteReader& font,
                                                absl::string_view tag) const {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t tables, font.U16(4));
  for (int64_t i = 0; i < tables; ++i) {
    const int64_t at = 12 + 16 * i;
    PIPELAB_ASSIGN_OR_RETURN(const FileByteReader name, font.Slice(at, 4, "table directory"));
    if (name.bytes() != tag) continue;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t offset, font.U32(at + 8));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t length, font.U32(at + 12));
    return font.Slice(offset, length, absl::StrCat("table ", tag));
  }
  return font.Error(4, absl::StrCat("no table ", tag));
}

absl::Status EmojiFont::ReadRanges(const FileByteReader& cmap) {
  PIPELAB_ASSIGN_OR_RETURN(const int64_t subtables, cmap.U16(2));
  for (int64_t i = 0; i < subtables; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const int64_t offset, cmap.U32(4 + 8 * i + 4));
    PIPELAB_ASSIGN_OR_RETURN(const FileByteReader table, cmap.From(offset, "cmap subtable"));
    PIPELAB_ASSIGN_OR_RETURN(const int format, table.U16(0));
    if (format != 12) continue;
    PIPELAB_ASSIGN_OR_RETURN(const int64_t count, table.U32(12));
    PIPELAB_ASSIGN_OR_RETURN(const FileByteReader groups,
                             table.Slice(16, 12 * count, "cmap groups"));
    for (int64_t g = 0; g < count; ++g) {
      PIPELAB_ASSIGN_OR_RETURN(const uint32_t first, groups.U32(12 * g));
      PIPELAB_ASSIGN_OR_RETURN(const uint32_t last, groups.U32(12 * g + 4));
      PIPELAB_ASSIGN_OR_RETURN(const uint32_t glyph, groups.U32(12 * g + 8));
      if (first > last || last > 0x10FFFF || glyph > 0xFFFF) {
        return groups.Error(12 * g, absl::StrFormat("characters 0x%x to 0x%x from glyph %d on",
                                                    first, last, glyph));
      }
      ranges_.push_back({first, last, glyph});
    }
    return absl::OkStatus();
  }
  return absl::UnimplementedError(absl::StrCat(cmap.file(), ": cmap has no subtable of format 12"));
}

absl::Status EmojiFont::ReadPictures(const FileByteReader& cblc) {
  PIPELAB_ASSIGN_OR_RETURN(const int version, cblc.U16(0));
  if (version != 3) return Unsupported(cblc, "CBLC version", version, 3);
  PIPELAB_ASSIGN_OR_RETURN(const int64_t strikes, cblc.U32(4));
  if (strikes == 0) return cblc.Error(4, "no strike");
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader strike, cblc.Slice(8, kStrikeBytes, "strike"));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t array_at, strike.U32(0));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t count, strike.U32(8));
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader array,
                           cblc.Slice(array_at, 8 * count, "index subtable array"));
  for (int64_t i = 0; i < count; ++i) {
    PIPELAB_ASSIGN_OR_RETURN(const uint32_t first, array.U16(8 * i));
    PIPELAB_ASSIGN_OR_RETURN(const uint32_t last, array.U16(8 * i + 2));
    PIPELAB_ASSIGN_OR_RETURN(const int64_t more, array.U32(8 * i + 4));
    PIPELAB_ASSIGN_OR_RETURN(const FileByteReader table,
                             cblc.From(array_at + more, "index subtable"));
    PIPELAB_ASSIGN_OR_RETURN(const int index_format, table.U16(0));
    PIPELAB_ASSIGN_OR_RETURN(const int image_format, table.U16(2));
    if (index_format != 1) return Unsupported(table, "CBLC index format", index_format, 1);
    if (image_format != 17) return Unsupported(table, "CBDT image format", image_format, 17);
    if (first > last) {
      return array.Error(8 * i, absl::StrFormat("glyphs %d to %d", first, last));
    }
    PIPELAB_ASSIGN_OR_RETURN(const int64_t data, table.U32(4));
    PIPELAB_ASSIGN_OR_RETURN(
        const FileByteReader offsets,
        table.Slice(8, 4 * (static_cast<int64_t>(last) - first + 2), "picture offsets"));
    pictures_.push_back({first, last, data, offsets});
  }
  return absl::OkStatus();
}

absl::StatusOr<EmojiFont> EmojiFont::Parse(std::string contents, absl::string_view file) {
  EmojiFont font(std::make_shared<const std::string>(std::move(contents)));
  const FileByteReader reader(*font.contents_, file, ByteOrder::kBig);
  PIPELAB_ASSIGN_OR_RETURN(const uint32_t magic, reader.U32(0));
  if (magic != kTrueType) {
    return reader.Error(
        0, absl::StrFormat("magic number 0x%08x; a TrueType font starts with 0x%08x", magic,
                           kTrueType));
  }
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader cmap, font.Table(reader, "cmap"));
  PIPELAB_RETURN_IF_ERROR(font.ReadRanges(cmap));
  PIPELAB_ASSIGN_OR_RETURN(const FileByteReader cblc, font.Table(reader, "CBLC"));
  PIPELAB_RETURN_IF_ERROR(font.ReadPictures(cblc));
  PIPELAB_ASSIGN_OR_RETURN(font.data_, font.Table(reader, "CBDT"));
  PIPELAB_ASSIGN_OR_RETURN(const int version, font.data_.U16(0));
  if (version != 3) return Unsupported(font.data_, "CBDT version", version, 3);
  return font;
}

absl::StatusOr<EmojiFont> EmojiFont::Read(const std::string& path) {
  PIPELAB_ASSIGN_OR_RETURN(std::string contents, ReadFile(path, int64_t{256} << 20));
  return Parse(std::move(contents), path);
}

absl::StatusOr<absl::string_view> EmojiFont::Png(uint32_t character) const {
  for (const Range& r : ranges_) {
    if (character < r.first || character > r.last) continue;
    const uint32_t glyph = r.glyph + (character - r.first);
    for (const Pictures& p : pictures_) {
      if (glyph < p.first || glyph > p.last) continue;
      const int64_t place = glyph - p.first;
      PIPELAB_ASSIGN_OR_RETURN(const int64_t from, p.offsets.U32(4 * place));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t to, p.offsets.U32(4 * place + 4));
      if (from == to) break;  // the glyph has no picture
      PIPELAB_ASSIGN_OR_RETURN(const FileByteReader picture,
                               data_.Slice(p.data + from, to - from, "picture"));
      PIPELAB_ASSIGN_OR_RETURN(const int64_t length, picture.U32(5));  // behind small metrics
      PIPELAB_ASSIGN_OR_RETURN(const FileByteReader png, picture.Slice(9, length, "PNG"));
      return png.bytes();
    }
  }
  return absl::NotFoundError(
      absl::StrFormat("%s: no picture of character U+%04X", data_.file(), character));
}

}  // namespace pipelab
