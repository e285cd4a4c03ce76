#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "experiments/fill/fill_tables.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "PipeFill (arXiv 2410.07192)";

// One way to read what the paper leaves open.
struct Reading {
  std::string name;
  const std::vector<FillGain>* low = nullptr;        // 1 K GPUs
  const std::vector<FillGain>* low_twice = nullptr;  // 2 K
  const std::vector<FillGain>* high = nullptr;       // 8 K
};

std::vector<const ScaleResults*> AllScales(const FillStudy& study) {
  std::vector<const ScaleResults*> all = {&study.scale};
  for (const ScaleResults& other : study.others) all.push_back(&other);
  return all;
}

std::vector<Reading> ReadingsOf(const FillStudy& study) {
  std::vector<Reading> readings;
  for (const ScaleResults* scale : AllScales(study)) {
    const ScalePoint &one = scale->points[0], &two = scale->points[1];
    const ScalePoint& eight = scale->points.back();
    for (size_t s = 0; s < scale->sets.size(); ++s) {
      const std::string& numbers = scale->sets[s].name;
      readings.push_back({absl::StrCat(numbers, " on ", scale->cluster), &one.whole_gains[s],
                          &two.whole_gains[s], &eight.whole_gains[s]});
      readings.push_back({absl::StrCat(numbers, " on ", scale->cluster, " with equal stages"),
                          &one.equal_gains[s], &two.equal_gains[s], &eight.equal_gains[s]});
    }
  }
  return readings;
}

Claim BubbleClaim(const FillStudy& study) {
  Claim c = PaperClaim("pipefill.bubble",
                       "bubbles of 15 to 30 % of a step, above 60 % when scaled out: equal stages "
                       "have (p - 1) / (m + p - 1) exactly",
                       kPaper, "read");
  c.unit = "%";
  bool exact = true;
  std::vector<std::string> all;
  for (const ScalePoint& p : study.scale.points) {
    const double formula = 15.0 / (p.equal.micro_batches + 15);
    exact = exact && std::abs(p.equal.bubble - formula) < 1e-12;
    all.push_back(absl::StrFormat("%.1f %%", ToPercent(p.equal.bubble)));
  }
  Published(&c, 60, 100);
  Found(&c, Origin::kSimulated, ToPercent(study.scale.points.back().equal.bubble),
        absl::StrJoin(all, ", "));
  MetIf(&c, exact && study.scale.points.back().equal.bubble > 0.6,
        "the closed form at each number of GPUs, and above 60 % at 8,192",
        "a bubble is not the closed form's");
  return c;
}

Claim DaysClaim(const FillStudy& study) {
  Claim c = PaperClaim("pipefill.days", "days of training on 8,192 GPUs, 82 on 1,024", kPaper,
                       "read-2nd");
  c.unit = "days";
  Published(&c, 26);
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  for (const ScaleResults* scale : AllScales(study)) {
    const double days = scale->DaysAt(scale->points.back());
    values.push_back({scale->cluster, std::abs(days / 26 - 1) <= 0.1});
    texts.push_back(absl::StrFormat("%.1f (%s)", days, scale->cluster));
  }
  Found(&c, Origin::kSimulated, study.scale.DaysAt(study.scale.points.back()),
        absl::StrJoin(texts, ", "));
  MetOverRange(&c, "the machine", values, "26 days within 10 %",
               "the copies sum their gradients over the network, which is not known");
  return c;
}

void OverReadings(Claim* c, const std::vector<RangeValue>& values, const std::string& accepted,
                  const std::string& reason) {
  MetOverRange(c, "the numbers of fill jobs and the machine", values, accepted, reason);
}

