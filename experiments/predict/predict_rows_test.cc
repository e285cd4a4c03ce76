#include "experiments/predict/predict_rows.h"

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "experiments/predict/predict_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

MeasuredRow GridRow(int64_t pipeline, int64_t tensor, int64_t data, int64_t micro_batch,
                    int64_t micro_batches) {
  MeasuredRow r;
  r.gpus = pipeline * tensor * data;
  r.pipeline = pipeline;
  r.tensor = tensor;
  r.data = data;
  r.micro_batch = micro_batch;
  r.batch = micro_batch * micro_batches * data;
  r.hidden = 1024;
  r.heads = 16;
  r.layers = 8;
  r.tokens = 512;
  return r;
}

double Predict(const MeasuredRow& row, const ClusterSpec& cluster = Dgx()) {
  MeasuredRows rows;
  rows.rows = {row};
  const auto ms = PredictRows(rows, cluster, "rows");
  EXPECT_THAT(ms, IsOk());
  return ms.ok() ? (*ms)[0] : -1;
}

// One device: micro-batches one after the other, then the step.
TEST(PredictRows, OnOneDeviceMicroBatchesAddUp) {
  const auto point = SimulateRun(RunOfRow(GridRow(1, 1, 1, 2, 3), kGpt2Vocabulary), Dgx());
  ASSERT_THAT(point, IsOk());
  const StageCost& s = point->step.costs.stages[0];
  EXPECT_EQ(point->step_time, (s.forward + s.backward_input + s.backward_weight) * 3 + s.step);
  EXPECT_DOUBLE_EQ(Predict(GridRow(1, 1, 1, 2, 3)), ToMilliseconds(point->step_time));
}

// Every operation of the layers takes the host's time where that is very long: the launches of a
// micro-batch, counted by hand. 9 + 5 forward, 13 + 6 and 11 + 11 backward for a layer; 4 and 5 for
// the embedding, 4 and 2 + 1 + 1 + 4 for the head (its norm, product, and the loss).
TEST(PredictRows, LaunchesByHand) {
  ClusterSpec cluster = Dgx();
  cluster.device.host_launch = {Milliseconds(100), "test"};
  const auto point = SimulateRun(RunOfRow(GridRow(1, 1, 1, 1, 1), kGpt2Vocabulary), cluster);
  ASSERT_THAT(point, IsOk());
  const StageCost& s = point->step.costs.stages[0];
  EXPECT_EQ(s.forward, Milliseconds(100) * (8 * (9 + 5) + 4 + 4));
  EXPECT_EQ(s.backward_input, Milliseconds(100) * (8 * (13 + 6) + 3));
  EXPECT_EQ(s.backward_weight, Milliseconds(100) * (8 * (11 + 11) + 5 + 5));
}

// 1F1B with equal stages and no time for messages: (M + P - 1) (F + B) and the step. Stages are not
// equal because of embedding and head, so it lies between those of the shortest and the longest.
TEST(PredictRows, PipelinesAreWithinTheirClosedForm) {
  for (const int64_t pipeline : {2, 4}) {
    for (const int64_t micro_batches : {2, 8}) {
      const auto point =
          SimulateRun(RunOfRow(GridRow(pipeline, 1, 1, 2, micro_batches), kGpt2Vocabulary), Dgx());
      ASSERT_THAT(point, IsOk());
      Nanoseconds shortest = Milliseconds(1000000), longest, step;
      for (const StageCost& s : point->step.costs.stages) {
        const Nanoseconds pass = s.forward + s.backward_input + s.backward_weight;
        shortest = std::min(shortest, pass);
        longest = std::max(longest, pass);
        step = std::max(step, s.step);
      }
      const int64_t passes = micro_batches + pipeline - 1;
      EXPECT_GE(point->step_time, shortest * passes);
      EXPECT_LE(point->step_time, longest * passes + step + Milliseconds(2) * passes);
    }
  }
}

