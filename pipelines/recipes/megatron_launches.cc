// Megatron-LM's options of CUDA graphs and fused kernels.
#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "models/specs/launched_kernels.h"
#include "pipelines/recipes/megatron_parts.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

constexpr char kImplementation[] = "cuda-graph-impl", kScope[] = "cuda-graph-scope";
constexpr char kFusedRouter[] = "moe-router-fusion";
constexpr char kFuser[] = "use-transformer-engine-op-fuser";

struct Module {
  absl::string_view name;
  bool LaunchedKernels::*graphed;
};
constexpr Module kModules[] = {{"attn", &LaunchedKernels::graphed_attention},
                               {"mlp", &LaunchedKernels::graphed_feed_forward},
                               {"moe", &LaunchedKernels::graphed_experts},
                               {"moe_router", &LaunchedKernels::graphed_routers},
                               {"full_iteration", &LaunchedKernels::graphed_step}};
// The one is a part of moe_router's graph, the other of layers that no step here has.
constexpr absl::string_view kOthers[] = {"moe_preprocess", "mamba"};

absl::Status TakeScope(const MegatronOptions& options, LaunchedKernels* kernels) {
  if (!options.Has(kScope) || options.Values(kScope).empty()) {
    kernels->graphed_attention = kernels->graphed_feed_forward = kernels->graphed_experts = true;
    return absl::OkStatus();
  }
  for (const std::string& word : options.Values(kScope)) {
    if (word == "full") {
      kernels->graphed_attention = kernels->graphed_feed_forward = true;
      kernels->graphed_experts = true;
      continue;
    }
    const auto* module = std::find_if(std::begin(kModules), std::end(kModules),
                                      [&](const Module& m) { return m.name == word; });
    if (module != std::end(kModules)) {
      kernels->*module->graphed = true;
    } else if (std::find(std::begin(kOthers), std::end(kOthers), word) == std::end(kOthers)) {
      return options.Error(kScope, "\"", word,
                           "\" is no module; nearest: attn, mlp, moe, moe_router, "
                           "moe_preprocess, mamba, full or full_iteration");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status TakeMegatronLaunches(const MegatronOptions& options, Recipe* recipe) {
  LaunchedKernels& kernels = recipe->kernels;
  kernels.fused_routers = options.Has(kFusedRouter);
  kernels.fused_experts = options.Has(kFuser) && recipe->type == NumberType::kFp8;
  PIPELAB_ASSIGN_OR_RETURN(
      const std::string implementation,
      options.Word(kImplementation, {"none", "local", "transformer_engine", "full_iteration"},
                   options.Has("enable-cuda-graph")     ? "local"
                   : options.Has("external-cuda-graph") ? "transformer_engine"
                                                        : "none"));
  kernels.graphed_step = implementation == "full_iteration";
  if (kernels.graphed_step || implementation == "none") return absl::OkStatus();
  return TakeScope(options, &kernels);
}

void AddMegatronLaunches(const LaunchedKernels& kernels, Settings* settings) {
  settings->AddIf(kernels.fused_routers, absl::StrCat("--", kFusedRouter));
  settings->AddIf(kernels.fused_experts, absl::StrCat("--", kFuser));
  std::vector<std::string> scope;
  for (const Module& module : kModules) {
    if (kernels.*module.graphed) scope.emplace_back(module.name);
  }
  if (scope.empty()) return;
  settings->Add(absl::StrCat("--", kImplementation),
                kernels.graphed_step ? "local" : "transformer_engine");
  settings->AddWords(absl::StrCat("--", kScope), scope);
}

}  // namespace pipelab
