#include "experiments/scaling/gpipe_claims.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "GPipe (arXiv 1811.06965), ";
// How far off a cell may be: counts are arithmetic, activations and times are models.
constexpr double kParametersOff = 0.005, kMemoryOff = 0.03, kActivationsOff = 0.15,
                 kThroughputOff = 0.25, kHeadlineOff = 0.25;

std::string Id(const GpipeFamily& family, const std::string& what) {
  return absl::StrCat("gpipe.", what, ".", family.id);
}

std::vector<ComparedCell> Cells(const std::vector<LargestModel>& rows,
                                double (*published)(const PublishedLargestModel&),
                                const std::function<double(const LargestModel&)>& ours) {
  std::vector<ComparedCell> cells;
  for (const LargestModel& r : rows) {
    cells.push_back({r.published.column, published(r.published), ours(r)});
  }
  return cells;
}

Claim TableOne(const GpipeFamily& family, const std::string& what, const std::string& text,
               Origin origin) {
  Claim c = PaperClaim(Id(family, "table1_" + what), absl::StrCat(family.title, ": ", text),
                       absl::StrCat(kPaper, "Table 1"), "read");
  c.origin = origin;
  return c;
}

// 25x and 298x: parameters of the last column over those of the first.
Claim Headline(const GpipeFamily& family, const std::vector<LargestModel>& rows) {
  const LargestModel &first = rows.front(), &last = rows.back();
  Claim c = PaperClaim(Id(family, "headline"),
                       absl::StrCat(family.title, ": the largest model on ", last.published.devices,
                                    " accelerators, over that of one without re-materialisation"),
                       absl::StrCat(kPaper, "section 3"), "read");
  c.unit = "x";
  const double published = family.widens ? 25 : 298;
  Published(&c, published);
  if (!first.fits || !last.fits) {
    NotMade(&c, "a published model does not fit into this cluster's memory");
    return c;
  }
  Found(&c, Origin::kSimulated,
        static_cast<double>(last.found_parameters) / static_cast<double>(first.found_parameters),
        absl::StrFormat("%.4gx: %d M parameters over %d M",
                        static_cast<double>(last.found_parameters) /
                            static_cast<double>(first.found_parameters),
                        last.found_parameters / 1000000, first.found_parameters / 1000000));
  MetWithin(&c, (1 - kHeadlineOff) * published, (1 + kHeadlineOff) * published,
            "the largest models found here are not the paper's, which had memory for something "
            "else, too");
  return c;
}

}  // namespace

std::vector<Claim> LargestModelClaims(const GpipeFamily& family,
                                      const std::vector<LargestModel>& rows) {
  std::vector<Claim> claims;
  Claim parameters = TableOne(family, "parameters", "parameters of the models", Origin::kComputed);
  MetWithinErrors(&parameters,
                  ErrorsOf(Cells(
                      rows, [](const PublishedLargestModel& p) { return p.counted; },
                      [](const LargestModel& r) { return static_cast<double>(r.parameters); })),
                  kParametersOff, "the graph counts others");
  claims.push_back(std::move(parameters));

  const double unit = family.bytes_of_unit;
  Claim memory =
      TableOne(family, "parameter_memory", "memory of the parameters", Origin::kComputed);
  MetWithinErrors(&memory,
                  ErrorsOf(Cells(
                      rows, [](const PublishedLargestModel& p) { return p.parameter_memory; },
                      [unit](const LargestModel& r) {
                        return static_cast<double>(r.parameter_memory.value()) / unit;
                      })),
                  kMemoryOff,
                  "in two columns the paper's memory is not 12 bytes times the parameters that it "
                  "prints in the "
                  "same column: its two rows do not agree");
  claims.push_back(std::move(memory));

  Claim activations = TableOne(family, "activations", "peak activation memory", Origin::kSimulated);
  MetWithinErrors(&activations,
                  ErrorsOf(Cells(
                      rows, [](const PublishedLargestModel& p) { return p.activation_memory; },
                      [unit](const LargestModel& r) {
                        return static_cast<double>(r.activations.value()) / unit;
                      })),
                  kActivationsOff, "the paper prints no micro-batches and no layout of the stages");
  claims.push_back(std::move(activations));
  claims.push_back(Headline(family, rows));
  return claims;
}

Claim ThroughputClaim(const ThroughputGrid& grid) {
  const PublishedThroughput& p = grid.published;
  const std::string table = absl::StrReplaceAll(absl::AsciiStrToLower(p.table), {{" ", ""}});
  Claim c = PaperClaim(Id(*grid.family, table),
                       absl::StrCat("throughput of ", grid.family->ModelName(p.layers, p.width),
                                    " over devices and micro-batches"),
                       absl::StrCat(kPaper, p.table), p.tag);
  c.origin = Origin::kSimulated;
  std::vector<ComparedCell> cells;
  std::string reasons;
  for (const ThroughputCell& cell : grid.cells) {
    if (&cell == &grid.cells[0]) continue;  // 1 by definition
    const std::string name = absl::StrCat("K=", cell.devices, " M=", cell.micro_batches);
    cells.push_back({name, cell.published, cell.own});
    const std::string reason = ReasonOfMiss(grid, cell);
    if (reason.empty()) continue;
    absl::StrAppendFormat(&reasons, "%s%s (%+.0f %%): %s", reasons.empty() ? "" : "; ", name,
                          ToPercent(cell.error()), reason);
  }
  const std::string why = absl::StrCat(WhatIsUnknown(grid), reasons);
  MetWithinErrors(&c, ErrorsOf(cells), kThroughputOff, why);
  const std::vector<RangeValue> set_ups = SetUps(grid, kThroughputOff);
  if (!set_ups.empty()) MetOverRange(&c, "a step's set-up", set_ups, c.accepted, why);
  return c;
}

Claim OverheadClaim(const GpipeFamily& family, const PublishedOverheads& published) {
  Claim c =
      PaperClaim(Id(family, "overheads"), absl::StrCat(family.title, ": shares of a step's time"),
                 absl::StrCat(kPaper, "overhead breakdown"), published.tag);
  c.published = absl::StrFormat("compute %.1f %%, recompute %.1f %%, bubble %.1f %%",
                                published.compute, published.recompute, published.bubble);
  NotMade(&c,
          "the paper does not name the model, the devices and the micro-batches of its breakdown: "
          "the table \"Where the time goes\" has those of every cell");
  return c;
}

}  // namespace pipelab
