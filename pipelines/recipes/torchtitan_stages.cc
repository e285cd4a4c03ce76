#include "pipelines/recipes/torchtitan_stages.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace pipelab {
namespace {

// The modules of each stage, in the model's order.
std::vector<std::vector<std::string>> Modules(const std::vector<MegatronStage>& stages) {
  std::vector<std::vector<std::string>> all;
  int64_t layer = 0;
  for (const MegatronStage& s : stages) {
    std::vector<std::string>& modules = all.emplace_back();
    if (s.embedding) modules.emplace_back("tok_embeddings");
    for (int64_t t = 0; t < s.transformers; ++t)
      modules.push_back(absl::StrCat("layers.", layer++));
    if (s.loss) modules.insert(modules.end(), {"norm", "output"});
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<MegatronStage>> TorchtitanStages(int64_t layers, int64_t stages,
                                                            int64_t first, int64_t last) {
  if (stages == 1) return StagesOfTransformers({layers});
  const int64_t counted = layers + first + last, ends = std::max<int64_t>({first, last, 1});
  const int64_t each = counted / stages, more = counted % stages;
  if (each < ends) {
    return absl::InvalidArgumentError(absl::StrCat(stages, " stages are too many for ", layers,
                                                   " layers; nearest: ", counted / ends));
  }
  std::vector<int64_t> transformers;
  for (int64_t s = 0; s < stages; ++s) transformers.push_back(each + (s < more ? 1 : 0));
  transformers.front() -= first;
  transformers.back() -= last;
  return StagesOfTransformers(transformers);
}

absl::StatusOr<std::vector<MegatronStage>> StagesOfModules(const nlohmann::json& parts,
                                                           int64_t layers) {
  std::vector<MegatronStage> stages;
  int64_t layer = 0;
  const auto next = [&] {
    return stages.empty() || (stages.size() == 1 && stages[0].empty())
               ? std::string("tok_embeddings")
           : layer < layers ? absl::StrCat("layers.", layer)
                            : std::string("norm");
  };
  if (!parts.is_array()) return absl::InvalidArgumentError("must be a list of lists of modules");
  bool norm = false;
  for (const nlohmann::json& part : parts) {
    if (!part.is_array()) return absl::InvalidArgumentError("must be a list of lists of modules");
    stages.emplace_back();
    for (const nlohmann::json& module : part) {
      MegatronStage& s = stages.back();
      const std::string name = module.is_string() ? module.get<std::string>() : module.dump();
      const std::string expected = norm ? "output" : next();
      if (name != expected || s.loss) {
        return absl::InvalidArgumentError(
            absl::StrCat("\"", name, "\": modules must be in the model's order, each once; here \"",
                         s.loss ? "nothing more" : expected, "\" would do"));
      }
      s.embedding |= name == "tok_embeddings";
      s.loss |= name == "output";
      norm = name == "norm";
      if (name == absl::StrCat("layers.", layer)) {
        ++s.transformers;
        ++layer;
      }
    }
  }
  if (!stages.empty() && stages.back().loss) return stages;
  return absl::InvalidArgumentError("\"output\" must be the last module");
}

std::string ModulesOfStages(const std::vector<MegatronStage>& stages) {
  return absl::StrCat("[",
                      absl::StrJoin(Modules(stages), ", ",
                                    [](std::string* out, const std::vector<std::string>& modules) {
                                      absl::StrAppend(out, "[\"", absl::StrJoin(modules, "\", \""),
                                                      "\"]");
                                    }),
                      "]");
}

}  // namespace pipelab
