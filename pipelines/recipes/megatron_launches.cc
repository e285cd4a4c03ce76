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
constexpr char kDeterministic[] = "deterministic-mode";
constexpr char kLocal[] = "enable-cuda-graph", kExternal[] = "external-cuda-graph";

// The one is a part of moe_router's graph, the other of layers that no step here has.
constexpr absl::string_view kOthers[] = {"moe_preprocess", "mamba"};

absl::Status TakeScope(const MegatronOptions& options, LaunchedKernels* kernels) {
  if (!options.Given(kScope) || options.Values(kScope).empty()) {
    kernels->graphed_attention = kernels->graphed_feed_forward = kernels->graphed_experts = true;
    return absl::OkStatus();
  }
  for (const std::string& word : options.Values(kScope)) {
    if (word == "full") {
      kernels->graphed_attention = kernels->graphed_feed_forward = true;
      kernels->graphed_experts = true;
      continue;
    }
    const auto* module = std::find_if(std::begin(kGraphedModules), std::end(kGraphedModules),
                                      [&](const GraphedModule& m) { return m.name == word; });
    if (module != std::end(kGraphedModules)) {
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
  const bool experts = recipe->model.experts.experts > 0;
  kernels.fused_routers = experts && options.Has(kFusedRouter);
  kernels.fused_experts = experts && recipe->type == NumberType::kFp8 && options.Has(kFuser);
  kernels.filled_outputs = options.Has(kDeterministic);
  LaunchedKernels graphed;
  PIPELAB_RETURN_IF_ERROR(TakeScope(options, &graphed));
  PIPELAB_ASSIGN_OR_RETURN(
      std::string implementation,
      options.Word(kImplementation, {"none", "local", "transformer_engine", "full_iteration"},
                   "none"));
  std::string by = absl::StrCat(kImplementation, " ", implementation);
  // Older names, which the implementation replaced; Megatron-LM refuses both and two of them.
  for (const auto& [name, means] :
       {std::make_pair(kLocal, "local"), std::make_pair(kExternal, "transformer_engine")}) {
    if (!options.Has(name)) continue;
    if (implementation != "none") {
      return options.Error(name, "cannot be used with --", by, "; nearest: without --", name);
    }
    implementation = means;
    by = name;
  }
  if (implementation == "none") return absl::OkStatus();
  if (implementation == "full_iteration") {
    kernels.graphed_step = true;
    return absl::OkStatus();
  }
  (void)options.Has(kScope);  // it has an influence
  for (const GraphedModule& module : kGraphedModules)
    kernels.*module.graphed = graphed.*module.graphed;
  return absl::OkStatus();
}

void AddMegatronLaunches(const LaunchedKernels& kernels, Settings* settings) {
  settings->AddIf(kernels.fused_routers, absl::StrCat("--", kFusedRouter));
  settings->AddIf(kernels.fused_experts, absl::StrCat("--", kFuser));
  settings->AddIf(kernels.filled_outputs, absl::StrCat("--", kDeterministic));
  std::vector<std::string> scope;
  for (const GraphedModule& module : kGraphedModules) {
    if (kernels.*module.graphed) scope.emplace_back(module.name);
  }
  if (scope.empty()) return;
  settings->Add(absl::StrCat("--", kImplementation),
                kernels.graphed_step ? "local" : "transformer_engine");
  settings->AddWords(absl::StrCat("--", kScope), scope);
}

}  // namespace pipelab
