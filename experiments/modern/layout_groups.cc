#include "experiments/modern/layout_groups.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "pipelines/search/search.h"
#include "tools/base/status_macros.h"

namespace pipelab {

bool IsListed(Bytes memory, Bytes device_memory) {
  return static_cast<double>(memory.value()) <=
         static_cast<double>(device_memory.value()) * (1 - kMemoryReserve);
}

std::vector<LayoutGroup> GroupsOf(const std::vector<MeasuredLayout>& runs) {
  std::map<std::string, std::map<std::string, const MeasuredLayout*>> fastest;
  for (const MeasuredLayout& run : runs) {
    const MeasuredLayout*& own = fastest[absl::StrCat(run.source, ", ", run.request)][run.layout];
    if (own == nullptr || run.measured < own->measured) own = &run;
  }
  std::vector<LayoutGroup> groups;
  for (const auto& [request, layouts] : fastest) {
    if (layouts.size() < 3) continue;
    LayoutGroup& group = groups.emplace_back();
    group.layouts = static_cast<int64_t>(layouts.size());
    for (const auto& [layout, run] : layouts) {
      if (group.best == nullptr || run->measured < group.best->measured) group.best = run;
      const auto order = [](const MeasuredLayout* r) {
        return std::make_tuple(!r->listed, r->predicted, -r->measured);
      };
      if (group.first == nullptr || order(run) < order(group.first)) group.first = run;
    }
  }
  return groups;
}

absl::Status ExplainMisses(std::vector<LayoutGroup>* groups) {
  for (LayoutGroup& group : *groups) {
    if (group.near()) continue;
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepPart> best, group.best->parts());
    PIPELAB_ASSIGN_OR_RETURN(const std::vector<StepPart> first, group.first->parts());
    group.component = MostLost(best, first).name;
  }
  return absl::OkStatus();
}

Table GroupTable(const std::vector<LayoutGroup>& groups) {
  Table t("groups", "Of three or more measured layouts, the one that is predicted to be fastest");
  t.AddKey("source");
  t.AddColumn({"groups", "groups", "", "", Origin::kComputed, 0});
  t.AddColumn({"near", "measured within 5 % of the fastest", "near", "", Origin::kComputed, 0});
  t.AddColumn({"worst", "most lost", "worst", "%", Origin::kComputed, 1});
  struct Count {
    int groups = 0, near = 0;
    double worst = 0;
  };
  std::map<std::string, Count> counts;
  for (const LayoutGroup& g : groups) {
    Count& c = counts[g.best->source];
    ++c.groups;
    c.near += g.near();
    c.worst = std::max(c.worst, g.lost());
  }
  for (const auto& [source, c] : counts) {
    t.AddRow({Label(source), Computed(c.groups), Computed(c.near), Computed(ToPercent(c.worst))});
  }
  return t;
}

Table MissTable(const std::vector<LayoutGroup>& groups) {
  Table t("group_misses", "Groups in which the layout predicted fastest was measured slower");
  t.AddKey("source");
  t.AddKey("group", "model, GPUs and batch");
  t.AddColumn({"layouts", "layouts", "", "", Origin::kComputed, 0});
  t.AddColumn({"first", "predicted fastest", "", "", Origin::kComputed, 0});
  t.AddColumn({"best", "measured fastest", "", "", Origin::kComputed, 0});
  t.AddColumn({"lost", "lost", "", "%", Origin::kComputed, 1});
  t.AddColumn({"component", "predicted to lose most in", "", "", Origin::kComputed, 0});
  for (const LayoutGroup& g : groups) {
    if (g.near()) continue;
    t.AddRow({Label(g.best->source), Label(g.best->request),
              Computed(static_cast<double>(g.layouts)), Computed(g.first->words),
              Computed(g.best->words), Computed(ToPercent(g.lost())),
              g.component.empty() ? Missing("not predicted again") : Computed(g.component)});
  }
  return t;
}

Claim GroupClaim(const std::vector<LayoutGroup>& groups) {
  Claim c = OwnClaim("modern.groups",
                     "of three or more measured layouts of one model, GPUs and batch, the one that "
                     "is predicted to be the fastest was measured within 5 % of the fastest");
  if (groups.empty()) {
    NotMade(&c, "no row could be predicted");
    return c;
  }
  int64_t near = 0;
  std::map<std::string, int> components;
  for (const LayoutGroup& g : groups) {
    near += g.near();
    if (!g.near()) ++components[absl::StrCat(g.best->source, " in ", g.component)];
  }
  std::string lost;
  for (const auto& [component, times] : components) {
    absl::StrAppend(&lost, lost.empty() ? "" : ", ", times, " of ", component);
  }
  const double share = static_cast<double>(near) / static_cast<double>(groups.size());
  c.unit = "%";
  Found(&c, Origin::kSimulated, ToPercent(share),
        absl::StrFormat("%d of %d groups", near, groups.size()));
  MetIf(&c, share >= 0.85, "at least 85 %",
        absl::StrCat("the others' fastest layouts are predicted to lose most: ", lost,
                     " (table group_misses)"));
  return c;
}

}  // namespace pipelab
