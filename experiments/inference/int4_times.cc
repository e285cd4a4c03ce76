#include "experiments/inference/int4_times.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cpu/int4_speed.h"
#include "kernels/cpu/library_best.h"

namespace pipelab {
namespace {

constexpr int kRounds = 3;  // the best of these counts, as of every time here
constexpr double kShare = 0.85;

const char* MathName(Int4Math math) { return math == Int4Math::kInt8 ? "int8" : "bfloat16"; }

void Improve(double seconds, double* best) { *best = std::min(*best, seconds); }

Claim TimeClaim(const char* id, std::string text, double worst, double bar, const char* unit,
                const std::string& why_not) {
  Claim c = OwnClaim(id, std::move(text));
  c.unit = unit;
  if (!why_not.empty()) {
    NotMade(&c, why_not);
    return c;
  }
  Found(&c, Origin::kMeasured, worst);
  MetIf(&c, worst >= bar, absl::StrFormat("at least %.2f%s%s", bar, *unit == 0 ? "" : " ", unit),
        "measured on this machine; other programs share its caches and memory");
  return c;
}

}  // namespace

std::vector<Int4Time> MeasureInt4(const Int4Shape& shape, const std::vector<int64_t>& batches) {
  std::vector<Int4Time> times;
  const std::vector<Int4Math> maths = cpu::MathsOfTheirOwn();
  if (maths.empty()) return times;
  const bool bfloat16_products = maths.back() == Int4Math::kBFloat16;
  const cpu::Int4Product product(shape, *std::max_element(batches.begin(), batches.end()));
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (const int64_t batch : batches) {
    const MatmulSize size{batch, shape.k, shape.n};
    std::vector<Int4Time> of(maths.size());
    for (size_t i = 0; i < of.size(); ++i) {
      Int4Time& t = of[i];
      t.math = maths[i];
      t.batch = batch;
      t.seconds = t.memory_seconds = t.flops_seconds = kNone;
      t.float32_limit_seconds = t.float32_seconds = t.bfloat16_seconds = kNone;
    }
    for (int round = 0; round < kRounds; ++round) {
      const double bandwidth = product.Bandwidth();
      const double float32 = cpu::BestMatmulSeconds(size, &cpu::ThreadSeconds);
      const double bfloat16 =
          bfloat16_products ? cpu::BestBFloat16MatmulSeconds(size, &cpu::ThreadSeconds) : kNone;
      for (Int4Time& t : of) {
        Improve(product.LeastSeconds(t.math, batch), &t.seconds);
        Improve(static_cast<double>(product.bytes()) / bandwidth, &t.memory_seconds);
        const double flops = 2.0 * static_cast<double>(batch * shape.k * shape.n);
        Improve(flops / cpu::PeakFlops(t.math), &t.flops_seconds);
        const double float32_bytes = 4.0 * static_cast<double>(shape.k * shape.n);
        Improve(std::max(float32_bytes / bandwidth, flops / cpu::PeakFlops(Int4Math::kFloat32)),
                &t.float32_limit_seconds);
        Improve(float32, &t.float32_seconds);
        Improve(bfloat16, &t.bfloat16_seconds);
      }
    }
    times.insert(times.end(), of.begin(), of.end());
  }
  return times;
}

Table Int4TimeTable(const Int4Shape& shape, const std::vector<Int4Time>& times) {
  Table t("int4_times", absl::StrCat("int4 weights on one core here, ", shape.k, " x ", shape.n,
                                     ", groups of ", shape.group));
  t.AddKey("math", "activations as");
  t.AddKey("batch");
  t.AddColumn({"time", "time", "", "ms", Origin::kMeasured, 2});
  t.AddColumn({"memory", "bytes / bandwidth", "bytes", "ms", Origin::kMeasured, 2});
  t.AddColumn({"flops", "flops / peak", "flops", "ms", Origin::kMeasured, 2});
  t.AddColumn({"share", "limit over time", "share", "", Origin::kMeasured, 2});
  t.AddColumn({"over_float32", "over float32", "", "x", Origin::kMeasured, 2});
  t.AddColumn({"law_over_float32", "law", "", "x", Origin::kMeasured, 2});
  t.AddColumn({"over_bfloat16", "over bfloat16", "", "x", Origin::kMeasured, 2});
  for (const Int4Time& x : times) {
    t.AddRow({Label(MathName(x.math)), Label(static_cast<double>(x.batch)),
              Measured(x.seconds * 1e3), Measured(x.memory_seconds * 1e3),
              Measured(x.flops_seconds * 1e3), Measured(x.share()), Measured(x.over_float32()),
              Measured(x.law_over_float32()),
              std::isfinite(x.bfloat16_seconds) ? Measured(x.bfloat16_seconds / x.seconds)
                                                : Missing("no products of bfloat16 here")});
  }
  t.AddNote(
      "Best of three rounds, of processor time. Bandwidth: reading the codes. Peak: the "
      "products that the kernel is made of, from registers. float32 and bfloat16: oneDNN's "
      "product with weights in the layout that it likes best. Law: what float32 weights are bound "
      "by, over what ours are bound by.");
  return t;
}

void AddInt4TimeCurves(const std::vector<Int4Time>& times, Int4Curves* curves) {
  Series law{"a core here, law"}, measured{"a core here, measured"};
  Series law_share = law, share = measured;
  for (const Int4Time& t : times) {
    if (t.math != Int4Math::kInt8) continue;
    for (Series* s : {&law, &measured, &law_share, &share}) s->steps.push_back(t.batch);
    law.values.push_back(t.law_over_float32());
    measured.values.push_back(t.over_float32());
    law_share.values.push_back(100 * t.flops_seconds / t.limit_seconds());
    share.values.push_back(100 * t.flops_seconds / t.seconds);
  }
  if (law.values.empty()) return;
  curves->speed_ups.insert(curves->speed_ups.end(), {law, measured});
  curves->shares.insert(curves->shares.end(), {law_share, share});
}

std::vector<Claim> Int4TimeClaims(const std::vector<Int4Time>& times, const std::string& why_not) {
  double share = std::numeric_limits<double>::infinity(), at_1 = 0, at_4 = 0, at_128 = 0;
  for (const Int4Time& t : times) {
    if (t.math != Int4Math::kInt8) continue;
    if (t.batch <= 32) share = std::min(share, t.share());
    if (t.batch == 1) at_1 = t.over_float32();
    if (t.batch == 4) at_4 = t.over_float32();
    if (t.batch == 128) {
      at_128 = std::min(t.float32_seconds, t.bfloat16_seconds) / t.seconds;
    }
  }
  std::vector<Claim> claims;
  claims.push_back(
      TimeClaim("int4.limit",
                "int8 math: the larger of bytes / bandwidth and flops / peak, over the "
                "time, at batches of 1 to 32",
                share, kShare, "", why_not));
  claims.push_back(
      TimeClaim("int4.over_float32_1", "batch 1, over float32 weights", at_1, 6.5, "x", why_not));
  claims.push_back(
      TimeClaim("int4.over_float32_4", "batch 4, over float32 weights", at_4, 5, "x", why_not));
  claims.push_back(TimeClaim("int4.large_batch",
                             "batch 128, over the better of float32 and bfloat16 weights", at_128,
                             0.95, "x", why_not));
  return claims;
}

}  // namespace pipelab