TEST(PredictRows, MoreWorkTakesLonger) {
  const ClusterSpec cluster = Dgx();
  for (const MeasuredRow& row :
       {GridRow(1, 1, 1, 1, 4), GridRow(2, 2, 2, 2, 4), GridRow(4, 1, 2, 1, 8),
        GridRow(1, 8, 1, 4, 2), GridRow(1, 1, 8, 8, 2)}) {
    const double time = Predict(row, cluster);
    const auto with = [&](const std::function<void(MeasuredRow&)>& change) {
      MeasuredRow changed = row;
      change(changed);
      return Predict(changed, cluster);
    };
    EXPECT_GT(with([](MeasuredRow& r) { r.layers *= 2; }), time);
    EXPECT_GT(with([](MeasuredRow& r) { r.batch *= 2; }), time);
    EXPECT_GE(with([](MeasuredRow& r) { r.batch *= 4, r.micro_batch *= 4; }), time);
    EXPECT_GE(with([](MeasuredRow& r) { r.hidden *= 4; }), time);
    EXPECT_GE(with([](MeasuredRow& r) { r.tokens *= 4; }), time);
  }
}

TEST(PredictRows, FasterMachinesTakeNoLonger) {
  const ClusterSpec cluster = Dgx();
  for (const MeasuredRow& row :
       {GridRow(1, 1, 1, 4, 2), GridRow(2, 2, 2, 8, 2), GridRow(1, 8, 1, 4, 2)}) {
    const double time = Predict(row, cluster);
    const auto with = [&](const std::function<void(ClusterSpec&)>& change) {
      ClusterSpec changed = cluster;
      change(changed);
      return Predict(row, changed);
    };
    EXPECT_LE(with([](ClusterSpec& c) { c.device.host_launch.reset(); }), time);
    EXPECT_LE(with([](ClusterSpec& c) { c.device.collective_overhead.reset(); }), time);
    EXPECT_LE(with([](ClusterSpec& c) { c.device.product_alignment.reset(); }), time);
    EXPECT_LE(with([](ClusterSpec& c) { c.device.launch_overhead.value = Nanoseconds(0); }), time);
  }
}

TEST(PredictRows, ErrorsNameFileAndLine) {
  MeasuredRows rows;
  rows.rows = {GridRow(1, 1, 1, 1, 1), GridRow(1, 1, 1, 1, 1)};
  rows.rows[1].line = 7;
  rows.rows[1].data = 4096;
  rows.rows[1].batch = 4096;
  const auto ms = PredictRows(rows, Dgx(), "--rows=a.csv");
  EXPECT_EQ(ms.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::string(ms.status().message()),
            "--rows=a.csv: line 7: 4096 devices; cluster dgx-a100 has 3072");
  rows.rows[1] = GridRow(1, 1, 1, 1, 1);
  rows.rows[1].line = 3;
  rows.rows[1].pipeline = 3;
  EXPECT_EQ(std::string(PredictRows(rows, Dgx(), "a.csv").status().message()),
            "a.csv: line 3: 3 stages do not divide the layers, 8");
  rows.rows[1].scheme = "zigzag";
  EXPECT_THAT(std::string(PredictRows(rows, Dgx(), "a.csv").status().message()),
              HasSubstr("a.csv: line 3: scheme"));
}

RowPrediction PredictWhole(const MeasuredRow& row) {
  MeasuredRows rows;
  rows.rows = {row};
  return PredictEachRow(rows, Dgx(), "rows").value()[0];
}

