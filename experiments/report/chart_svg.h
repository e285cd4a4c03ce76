// A line chart over training steps, or other whole numbers, as SVG: axes with labels, a line a
// series.
//
//   std::string svg = LineChartSvg(
//       {.title = "Training loss", .x_label = "step", .y_label = "loss [nats/token]"},
//       {{"serial", {4.1, 3.2}}, {"1f1b", {4.1, 3.2}}});
//
// Series that coincide stay visible: each is drawn thinner than the one before, on top of it.
// Values that are not finite break the line and are counted in the legend. Point i of a series is
// at x = i + 1, or at steps[i].
#ifndef PIPELAB_EXPERIMENTS_REPORT_CHART_SVG_H_
#define PIPELAB_EXPERIMENTS_REPORT_CHART_SVG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pipelab {

struct Series {
  std::string name = {};
  std::vector<double> values = {};
  std::vector<int64_t> steps = {};  // ascending, from 1 on, one a value; empty: 1, 2, ...

  int64_t StepOf(size_t i) const { return steps.empty() ? static_cast<int64_t>(i) + 1 : steps[i]; }
};

struct ChartOptions {
  std::string id = "chart";  // prefix of element ids: unique in a page
  std::string title = {}, x_label = {}, y_label = {};
  bool doubling = false;  // x in powers of two, equally far apart
};

std::string LineChartSvg(const ChartOptions& options, const std::vector<Series>& series);

// Line charts with different ids below one another, as one SVG.
std::string StackedSvg(const std::vector<std::string>& charts);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_REPORT_CHART_SVG_H_
