#include "experiments/inference/int4_law.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "models/graph/operation.h"
#include "pipelines/cluster/device.h"
#include "tools/base/status_macros.h"
#include "tools/base/units.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "MARLIN (arXiv 2408.11743)";
constexpr int64_t kGroup = 128, kModelBatch = 16;

struct MatrixSize {
  int64_t k, n;
};
constexpr double kA10TeraFlops = 125;
constexpr MatrixSize kChart = {18432, 73728};  // "72k x 18k"

struct PublishedModel {
  const char* name;
  std::vector<MatrixSize> matrices;
  double a10, a100;
};

const std::vector<PublishedModel>& Models() {
  static const auto* const models = new std::vector<PublishedModel>{
      {"Llama 7B", {{4096, 12288}, {4096, 4096}, {4096, 21504}, {10752, 4096}}, 3.69, 2.22},
      {"Llama 13B", {{5120, 15360}, {5120, 5120}, {5120, 27136}, {13568, 5120}}, 3.78, 2.80},
      {"Llama 33B", {{6656, 19968}, {6656, 6656}, {6656, 35328}, {17664, 6656}}, 3.83, 3.04},
      {"Llama 65B", {{8192, 24576}, {8192, 8192}, {8192, 43520}, {21760, 8192}}, 3.85, 3.20},
      {"Falcon 180B", {{14848, 75264}, {74240, 14848}}, 3.74, 3.64}};
  return *models;
}

// Peaks of data sheets, all of them reached.
DeviceSpec LawDevice(const char* name, double tera_flops, double giga_bytes, Nanoseconds launch) {
  DeviceSpec device;
  device.name = name;
  device.peaks[NumberType::kFp16] = {FlopsPerSecond(tera_flops * 1e12), "data sheet"};
  device.memory_bandwidth = {BytesPerSecond(giga_bytes * 1e9), "data sheet"};
  device.launch_overhead = {launch, "assumed"};
  const EfficiencyCurve all{{{1, 1}}};
  device.arithmetic[OperationKind::kMatmul] = {all, "the law's"};
  device.memory_efficiency = {all, "the law's"};
  return device;
}

// The speed-up on the matrices, one after the other: times with fp16 weights over those with int4.
absl::StatusOr<double> SpeedUp(const DeviceSpec& device, const std::vector<MatrixSize>& matrices,
                               int64_t batch) {
  Nanoseconds fp16, int4;
  for (const MatrixSize& m : matrices) {
    PIPELAB_ASSIGN_OR_RETURN(
        const Nanoseconds whole,
        OperationTime(device, NumberType::kFp16, MatmulOperation(batch, m.n, m.k)));
    PIPELAB_ASSIGN_OR_RETURN(
        const Nanoseconds packed,
        OperationTime(device, NumberType::kFp16, Int4MatmulOperation(batch, m.n, m.k, kGroup)));
    fp16 += whole;
    int4 += packed;
  }
  return static_cast<double>(fp16.value()) / static_cast<double>(int4.value());
}

Claim CellsClaim(const char* id, const char* text, const char* where,
                 const std::vector<ComparedCell>& cells, double limit, const char* reason) {
  Claim c = PaperClaim(id, text, absl::StrCat(kPaper, ", ", where), "read");
  c.published = absl::StrCat(cells.size(), " speed-ups");
  c.origin = Origin::kComputed;
  MetWithinErrors(&c, ErrorsOf(cells), limit, reason);
  return c;
}

}  // namespace

absl::StatusOr<Int4Charts> PublishedInt4Charts() {
  Int4Charts charts;
  charts.batches = {{1, 3.87, 3.87},  {2, 3.87, 3.88},  {4, 3.88, 3.88},  {8, 3.88, 3.90},
                    {16, 3.87, 3.90}, {32, 3.85, 3.82}, {64, 3.27, 3.09}, {128, 1.65, 1.55}};
  const DeviceSpec a10 = LawDevice("A10", kA10TeraFlops, 600, Nanoseconds(0));
  for (Int4BatchRow& row : charts.batches) {
    PIPELAB_ASSIGN_OR_RETURN(row.law, SpeedUp(a10, {kChart}, row.batch));
    const Operation product = Int4MatmulOperation(row.batch, kChart.n, kChart.k, kGroup);
    PIPELAB_ASSIGN_OR_RETURN(const Nanoseconds time,
                             OperationTime(a10, NumberType::kFp16, product));
    row.share = product.flops.value() / (kA10TeraFlops * 1e3 * static_cast<double>(time.value()));
  }
  const Nanoseconds launch(5000);
  const DeviceSpec launched_a10 = LawDevice("A10", kA10TeraFlops, 600, launch);
  const DeviceSpec launched_a100 = LawDevice("A100", 312, 1555, launch);
  for (const PublishedModel& m : Models()) {
    Int4ModelRow row{m.name, m.a10, m.a100};
    PIPELAB_ASSIGN_OR_RETURN(row.law_a10, SpeedUp(launched_a10, m.matrices, kModelBatch));
    PIPELAB_ASSIGN_OR_RETURN(row.law_a100, SpeedUp(launched_a100, m.matrices, kModelBatch));
    charts.models.push_back(std::move(row));
  }
  return charts;
}

