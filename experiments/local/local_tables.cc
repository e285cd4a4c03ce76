#include "experiments/local/local_tables.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kPaper[] = "PPLL (arXiv 2411.12780), abstract";

// A figure of the points of a network, over all settings.
struct Spread {
  double least = 0, most = 0;
};

Spread SpreadOf(const std::vector<LocalPoint>& points, LocalNetwork network,
                const std::function<double(const LocalPoint&)>& figure) {
  Spread spread;
  for (const LocalPoint& p : points) {
    if (p.setting.network != network) continue;
    const double value = figure(p);
    spread.least = spread.most == 0 ? value : std::min(spread.least, value);
    spread.most = std::max(spread.most, value);
  }
  return spread;
}

std::string Percents(const Spread& s) {
  return absl::StrFormat("%.0f to %.0f %%", ToPercent(s.least), ToPercent(s.most));
}

Claim SerialClaim(const std::vector<LocalPoint>& points, LocalNetwork network, const char* id,
                  double published, double low, double high) {
  Claim c = PaperClaim(id,
                       absl::StrCat(LocalNetworkName(network),
                                    " on 4 GPUs, over local learning one block after another"),
                       kPaper, "read");
  c.unit = "x";
  Published(&c, published);
  std::vector<RangeValue> values;
  double first = 0;
  for (const LocalPoint& p : points) {
    if (p.setting.network != network) continue;
    if (first == 0) first = p.speedup();
    values.push_back({p.setting.name(), p.speedup() >= low && p.speedup() <= high});
  }
  const Spread s = SpreadOf(points, network, [](const LocalPoint& p) { return p.speedup(); });
  Found(&c, Origin::kSimulated, first, absl::StrFormat("%.2f to %.2f x", s.least, s.most));
  MetOverRange(
      &c, "numbers, heads, cuts and batches", values, absl::StrFormat("%.1f to %.1f x", low, high),
      absl::StrCat(
          "the mean stage takes ",
          Percents(SpreadOf(points, network, [](const LocalPoint& p) { return p.balance(); })),
          " of the longest one's time, and messages hide behind compute: what the "
          "paper's queues cost is not in the sources at hand"));
  return c;
}

Claim BackpropagationClaim(const std::vector<LocalPoint>& points, LocalNetwork network,
                           const char* id, double published) {
  Claim c = PaperClaim(
      id, absl::StrCat(LocalNetworkName(network), " on 4 GPUs, over pipelined backpropagation"),
      kPaper, "read");
  c.unit = "x";
  Published(&c, published);
  std::vector<RangeValue> values;
  std::vector<double> all;
  for (const LocalPoint& p : points) {
    if (p.setting.network != network) continue;
    for (size_t i = 0; i < p.one_f_one_b.size(); ++i) {
      all.push_back(p.over_1f1b(i));
      values.push_back({absl::StrCat("M = ", p.setting.micro_batches[i], ", ", p.setting.name()),
                        published > 1 ? all.back() > 1 : all.back() < 1});
    }
  }
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  Found(&c, Origin::kSimulated, all[0], absl::StrFormat("%.2f to %.2f x", *least, *most));
  const std::string heads =
      Percents(SpreadOf(points, network, [](const LocalPoint& p) { return p.head_share(); }));
  MetOverRange(&c, "1F1B's micro-batches, numbers, heads, cuts and batches", values,
               published > 1 ? "above 1" : "below 1",
               absl::StrCat("heads are ", heads,
                            " of local learning's work; 1F1B pays its bubble of (P - 1) / (M + P - "
                            "1) and smaller micro-batches"));
  return c;
}

// Each setting with each value of the field, values of the last one varied side by side.
template <typename T>
void Vary(T LocalSetting::*field, const std::vector<T>& values,
          std::vector<LocalSetting>* settings) {
  std::vector<LocalSetting> varied;
  for (const LocalSetting& setting : *settings) {
    for (const T& value : values) {
      varied.push_back(setting);
      varied.back().*field = value;
    }
  }
  *settings = std::move(varied);
}

}  // namespace