// A layer keeps 34 s b h + 5 a s^2 b bytes where attention keeps its scores, 34 s b h with
// selective recomputation (Korthikanti et al. 2022, section 4): what 64 layers keep more than 32.
TEST(PredictEachRow, MemoryOfALayerIsThePublishedCount) {
  const double b = 2, s = 512, h = 1024, a = 16;
  const auto of_a_layer = [](Recompute recompute, AttentionImplementation attention) {
    MeasuredRow row = GridRow(1, 1, 1, 2, 1);
    row.recompute = recompute;
    row.attention = attention;
    const auto activations = [&] {
      const auto p = SimulateRun(RunOfRow(row, kGpt2Vocabulary), Dgx());
      EXPECT_THAT(p, IsOk());
      return static_cast<double>(p->devices[0].peak_activation.value());
    };
    row.layers = 64;
    const double more = activations();
    row.layers = 32;
    return (more - activations()) / 32;
  };
  EXPECT_NEAR(of_a_layer(Recompute::kNone, AttentionImplementation::kUnfused) /
                  (34 * s * b * h + 5 * a * s * s * b),
              1, 0.03);
  EXPECT_NEAR(
      of_a_layer(Recompute::kSelective, AttentionImplementation::kUnfused) / (34 * s * b * h), 1,
      0.03);
  EXPECT_NEAR(of_a_layer(Recompute::kNone, AttentionImplementation::kFused) / (34 * s * b * h), 1,
              0.03);
}

TEST(PredictEachRow, WhatIsKeptAndWhatIsTwiceComputed) {
  MeasuredRow row = GridRow(2, 2, 2, 4, 8);
  row.layers = 16;
  const RowPrediction none = PredictWhole(row);
  row.recompute = Recompute::kSelective;
  const RowPrediction selective = PredictWhole(row);
  row.recompute = Recompute::kFull;
  const RowPrediction full = PredictWhole(row);
  EXPECT_LT(none.milliseconds, selective.milliseconds);
  EXPECT_LT(selective.milliseconds, full.milliseconds);
  EXPECT_GT(none.memory, selective.memory);
  EXPECT_GT(none.memory, full.memory);
  row.recompute = Recompute::kNone;
  row.sharding = Sharding::kOptimizer;
  EXPECT_LT(PredictWhole(row).memory, none.memory);
}

// Megatron-LM keeps 2 s b h bytes of a block that it recomputes whole.
TEST(PredictEachRow, FullRecomputationKeepsTheInputsOfBlocks) {
  const double b = 2, s = 512, h = 1024;
  MeasuredRow row = GridRow(1, 1, 1, 2, 1);
  row.recompute = Recompute::kFull;
  row.layers = 64;
  const auto activations = [&] {
    const auto p = SimulateRun(RunOfRow(row, kGpt2Vocabulary), Dgx());
    EXPECT_THAT(p, IsOk());
    return static_cast<double>(p->devices[0].peak_activation.value());
  };
  const double more = activations();
  row.layers = 32;
  EXPECT_EQ(more - activations(), 32 * 2 * s * b * h);
}

// A layer of 34 s b h bytes, and no time for reading and writing scores.
TEST(PredictEachRow, FusedAttentionKeepsNoScores) {
  MeasuredRow row = GridRow(1, 1, 1, 2, 1);
  const RowPrediction unfused = PredictWhole(row);
  row.recompute = Recompute::kSelective;
  const RowPrediction selective = PredictWhole(row);
  row.recompute = Recompute::kNone;
  row.attention = AttentionImplementation::kFused;
  const RowPrediction fused = PredictWhole(row);
  EXPECT_LT(fused.milliseconds, unfused.milliseconds);
  EXPECT_LT(fused.memory, unfused.memory);
  EXPECT_LE(fused.memory, selective.memory);  // which has one layer's scores in the backward
  EXPECT_DOUBLE_EQ(fused.tflops_all_pairs * fused.milliseconds,
                   unfused.tflops_all_pairs * unfused.milliseconds);
}

TEST(PredictEachRow, SchemesAndVirtualStages) {
  MeasuredRow row = GridRow(2, 1, 1, 2, 4);
  const RowPrediction plain = PredictWhole(row);
  row.virtual_stages = 4;
  EXPECT_EQ(RunOfRow(row, kGpt2Vocabulary).config.scheme, "interleaved");
  EXPECT_NE(PredictWhole(row).milliseconds, plain.milliseconds);
  row.virtual_stages = 0;
  row.scheme = "gpipe";
  EXPECT_GT(PredictWhole(row).memory, plain.memory);  // all micro-batches in flight
  row.scheme = "zbv";                                 // two stages per device of its own
  EXPECT_GT(PredictWhole(row).milliseconds, 0);
}

