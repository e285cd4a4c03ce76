#include "experiments/report/svg.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/report/markup.h"

namespace pipelab {
namespace {

// The same in every drawing, so that it does no harm when a page embeds several.
constexpr char kStyle[] =
    "<style>"
    ".pl-svg{font-family:system-ui,'DejaVu Sans',Helvetica,Arial,sans-serif;font-size:12px}"
    ".pl-d{stroke-width:1.5;stroke-dasharray:2 3}"
    ".pl-bg{fill:#fff}.pl-t{fill:#1a1a1a}.pl-m{fill:#595959}.pl-l{stroke:#8c8c8c}"
    ".pl-g{stroke:#e3e3e3}.pl-s{stroke:#1a1a1a}.pl-i{fill:#efefef}.pl-w{stroke:#767676}"
    ".pl-o{fill:#444}.pl-b{stroke:#595959}"
    ".pl-c1{stroke:#b86e00}.pl-c2{stroke:#0072b2}.pl-c3{stroke:#008060}.pl-c4{stroke:#a8507f}"
    ".pl-c5{stroke:#d55e00}.pl-c6{stroke:#008b8b}.pl-c7{stroke:#857a00}"
    "@media screen and (prefers-color-scheme:dark){"
    ".pl-bg{fill:#16181c}.pl-t{fill:#ececec}.pl-m{fill:#b0b0b0}.pl-l{stroke:#808080}"
    ".pl-g{stroke:#33363c}.pl-s{stroke:#ececec}.pl-i{fill:#2a2d33}.pl-w{stroke:#9a9a9a}"
    ".pl-o{fill:#c8c8c8}.pl-b{stroke:#c8c8c8}"
    ".pl-c1{stroke:#e69f00}.pl-c2{stroke:#4a9fd8}.pl-c3{stroke:#2fb88f}.pl-c4{stroke:#cc79a7}"
    ".pl-c5{stroke:#ef7a2a}.pl-c6{stroke:#7fe0e0}.pl-c7{stroke:#f0e442}}"
    "</style>\n";

double Linear(uint8_t channel) {
  const double c = channel / 255.0;
  return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

double Luminance(Colour c) {
  return 0.2126 * Linear(c.r) + 0.7152 * Linear(c.g) + 0.0722 * Linear(c.b);
}

std::string Points(const std::vector<std::pair<double, double>>& points) {
  std::string text;
  for (const auto& [x, y] : points) {
    absl::StrAppend(&text, text.empty() ? "" : " ", SvgNumber(x), ",", SvgNumber(y));
  }
  return text;
}

}  // namespace

std::string SvgNumber(double v) { return ShortNumber(v, 2); }

Svg::Svg(absl::string_view id, double width, double height, absl::string_view title,
         absl::string_view description) {
  const std::string prefix = HtmlEscape(id);
  absl::StrAppend(
      &out_,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"pl-svg\" role=\"img\" aria-labelledby=\"",
      prefix, "-title ", prefix, "-desc\" width=\"", SvgNumber(width), "\" height=\"",
      SvgNumber(height), "\" viewBox=\"0 0 ", SvgNumber(width), " ", SvgNumber(height),
      "\">\n<title id=\"", prefix, "-title\">", HtmlEscape(title), "</title>\n<desc id=\"", prefix,
      "-desc\">", HtmlEscape(description), "</desc>\n", kStyle);
  Rect(0, 0, width, height, "class=\"pl-bg\"");
}

void Svg::Rect(double x, double y, double width, double height, absl::string_view attributes,
               absl::string_view hover) {
  absl::StrAppend(&out_, "<rect x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\" width=\"",
                  SvgNumber(width), "\" height=\"", SvgNumber(height), "\" ", attributes);
  if (hover.empty()) {
    absl::StrAppend(&out_, "/>\n");
  } else {
    absl::StrAppend(&out_, "><title>", HtmlEscape(hover), "</title></rect>\n");
  }
}

void Svg::Line(double x1, double y1, double x2, double y2, absl::string_view attributes) {
  absl::StrAppend(&out_, "<line x1=\"", SvgNumber(x1), "\" y1=\"", SvgNumber(y1), "\" x2=\"",
                  SvgNumber(x2), "\" y2=\"", SvgNumber(y2), "\" ", attributes, "/>\n");
}

void Svg::Polyline(const std::vector<std::pair<double, double>>& points,
                   absl::string_view attributes) {
  absl::StrAppend(&out_, "<polyline fill=\"none\" ", attributes, " points=\"", Points(points),
                  "\"/>\n");
}

void Svg::Path(absl::string_view path, absl::string_view attributes) {
  absl::StrAppend(&out_, "<path ", attributes, " d=\"", path, "\"/>\n");
}

void Svg::Text(double x, double y, absl::string_view text, absl::string_view attributes) {
  absl::StrAppend(&out_, "<text x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\" ", attributes,
                  ">", HtmlEscape(text), "</text>\n");
}

void Svg::Open(absl::string_view attributes) { absl::StrAppend(&out_, "<g ", attributes, ">\n"); }
void Svg::Close() { absl::StrAppend(&out_, "</g>\n"); }

std::string Svg::Finish() && { return out_ + "</svg>\n"; }

double TextWidth(absl::string_view text, double font_size) {
  return 0.62 * font_size * static_cast<double>(text.size());
}

TimeUnit TimeUnitFor(int64_t ns) {
  if (ns >= 10 * int64_t{1000000000}) return {"s", 1e9};
  if (ns >= 2 * int64_t{1000000}) return {"ms", 1e6};
  if (ns >= 2000) return {"us", 1e3};
  return {"ns", 1};
}

TimeUnit TimeUnitFor(int64_t ns, int64_t ns_per_unit) {
  if (ns_per_unit > 0) return {"units", static_cast<double>(ns_per_unit)};
  return TimeUnitFor(ns);
}

Ticks NiceTicks(double low, double high, int count) {
  Ticks ticks;
  if (!(high > low) || !std::isfinite(high - low)) {
    ticks.values = {low};
    ticks.decimals = 2;
    return ticks;
  }
  const double rough = (high - low) / std::max(1, count);
  int power = static_cast<int>(std::floor(std::log10(rough)));
  const double lead = rough / std::pow(10.0, power);
  double step = lead <= 1.0 ? 1 : lead <= 2.0 ? 2 : lead <= 5.0 ? 5 : 10;
  if (step == 10) {
    step = 1;
    ++power;
  }
  const double unit = std::pow(10.0, power);
  const double first = std::ceil(low / (step * unit) - 1e-9);
  for (double i = first; i * step * unit <= high * (1 + 1e-12) + 1e-9 * unit; ++i) {
    ticks.values.push_back(i * step * unit);
  }
  ticks.decimals = std::max(0, -power);
  return ticks;
}

std::string Hex(Colour c) { return absl::StrFormat("#%02x%02x%02x", c.r, c.g, c.b); }

Colour Lighten(Colour c, double share) {
  const auto mix = [share](uint8_t v) {
    return static_cast<uint8_t>(std::lround(v + (255 - v) * share));
  };
  return {mix(c.r), mix(c.g), mix(c.b)};
}

std::string InkOn(Colour background) {
  // Equal contrast with black and white is at a luminance of about 0.18.
  return Luminance(background) > 0.18 ? "#000" : "#fff";
}

double Contrast(Colour a, Colour b) {
  const double la = Luminance(a) + 0.05, lb = Luminance(b) + 0.05;
  return la > lb ? la / lb : lb / la;
}

}  // namespace pipelab
