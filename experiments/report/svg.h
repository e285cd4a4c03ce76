// Writes one SVG: shapes in drawing order, a title and a description for screen readers, colours
// that follow light and dark pages, and no file, font or script from elsewhere.
//
//   Svg svg("gpipe", 640, 200, "GPipe", "Timeline of GPipe on 4 devices");
//   svg.Rect(10, 10, 50, 20, "fill=\"#0072b2\"", "shown on hovering");
//   svg.Text(12, 24, "0", "class=\"pl-t\"");
//   std::string text = std::move(svg).Finish();
//
// Lengths are user units, a pixel at natural size; coordinates are written with two digits.
// `attributes` is markup, everything else is text and gets escaped. Classes that follow the page:
// fills pl-t text, pl-m muted text, pl-i idle, pl-o optimizer; strokes pl-s strong, pl-l axis,
// pl-g grid, pl-w waiting, pl-b border of boxes, pl-d dashes, pl-c1 to pl-c7 lines of charts.
#ifndef PIPELAB_EXPERIMENTS_REPORT_SVG_H_
#define PIPELAB_EXPERIMENTS_REPORT_SVG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace pipelab {

class Svg {
 public:
  // `id` makes element ids unique in a page that holds several drawings.
  Svg(absl::string_view id, double width, double height, absl::string_view title,
      absl::string_view description);

  void Rect(double x, double y, double width, double height, absl::string_view attributes,
            absl::string_view hover = "");
  void Line(double x1, double y1, double x2, double y2, absl::string_view attributes);
  void Polyline(const std::vector<std::pair<double, double>>& points, absl::string_view attributes);
  void Path(absl::string_view path, absl::string_view attributes);  // `path` as in SVG: "M1 2h3"
  void Text(double x, double y, absl::string_view text, absl::string_view attributes);
  void Open(absl::string_view attributes);  // <g ...>
  void Close();

  std::string Finish() &&;

 private:
  std::string out_;
};

// Width of a text of the drawings' font, near enough to decide what fits.
double TextWidth(absl::string_view text, double font_size);

// Ticks at 1, 2 or 5 times a power of ten that cover [low, high] with about `count` of them.
struct Ticks {
  std::vector<double> values;
  int decimals = 0;  // that tell them apart
};
Ticks NiceTicks(double low, double high, int count);

// A unit in which so many nanoseconds have at most four digits before the point.
struct TimeUnit {
  const char* name;
  double ns;
};
TimeUnit TimeUnitFor(int64_t ns);
// For a drawing: units of the user's own, of so many nanoseconds each, where that is not 0.
TimeUnit TimeUnitFor(int64_t ns, int64_t ns_per_unit);

// A length or a place of a drawing, to a hundredth.
std::string SvgNumber(double v);

// Okabe and Ito's colours, which people with any common colour blindness tell apart.
struct Colour {
  uint8_t r = 0, g = 0, b = 0;
};
inline constexpr Colour kBlue{0x00, 0x72, 0xb2}, kOrange{0xe6, 0x9f, 0x00},
    kGreen{0x00, 0x9e, 0x73}, kVermillion{0xd5, 0x5e, 0x00}, kPurple{0xcc, 0x79, 0xa7},
    kSky{0x56, 0xb4, 0xe9}, kYellow{0xf0, 0xe4, 0x42};
std::string Hex(Colour colour);               // "#0072b2"
Colour Lighten(Colour colour, double share);  // 0: as it is, 1: white
std::string InkOn(Colour background);         // black or white, whichever reads better
// As WCAG 2 defines it: 1 (the same) to 21 (black on white).
double Contrast(Colour a, Colour b);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_SVG_H_
