#include "experiments/token_slices/seq1f1b_table.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "experiments/token_slices/seq1f1b_step.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr int kTableGpus = 32;

Seq1F1BSetup SetupOfRow(const PublishedSeq1F1BRow& row, size_t scheme,
                        const Seq1F1BChoice& choice) {
  Seq1F1BSetup setup;  // the paper's 7B
  setup.scheme = kSeq1F1BSchemes[scheme];
  setup.tokens = row.tokens;
  setup.micro_batches = static_cast<int>(row.micro_batches);
  setup.virtual_stages = choice.virtual_stages;
  setup.launch_gap_us = choice.launch_gap_us;
  setup.send_share = choice.send_share;
  return setup;
}

bool IsOfRow(const PublishedSeq1F1BRow& row, size_t scheme) {
  return SequenceOf(row, scheme) == row.tokens;
}

}  // namespace

std::string Seq1F1BChoice::ToString() const {
  return absl::StrCat("V=", virtual_stages, " gap=", launch_gap_us, "us sends=", send_share);
}

std::vector<Seq1F1BChoice> Seq1F1BChoices() {
  std::vector<Seq1F1BChoice> choices;
  for (const int chunks : {2, 4}) {
    for (const int64_t gap : {20, 100}) {
      for (const double share : {1.0, 0.5, 0.25, 0.125, 0.0625})
        choices.push_back({chunks, gap, share});
    }
  }
  return choices;
}

int64_t SequenceOf(const PublishedSeq1F1BRow& row, size_t scheme) {
  if (row.tflops[scheme] == 0) return 0;
  const double of_token =
      row.tflops[scheme] * 1e12 * kTableGpus / row.tokens_per_second[scheme] / 3;
  const Seq1F1BSetup model;
  return std::llround((of_token - model.LinearWork()) / model.SquareWork() / 256) * 256;
}

absl::StatusOr<Seq1F1BRow> SimulateRow(const PublishedSeq1F1BRow& row, const Seq1F1BChoice& choice,
                                       const ClusterSpec& cluster) {
  Seq1F1BRow result;
  result.published = row;
  for (size_t i = 0; i < result.steps.size(); ++i) {
    const Seq1F1BSetup setup = SetupOfRow(row, i, choice);
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, SimulateSeq1F1B(setup, cluster));
    const double flops = 3 * setup.Work(static_cast<double>(row.tokens)) * setup.micro_batches;
    result.steps[i] = {flops / (ToSeconds(p.step_time) * kTableGpus) * 1e-12, p.largest_device,
                       p.fits};
  }
  return result;
}

size_t BaseOf(const PublishedSeq1F1BRow& row) { return row.tflops[0] > 0 ? 0 : 2; }

CellErrors RatioErrors(const std::vector<Seq1F1BRow>& rows) {
  std::vector<ComparedCell> cells;
  for (const Seq1F1BRow& row : rows) {
    const PublishedSeq1F1BRow& p = row.published;
    const size_t base = BaseOf(p);
    for (size_t i = base + 1; i < row.steps.size(); ++i) {
      cells.push_back({absl::StrCat(kSeq1F1BSchemes[i], " ", p.tokens, " m=", p.micro_batches),
                       p.tflops[i] / p.tflops[base], row.steps[i].tflops / row.steps[base].tflops});
    }
  }
  return ErrorsOf(cells);
}

Seq1F1BPairs OrdersOf(const std::vector<Seq1F1BRow>& rows, bool same) {
  Seq1F1BPairs pairs;
  for (const Seq1F1BRow& row : rows) {
    const auto& published = row.published.tflops;
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        if (published[j] == 0 || published[i] <= published[j]) continue;
        if (same && !(IsOfRow(row.published, i) && IsOfRow(row.published, j))) continue;
        ++pairs.all;
        pairs.alike += row.steps[i].tflops > row.steps[j].tflops;
      }
    }
  }
  return pairs;
}

const Seq1F1BRows& ToldBy(const std::vector<Seq1F1BRows>& all, size_t row) {
  const auto error = [&](const Seq1F1BRows& rows) { return RatioErrors({rows.rows[row]}).largest; };
  return *std::min_element(all.begin(), all.end(), [&](const Seq1F1BRows& a, const Seq1F1BRows& b) {
    return error(a) < error(b);
  });
}

}  // namespace pipelab
