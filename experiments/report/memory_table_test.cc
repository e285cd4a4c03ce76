#include "experiments/report/memory_table.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/schedules/catalog.h"

namespace pipelab {
namespace {

using testing::ElementsAre;

struct MadeTable {
  Program program;
  CostTable costs;
};

// Weights of 10 `unit`, and 1 kept by a forward, which needs 3 while it runs.
MadeTable MakeTable(const char* scheme, Bytes unit, Bytes statistics = Bytes(0)) {
  SchemeParams params;
  params.devices = 2;
  params.micro_batches = 4;
  MadeTable made;
  made.program = Lower(MakeSchedule(scheme, params).value(), {}).value();
  made.costs = CostTable::Unit(made.program.schedule);
  for (StageCost& stage : made.costs.stages) {
    StageMemory& m = stage.memory;
    m.kept = m.forward_peak_kept = unit;
    m.forward_peak = unit * 3;
    m.weights = m.gradients = unit * 10;
    m.optimizer = unit * 20;
    m.statistics = statistics;
    m.state = unit * 40 + statistics;
  }
  return made;
}

std::vector<std::string> Metrics(const Table& table) {
  std::vector<std::string> metrics;
  for (const Column& c : table.columns()) metrics.push_back(c.metric);
  return metrics;
}

std::vector<std::string> Row(const Table& table, int row) {
  std::vector<std::string> texts;
  for (size_t c = 0; c < table.columns().size(); ++c) {
    texts.push_back(table.CellText(row, static_cast<int>(c)));
  }
  return texts;
}

TEST(PeakMemoryTable, PartsOfEachDevice) {
  const MadeTable made = MakeTable("1f1b", Bytes(1));
  const Table t = PeakMemoryTable("memory_parts", "Memory", {{"1f1b", &made.program, &made.costs}});
  ASSERT_TRUE(t.status().ok()) << t.status();
  EXPECT_THAT(Metrics(t), ElementsAre("scheme", "device", "weights", "gradients", "optimizer_state",
                                      "kept", "messages", "action", "peak_memory", "peak_at"));
  EXPECT_THAT(Row(t, 0), ElementsAre("1f1b", "0", "10", "10", "20", "2", "0", "2", "44", "0F1"));
  EXPECT_THAT(Row(t, 1), ElementsAre("1f1b", "1", "10", "10", "20", "1", "0", "2", "43", "1F0"));
  EXPECT_EQ(t.columns()[2].unit, "B");
  EXPECT_EQ(t.columns()[2].origin, Origin::kSimulated);
}

TEST(PeakMemoryTable, RareParts) {
  const MadeTable made = MakeTable("pipedream", Bytes(1), Bytes(7));
  const Table t = PeakMemoryTable("memory_parts", "Memory", {{"x", &made.program, &made.costs}});
  ASSERT_TRUE(t.status().ok()) << t.status();
  EXPECT_THAT(Metrics(t), ElementsAre("scheme", "device", "weights", "gradients", "optimizer_state",
                                      "statistics", "older_weights", "kept", "messages", "action",
                                      "peak_memory", "peak_at"));
  EXPECT_THAT(Row(t, 0),
              ElementsAre("x", "0", "10", "10", "20", "7", "10", "2", "0", "2", "61", "0F2@1"));
}

TEST(PeakMemoryTable, UnitsFollowTheLargest) {
  const auto unit_of = [](Bytes unit) {
    const MadeTable made = MakeTable("1f1b", unit);
    return PeakMemoryTable("m", "Memory", {{"x", &made.program, &made.costs}}).columns()[2].unit;
  };
  EXPECT_EQ(unit_of(Bytes(1000)), "B");
  EXPECT_EQ(unit_of(Bytes(10000)), "MiB");
  EXPECT_EQ(unit_of(Bytes(1 << 20)), "MiB");
  EXPECT_EQ(unit_of(Bytes(1 << 30)), "GiB");
}

}  // namespace
}  // namespace pipelab
