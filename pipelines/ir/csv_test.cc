// PyTorch's CSV form.
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "pipelines/ir/device_lists.h"
#include "pipelines/ir/text.h"
#include "pipelines/ir/validate.h"
#include "tests/support/test_schedules.h"
#include "tools/base/status_matchers.h"

namespace pipelab {
namespace {

using testing::HasSubstr;

std::string CsvError(const std::string& csv) {
  return std::string(ParseCsv(csv).status().message());
}

TEST(Csv, GoesOutAndIn) {
  const Schedule s = ChainOf(2, {"0F0 0F1 0I0 0W0 0B1", "1F0 1B0 1F1 1R1 1B1"});
  PIPELAB_ASSERT_OK_AND_ASSIGN(const std::string csv, ToCsv(s));
  EXPECT_EQ(csv, "0F0,0F1,0I0,0W0,0B1\n1F0,1B0,1F1,1R1,1B1\n");
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule parsed, ParseCsv(csv));
  EXPECT_EQ(parsed.order, s.order);
  EXPECT_EQ(parsed.placement.groups, s.placement.groups);
  PIPELAB_ASSERT_OK_AND_ASSIGN(parsed,
                               ParseCsv("0F0,,0B0\r\n,1F0,1B0"));  // empty cells, no last newline
  EXPECT_THAT(Validate(parsed), IsOk());
  EXPECT_EQ(ToText(parsed), ToText([&] {
              Schedule expected = ChainOf(1, {"0F0 0B0", "1F0 1B0"});
              expected.name = "csv";
              return expected;
            }()));
}

TEST(Csv, FindsReplicas) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(Schedule s, ParseCsv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n"));
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_EQ(s.placement.groups,
            (std::vector<std::vector<std::vector<int>>>{{{0}, {1}}, {{1}, {0}}}));
  EXPECT_EQ(s.placement.replica_of_micro_batch, (std::vector<int>{0, 1}));
}

TEST(Csv, ErrorsSayWhere) {
  EXPECT_EQ(CsvError(""), "the CSV has no action");
  EXPECT_EQ(CsvError("0F0,UNSHARD"), "line 1, column 5: expected a stage, as in 2F5, found 'U'");
  EXPECT_EQ(CsvError("0F0 0B0"), "line 1, column 5: expected a comma, found '0'");
  EXPECT_EQ(CsvError("0F0\n0S@1"),
            "line 2, column 1: 0S@1: a cell has a stage, F, B, I, W or R, and a micro-batch");
  EXPECT_EQ(CsvError("0F0,0B0\n0F0"),
            "device 1, position 0: 0F0, but stage 0 of micro-batch 0 is on device 0 too");
  EXPECT_EQ(CsvError("0F0,0B0" + std::string(32767, '\n')),
            "");  // the last are idle devices
  EXPECT_EQ(CsvError("0F0,0B0" + std::string(32768, '\n')),
            "line 32768, column 1: the CSV has more than 32767 rows: each is a device");
  EXPECT_THAT(CsvError("0F2000000000,0B0"),
              HasSubstr("micro-batches up to 2000000000 need at least"));
  Schedule groups = ChainOf(1, {"0F0 0B0"});
  groups.num_slices = 2;
  EXPECT_THAT(ToCsv(groups),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("token slices")));
  Schedule merged = ChainOf(1, {"0F0 0F1 0B0 0B1"});
  merged.merges_passes = true;
  EXPECT_THAT(ToCsv(merged), StatusIs(absl::StatusCode::kInvalidArgument,
                                      "the CSV form cannot say merged passes; use the text form"));
  EXPECT_THAT(ToCsv(ChainOf(1, {"0F0 0O0 0L0 0B0"})),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the CSV form cannot say offloads and reloads (O, L); use the text form"));
}

// A micro-batch that a stage does not have at all is placed as its like, for the validator to name.
TEST(Csv, LeavesAMissingStageToTheValidator) {
  const auto verdict = [](const char* csv) {
    const absl::StatusOr<Schedule> s = ParseCsv(csv);
    return std::string(s.ok() ? Validate(*s).message() : s.status().message());
  };
  EXPECT_EQ(verdict("0F0,0F1,0B0,0B1\n1F0,1B0"),
            "device 1, position 2: 1F1 is missing; the list ends here");
  // Bidirectional: micro-batch 2 goes the way of micro-batch 0.
  EXPECT_EQ(verdict("0F0,1F1,1B1,0B0,0F2,0B2\n0F1,1F0,1B0,0B1\n"),
            "device 1, position 4: 1F2 is missing; the list ends here");
  EXPECT_EQ(verdict("0F0,0B0,2F0,2B0"), "1F0 is missing: no device has stage 1 of micro-batch 0");
  EXPECT_EQ(verdict("0F3,0B3"), "device 0, position 2: 0F0 is missing; the list ends here");
  EXPECT_EQ(verdict("0F30000,0B30000"), "0F64 is missing: no device has stage 0 of micro-batch 64");
}

// As PyTorch's _dump_csv writes what it runs: rows of different lengths, CR LF, with messages,
// gathers and reductions. Two ranks of DualPipeV's beginning, cut to one micro-batch a pair.
constexpr char kLowered[] =
    "0UNSHARD,3UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,3RECV_F0,3F0,(3F1;3B0)OVERLAP_F_B,3SEND_B0,3B1,"
    "3SEND_B1,0RECV_B0,0B0,0RECV_B1,0I1,0W1,0REDUCE_GRAD,3REDUCE_GRAD,0RESHARD,3RESHARD\r\n"
    "1UNSHARD,2UNSHARD,1RECV_F0,1F0,2F0,2SEND_F0,1RECV_F1,1F1,2F1,2SEND_F1,2RECV_B0,2B0,1B0,"
    "1SEND_B0,2RECV_B1,2B1,1B1,1SEND_B1,1REDUCE_GRAD,2REDUCE_GRAD,1RESHARD,2RESHARD,,\r\n";

TEST(Csv, ReadsWhatPyTorchLowers) {
  CsvSkipped skipped;
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule s, ParseCsv(kLowered, &skipped));
  EXPECT_THAT(Validate(s), IsOk());
  EXPECT_EQ(s.order[0], Actions("0F0 0F1 3F0 3F1 3B0 3B1 0B0 0I1 0W1"));
  EXPECT_EQ(s.order[1], Actions("1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1"));
  EXPECT_EQ(s.placement.groups, (std::vector<std::vector<std::vector<int>>>{{{0}, {1}, {1}, {0}}}));
  EXPECT_EQ(skipped.messages, 7 + 8);
  EXPECT_EQ(skipped.gathers, 8);
  EXPECT_EQ(skipped.reductions, 4);
  EXPECT_EQ(skipped.total(), 27);
  PIPELAB_ASSERT_OK_AND_ASSIGN(const Schedule plain, ParseCsv("0F0,0B0", &skipped));
  EXPECT_EQ(skipped.total(), 0);
}

