#include "experiments/modern/modern_groups.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "experiments/modern/step_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

std::string NameOf(const ModernRow& r) {
  return absl::StrCat(r.model, ", ", r.precision, ", ", r.gpus, " ", r.gpu, ", batch ", r.batch,
                      " of ", r.tokens, " tokens");
}

std::string LayoutOf(const ModernRow& r) {
  return absl::StrCat("T", r.tensor, " P", r.pipeline, " C", r.context, " E", r.expert, " V",
                      r.virtual_stages, " b", r.micro_batch,
                      r.sharding.empty() ? "" : absl::StrCat(" ", r.sharding),
                      r.recompute.empty() ? "" : absl::StrCat(" ", r.recompute));
}

double MeasuredOf(const ModernResult* r) { return *r->row->Seconds(); }

absl::Status Explain(const ModernData& data, const ModernMachines& machines, ModernGroup* group) {
  std::vector<StepPart> parts[2];
  for (const ModernResult* r : {group->best, group->first}) {
    PIPELAB_ASSIGN_OR_RETURN(ModernStep step, StepOfRow(*r->row, data.models, machines));
    step.cluster = WithEfficiency(step.cluster, r->factor);
    PIPELAB_ASSIGN_OR_RETURN(const ModernStepModel model, ModernStepModel::Of(step));
    PIPELAB_ASSIGN_OR_RETURN(const StepPrediction p, model.Predict(step));
    PIPELAB_ASSIGN_OR_RETURN(parts[r == group->first], SecondsOfParts(model.On(step), p));
  }
  group->component = MostLost(parts[0], parts[1]).name;
  return absl::OkStatus();
}

}  // namespace

double ModernGroup::lost() const { return MeasuredOf(first) / MeasuredOf(best) - 1; }

std::vector<ModernGroup> GroupsOf(const ModernResults& all) {
  std::map<std::string, std::map<std::string, const ModernResult*>> rows;  // by request, layout
  for (const ModernResult& r : all) {
    if (!r.judged()) continue;
    const ModernResult*& own =
        rows[absl::StrCat(r.row->group, ", ", NameOf(*r.row))][LayoutOf(*r.row)];
    if (own == nullptr || MeasuredOf(&r) < MeasuredOf(own)) own = &r;
  }
  std::vector<ModernGroup> groups;
  for (const auto& [name, layouts] : rows) {
    if (layouts.size() < 3) continue;
    ModernGroup& group = groups.emplace_back();
    group.layouts = static_cast<int64_t>(layouts.size());
    for (const auto& [layout, r] : layouts) {
      if (group.best == nullptr || MeasuredOf(r) < MeasuredOf(group.best)) group.best = r;
      const auto order = [](const ModernResult* r) {
        return std::make_pair(r->seconds, -MeasuredOf(r));
      };
      if (group.first == nullptr || order(r) < order(group.first)) group.first = r;
    }
    group.source = group.best->row->group;
    group.name = NameOf(*group.best->row);
  }
  return groups;
}

absl::Status ExplainMisses(const ModernData& data, const ModernMachines& machines,
                           std::vector<ModernGroup>* groups) {
  for (ModernGroup& group : *groups) {
    if (group.near()) continue;
    PIPELAB_RETURN_IF_ERROR(Explain(data, machines, &group));
  }
  return absl::OkStatus();
}

Table GroupTable(const std::vector<ModernGroup>& groups) {
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
  for (const ModernGroup& g : groups) {
    Count& c = counts[g.source];
    ++c.groups;
    c.near += g.near();
    c.worst = std::max(c.worst, g.lost());
  }
  for (const auto& [source, c] : counts) {
    t.AddRow({Label(source), Computed(c.groups), Computed(c.near), Computed(ToPercent(c.worst))});
  }
  return t;
}

Table MissTable(const std::vector<ModernGroup>& groups) {
  Table t("group_misses", "Groups in which the layout predicted fastest was measured slower");
  t.AddKey("source");
  t.AddKey("group", "model, GPUs and batch");
  t.AddColumn({"layouts", "layouts", "", "", Origin::kComputed, 0});
  t.AddColumn({"first", "predicted fastest", "", "", Origin::kComputed, 0});
  t.AddColumn({"best", "measured fastest", "", "", Origin::kComputed, 0});
  t.AddColumn({"lost", "lost", "", "%", Origin::kComputed, 1});
  t.AddColumn({"component", "predicted to lose most in", "", "", Origin::kComputed, 0});
  for (const ModernGroup& g : groups) {
    if (g.near()) continue;
    t.AddRow({Label(g.source), Label(g.name), Computed(static_cast<double>(g.layouts)),
              Computed(LayoutOf(*g.first->row)), Computed(LayoutOf(*g.best->row)),
              Computed(ToPercent(g.lost())),
              g.component.empty() ? Missing("not predicted again") : Computed(g.component)});
  }
  return t;
}

Claim GroupClaim(const std::vector<ModernGroup>& groups) {
  Claim c = OwnClaim("modern.groups",
                     "of three or more measured layouts of one model, GPUs and batch, the one that "
                     "is predicted to be the fastest was measured within 5 % of the fastest");
  if (groups.empty()) {
    NotMade(&c, "no row could be predicted");
    return c;
  }
  int64_t near = 0;
  std::map<std::string, int> components;
  for (const ModernGroup& g : groups) {
    near += g.near();
    if (!g.near()) ++components[absl::StrCat(g.source, " in ", g.component)];
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