Claim HighGainClaim(const std::vector<Reading>& readings) {
  Claim c = PaperClaim("pipefill.gain_8k", "utilisation gained on 8,192 GPUs", kPaper, "read");
  c.unit = "%";
  Published(&c, 63);
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  for (const Reading& r : readings) {
    const double gain = ToPercent(MeanOf(*r.high).gain);
    values.push_back({r.name, gain >= 55 && gain <= 70});
    texts.push_back(absl::StrFormat("%.1f %% (%s)", gain, r.name));
  }
  Found(&c, Origin::kSimulated, ToPercent(MeanOf(*readings[0].high).gain),
        absl::StrJoin(texts, ", "));
  OverReadings(
      &c, values, "55 to 70 %",
      "by their rooflines fill jobs run at a fifth of the training's flop rate in fp32 and "
      "faster than it in fp16; the published gain is of a third, and the paper's rates are "
      "not at hand");
  return c;
}

Claim LowGainClaim(const std::vector<Reading>& readings) {
  Claim c =
      PaperClaim("pipefill.gain_low", "utilisation gained on 1,024 and 2,048 GPUs", kPaper, "read");
  c.unit = "%";
  Published(&c, 5, 15);
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  for (const Reading& r : readings) {
    const double one = ToPercent(MeanOf(*r.low).gain), two = ToPercent(MeanOf(*r.low_twice).gain);
    values.push_back({r.name, one >= 5 && two <= 16});
    texts.push_back(absl::StrFormat("%.1f and %.1f %% (%s)", one, two, r.name));
  }
  Found(&c, Origin::kSimulated, ToPercent(MeanOf(*readings[0].low).gain),
        absl::StrJoin(texts, ", "));
  OverReadings(&c, values, "5 to 16 % at both", "as at 8,192 GPUs");
  return c;
}

Claim WorthClaim(const std::vector<Reading>& readings) {
  Claim c = PaperClaim("pipefill.gpus_worth", "extra work on 8,192 GPUs, in GPUs of its own",
                       kPaper, "read");
  c.unit = "GPUs";
  Published(&c, 2600);
  std::vector<RangeValue> values;
  std::vector<std::string> texts;
  for (const Reading& r : readings) {
    const double worth = MeanOf(*r.high).gpus_worth;
    values.push_back({r.name, worth >= 2200 && worth <= 3000});
    texts.push_back(absl::StrFormat("%.0f (%s)", worth, r.name));
  }
  Found(&c, Origin::kSimulated, MeanOf(*readings[0].high).gpus_worth, absl::StrJoin(texts, ", "));
  OverReadings(&c, values, "2,200 to 3,000 GPUs",
               "here fill jobs keep over nine tenths of their own speed: the training leaves room "
               "for large rounds, and gaps are foreseen to the nanosecond. The published figure is "
               "about half of it");
  return c;
}

// Whether a scheme with less bubble gains less, over all pairs.
Claim OrderClaim(const FillStudy& study) {
  Claim c = OwnClaim("pipefill.less_bubble", "of two schemes, the one with less bubble gains less");
  c.unit = "%";
  int pairs = 0, alike = 0;
  std::string turned;
  for (const SchemePointOfFill& a : study.schemes) {
    for (const SchemePointOfFill& b : study.schemes) {
      if (!a.missing.empty() || !b.missing.empty()) continue;
      if (a.run.idle_share() >= b.run.idle_share() - 1e-9) continue;
      ++pairs;
      if (a.mean.gain <= b.mean.gain) {
        ++alike;
      } else if (turned.empty()) {
        turned = absl::StrCat(a.run.scheme, " gains more than ", b.run.scheme);
      }
    }
  }
  if (pairs == 0) {
    NotMade(&c, "no two schemes fit into this cluster");
    return c;
  }
  Found(&c, Origin::kSimulated, 100.0 * alike / pairs,
        absl::StrCat(alike, " of ", pairs, " pairs", turned.empty() ? "" : "; ", turned));
  MetIf(&c, alike == pairs, "all pairs",
        "many short gaps hold less than few long ones of the same sum, and memory differs");
  return c;
}

}  // namespace

std::vector<Claim> FillClaims(const FillStudy& study) {
  const std::vector<Reading> readings = ReadingsOf(study);
  return {BubbleClaim(study),     DaysClaim(study),     HighGainClaim(readings),
          LowGainClaim(readings), WorthClaim(readings), OrderClaim(study)};
}

}  // namespace pipelab