TEST(Csv, ErrorsInWhatPyTorchLowersSayWhere) {
  EXPECT_EQ(CsvError("0F0,0SEND_F,0B0"),
            "line 1, column 12: expected a micro-batch, as in 2SEND_F5, found ','");
  EXPECT_EQ(CsvError("0F0,0UNSHARD0"), "line 1, column 13: expected a comma, found '0'");
  EXPECT_EQ(CsvError("0F0\n0GATHER"),
            "line 2, column 2: expected one of F, B, I, W, R, S, O, L after the stage, found 'G'");
  EXPECT_EQ(CsvError("0F0,(0B0;0F1)OVERLAP_F_B"), "line 1, column 6: OVERLAP_F_B begins with an F");
  EXPECT_EQ(CsvError("0F0,(0F1;0W0)OVERLAP_F_B"),
            "line 1, column 10: OVERLAP_F_B ends with a B or an I");
  EXPECT_EQ(CsvError("(0F1,0B0)OVERLAP_F_B"), "line 1, column 5: expected ';', found ','");
  EXPECT_EQ(CsvError("(0F1;0B0)"), "line 1, column 9: expected ')OVERLAP_F_B', found ')'");
  EXPECT_EQ(CsvError("0UNSHARD,0RECV_F0"), "the CSV has no action");
  EXPECT_EQ(CsvError("0F0,0O0,0L0,0B0"),
            "line 1, column 5: 0O0: a cell has a stage, F, B, I, W or R, and a micro-batch");
}

// The first stage of micro-batch 2 is missing. Its second is on device 0, as micro-batch 1's is, so
// it is of that replica, and not of micro-batch 0's.
TEST(DeviceLists, GuessesTheDeviceOfWhatIsMissing) {
  PIPELAB_ASSERT_OK_AND_ASSIGN(
      const Schedule s,
      ScheduleFromDeviceLists({Actions("0F0 1F1 1F2 1B1 1B2 0B0"), Actions("0F1 1F0 1B0 0B1")},
                              "the lists"));
  EXPECT_EQ(s.placement.replica_of_micro_batch, (std::vector<int>{0, 1, 1}));
}

}  // namespace
}  // namespace pipelab
