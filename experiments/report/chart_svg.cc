#include "experiments/report/chart_svg.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "experiments/report/markup.h"
#include "experiments/report/svg.h"

namespace pipelab {
namespace {

constexpr double kChartWidth = 820, kPlotHeight = 300;
constexpr double kChartLeft = 70, kChartTop = 44, kChartRight = 24, kChartAxis = 48,
                 kLegendRow = 20;

// Data to pixels.
struct Scale {
  double x_min = 1, x_max = 1, low = 0, high = 1;
  bool doubling = false;
  double Share(double step) const {
    if (x_max <= x_min) return 0.5;
    return doubling ? std::log2(step / x_min) / std::log2(x_max / x_min) : (step - 1) / (x_max - 1);
  }
  double X(double step) const {
    return kChartLeft + Share(step) * (kChartWidth - kChartLeft - kChartRight);
  }
  double Y(double value) const { return kChartTop + (high - value) / (high - low) * kPlotHeight; }
};

double LeastStep(const std::vector<Series>& series) {
  double least = std::numeric_limits<double>::infinity();
  for (const Series& line : series) {
    if (!line.values.empty()) least = std::min(least, static_cast<double>(line.StepOf(0)));
  }
  return std::isfinite(least) ? least : 1;
}

Scale MakeScale(bool doubling, const std::vector<Series>& series) {
  Scale s;
  s.doubling = doubling;
  s.low = std::numeric_limits<double>::infinity();
  s.high = -s.low;
  for (const Series& line : series) {
    if (line.values.empty()) continue;
    s.x_max = std::max(s.x_max, static_cast<double>(line.StepOf(line.values.size() - 1)));
    for (double v : line.values) {
      if (!std::isfinite(v)) continue;
      s.low = std::min(s.low, v);
      s.high = std::max(s.high, v);
    }
  }
  if (doubling) s.x_min = LeastStep(series);
  if (s.low > s.high) s.low = s.high = 0;
  const double margin =
      s.high > s.low ? 0.05 * (s.high - s.low) : std::max(1e-3, 0.05 * std::abs(s.high));
  s.low -= margin;
  s.high += margin;
  return s;
}

// The first line has the ink of the page: it is the reference in most charts.
std::string StrokeOf(size_t i) {
  return i == 0 ? "class=\"pl-s\"" : absl::StrCat("class=\"pl-c", (i - 1) % 7 + 1, "\"");
}

double WidthOf(size_t i, size_t n) {
  return 1.8 + 1.6 * std::min<double>(static_cast<double>(n - 1 - i), 6);
}

std::vector<double> StepsOfAxis(const Scale& s) {
  if (s.x_max <= s.x_min) return {s.x_min};
  if (!s.doubling) return NiceTicks(0, s.x_max, 8).values;
  std::vector<double> powers;
  for (double v = s.x_min; v <= s.x_max; v *= 2) powers.push_back(v);
  return powers;
}

void DrawAxes(const ChartOptions& options, const Scale& s, Svg& svg) {
  const double bottom = kChartTop + kPlotHeight, right = kChartWidth - kChartRight;
  const Ticks y = NiceTicks(s.low, s.high, 6);
  for (double v : y.values) {
    svg.Line(kChartLeft, s.Y(v), right, s.Y(v), "class=\"pl-g\"");
    svg.Text(kChartLeft - 8, s.Y(v) + 4, FixedNumber(v, y.decimals),
             "class=\"pl-m\" text-anchor=\"end\"");
  }
  for (double v : StepsOfAxis(s)) {
    if (v < 1 || v != std::floor(v)) continue;  // steps are whole and begin at 1
    svg.Line(s.X(v), bottom, s.X(v), bottom + 5, "class=\"pl-l\"");
    svg.Text(s.X(v), bottom + 19, FixedNumber(v, 0), "class=\"pl-m\" text-anchor=\"middle\"");
  }
  svg.Line(kChartLeft, bottom, right, bottom, "class=\"pl-l\"");
  svg.Line(kChartLeft, kChartTop, kChartLeft, bottom, "class=\"pl-l\"");
  svg.Text((kChartLeft + right) / 2, bottom + 39, options.x_label,
           "class=\"pl-t\" text-anchor=\"middle\"");
  const double middle = kChartTop + kPlotHeight / 2;
  svg.Text(18, middle, options.y_label,
           absl::StrCat("class=\"pl-t\" text-anchor=\"middle\" transform=\"rotate(-90 18 ", middle,
                        ")\""));
}

// Draws the runs of finite values; returns how many are not.
int DrawLine(const Series& line, const Scale& s, const std::string& attributes, Svg& svg) {
  int broken = 0;
  std::vector<std::pair<double, double>> run;
  const auto flush = [&] {
    if (run.size() == 1) {
      // A stroke without length is not drawn: a dot of the line's width is.
      svg.Line(run[0].first, run[0].second, run[0].first + 0.01, run[0].second, attributes);
    } else if (run.size() > 1) {
      svg.Polyline(run, attributes);
    }
    run.clear();
  };
  for (size_t i = 0; i < line.values.size(); ++i) {
    if (std::isfinite(line.values[i])) {
      run.emplace_back(s.X(static_cast<double>(line.StepOf(i))), s.Y(line.values[i]));
    } else {
      ++broken;
      flush();
    }
  }
  flush();
  return broken;
}

std::string Description(const ChartOptions& options, const std::vector<Series>& series) {
  std::string text = absl::StrCat(options.y_label, " over ", options.x_label, ".");
  for (const Series& line : series) {
    if (line.values.empty()) continue;
    absl::StrAppend(&text, " ", line.name, ": from ", FixedNumber(line.values.front(), 3), " to ",
                    FixedNumber(line.values.back(), 3), " at ", options.x_label, " ",
                    line.StepOf(line.values.size() - 1), ".");
  }
  return text;
}

}  // namespace

std::string LineChartSvg(const ChartOptions& options, const std::vector<Series>& series) {
  // Legend entries run from left to right and wrap.
  std::vector<std::pair<double, double>> places;
  double x = kChartLeft, y = kChartTop + kPlotHeight + kChartAxis + 14;
  for (const Series& line : series) {
    const double width = 60 + TextWidth(line.name, 12);
    if (x + width > kChartWidth - kChartRight && x > kChartLeft) {
      x = kChartLeft;
      y += kLegendRow;
    }
    places.emplace_back(x, y);
    x += width;
  }
  const Scale scale = MakeScale(options.doubling, series);
  Svg svg(options.id, kChartWidth, y + kLegendRow, options.title, Description(options, series));
  svg.Text(kChartLeft, 24, options.title, "class=\"pl-t\" font-size=\"15\" font-weight=\"600\"");
  DrawAxes(options, scale, svg);
  for (size_t i = 0; i < series.size(); ++i) {
    const std::string attributes =
        absl::StrCat(StrokeOf(i), " stroke-width=\"", ShortNumber(WidthOf(i, series.size()), 1),
                     "\" stroke-linejoin=\"round\" stroke-linecap=\"round\"");
    const int broken = DrawLine(series[i], scale, attributes, svg);
    svg.Line(places[i].first + 4, places[i].second, places[i].first + 26, places[i].second,
             attributes);
    std::string name = series[i].name;
    if (broken > 0) absl::StrAppend(&name, " (", broken, " not finite)");
    svg.Text(places[i].first + 36, places[i].second + 4, name, "class=\"pl-t\"");
  }
  return std::move(svg).Finish();
}

std::string StackedSvg(const std::vector<std::string>& charts) {
  constexpr double kPitch = kChartTop + kPlotHeight + kChartAxis + 6 * kLegendRow;
  std::string all =
      absl::StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kChartWidth,
                   "\" height=\"", kPitch * static_cast<double>(charts.size()), "\">\n");
  for (size_t i = 0; i < charts.size(); ++i) {
    absl::StrAppend(&all, "<g transform=\"translate(0 ", kPitch * static_cast<double>(i), ")\">\n",
                    charts[i], "</g>\n");
  }
  return absl::StrCat(all, "</svg>\n");
}

}  // namespace pipelab