absl::StatusOr<std::vector<LocalPoint>> LocalPoints(const std::vector<ClusterSpec>& clusters) {
  std::vector<LocalSetting> settings(1);
  Vary(&LocalSetting::network, {LocalNetwork::kVit, LocalNetwork::kResNet110}, &settings);
  Vary(&LocalSetting::cluster, clusters, &settings);
  Vary(&LocalSetting::type, {NumberType::kFp32, NumberType::kFp16}, &settings);
  Vary(&LocalSetting::head, {LocalHead::kLinear, LocalHead::kConvolution}, &settings);
  Vary(&LocalSetting::equal_blocks, {false, true}, &settings);
  Vary(&LocalSetting::batch, {128, 1024}, &settings);
  std::vector<LocalPoint> points;
  for (const LocalSetting& setting : settings) {
    PIPELAB_ASSIGN_OR_RETURN(LocalPoint point, LocalPointOf(setting));
    points.push_back(std::move(point));
  }
  return points;
}

Table LocalTable(const std::vector<LocalPoint>& points) {
  Table t("headline", "Four blocks that learn locally on four V100s");
  t.AddKey("network");
  t.AddKey("cluster");
  t.AddKey("numbers");
  t.AddKey("heads");
  t.AddKey("cut");
  t.AddKey("batch");
  t.AddColumn({"plain", "one device, backpropagation", "1 device", "ms", Origin::kSimulated, 2});
  t.AddColumn({"serial", "one device, local learning", "1 local", "ms", Origin::kSimulated, 2});
  t.AddColumn({"pipeline", "local", "", "ms", Origin::kSimulated, 2});
  t.AddColumn({"speedup", "over serial local learning", "speed-up", "x", Origin::kSimulated, 2});
  t.AddColumn(
      {"head_share", "heads of local learning's work", "heads", "%", Origin::kSimulated, 1});
  const std::vector<int> micro_batches =
      points.empty() ? std::vector<int>() : points[0].setting.micro_batches;
  for (int m : micro_batches) {
    t.AddColumn({absl::StrCat("over_1f1b_", m), absl::StrCat("local over 1F1B, M = ", m),
                 absl::StrCat("M = ", m), "x", Origin::kSimulated, 2});
  }
  for (const LocalPoint& p : points) {
    const LocalSetting& s = p.setting;
    std::vector<Cell> row = {Label(LocalNetworkName(s.network)),
                             Label(s.cluster.name),
                             Label(std::string(NumberTypeName(s.type))),
                             Label(LocalHeadName(s.head)),
                             Label(s.equal_blocks ? "equal blocks" : "by time"),
                             Label(static_cast<double>(s.batch)),
                             Simulated(ToMs(p.plain)),
                             Simulated(ToMs(p.serial)),
                             Simulated(ToMs(p.pipeline)),
                             Simulated(p.speedup()),
                             Simulated(ToPercent(p.head_share()))};
    for (size_t i = 0; i < p.one_f_one_b.size(); ++i) row.push_back(Simulated(p.over_1f1b(i)));
    t.AddRow(std::move(row));
  }
  t.AddNote(
      "Times are of a batch. Local learning steps after each batch and is never flushed; 1F1B cuts "
      "the batch into M micro-batches, has no heads and a flush after each.");
  return t;
}

std::vector<Claim> LocalClaims(const std::vector<LocalPoint>& points) {
  return {SerialClaim(points, LocalNetwork::kVit, "ppll.vit_serial", 2.62, 2.2, 3.2),
          SerialClaim(points, LocalNetwork::kResNet110, "ppll.resnet_serial", 1.33, 1.1, 1.7),
          BackpropagationClaim(points, LocalNetwork::kVit, "ppll.vit_1f1b", 1.25),
          BackpropagationClaim(points, LocalNetwork::kResNet110, "ppll.resnet_1f1b", 0.85)};
}

}  // namespace pipelab
