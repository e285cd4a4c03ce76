// Measured training runs of today's models with their layouts, as two CSV files: models (layers,
// widths, heads, words) and rows (system, GPUs, precision, layout, tokens a second).
//
//   PIPELAB_ASSIGN_OR_RETURN(auto models, ParseModernModels(text, "models.csv"));
//   PIPELAB_ASSIGN_OR_RETURN(std::vector<ModernRow> rows, ParseModernRows(text, "rows.csv"));
//   rows[0].Seconds();        // of a step, as measured
//
// Columns that are not named here are passed over. An empty cell was not printed.
//
// Errors: InvalidArgument, one line with file, line, column and reason.
#ifndef PIPELAB_EXPERIMENTS_MODERN_MODERN_ROWS_H_
#define PIPELAB_EXPERIMENTS_MODERN_MODERN_ROWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace pipelab {

struct ModernModel {
  std::string id;  // "llama3-8b"
  int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_size = 0;
  int64_t feed_forward = 0, vocabulary = 0;
  // 0 experts: dense. Of a model with them, those that each token takes, those that all tokens take
  // besides, one's width, and the first blocks without.
  int64_t experts = 0, chosen_experts = 0, shared_experts = 0, expert_width = 0, dense_layers = 0;
  bool tied = false;      // embedding and head
  std::string attention;  // in words: "gqa swiglu"
};

struct ModernRow {
  int line = 0;           // of the file, from 1
  std::string id, group;  // "nanotron-1.34b-...": group "nanotron"
  std::string tag;        // "read", "read-2nd", "recalled": how its figures are known
  std::string system;     // its software, with the release
  std::string gpu, precision, model;
  std::string recompute, sharding, kernels, notes;  // sharding: the column fsdp
  // 0: not printed. Of a degree, no parallelism of that kind.
  int64_t gpus = 0, tokens = 0, batch = 0, micro_batch = 0;
  int64_t tensor = 1, pipeline = 1, context = 1, expert = 1, virtual_stages = 1;
  bool exchanges_heads = false;  // by its context parallelism (Megatron-Core's a2a)
  bool loss_in_place = false;    // LossImplementation::kTransformerEngine
  bool whole_pipelines = false;  // side by side: RankOrder::kTensorPipelineData
  absl::optional<double> tokens_per_second, step_seconds;  // of a GPU; of a step
  absl::optional<double> tflops;                           // of a GPU, as its source counts them
  // In the notes of some. nanotron says GB for 2^30 bytes (its helpers.py, log_throughput).
  absl::optional<double> peak_gib;

  // The time of a step, where it follows from what was printed.
  absl::optional<double> Seconds() const;
  bool trains_adapters() const;  // alone (LoRA)
  // Fine-tuning of NVIDIA's recipes: SQuAD's samples, packed up to the length, do not see each
  // other (NeMo's finetune_recipe in performance mode, Megatron-Bridge's *_llm_finetune.py).
  bool packs_samples() const;
};

// Null where there is none of the name.
const ModernModel* FindModernModel(const std::vector<ModernModel>& models, absl::string_view id);

absl::StatusOr<std::vector<ModernModel>> ParseModernModels(absl::string_view text,
                                                           absl::string_view what);
absl::StatusOr<std::vector<ModernRow>> ParseModernRows(absl::string_view text,
                                                       absl::string_view what);

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_MODERN_MODERN_ROWS_H_
