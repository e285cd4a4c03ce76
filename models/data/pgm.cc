#include "models/data/pgm.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int64_t kMostSide = 1 << 15;

// Numbers of text, with white space and comments between them.
class Header {
 public:
  Header(absl::string_view bytes, absl::string_view file) : rest_(bytes), file_(file) {}

  template <typename... Parts>
  absl::Status Error(const Parts&... parts) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ": ", parts...));
  }
  template <typename... Parts>
  absl::Status Ends(const Parts&... parts) const {
    return absl::DataLossError(absl::StrCat(file_, ": ends ", parts...));
  }

  absl::StatusOr<int64_t> Number(absl::string_view what, int64_t least, int64_t most) {
    SkipSpace();
    int64_t value = 0;
    size_t digits = 0;
    for (; digits < rest_.size() && absl::ascii_isdigit(rest_[digits]); ++digits) {
      value = value * 10 + (rest_[digits] - '0');
      if (value > most) break;
    }
    if (digits == 0) {
      return rest_.empty() ? Ends("before the ", what) : Error("the ", what, " is no number");
    }
    if (value < least || value > most) {
      return Error("the ", what, " must be ", least, " to ", most);
    }
    rest_.remove_prefix(digits);
    return value;
  }

  absl::string_view* rest() { return &rest_; }

 private:
  void SkipSpace() {
    while (!rest_.empty()) {
      if (rest_[0] == '#') {
        const size_t end = rest_.find('\n');
        rest_.remove_prefix(end == absl::string_view::npos ? rest_.size() : end);
      } else if (absl::ascii_isspace(rest_[0])) {
        rest_.remove_prefix(1);
      } else {
        return;
      }
    }
  }

  absl::string_view rest_;
  absl::string_view file_;
};

}  // namespace

absl::StatusOr<GreyImage> ParsePgm(absl::string_view bytes, absl::string_view file) {
  Header header(bytes, file);
  if (bytes.size() < 2) return header.Ends("before its format");
  const absl::string_view magic = bytes.substr(0, 2);
  if (magic != "P2" && magic != "P5") {
    return header.Error("is no PGM picture: it must begin with P2 or P5");
  }
  header.rest()->remove_prefix(2);
  GreyImage image;
  PIPELAB_ASSIGN_OR_RETURN(image.width, header.Number("width", 1, kMostSide));
  PIPELAB_ASSIGN_OR_RETURN(image.height, header.Number("height", 1, kMostSide));
  PIPELAB_ASSIGN_OR_RETURN(const int64_t white, header.Number("largest grey level", 1, 65535));
  if (white > 255) {
    return absl::UnimplementedError(
        absl::StrCat(file, ": grey levels to ", white, "; at most 255 can be read"));
  }
  const int64_t size = image.height * image.width;
  const auto short_of = [&](int64_t pixels) {
    return header.Ends("after ", pixels, " of ", size, " pixels");
  };
  absl::string_view& rest = *header.rest();
  if (magic == "P5" && !rest.empty()) rest.remove_prefix(1);  // one white space
  const auto left = static_cast<int64_t>(rest.size());
  if (magic == "P5" && left < size) return short_of(left);
  image.pixels.reserve(std::min(size, left));  // not for pixels that the file cannot have
  for (int64_t i = 0; i < size; ++i) {
    int64_t level = 0;
    if (magic == "P5") {
      level = static_cast<uint8_t>(rest[0]);
      rest.remove_prefix(1);
      if (level > white) return header.Error("pixel ", i, " has level ", level, " of ", white);
    } else {
      const absl::StatusOr<int64_t> number =
          header.Number(absl::StrCat("level of pixel ", i), 0, white);
      if (!number.ok()) return rest.empty() ? short_of(i) : number.status();
      level = *number;
      if (rest.empty() && i + 1 < size) return short_of(i + 1);
    }
    image.pixels.push_back(static_cast<uint8_t>(level * 255 / white));
  }
  return image;
}

}  // namespace pipelab
