// Pictures of characters in a colour bitmap font: Noto Color Emoji.
//
//   PIPELAB_ASSIGN_OR_RETURN(EmojiFont font, EmojiFont::Read("NotoColorEmoji.ttf"));
//   PIPELAB_ASSIGN_OR_RETURN(absl::string_view png, font.Png(0x1F600));
//
// Read are (OpenType specification 1.9): the table directory; `cmap` in format 12 (ranges of
// characters to glyphs); `CBLC` version 3, the first strike, index format 1 (where the picture of
// each glyph lies in `CBDT`); `CBDT` pictures in format 17 (small metrics, length, PNG).
// Errors are one line with file and byte; nothing is read beyond a table's end.
#ifndef PIPELAB_MODELS_DATA_EMOJI_FONT_H_
#define PIPELAB_MODELS_DATA_EMOJI_FONT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "models/data/byte_reader.h"

namespace pipelab {

class EmojiFont {
 public:
  // `file` names it in errors.
  static absl::StatusOr<EmojiFont> Parse(std::string contents, absl::string_view file);
  static absl::StatusOr<EmojiFont> Read(const std::string& path);

  // The character's picture; NotFound when the font has none. The view is into the font.
  absl::StatusOr<absl::string_view> Png(uint32_t character) const;

 private:
  struct Range {  // of characters: `first` has the glyph `glyph`, the next one the next
    uint32_t first, last, glyph;
  };
  struct Pictures {  // of the glyphs first to last
    uint32_t first, last;
    int64_t data;            // where the offsets of these glyphs count from, in CBDT
    FileByteReader offsets;  // one a glyph and one behind the last
  };

  explicit EmojiFont(std::shared_ptr<const std::string> contents)
      : contents_(std::move(contents)), data_("", "", ByteOrder::kBig) {}
  absl::StatusOr<FileByteReader> Table(const FileByteReader& font, absl::string_view tag) const;
  absl::Status ReadRanges(const FileByteReader& cmap);
  absl::Status ReadPictures(const FileByteReader& cblc);

  std::shared_ptr<const std::string> contents_;  // what the readers below point into
  std::vector<Range> ranges_;
  std::vector<Pictures> pictures_;
  FileByteReader data_;  // CBDT
};

}  // namespace pipelab

#endif  // PIPELAB_MODELS_DATA_EMOJI_FONT_H_