// The formula's attention is 2/3 of h for s = 4h; a causal mask leaves half of its pairs.
TEST(PredictEachRow, AttentionCountsWholeOrCausal) {
  MeasuredRow row = GridRow(1, 1, 1, 1, 1);
  row.vocabulary = 1;
  row.tokens = 4 * row.hidden;
  const RowPrediction p = PredictWhole(row);
  EXPECT_NEAR(p.tflops_all_pairs / p.tflops_causal, (1 + 4.0 / 6) / (1 + 2.0 / 6), 1e-3);
}

std::vector<RowError> Errors(const std::vector<MeasuredRow>& rows,
                             const std::vector<double>& predicted) {
  std::vector<RowError> errors;
  for (size_t i = 0; i < rows.size(); ++i) errors.push_back({&rows[i], predicted[i]});
  return errors;
}

std::vector<MeasuredRow> Measured(const std::vector<double>& milliseconds) {
  std::vector<MeasuredRow> rows;
  for (double ms : milliseconds) {
    rows.push_back(GridRow(2, 2, 2, 1, 4));
    rows.back().milliseconds = ms;
  }
  return rows;
}

TEST(Errors, ByHand) {
  const std::vector<MeasuredRow> rows = Measured({100, 100, 200, 400});
  const ErrorSummary s = Summarise(Errors(rows, {110, 95, 200, 320}));
  EXPECT_EQ(s.rows, 4);
  EXPECT_NEAR(s.mean, (0.1 + 0.05 + 0 + 0.2) / 4, 1e-12);
  EXPECT_NEAR(s.median, 0.075, 1e-12);
  EXPECT_NEAR(s.largest, 0.2, 1e-12);
  EXPECT_NEAR(s.ninth_decile, 0.2, 1e-12);
  EXPECT_NEAR(s.bias, (0.1 - 0.05 - 0.2) / 4, 1e-12);
  EXPECT_EQ(Summarise(std::vector<RowError>()).rows, 0);
}

TEST(Errors, PairsOfOneModelBatchAndSizeThatDifferByATenth) {
  std::vector<MeasuredRow> rows = Measured({100, 105, 130, 200});
  // 100-105 is too close; of the other five the predictions turn one around.
  RankingSummary r = RankPairs(Errors(rows, {100, 90, 95, 300}));
  EXPECT_EQ(r.pairs, 5);
  EXPECT_EQ(r.right, 4);
  EXPECT_DOUBLE_EQ(r.share(), 0.8);
  rows[3].batch *= 2;
  EXPECT_EQ(RankPairs(Errors(rows, {100, 90, 95, 300})).pairs, 2);
  EXPECT_EQ(RankPairs(std::vector<RowError>()).share(), 1);
}

TEST(Errors, RowsThatWereNotMeasuredHaveNone) {
  MeasuredRows rows;
  rows.rows = Measured({1, 2, 3});
  rows.rows[1].milliseconds.reset();
  EXPECT_THAT(ErrorsOf(rows, {1, 1, 1}), testing::SizeIs(2));
}

TEST(CorrectedByKnownPasses, TakesTheMedianOfTheSamePassAlone) {
  const std::vector<MeasuredRow> known = Measured({110, 120, 150});
  MeasuredRows rows;
  rows.rows = {GridRow(4, 2, 1, 1, 9), GridRow(4, 2, 1, 2, 9), GridRow(1, 4, 1, 1, 9)};
  // P and M may differ; the micro-batch size and T may not.
  EXPECT_THAT(CorrectedByKnownPasses(rows, {10, 10, 10}, Errors(known, {100, 100, 100})),
              testing::ElementsAre(testing::DoubleEq(12), 10, 10));
}

}  // namespace
}  // namespace pipelab