Int4Curves Int4LawCurves(const Int4Charts& charts) {
  Series law{"A10, law"}, marlin{"A10, MARLIN, published"};
  for (const Int4BatchRow& row : charts.batches) {
    for (Series* s : {&law, &marlin}) s->steps.push_back(row.batch);
    law.values.push_back(row.law);
    marlin.values.push_back(row.marlin);
  }
  Int4Curves curves{{law, marlin}, {law, marlin}};
  for (size_t i = 0; i < charts.batches.size(); ++i) {
    const Int4BatchRow& row = charts.batches[i];
    curves.shares[0].values[i] = 100 * row.share;
    curves.shares[1].values[i] = 100 * row.share * row.marlin / row.law;
  }
  return curves;
}

std::vector<Claim> Int4LawClaims(const Int4Charts& charts) {
  std::vector<ComparedCell> ideal, marlin, a10, a100;
  for (const Int4BatchRow& row : charts.batches) {
    const std::string name = absl::StrCat("batch ", row.batch);
    ideal.push_back({name, row.ideal, row.law});
    marlin.push_back({name, row.marlin, row.law});
  }
  for (const Int4ModelRow& row : charts.models) {
    a10.push_back({row.model, row.a10, row.law_a10});
    a100.push_back({row.model, row.a100, row.law_a100});
  }
  std::vector<Claim> claims;
  claims.push_back(CellsClaim("marlin.a10_ideal", "the ideal speed-up over fp16 on an A10",
                              "the chart of batches", ideal, 0.02,
                              "another count of the bytes of scales"));
  claims.push_back(CellsClaim("marlin.a10_kernel", "MARLIN's own speed-up over fp16 on an A10",
                              "the chart of batches", marlin, 0.06,
                              "the kernel is below the law where products bound it"));
  claims.push_back(CellsClaim("marlin.a10_models", "models' matrices at batch 16 on an A10",
                              "the chart of models", a10, 0.08,
                              "launches take another share of small products"));
  const CellErrors order = ErrorsOf(a100);
  Claim c = PaperClaim("marlin.a100_models",
                       "on an A100 the gain falls with the matrices' sizes, in the published order",
                       absl::StrCat(kPaper, ", the chart of models"), "read");
  c.published = "5 speed-ups, 2.22 to 3.64 x";
  Found(&c, Origin::kComputed, charts.models.front().law_a100,
        absl::StrCat(order.alike, " of ", order.pairs, " pairs in order"));
  MetIf(&c, order.alike == order.pairs, "all pairs in order",
        "a launch alone does not order the models so");
  claims.push_back(std::move(c));
  return claims;
}

std::vector<Table> Int4LawTables(const Int4Charts& charts) {
  Table batches("int4_batches", "int4 over fp16 weights on an A10, 18432 x 73728, groups of 128");
  batches.AddKey("batch");
  batches.AddColumn({"ideal", "ideal", "", "x", Origin::kPublished, 2});
  batches.AddColumn({"marlin", "MARLIN", "", "x", Origin::kPublished, 2});
  batches.AddColumn({"law", "law", "", "x", Origin::kComputed, 2});
  for (const Int4BatchRow& r : charts.batches) {
    batches.AddRow({Label(static_cast<double>(r.batch)), Published(r.ideal, "read"),
                    Published(r.marlin, "read"), Computed(r.law)});
  }
  batches.AddNote(
      "125 Tflop/s and 600 GB/s, all of them reached; the published figures are read "
      "off a chart.");
  Table models("int4_models", "The same for models' matrices, batch 16");
  models.AddKey("model");
  models.AddColumn({"a10", "A10", "", "x", Origin::kPublished, 2});
  models.AddColumn({"law_a10", "law, A10", "", "x", Origin::kComputed, 2});
  models.AddColumn({"a100", "A100", "", "x", Origin::kPublished, 2});
  models.AddColumn({"law_a100", "law, A100", "", "x", Origin::kComputed, 2});
  for (const Int4ModelRow& r : charts.models) {
    models.AddRow({Label(r.model), Published(r.a10, "read"), Computed(r.law_a10),
                   Published(r.a100, "read"), Computed(r.law_a100)});
  }
  models.AddNote(
      "With 5 us for each product's launch (assumed): on a fast memory small matrices "
      "are over before the launch is repaid. The A100 has 312 Tflop/s and 1,555 GB/s; "
      "the rest of its drop, which the law does not have, is the sum of partial results "
      "over its 108 multiprocessors.");
  return {std::move(batches), std::move(models)};
}

}  // namespace pipelab
